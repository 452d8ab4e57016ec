// The machines of the rack as rows, always as they are now: read once, then kept true by
// the event stream. Every page reads them from here.
import { batch, computed, signal, type Signal } from "@preact/signals";
import type { Event, HardwareSummary, HardwareSummaryList, Progress } from "./api/types.ts";
import { asProblem, call } from "./api/call.ts";
import { follow, listen, stop } from "./api/stream.ts";
import { Known } from "./known.ts";
import { Speed } from "./speed.ts";
import type { Problem } from "./api/types.ts";

/** Row is a machine as tables show it. */
export type Row = HardwareSummary;

const known = new Known<Row>();

/** Counts the changes of the rows; whoever reads rows or row() is told by it. */
const version = signal(0);

/** Whether all rows are there; before that a part is shown. */
export const complete = signal(false);

/** Why the rows cannot be read. */
export const rowsProblem = signal<Problem | undefined>(undefined);

/** All rows, by name. The array is new after each change. */
export const rows = computed<Row[]>(() => {
  version.value;
  return [...known.rows.values()];
});

/** The row of a machine; undefined where there is none (or not yet). */
export function row(name: string): Row | undefined {
  version.value;
  return known.rows.get(name);
}

/** Rate is progress with its speed. */
interface Rate extends Progress {
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
  const of = progressed(p.workflow);
  const was = of.now.peek();
  if (was && (was.action !== p.action || was.attempt !== p.attempt)) of.speed = new Speed();
  of.now.value = { ...p, rate: of.speed.take(p.done, Date.parse(p.at ?? "")) };
}

/** Forgets the progress of workflows that are over: a page may be open for weeks. */
function forget(): void {
  const active = new Set<string>();
  for (const r of known.rows.values()) if (r.active && r.workflow) active.add(r.workflow);
  for (const w of progressOf.keys()) if (!active.has(w)) progressOf.delete(w);
}

// more than this many are over, for the most part
const crowd = 1000;

const dirty = new Set<string>();
let timer = 0;
let running: AbortController | undefined;

/** Says that a machine's row may have changed; it is read again shortly, or when somebody looks again. */
function touch(name: string): void {
  dirty.add(name);
  soon();
}

function soon(): void {
  // the first at once, what follows together: an event is on the page in well under half a second
  if (!timer && running && dirty.size > 0 && !document.hidden) timer = window.setTimeout(refresh, 80);
}

document.addEventListener("visibilitychange", soon);

async function refresh(): Promise<void> {
  const ended = running!.signal;
  const names = [...dirty].slice(0, 500);
  for (const n of names) dirty.delete(n);
  try {
    const list = await call<HardwareSummaryList>("GET", "/summaries", { query: { name: names.join(",") }, signal: ended });
    if (ended.aborted) return;
    batch(() => {
      known.read(names, list.items);
      version.value++;
    });
    if (progressOf.size > crowd + known.rows.size) forget();
  } catch {
    if (ended.aborted) return; // everything is read anew, or nobody is signed in
    for (const n of names) dirty.add(n); // the connection is lost, or busy: once more
    await new Promise((f) => setTimeout(f, 1000));
    if (ended.aborted) return;
  }
  timer = 0;
  soon();
}

const page = 2000;

/** Reads everything and follows what changes, until pause() or end() is called. */
export async function begin(): Promise<void> {
  halt();
  const mine = (running = new AbortController());
  complete.value = false;
  rowsProblem.value = undefined;
  known.begin();
  try {
    let next: string | undefined;
    let followed = false;
    do {
      const list: HardwareSummaryList = await call("GET", "/summaries", { query: { limit: followed ? page : 200, continue: next }, signal: mine.signal });
      next = list.continue;
      if (!followed) follow(list.cursor ?? 0); // what changes while the rest is read is told
      followed = true;
      batch(() => {
        known.page(list.items);
        if (!next) known.whole(dirty);
        complete.value = !next;
        version.value++;
      });
    } while (next);
    forget();
  } catch (err) {
    if (mine.signal.aborted) return;
    rowsProblem.value = asProblem(err);
    window.setTimeout(() => {
      if (running === mine) void begin();
    }, 3000);
  }
}

function halt(): void {
  running?.abort();
  running = undefined;
  clearTimeout(timer);
  timer = 0;
  dirty.clear();
}

/** Asks for nothing any more; what is known stays. */
export function pause(): void {
  halt();
  stop();
}

/** Forgets everything: somebody signed out. */
export function end(): void {
  pause();
  known.rows.clear();
  progressOf.clear();
  complete.value = false;
  rowsProblem.value = undefined;
  version.value++;
}

listen({
  event: (e: Event) => {
    if (e.machine) touch(e.machine);
  },
  progress: report,
  relist: () => void begin(),
});
