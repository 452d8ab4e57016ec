// What is read from the API and is kept true by the event stream.
import { effect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Event, Problem } from "./api/types.ts";
import { asProblem, askAgain, silent } from "./api/call.ts";
import { link, listen } from "./api/stream.ts";

/** How soon after an event it is read again, and how often at most, in milliseconds. */
const soon = 60;
const often = 700;

/** Live is what was read, when that was, and why it cannot be read. */
export interface Live<T> {
  data: T | undefined;
  /** The time in milliseconds at which data came; 0 before that. */
  at: number;
  problem: Problem | undefined;
  reload: () => void;
}

/**
 * Reads something, and again shortly after each event that wants() is true for, and until the appliance answers. What no event tells is read again after every() milliseconds; 0 is never. What was read stays
 * while it is read again; with other deps it is something else.
 */
export function useLive<T>(read: (signal: AbortSignal, was: T | undefined) => Promise<T>, wants: (e: Event) => boolean, deps: unknown[], every: (data: T) => number = () => 0): Live<T> {
  const [state, setState] = useState<{ data: T | undefined; at: number; problem: Problem | undefined }>({ data: undefined, at: 0, problem: undefined });
  const now = useRef({ read, wants, every, again: () => {} });
  now.current.read = read;
  now.current.wants = wants;
  now.current.every = every;
  useEffect(() => {
    const abort = new AbortController();
    let data: T | undefined;
    let timer = 0;
    let later = 0;
    let last = 0;
    let busy = false;
    let dirty = false;
    let failed = false;
    const run = async () => {
      timer = 0;
      clearTimeout(later);
      busy = true;
      dirty = false;
      last = Date.now();
      let problem: Problem | undefined;
      try {
        data = await now.current.read(abort.signal, data);
        failed = false;
        if (!abort.signal.aborted) setState({ data, at: Date.now(), problem: undefined });
      } catch (err) {
        failed = true;
        problem = asProblem(err);
        if (!abort.signal.aborted) setState((s) => ({ ...s, problem }));
      }
      busy = false;
      if (abort.signal.aborted) return;
      if (dirty) plan();
      const rest = silent(problem) ? askAgain : data === undefined ? 0 : now.current.every(data);
      if (rest > 0) later = window.setTimeout(plan, rest);
    };
    const plan = () => {
      dirty = true;
      if (!timer && !busy && !document.hidden) timer = window.setTimeout(() => void run(), Math.max(soon, last + often - Date.now()));
    };
    const seen = () => dirty && plan(); // nobody looks at a hidden page
    document.addEventListener("visibilitychange", seen);
    now.current.again = plan;
    setState((s) => (s.at ? { data: undefined, at: 0, problem: undefined } : s));
    void run();
    const end = listen({ event: (e) => now.current.wants(e) && plan(), relist: plan });
    const back = effect(() => {
      if (link.value === "live" && failed) plan(); // somebody signed in again, for one
    });
    return () => {
      abort.abort();
      clearTimeout(timer);
      clearTimeout(later);
      document.removeEventListener("visibilitychange", seen);
      end();
      back();
    };
  }, deps);
  return { ...state, reload: () => now.current.again() };
}

/** Whether an event says that records of a kind may have changed by a request, like "images"; apply may change any. */
export function changes(kinds: string): (e: Event) => boolean {
  const path = new RegExp(` /api/v1/(${kinds}|apply)\\b`);
  return (e) => e.reason === "api-change" && path.test(e.detail ?? "");
}
