import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asProblem } from "../api/call.ts";
import type { Problem } from "../api/types.ts";
import { ProblemBox } from "./basic.tsx";

/** A part that is fetched when it is shown first, like the editor. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): (props: P) => JSX.Element {
  let part: ComponentType<P> | undefined;
  return function Lazy(props: P): JSX.Element {
    const [, redraw] = useState(0);
    const [problem, setProblem] = useState<Problem>();
    useEffect(() => {
      if (part) return;
      load().then(
        (p) => {
          part = p;
          redraw((n) => n + 1);
        },
        (err: unknown) => setProblem({ ...asProblem(err), hint: "Reload the page: after an upgrade of the appliance it has other files." }),
      );
    }, []);
    if (problem) return <ProblemBox problem={problem} />;
    const Part = part;
    return Part ? <Part {...props} /> : <p class="loading">Loading…</p>;
  };
}
