import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { missing, steps, type Step } from "../provision/draft.ts";
import { Image, templateOf, useTemplates } from "../provision/image.tsx";
import { Machines, refusals } from "../provision/machines.tsx";
import { Progress } from "../provision/progress.tsx";
import { Review } from "../provision/review.tsx";
import { draft, put, runs } from "../provision/state.ts";
import { UserData } from "../provision/userdata.tsx";
import { query, setQuery } from "../router.tsx";
import { count } from "../format.ts";
import { Button } from "../ui/basic.tsx";

const titles: Record<Step, string> = { machines: "Machines", image: "Image and disk", "user-data": "User-data and network", review: "Review" };

/** Installs machines, step by step: /provision?machines=a,b&image=x. */
export default function Provision(): JSX.Element {
  useQuery();
  const templates = useTemplates();
  const d = draft.value;
  const at = stepAt();
  const heading = useRef<HTMLHeadingElement>(null);
  const moved = useRef(false);
  const running = runs.value !== undefined;
  useEffect(() => {
    if (moved.current) heading.current?.focus();
    moved.current = true;
  }, [at, running]);
  const to = (s: Step) => {
    setQuery({ step: s === steps[0] ? undefined : s, q: undefined, show: undefined }, { push: true });
    window.scrollTo(0, 0);
  };
  if (running) {
    return (
      <>
        <div class="head">
          <h1 ref={heading} tabIndex={-1}>
            Installing {count(runs.value!.length, "machine")}
          </h1>
        </div>
        <Progress />
      </>
    );
  }
  const i = steps.indexOf(at);
  const why = blocked(at);
  return (
    <>
      <div class="head">
        <h1>Provision</h1>
      </div>
      <nav aria-label="Steps">
        <ol class="wizard-steps">
          {steps.map((s, j) => (
            <li key={s}>
              <button type="button" aria-current={s === at ? "step" : undefined} disabled={j > i && steps.slice(0, j).some((p) => blocked(p) !== "")} onClick={() => to(s)}>
                <span class="number">{j + 1}</span> {titles[s]}
                {s === "machines" && d.machines.length > 0 && <small> {d.machines.length}</small>}
              </button>
            </li>
          ))}
        </ol>
      </nav>
      <h2 ref={heading} tabIndex={-1}>
        {titles[at]}
      </h2>
      {at === "machines" && <Machines />}
      {at === "image" && <Image templates={templates} />}
      {at === "user-data" && <UserData />}
      {at === "review" && <Review template={templateOf(d, templates)} onStarted={() => setQuery({ step: undefined, machines: undefined, image: undefined })} />}
      <div class="row buttons">
        {i > 0 && <Button onPress={() => to(steps[i - 1]!)}>Back: {titles[steps[i - 1]!]}</Button>}
        {i < steps.length - 1 && (
          <>
            <Button kind="primary" disabled={why !== ""} onPress={() => to(steps[i + 1]!)}>
              Next: {titles[steps[i + 1]!]}
            </Button>
            <span class="dim">{why}</span>
          </>
        )}
      </div>
    </>
  );
}

/** Why a step is not over, empty where it is. */
function blocked(s: Step): string {
  const why = missing(draft.value, s);
  if (why || s !== "machines") return why;
  const all = draft.value.machines.map(refusals);
  if (all.some((r) => r === undefined)) return "The appliance is asked about the machines…";
  const n = all.filter((r) => r!.length > 0).length;
  return n > 0 ? `Leave out the ${count(n, "machine")} that cannot be installed, or mend what is wrong.` : "";
}

/** The step in the URL, or the first before it that lacks something: a link into the middle begins where it must. */
function stepAt(): Step {
  const asked = query.value.get("step") as Step | null;
  const want = asked && steps.includes(asked) ? asked : steps[0];
  return steps.slice(0, steps.indexOf(want)).find((s) => missing(draft.value, s) !== "") ?? want;
}

/** Takes what a link says: machines that somebody chose in a list, or an image. */
function useQuery(): void {
  const machines = query.value.get("machines") ?? "";
  const image = query.value.get("image") ?? "";
  useEffect(() => {
    if (machines) put({ machines: [...new Set(machines.split(",").filter(Boolean))] });
    if (image) put({ from: "catalogue", image });
    if (machines || image) {
      if (runs.peek()) runs.value = undefined;
      setQuery({ machines: undefined, image: undefined });
    }
  }, [machines, image]);
}
