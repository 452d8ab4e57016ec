// The wizard's memory, and what runs of it.
import { effect, signal } from "@preact/signals";
import type { Action, Problem, Provision, Provisioned } from "../api/types.ts";
import { asProblem, call, seg } from "../api/call.ts";
import { me } from "../session.ts";
import { empty, type Draft } from "./draft.ts";

/** What has been said so far. */
export const draft = signal<Draft>(empty());

/** Changes what has been said. */
export function put(change: Partial<Draft>): void {
  draft.value = { ...draft.value, ...change };
}

/** Run is one machine whose install was asked for. */
export interface Run {
  machine: string;
  /** The name of its workflow; asking again with the same is no second install. */
  workflow: string;
  request: Provision;
  /** When it was asked for, in milliseconds. */
  at: number;
  state: "asking" | "started" | "refused";
  actions: Action[];
  problem?: Problem | undefined;
}

/** The installs that were started last; undefined while the wizard is being filled in. */
export const runs = signal<Run[] | undefined>(undefined);

/** Forgets everything that was said, secrets too. */
export function reset(): void {
  draft.value = empty();
  runs.value = undefined;
}

effect(() => {
  if (me.value === null) reset();
});

const change = (machine: string, to: Partial<Run>) => (runs.value = runs.value?.map((r) => (r.machine === machine ? { ...r, ...to } : r)));

/** How many machines are asked about, or started, at a time. */
const atOnce = 4;

/** Does f for each of all, a few at a time. */
export async function each<T>(all: T[], f: (v: T) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: Math.min(atOnce, all.length) }, async () => {
      while (next < all.length) await f(all[next++]!);
    }),
  );
}

/** Starts the installs; one that is refused stops no other. */
export async function start(requests: { machine: string; request: Provision }[]): Promise<void> {
  runs.value = requests.map(({ machine, request }) => {
    const workflow = `${request.template || "install"}`.slice(0, 20) + `-${machine.slice(0, 24)}-${random()}`;
    return { machine, workflow, request: { ...request, name: workflow }, at: Date.now(), state: "asking", actions: [] };
  });
  await each(runs.value, ask);
}

/** Asks once more for one that was refused, or of which no answer came. */
export const again = (run: Run): Promise<void> => ask(run);

async function ask(run: Run): Promise<void> {
  change(run.machine, { state: "asking", problem: undefined });
  try {
    const p = await call<Provisioned>("POST", `/hardware/${seg(run.machine)}/provision`, { body: run.request });
    change(run.machine, { state: "started", actions: p.workflow.status?.actions ?? [] });
  } catch (err) {
    change(run.machine, { state: "refused", problem: asProblem(err) });
  }
}

function random(): string {
  return [...crypto.getRandomValues(new Uint8Array(5))].map((b) => (b % 36).toString(36)).join("");
}
