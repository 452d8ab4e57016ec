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

/** The milliseconds that are left at that rate; undefined where nobody can tell. */
export const left = (done: number, of: number, rate: number): number | undefined => (rate > 0 && of > done ? ((of - done) / rate) * 1000 : undefined);
