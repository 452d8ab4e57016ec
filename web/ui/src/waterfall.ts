// One boot as a picture: what happened when, on one axis of time. Nothing here draws.
import type { Attempt, BootTimeline, WorkflowState } from "./api/types.ts";
import { duration, parseDuration } from "./format.ts";

/** How a bar came out. A part that goes on is "running". */
type Outcome = "done" | "running" | "failed" | "interrupted";

/** Bar is one stretch of time, in milliseconds since the picture's zero. */
export interface Bar {
  from: number;
  to: number;
  outcome: Outcome;
  /** Where it is one of several tries, which, from 1. */
  attempt?: number;
  message?: string;
}

/** Group says whose time a lane is. */
type Group = "wait" | "netboot" | "work" | "system";

/** Lane is one phase or action with its bars. */
export interface Lane {
  name: string;
  /** The phase in words that people know from elsewhere. */
  label: string;
  group: Group;
  bars: Bar[];
  /** All its bars together, in milliseconds. */
  took: number;
  /** Bytes that moved in it; 0 is not known. */
  bytes: number;
  running: boolean;
}

/** Tick is a mark on the axis. */
interface Tick {
  at: number;
  text: string;
}

/** Mark is a moment that matters. */
interface Mark {
  at: number;
  text: string;
  good: boolean;
}

/** Picture is a whole boot. */
export interface Picture {
  lanes: Lane[];
  marks: Mark[];
  ticks: Tick[];
  /** Where the axis ends, in milliseconds after its zero. */
  end: number;
  /** What is left out before zero, because somebody had to walk there; 0 is nothing. */
  waited: number;
  /** From the boot's start to its last part's end. */
  total: number;
  running: boolean;
}

/** ActionRun is what the workflow says of an action in this boot. */
export interface ActionRun {
  name: string;
  attempts: Attempt[];
}

const labels = new Map(Object.entries({
  "somebody switches it on": "somebody switches it on",
  "power on": "firmware",
  address: "DHCP",
  "boot program": "boot program (TFTP or HTTP)",
  "boot script": "boot script",
  kernel: "kernel",
  initramfs: "initramfs",
  "worker start": "worker starts",
  "restart into the system": "reboot",
  "first start of the system": "system starts",
}));

const groups = new Map<string, Group>([
  ["somebody switches it on", "wait"],
  ["restart into the system", "system"],
  ["first start of the system", "system"],
]);

const abouts = new Map(Object.entries({
  "power on": "from the power controller's switch to the firmware's first packet: its self-test, disks, option ROMs",
  address: "from the firmware's first packet to its address",
  "boot program": "until the first program was sent, over TFTP or HTTP",
  "boot script": "until that program had asked for an address and fetched its script",
  kernel: "until the kernel was sent",
  initramfs: "until the worker's initramfs was sent",
  "worker start": "the kernel starts, finds its network, and the worker connects",
  "restart into the system": "from the last action to the first packet of the installed system: firmware again, then its boot loader",
  "first start of the system": "from its first packet to its report that it is up",
}));

/** What a phase is, in a sentence; actions have none. */
export const about = (name: string): string | undefined => abouts.get(name);

const groupOf = (name: string): Group => groups.get(name) ?? (labels.has(name) ? "netboot" : "work");

const outcomeOf = (state: WorkflowState, interrupted: boolean | undefined): Outcome => {
  if (interrupted) return "interrupted";
  if (state === "running" || state === "pending") return "running";
  return state === "succeeded" ? "done" : "failed";
};

/** The picture of a boot that was read a while (milliseconds) ago; runs is what is known of its actions. */
export function layout(boot: BootTimeline, runs: ActionRun[], ago: number): Picture {
  const start = Date.parse(boot.started);
  const lanes: Lane[] = [];
  const byName = new Map<string, Lane>();
  let waited = 0;
  for (const s of boot.split ?? []) {
    const from = parseDuration(s.at);
    const to = from + parseDuration(s.took) + (s.ended ? 0 : ago);
    if (groupOf(s.name) === "wait") {
      waited = to;
      continue;
    }
    let lane = byName.get(s.name);
    if (!lane) {
      byName.set(s.name, (lane = { name: s.name, label: labels.get(s.name) ?? s.name, group: groupOf(s.name), bars: [], took: 0, bytes: 0, running: false }));
      lanes.push(lane);
    }
    lane.bars.push({ from, to, outcome: s.ended ? "done" : "running" });
    lane.bytes += s.bytes ?? 0;
  }
  for (const lane of lanes) tries(lane, runs.find((r) => r.name === lane.name)?.attempts ?? [], boot.boot, start);
  let end = 0;
  for (const lane of lanes) {
    lane.bars = lane.bars.map((b) => ({ ...b, from: Math.max(0, b.from - waited), to: Math.max(0, b.to - waited) }));
    lane.took = lane.bars.reduce((n, b) => n + b.to - b.from, 0);
    lane.running = lane.bars.some((b) => b.outcome === "running");
    for (const b of lane.bars) end = Math.max(end, b.to);
  }
  const axis = Math.max(end, 1000);
  return { lanes, marks: marks(boot, waited, axis), ticks: ticks(axis), end: axis, waited, total: end, running: lanes.some((l) => l.running) };
}

/** Puts the tries of an action in place of the bars that the events make: they say how each came out. */
function tries(lane: Lane, attempts: Attempt[], boot: string | undefined, start: number): void {
  if (lane.group !== "work") return;
  const last = Math.max(...lane.bars.map((b) => b.to));
  const bars = attempts.flatMap((a, i) =>
    a.boot === boot && a.started ? [{ from: Date.parse(a.started) - start, to: a.finished ? Date.parse(a.finished) - start : last, outcome: outcomeOf(a.state, a.interrupted), attempt: i + 1, ...(a.message ? { message: a.message } : {}) }] : [],
  );
  if (bars.length > 0) lane.bars = bars;
}

/** By how much a mark may come after the end of the last bar: a begin and a duration are rounded each, in milliseconds. */
const rounding = 2;

function marks(boot: BootTimeline, waited: number, end: number): Mark[] {
  const out: Mark[] = [];
  const add = (reason: string, text: string, good: boolean) => {
    const l = boot.lines.find((l) => l.reason === reason);
    const at = l ? parseDuration(l.at) - waited : -1;
    if (at >= 0 && at <= end + rounding) out.push({ at: Math.min(at, end), text, good });
  };
  add("os-up", "OS up", true);
  add("worker-lost", "worker lost", false);
  add("workflow-failed", "workflow failed", false);
  add("workflow-timeout", "out of time", false);
  return out;
}

const steps = [100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 3 * 3600e3, 6 * 3600e3, 12 * 3600e3, 86400e3];

/** Marks of an axis from 0 to end (milliseconds): at most six, at round times, with their unit. */
export function ticks(end: number): Tick[] {
  let step = steps.find((s) => end / s <= 6) ?? 86400e3;
  while (end / step > 6) step *= 2;
  const out: Tick[] = [];
  for (let at = 0; at <= end; at += step) out.push({ at, text: at === 0 ? "0 s" : step < 1e3 ? `${(at / 1e3).toFixed(1)} s` : duration(at).replace(".0", "") });
  return out;
}

/** Puts boots that were read again in place of those that were there. Unless it is whole, the first of them may be cut off and is not taken; undefined is "read everything". */
export function merge(was: BootTimeline[], fresh: BootTimeline[], whole: boolean): BootTimeline[] | undefined {
  if (whole) return fresh;
  const take = fresh.slice(1);
  if (take.length === 0) return undefined;
  const boots = new Set(take.map((b) => b.boot ?? ""));
  // what switched a machine on moves from the boot before to the one that came of it
  const moved = new Set(take.flatMap((b) => b.lines.map((l) => l.id)));
  const kept = was.filter((b) => !boots.has(b.boot ?? "")).map((b) => (b.lines.some((l) => moved.has(l.id)) ? { ...b, lines: b.lines.filter((l) => !moved.has(l.id)) } : b));
  return [...kept.filter((b) => b.lines.length > 0), ...take];
}
