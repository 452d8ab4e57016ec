// The verbs of one machine as buttons, each with what it must say before it acts. What
// goes wrong is said beside the button.
import type { JSX } from "preact";
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { ApplyResult, Hardware, PowerResult, Released } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { bytes, count } from "../format.ts";
import { row } from "../machines.ts";
import { go } from "../router.tsx";
import { operator } from "../session.ts";
import { Button, Confirm, Dialog, Field, ProblemBox, say, useAction, useLoad } from "../ui/basic.tsx";
import { Changed, useMeanwhile } from "./meanwhile.tsx";
import { labelOf, type Offer, type Verb } from "./possible.ts";

type PowerAction = "on" | "off" | "cycle" | "status";

const post = <T,>(hw: Hardware, verb: string, body: unknown = {}) => call<T>("POST", `/hardware/${seg(hw.metadata.name)}/${verb}`, { body });

/** Verbs that need no further word. */
const direct: Partial<Record<Verb, (hw: Hardware) => Promise<string>>> = {
  accept: async (hw) => (await post(hw, "accept"), `${hw.metadata.name} is accepted`),
  hold: async (hw) => (await post(hw, "hold", { hold: true }), `${hw.metadata.name} is on hold`),
  unhold: async (hw) => (await post(hw, "hold", { hold: false }), `${hw.metadata.name} is off hold`),
  maintained: async (hw) => (await post(hw, "maintenance", { off: true }), `Maintenance of ${hw.metadata.name} is over`),
  inspect: async (hw) => (await post(hw, "inspect"), `${hw.metadata.name} will boot the worker once and report what is in it`),
  allowPXE: async (hw) => (await patch(hw, { allowPXE: true }), `${hw.metadata.name} may netboot`),
  allowWorkflow: async (hw) => (await patch(hw, { allowWorkflow: true }), `Workflows may begin on ${hw.metadata.name}`),
};

const patch = (hw: Hardware, netboot: object) => call("PATCH", `/hardware/${seg(hw.metadata.name)}`, { body: { spec: { netboot } }, ifMatch: hw.metadata.revision });

/** What a verb's button needs to know. */
interface VerbProps {
  hw: Hardware;
  verb: Verb;
  label?: string;
  why?: string | undefined;
  kind?: "plain" | "primary" | "danger" | "quiet";
  /** What the power dialog begins with. */
  power?: PowerAction | undefined;
}

/**
 * What is asked about. It belongs to the page and not to the button that was pressed: the button goes when the verb is
 * possible no more, and nothing vanishes under somebody's hands.
 */
const asked = signal<Asked | undefined>(undefined);

interface Asked {
  hw: Hardware;
  verb: Verb;
  power?: PowerAction | undefined;
}

/** The dialog of the verb that was pressed on the page of a machine, until it is closed; hw is its record now. */
export function AskedVerb({ hw }: { hw: Hardware }): JSX.Element | null {
  useEffect(() => () => void (asked.value = undefined), []);
  const a = asked.value;
  if (!a) return null;
  const of = hw.metadata.uid === a.hw.metadata.uid ? hw : a.hw;
  const close = () => (asked.value = undefined);
  switch (a.verb) {
    case "release":
    case "retire":
    case "delete":
      return <End hw={of} verb={a.verb} onClose={close} />;
    case "power":
      return <Power hw={of} first={a.power ?? "cycle"} onClose={close} />;
    case "maintain":
      return <Maintain hw={of} onClose={close} />;
    case "cancel":
      return <Cancel hw={of} onClose={close} />;
  }
  return null;
}

/** One verb; nothing for a viewer. */
export function VerbButton({ hw, verb, label = labelOf(verb), why, kind = "plain", power }: VerbProps): JSX.Element | null {
  const action = useAction();
  if (!operator.value) return null;
  const press = () => {
    const now = direct[verb];
    if (now) return action.run(async () => say(await now(hw)));
    if (verb === "provision") go(`/provision?machines=${encodeURIComponent(hw.metadata.name)}`);
    else asked.value = { hw, verb, power };
    return undefined;
  };
  return (
    <>
      <Button kind={kind} onPress={press} disabled={!!why} title={why}>
        {label}
      </Button>
      {why && <span class="hidden-text">{`${label} is not possible: ${why}`}</span>}
      {action.problem && (
        <div class="whole">
          <ProblemBox problem={action.problem} />
        </div>
      )}
    </>
  );
}

/** The verbs of a machine; those that cannot be asked for say why. */
export function Verbs({ hw, offers }: { hw: Hardware; offers: Offer[] }): JSX.Element | null {
  if (!operator.value) return null;
  const blocked = offers.filter((o) => o.why);
  return (
    <div class="verbs">
      <div class="row" role="group" aria-label={`What can be done with ${hw.metadata.name}`}>
        {offers.map((o, i) => (
          <VerbButton key={o.verb} hw={hw} verb={o.verb} label={o.label} why={o.why} kind={i === 0 && !o.why && (o.verb === "unhold" || hw.status?.state === "pending" || (o.verb === "provision" && hw.status?.state === "available")) ? "primary" : "plain"} />
        ))}
      </div>
      {blocked.length > 0 && <p class="dim small">{blocked.map((o) => `${o.label.replace("…", "")}: ${o.why}`).join(" · ")}</p>}
    </div>
  );
}

const closeIt = <p class="hint">There is nothing left to do here: close this, and look for it among the machines.</p>;

const endings = {
  release: { title: "Release", verb: "Release and wipe", does: "It is taken from its owner, every disk is wiped and read back, and it becomes available." },
  retire: { title: "Retire", verb: "Retire", does: "It gets nothing from the appliance any more. Its record stays until it is deleted." },
  delete: { title: "Delete the record of", verb: "Delete", does: "The appliance forgets the machine with its timeline. What is on its disks stays as it is." },
} as const;

const forced = {
  release: "Give it up without a wipe: it goes on hold as failed, and what is on its disks stays there",
  retire: "Retire it all the same, without a wipe",
  delete: "Delete it all the same: its workflow and its claim end, and its disks stay as they are",
} as const;

/** The end of something: release, retire, delete. What the appliance would do is asked first. */
function End({ hw, verb, onClose }: { hw: Hardware; verb: keyof typeof endings; onClose: () => void }): JSX.Element {
  const name = hw.metadata.name;
  const [force, setForce] = useState(false);
  const [reason, setReason] = useState("");
  const meanwhile = useMeanwhile(name);
  const options = { ...(force ? { force: true } : {}), ...(reason && verb === "release" ? { reason } : {}), ...(reason && verb === "retire" ? { note: reason } : {}) };
  const preview = useLoad((signal) => call<ApplyResult>("POST", "/bulk", { query: { dryRun: true }, body: { verb, names: [name], options: force ? { force } : {} }, signal }), [verb, force, meanwhile.changes.join()]);
  const answer = preview.data?.results[0];
  const refused = answer?.result === "error";
  const words = endings[verb];
  const run = async () => {
    if (verb === "delete") await call("DELETE", `/hardware/${seg(name)}`, { query: { force: force || undefined } });
    else {
      const done = await post<Released>(hw, verb, options);
      say(done.workflow ? `${name} is being wiped by workflow ${done.workflow}` : `${name}: done`);
    }
    onClose();
  };
  return (
    <Confirm title={`${words.title} ${name}`} word={name} verb={force && verb === "release" ? "Release without a wipe" : words.verb} over={meanwhile.gone} onClose={onClose} onConfirm={run}>
      <Changed name={name} of={meanwhile}>
        {meanwhile.gone ? closeIt : <p class="hint">What would happen now is below.</p>}
      </Changed>
      <p>{force ? forced[verb] : words.does}</p>
      <Lost hw={hw} wipes={verb === "release" && !force} />
      <div aria-live="polite">
        {preview.loading && <p class="dim">Asking the appliance what would happen…</p>}
        <ProblemBox problem={preview.problem} />
        {answer && !refused && answer.detail && <p>{`The appliance says: ${answer.detail}`}</p>}
        {answer?.skipped && answer.skipped.length > 0 && (
          <div class="notice">
            Passed over: <strong>{answer.skipped.join("; ")}</strong>
          </div>
        )}
        {refused && (
          <div class="notice">
            The appliance would refuse: <strong>{answer.detail}</strong>
            {answer.errors?.map((e) => <div key={e.field}>{e.detail}</div>)}
          </div>
        )}
      </div>
      {(refused || force) && (
        <label class="row">
          <input type="checkbox" checked={force} onChange={(e) => setForce(e.currentTarget.checked)} /> {forced[verb]}
        </label>
      )}
      {verb !== "delete" && <Field label="Reason, for the timeline (may be empty)">{(p) => <input {...p} value={reason} onInput={(e) => setReason(e.currentTarget.value)} />}</Field>}
    </Confirm>
  );
}

/** What goes away, by name. */
function Lost({ hw, wipes }: { hw: Hardware; wipes: boolean }): JSX.Element {
  const s = hw.status ?? {};
  const disks = (hw.facts?.disks ?? []).filter((d) => !d.removable && !d.readOnly);
  return (
    <>
      {s.claim && (
        <p>
          It belongs to <strong>{s.claim.owner}</strong> (claim <code>{s.claim.id}</code>).
        </p>
      )}
      {s.installed && (
        <p>
          An operating system is installed on it{hw.spec.hostname ? ` (${hw.spec.hostname})` : ""}
          {s.install ? `, by workflow ${s.install.workflow}` : ""}.
        </p>
      )}
      {wipes && disks.length > 0 && (
        <>
          <p class="wrong">{`Everything on ${count(disks.length, "disk")} is lost:`}</p>
          <ul>
            {disks.map((d) => (
              <li key={d.path}>
                <code>{d.path}</code> {bytes(d.bytes)} {d.model} {d.serial && <small>serial {d.serial}</small>}
              </li>
            ))}
          </ul>
        </>
      )}
      {wipes && disks.length === 0 && <p class="wrong">Everything on its disks is lost. Nothing is known of them: its worker never reported.</p>}
    </>
  );
}

const powers: { action: PowerAction; label: string; does: string }[] = [
  { action: "on", label: "Switch on", does: "Nothing happens if it is on." },
  { action: "cycle", label: "Power cycle", does: "Off and on again, without asking its system." },
  { action: "off", label: "Switch off", does: "At once, without asking its system." },
  { action: "status", label: "Ask whether it is on", does: "Changes nothing." },
];

function Power({ hw, first, onClose }: { hw: Hardware; first: PowerAction; onClose: () => void }): JSX.Element {
  const [wanted, setWanted] = useState<PowerAction>(first);
  const [next, setNext] = useState(first === "cycle" || first === "on" ? "network" : "");
  const [answer, setAnswer] = useState<PowerResult>();
  const action = useAction();
  const name = hw.metadata.name;
  const meanwhile = useMeanwhile(name);
  const boots = wanted === "on" || wanted === "cycle";
  const stops = wanted === "off" || wanted === "cycle";
  return (
    <Dialog title={`Power of ${name}`} onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (action.busy) return;
          setAnswer(undefined);
          void action.run(async () => setAnswer(await post<PowerResult>(hw, "power", { action: wanted, ...(boots && next ? { nextBoot: next } : {}) })));
        }}
      >
        <Changed name={name} of={meanwhile}>{meanwhile.gone && closeIt}</Changed>
        <fieldset class="choice">
          <legend class="hidden-text">What to do</legend>
          {powers.map((p) => (
            <label key={p.action}>
              <input type="radio" name="power" checked={wanted === p.action} onChange={() => setWanted(p.action)} /> <strong>{p.label}</strong> <small>{p.does}</small>
            </label>
          ))}
        </fieldset>
        {boots && (
          <Field label="Boots next from" help="Once; afterwards its own boot order counts again.">
            {(p) => (
              <select {...p} value={next} onChange={(e) => setNext(e.currentTarget.value)}>
                <option value="network">the network</option>
                <option value="disk">its disk</option>
                <option value="">its own boot order</option>
              </select>
            )}
          </Field>
        )}
        {stops && hw.status?.installed && (
          <div class="notice">
            A system is installed on it and may be running{hw.status.claim ? `; it belongs to ${hw.status.claim.owner}` : ""}. What it has not written is lost.
          </div>
        )}
        {!hw.spec.power || hw.spec.power.driver === "manual" ? <p class="dim">A person switches this machine: the appliance only notes what is to be done.</p> : null}
        <ProblemBox problem={action.problem} />
        {answer && (
          <p role="status">
            <strong>{answer.message || (answer.state ? `It is ${answer.state}.` : "Done.")}</strong> <small>{answer.driver}</small>
          </p>
        )}
        <footer>
          <button type="button" class="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class={`button ${stops ? "danger" : "primary"}`} disabled={action.busy || meanwhile.gone} aria-busy={action.busy}>
            {action.busy ? "Asking its controller…" : powers.find((p) => p.action === wanted)!.label}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function Maintain({ hw, onClose }: { hw: Hardware; onClose: () => void }): JSX.Element {
  const [note, setNote] = useState("");
  const name = hw.metadata.name;
  const meanwhile = useMeanwhile(name);
  return (
    <Confirm
      title={`Work on ${name}`}
      word=""
      verb="Begin maintenance"
      over={meanwhile.gone}
      onClose={onClose}
      onConfirm={async () => {
        await post(hw, "maintenance", { note });
        say(`${name} is in maintenance`);
        onClose();
      }}
    >
      <Changed name={name} of={meanwhile}>{meanwhile.gone && closeIt}</Changed>
      <p>While somebody works on it, it is not picked for a claim, and nobody is told that it is late.</p>
      <Field label="What is being done (may be empty)">{(p) => <input {...p} autoFocus value={note} onInput={(e) => setNote(e.currentTarget.value)} />}</Field>
    </Confirm>
  );
}

function Cancel({ hw, onClose }: { hw: Hardware; onClose: () => void }): JSX.Element {
  const [reason, setReason] = useState("");
  const [workflow] = useState(hw.status?.workflow ?? ""); // not one that begins meanwhile
  const meanwhile = useMeanwhile(hw.metadata.name);
  const ended = meanwhile.gone || hw.status?.workflow !== workflow || !row(hw.metadata.name)?.active;
  return (
    <Confirm
      title={`Cancel workflow ${workflow}`}
      word={hw.status?.state === "releasing" || hw.status?.state === "provisioning" ? hw.metadata.name : ""}
      verb="Cancel the workflow"
      over={ended}
      onClose={onClose}
      onConfirm={async () => {
        await call("POST", `/workflows/${seg(workflow)}/cancel`, { body: { reason } });
        say(`Workflow ${workflow} is being stopped`);
        onClose();
      }}
    >
      <Changed name={hw.metadata.name} of={meanwhile}>{ended && <p class="hint">There is nothing left to cancel: close this, and look at the timeline for how it ended.</p>}</Changed>
      <p>The action that runs is stopped. What it has written stays on the disks as it is, and the machine cannot be used before another install or a wipe.</p>
      <Field label="Reason, for the timeline (may be empty)">{(p) => <input {...p} value={reason} onInput={(e) => setReason(e.currentTarget.value)} />}</Field>
    </Confirm>
  );
}
