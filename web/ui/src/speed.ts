import { bytes, duration, rate } from "./format.ts";

/** How fast something moves, smoothed, from what is known of it now and then. */
export class Speed {
  #was: { done: number; at: number } | undefined;
  #rate = 0;

  /** Takes how much is done at a time in milliseconds and says how much a second that is; 0 is not known yet. */
  take(done: number, at: number): number {
    const was = this.#was;
    if (was && done < was.done) this.#rate = 0; // it began anew
    else if (was && at > was.at) {
      const now = ((done - was.done) * 1000) / (at - was.at);
      this.#rate = this.#rate === 0 ? now : this.#rate * 0.7 + now * 0.3;
    }
    this.#was = { done, at };
    return this.#rate;
  }
}

/** What moves. Done and total are in bytes, no total is not known; rate is in bytes a second, 0 is not known. */
interface Moved {
  done: number;
  total?: number | undefined;
  rate: number;
}

/** How fast it moves and how long it still takes, as far as anybody can tell: "120 MB/s · 24 s left"; empty where nobody can. */
export function pace({ done, total = 0, rate: r }: Moved): string {
  if (!(r > 0)) return "";
  // a second more than it takes is no disappointment
  return total > done ? `${rate(r)} · ${duration(Math.ceil((total - done) / r) * 1000)} left` : rate(r);
}

/** How far it is, how fast, and how long it still takes: "1.2 GB of 4 GB · 120 MB/s · 24 s left". */
export const moved = (m: Moved): string => [m.total ? `${bytes(m.done)} of ${bytes(m.total)}` : bytes(m.done), pace(m)].filter(Boolean).join(" · ");
