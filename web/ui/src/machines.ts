// The machines of the rack as rows, always as they are now: read once, then kept true by
// the event stream. Every page reads them from here.
import { batch, computed, signal, type Signal } from "@preact/signals";
import type { Event, HardwareSummary, HardwareSummaryList, Progress } from "./api/types.ts";
import { asProblem, call } from "./api/call.ts";
import { follow, listen, stop } from "./api/stream.ts";
import { Speed } from "./speed.ts";
import type { Problem } from "./api/types.ts";

/** Row is a machine as tables show it. */
export type Row = HardwareSummary;

const byName = new Map<string, Row>();

/** Counts the changes of the rows; whoever reads rows or row() is told by it. */
const version = signal(0);

/** Whether all rows are there; before that a part is shown. */
export const complete = signal(false);

/** Why the rows cannot be read. */
export const rowsProblem = signal<Problem | undefined>(undefined);

/** All rows, by name. The array is new after each change. */
export const rows = computed<Row[]>(() => {
  version.value;
  return [...byName.values()];
});

/** The row of a machine; undefined where there is none (or not yet). */
export function row(name: string): Row | undefined {
  version.value;
  return byName.get(name);
}

/** Rate is progress with its speed. */
export interface Rate extends Progress {
  /** Bytes a second, smoothed; 0 is not known yet. */
  rate: number;
}

const progressOf = new Map<string, { now: Signal<Rate | undefined>; speed: Speed }>();

function progressed(workflow: string): { now: Signal<Rate | undefined>; speed: Speed } {
  let p = progressOf.get(workflow);
  if (!p) progressOf.set(workflow, (p = { now: signal(undefined), speed: new Speed() }));
  return p;
}

/** How far a workflow is, by its name; it changes twice a second while it moves. */
export const progress = (workflow: string): Signal<Rate | undefined> => progressed(workflow).now;

/** Takes a report of progress and knows its speed by the one before. */
export function report(p: Progress): void {
  const known = progressed(p.workflow);
  const was = known.now.peek();
  if (was && (was.action !== p.action || was.attempt !== p.attempt)) known.speed = new Speed();
  known.now.value = { ...p, rate: known.speed.take(p.done, Date.parse(p.at ?? "")) };
}

const dirty = new Set<string>();
let timer = 0;
let running: AbortController | undefined;

/** Says that a machine's row may have changed; it is read again shortly. */
export function touch(name: string): void {
  dirty.add(name);
  // the first at once, what follows together: an event is on the page in well under half a second
  if (!timer) timer = window.setTimeout(refresh, 80);
}

async function refresh(): Promise<void> {
  const names = [...dirty].slice(0, 500);
  for (const n of names) dirty.delete(n);
  try {
    const list = await call<HardwareSummaryList>("GET", "/summaries", { query: { name: names.join(",") }, signal: running?.signal });
    batch(() => {
      const found = new Set<string>();
      for (const r of list.items) {
        found.add(r.name);
        byName.set(r.name, r);
      }
      for (const n of names) if (!found.has(n)) byName.delete(n);
      version.value++;
    });
  } catch {
    if (running?.signal.aborted) return;
    for (const n of names) dirty.add(n); // the connection is lost, or busy: once more
    await new Promise((f) => setTimeout(f, 1000));
  }
  timer = dirty.size > 0 ? window.setTimeout(refresh, 80) : 0;
}

const page = 2000;

/** Reads everything and follows what changes, until end() is called. */
export async function begin(): Promise<void> {
  running?.abort();
  const mine = (running = new AbortController());
  complete.value = false;
  rowsProblem.value = undefined;
  try {
    const fresh = new Map<string, Row>();
    let next: string | undefined;
    let followed = false;
    do {
      const list: HardwareSummaryList = await call("GET", "/summaries", { query: { limit: next ? page : 200, continue: next }, signal: mine.signal });
      for (const r of list.items) fresh.set(r.name, r);
      next = list.continue;
      if (!followed) follow(list.cursor ?? 0); // what changes while the rest is read is told
      followed = true;
      batch(() => {
        for (const [n, r] of fresh) byName.set(n, r);
        if (!next) for (const n of [...byName.keys()]) if (!fresh.has(n) && !dirty.has(n)) byName.delete(n);
        complete.value = !next;
        version.value++;
      });
    } while (next);
  } catch (err) {
    if (mine.signal.aborted) return;
    rowsProblem.value = asProblem(err);
    window.setTimeout(() => {
      if (running === mine) void begin();
    }, 3000);
  }
}

/** Forgets everything: somebody signed out. */
export function end(): void {
  running?.abort();
  running = undefined;
  clearTimeout(timer);
  timer = 0;
  stop();
  byName.clear();
  dirty.clear();
  progressOf.clear();
  complete.value = false;
  version.value++;
}

listen({
  event: (e: Event) => {
    if (e.machine) touch(e.machine);
  },
  progress: report,
  relist: () => void begin(),
});
