// What is read from the API and is kept true by the event stream.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Event, Problem } from "./api/types.ts";
import { asProblem, askAgain, silent } from "./api/call.ts";
import { listen } from "./api/stream.ts";

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

/** Reads something, and again shortly after each event that wants() is true for. What was read stays while it is read again. */
export function useLive<T>(read: (signal: AbortSignal, was: T | undefined) => Promise<T>, wants: (e: Event) => boolean, deps: unknown[]): Live<T> {
  const [state, setState] = useState<{ data: T | undefined; at: number; problem: Problem | undefined }>({ data: undefined, at: 0, problem: undefined });
  const now = useRef({ read, wants, again: () => {} });
  now.current.read = read;
  now.current.wants = wants;
  useEffect(() => {
    const abort = new AbortController();
    let data: T | undefined;
    let timer = 0;
    let later = 0;
    let last = 0;
    let busy = false;
    let dirty = false;
    const run = async () => {
      timer = 0;
      busy = true;
      dirty = false;
      last = Date.now();
      try {
        data = await now.current.read(abort.signal, data);
        if (!abort.signal.aborted) setState({ data, at: Date.now(), problem: undefined });
      } catch (err) {
        const problem = asProblem(err);
        if (!abort.signal.aborted) setState((s) => ({ ...s, problem }));
        if (silent(problem)) later = window.setTimeout(plan, askAgain);
      }
      busy = false;
      if (dirty && !abort.signal.aborted) plan();
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
    return () => {
      abort.abort();
      clearTimeout(timer);
      clearTimeout(later);
      document.removeEventListener("visibilitychange", seen);
      end();
    };
  }, deps);
  return { ...state, reload: () => now.current.again() };
}
