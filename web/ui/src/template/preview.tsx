// What a template would do on a machine: the appliance renders it, also unsaved, and says
// what speaks against it.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ActionKinds, Problem, RenderedTemplate, Template } from "../api/types.ts";
import { asProblem, call } from "../api/call.ts";
import { count } from "../format.ts";
import { FilterBox, useFieldFilter } from "../list/filterbox.tsx";
import { rows, row } from "../machines.ts";
import { query, setQuery } from "../router.tsx";
import { Badge, ProblemBox, State } from "../ui/basic.tsx";
import { Tick } from "../ui/inputs.tsx";
import { Params, type Typed } from "./params.tsx";
import { given, paramErrors } from "./refs.ts";
import { Steps } from "./steps.tsx";

/** What is asked of the appliance: one body for the preview and for the workflow. */
export interface Wanted {
  hardware: string;
  params: Record<string, string>;
  reinstall?: true;
  claim?: string;
}

/** What is shown. */
interface PreviewProps {
  template: Template;
  /** It is not saved as it is shown. */
  unsaved?: boolean;
  about: ActionKinds | undefined;
  /** What stands below; it is told of a rendering that nothing speaks against. */
  then?: (w: Wanted, r: RenderedTemplate | undefined) => ComponentChildren;
}

/** How long typing must pause before the appliance is asked, in milliseconds. */
const pause = 350;

/** Choose a machine, give the parameters, see the steps. */
export function Preview({ template, unsaved = false, about, then }: PreviewProps): JSX.Element {
  const machine = query.value.get("machine") ?? "";
  const [typed, setTyped] = useState<Typed>({});
  const [reinstall, setReinstall] = useState(false);
  const [forOwner, setForOwner] = useState(false);
  const parameters = template.spec.parameters ?? [];
  const r = row(machine);
  const wanted = useMemo<Wanted>(
    () => ({ hardware: machine, params: given(parameters, typed), ...(reinstall ? { reinstall: true } : {}), ...(forOwner && r?.claim ? { claim: r.claim } : {}) }),
    [machine, typed, reinstall, forOwner, r?.claim, template],
  );
  const { data, problem, busy } = useRendered(template, unsaved, wanted, r?.state);
  const errors = paramErrors(problem?.errors);
  const missing = problem?.errors && problem.errors.length > 0 && problem.errors.every((e) => e.field.startsWith("spec.params."));
  return (
    <div class="stack">
      <MachineField value={machine} onValue={(v) => setQuery({ machine: v || undefined })} />
      {r && (
        <p class="row">
          <State of={r.state} />
          {r.hold && <Badge tone="warn">on hold</Badge>}
          {r.protect && <Badge tone="warn">protected</Badge>}
          {r.owner && <span class="dim">claimed by {r.owner}</span>}
        </p>
      )}
      <Params parameters={parameters} typed={typed} onTyped={setTyped} errors={errors} />
      {r?.state === "provisioned" && <Tick label="Reinstall: what is on its disk may be destroyed" checked={reinstall} onValue={setReinstall} />}
      {r?.claim && <Tick label={`Do it for ${r.owner ?? "its owner"}`} help={`Under the claim ${r.claim}.`} checked={forOwner} onValue={setForOwner} />}
      <section aria-label="What it would do" aria-busy={busy} class="stack">
        <h3>
          What it would do{machine ? ` on ${machine}` : ""} {unsaved && <Badge tone="warn">not saved</Badge>}
        </h3>
        {!machine && <p class="dim">Choose a machine, and the appliance fills in its values.</p>}
        {missing ? <p class="dim">{problem.errors?.length === 1 ? "A parameter is" : "Some parameters are"} not right yet: see above.</p> : <ProblemBox problem={problem} />}
        {data && (
          <>
            {data.refused ? (
              <Refused problem={data.refused} />
            ) : (
              <p role="status">
                <Badge tone="good">✓ nothing speaks against it</Badge> {data.destroys ? "It overwrites disks." : data.writesDisk ? "It writes to a disk." : "It writes nothing to a disk."}
              </p>
            )}
            <Steps actions={data.actions} about={about} label={`Steps on ${machine}`} />
          </>
        )}
        {then?.(wanted, data?.refused ? undefined : data)}
      </section>
    </div>
  );
}

/** Why it would not be started; what speaks against it, one by one. */
function Refused({ problem: p }: { problem: Problem }): JSX.Element {
  return (
    <div class="notice" role="status">
      <strong>The appliance would not start it now.</strong>
      <ul>{p.errors && p.errors.length > 0 ? p.errors.map((e, i) => <li key={i}>{e.detail}</li>) : <li>{p.detail}</li>}</ul>
      {p.hint && <p class="hint">{p.hint}</p>}
    </div>
  );
}

/** Asks the appliance whenever something changed and typing pauses. What was there stays while it is asked again. */
function useRendered(template: Template, unsaved: boolean, wanted: Wanted, state: string | undefined): { data: RenderedTemplate | undefined; problem: Problem | undefined; busy: boolean } {
  const [answer, setAnswer] = useState<{ data: RenderedTemplate | undefined; problem: Problem | undefined }>({ data: undefined, problem: undefined });
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (!wanted.hardware) {
      setAnswer({ data: undefined, problem: undefined });
      return;
    }
    const abort = new AbortController();
    const timer = window.setTimeout(async () => {
      setBusy(true);
      try {
        const body = unsaved ? { ...wanted, template } : { ...wanted, name: template.metadata.name };
        const data = await call<RenderedTemplate>("POST", "/templates/render", { body, signal: abort.signal });
        setAnswer({ data, problem: undefined });
      } catch (err) {
        if (!abort.signal.aborted) setAnswer({ data: undefined, problem: asProblem(err) });
      }
      if (!abort.signal.aborted) setBusy(false);
    }, pause);
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [template, unsaved, wanted, state]);
  return { ...answer, busy };
}

/** A machine: by its name, or found by the filter of the lists of machines and then chosen. */
function MachineField({ value, onValue }: { value: string; onValue: (v: string) => void }): JSX.Element {
  const f = useFieldFilter(value, (t) => onValue(row(t.trim()) ? t.trim() : ""));
  const text = f.text.value.trim();
  const n = text && !row(text) ? rows.value.filter(f.test.value).length : 0;
  return (
    <div class="field">
      <FilterBox of={f} one="Machine" />
      <div class="note" role="status">
        {rows.value.length === 0 ? "There is no machine yet." : text && !row(text) ? (n === 0 ? <span class="wrong">No machine matches.</span> : `${count(n, "machine")} ${n === 1 ? "matches" : "match"}: choose one.`) : ""}
      </div>
    </div>
  );
}
