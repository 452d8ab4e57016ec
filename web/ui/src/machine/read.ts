// What the machine page reads, kept true by events.
import type { Event, Hardware, Timeline, WorkflowList, WorkflowWorkflow } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { useLive, type Live } from "../live.ts";
import { merge } from "../waterfall.ts";

/** Whether an event is about a machine. */
export const about = (name: string) => (e: Event) => e.machine === name;

/** How many lines of a timeline are read at first, and again after an event. */
const first = 1000;
const again = 200;

/** All lines that the appliance keeps of a machine at most. */
const most = 10_000;

/** A machine's record with what is known of it. */
export const useMachine = (name: string): Live<Hardware> => useLive((signal) => call<Hardware>("GET", `/hardware/${seg(name)}`, { signal }), about(name), [name]);

/** A machine's timeline; all is everything that is kept. */
export function useTimeline(name: string, all: boolean): Live<Timeline> {
  const read = (limit: number, signal: AbortSignal) => call<Timeline>("GET", `/hardware/${seg(name)}/timeline`, { query: { limit }, signal });
  const everything = all ? most : first;
  return useLive(
    async (signal, was: Timeline | undefined) => {
      if (!was) return read(everything, signal);
      const fresh = await read(again, signal);
      const whole = fresh.boots.reduce((n, b) => n + b.lines.length, 0) < again;
      const boots = merge(was.boots, fresh.boots, whole);
      return boots ? { ...fresh, boots } : read(everything, signal);
    },
    about(name),
    [name, all],
  );
}

/** The workflows of a machine, the newest first. */
export const useWorkflows = (name: string): Live<WorkflowWorkflow[]> =>
  useLive(async (signal) => (await call<WorkflowList>("GET", "/workflows", { query: { hardware: name, sort: "-since", limit: 100 }, signal })).items.sort(newestFirst), about(name), [name]);

const born = (w: WorkflowWorkflow) => Date.parse(w.metadata.created ?? w.status?.started ?? "");

const newestFirst = (a: WorkflowWorkflow, b: WorkflowWorkflow) => born(b) - born(a);
