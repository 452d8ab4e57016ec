// One verb on many machines: in parts, so that it shows how far it is, and so that one
// machine that is gone stops no other.
import type { Applied, ApplyResult } from "../api/types.ts";
import { call, Failure } from "../api/call.ts";

/** What is done with machines, as POST /bulk has it. */
export interface Order {
  verb: string;
  options?: Record<string, unknown> | undefined;
}

/** How a run of many requests is told and stopped. */
interface Watch {
  /** Hears what is known after each part. */
  tell: (done: Applied[]) => void;
  /** Asked before each part. */
  stopped: () => boolean;
  signal?: AbortSignal;
}

// a preview is quick; what is really done is told in smaller steps
const previewPart = 500;
const doPart = 100;

/** What the verb would do with each machine; nothing happens. Throws a Failure. */
export const preview = (o: Order, names: string[], w: Watch): Promise<Applied[]> => parts(o, names, true, previewPart, w);

/** Does the verb. What was not begun when it was stopped is "skipped"; of a part whose answer was lost that is said. Throws a Failure only where nothing was begun. */
export const perform = (o: Order, names: string[], w: Watch): Promise<Applied[]> => parts(o, names, false, o.verb === "power" ? 24 : doPart, w);

async function parts(o: Order, names: string[], dry: boolean, size: number, w: Watch): Promise<Applied[]> {
  const done: Applied[] = [];
  for (let i = 0; i < names.length; i += size) {
    const part = names.slice(i, i + size);
    if (w.stopped()) return [...done, ...names.slice(i).map((n) => verdict(n, "skipped", "not begun: it was stopped before"))];
    try {
      done.push(...(await one(o, part, dry, w.signal)));
    } catch (err) {
      if (!(err instanceof Failure) || dry || (i === 0 && err.status >= 400 && err.status < 500)) throw err;
      const why = err.status === 0 ? "no answer came: whether it was done is not known" : err.message;
      return [...done, ...part.map((n) => verdict(n, "error", why, err.problem.hint)), ...names.slice(i + size).map((n) => verdict(n, "skipped", "not begun, because of the error before"))];
    }
    w.tell(done);
  }
  return done;
}

const verdict = (name: string, result: Applied["result"], detail: string, hint?: string): Applied => ({ index: 0, name, result, detail, ...(hint ? { hint } : {}) });

/** One request. A machine that is gone is looked for by halves: the API refuses the whole request for it. */
async function one(o: Order, names: string[], dry: boolean, signal: AbortSignal | undefined): Promise<Applied[]> {
  try {
    const body = { verb: o.verb, names, options: o.options, confirm: dry ? undefined : names.length };
    return (await call<ApplyResult>("POST", "/bulk", { query: { dryRun: dry || undefined }, body, signal })).results;
  } catch (err) {
    if (!(err instanceof Failure)) throw err;
    if (err.problem.results) return err.problem.results;
    if (err.status !== 404) throw err;
    if (names.length === 1) return [verdict(names[0]!, "error", err.message, err.problem.hint)];
    const half = Math.ceil(names.length / 2);
    return [...(await one(o, names.slice(0, half), dry, signal)), ...(await one(o, names.slice(half), dry, signal))];
  }
}

/** Whether something happens, or happened, to the machine. */
export const acts = (a: Applied): boolean => a.result !== "error" && a.result !== "unchanged" && a.result !== "skipped";

/** What can be tried again: what failed, and what was not begun. */
export const again = (a: Applied): boolean => a.result === "error" || a.result === "skipped";

/** What is wrong, with how many machines it is wrong for; the most first. */
export function reasons(results: Applied[]): { text: string; hint: string | undefined; names: string[] }[] {
  const by = new Map<string, { text: string; hint: string | undefined; names: string[] }>();
  for (const a of results) {
    if (a.result !== "error") continue;
    // the same sentence about each machine is one reason
    const text = whyOf(a).replaceAll(a.name ?? "\0", "…");
    const r = by.get(text);
    if (r) r.names.push(a.name ?? "");
    else by.set(text, { text, hint: a.hint?.replaceAll(a.name ?? "\0", "NAME"), names: [a.name ?? ""] });
  }
  return [...by.values()].sort((a, b) => b.names.length - a.names.length);
}

/** Why something is refused, or what is done, in one line. */
export function whyOf(a: Applied): string {
  const fields = (a.errors ?? [])
    .filter((e) => !a.detail?.includes(e.detail)) // the sentence about the whole often has it
    .map((e) => `${e.field} ${e.detail}`)
    .join("; ");
  const changes = (a.changes ?? []).map((c) => `${c.field}: ${shown(c.from)} → ${shown(c.to)}`).join("; ");
  const skipped = (a.skipped ?? []).map((s) => `skipped: ${s}`).join("; ");
  return [a.detail, fields, changes, skipped].filter((s) => s).join("; ");
}

const shown = (v: unknown): string => (v === undefined || v === null ? "nothing" : typeof v === "string" ? v : JSON.stringify(v));

/** Labels as people write them, `tier=db rack=a1`, with commas or spaces between them. */
export function labelsIn(text: string): Record<string, string> {
  const out: Record<string, string> = {};
  for (const word of text.split(/[\s,]+/)) {
    if (!word) continue;
    const i = word.indexOf("=");
    out[i < 0 ? word : word.slice(0, i)] = i < 0 ? "" : word.slice(i + 1);
  }
  return out;
}
