// Accepting and rejecting machines, one or many.
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Applied, ApplyResult, Hardware } from "../api/types.ts";
import { call, Failure, seg } from "../api/call.ts";
import { count } from "../format.ts";
import { Changed, useMeanwhile } from "../machine/meanwhile.tsx";
import { complete, row } from "../machines.ts";
import { go, Link } from "../router.tsx";
import { Button, Dialog, ProblemBox, say, Since, useAction, useLoad } from "../ui/basic.tsx";
import { fromPairs, Pairs, Radios, Text } from "../ui/inputs.tsx";
import { VerdictText } from "./table.tsx";
import type { Waiting } from "./waiting.ts";
import { Scroll } from "../ui/scroll.tsx";

/** Accepts one machine: what it is called and where it stands is said first. Where it is decided meanwhile, what was typed can still be kept. */
export function AcceptOne({ w, onClose }: { w: Waiting; onClose: () => void }): JSX.Element {
  const { machine: h, ruled } = w;
  const name = h.metadata.name;
  const [was] = useState(h); // what the fields began with
  const [hostname, setHostname] = useState(h.spec.hostname ?? "");
  const [rack, setRack] = useState(h.spec.rack ?? "");
  const [position, setPosition] = useState(h.spec.position ?? "");
  const [labels, setLabels] = useState<[string, string][]>(Object.entries(h.metadata.labels ?? {}));
  const [note, setNote] = useState("");
  const action = useAction();
  const meanwhile = useMeanwhile(name);
  // what it does itself is not somebody else's
  const others = useRef(false);
  if (!action.busy) others.current = meanwhile.gone || (meanwhile.changes.length > 0 && row(name)?.state !== "pending");
  const decided = others.current;
  const doubts = (h.status?.conflicts ?? []).filter((c) => !c.accepted);
  const change = patchOf(was, { hostname, rack, position }, fromPairs(labels));
  const submit = async (install: boolean) => {
    if (change) await call("PATCH", `/hardware/${seg(name)}`, { body: change, ifMatch: decided ? undefined : h.metadata.revision });
    if (!decided) await call<Hardware>("POST", `/hardware/${seg(name)}/accept`, { body: note.trim() ? { note: note.trim() } : {} });
    say(decided ? `The record of ${name} has what you typed.` : `${name} is accepted.`);
    onClose();
    if (install) go(`/provision?machines=${seg(name)}`);
  };
  return (
    <Dialog title={`Accept ${name}`} onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (!action.busy) void action.run(() => submit(false));
        }}
      >
        {decided ? (
          <Changed name={name} of={meanwhile}>
            {meanwhile.gone ? (
              <p class="hint">If it netboots again it is found again. What you typed can be copied from here.</p>
            ) : (
              <p class="hint">
                {change ? "What you typed is not in its record yet: keep it, or close this." : "There is nothing left to decide."}
                {note.trim() && " The note was for the acceptance and is not kept."} <Link to={`/machines/${seg(name)}`}>Look at {name}</Link>
              </p>
            )}
          </Changed>
        ) : (
          <p>
            The machine becomes <strong>available</strong> and restarts. All its Ethernet NICs that no other record has come into its record.
          </p>
        )}
        {doubts.map((c) => (
          <p class="notice" key={c.kind + c.detail}>
            Its identity is in doubt, since <Since at={c.since} />: {c.detail}. By accepting it you say that it is the right machine.
          </p>
        ))}
        <Text label="Host name" value={hostname} onValue={setHostname} placeholder={name} autoFocus help={`Of the installed system; ${name} where it is empty. The record keeps its name.`} />
        <div class="columns">
          <Text label="Rack" value={rack} onValue={setRack} />
          <Text label="Position" value={position} onValue={setPosition} placeholder="U17" />
        </div>
        <Pairs label="Labels" value={labels} onValue={setLabels} add="Add a label" />
        {(ruled?.verdict.rules ?? []).length > 0 && !decided && (
          <>
            <h3>The rules</h3>
            <VerdictText ruled={ruled} />
            {ruled?.verdict.provision && <p class="notice">A rule installs it when you accept it: template {ruled.verdict.provision.template}. What is on its disks is overwritten.</p>}
          </>
        )}
        <Text label="Note" value={note} onValue={setNote} help="For the machine's timeline." />
        <ProblemBox problem={action.problem} />
        <footer>
          <button type="button" class="button" onClick={onClose}>
            {decided ? "Close" : "Cancel"}
          </button>
          {decided ? (
            <button type="submit" class="button primary" disabled={action.busy || meanwhile.gone || !change} aria-busy={action.busy}>
              Keep what I typed
            </button>
          ) : (
            <>
              <button type="button" class="button" disabled={action.busy} onClick={() => void action.run(() => submit(true))}>
                Accept and install…
              </button>
              <button type="submit" class="button primary" disabled={action.busy} aria-busy={action.busy}>
                Accept
              </button>
            </>
          )}
        </footer>
      </form>
    </Dialog>
  );
}

/** Splits the names of machines that waited when a dialog was opened into those that still do and the others. */
function useUndecided(names: string[]): { open: string[]; decided: string[] } {
  const waits = (n: string) => (row(n) ? row(n)!.state === "pending" : !complete.value);
  return { open: names.filter(waits), decided: names.filter((n) => !waits(n)) };
}

/** Says which machines somebody else, or a rule, decided about while a dialog was open. */
function Decided({ names }: { names: string[] }): JSX.Element | null {
  if (names.length === 0) return null;
  const most = 6;
  return (
    <div class="notice" role="alert">
      <strong>Decided meanwhile, and left out:</strong>
      <ul class="plain">
        {names.slice(0, most).map((n) => (
          <li key={n}>
            <Link to={`/machines/${seg(n)}`}>{n}</Link> {row(n) ? `is ${row(n)!.state}` : "has no record any more"}
          </li>
        ))}
        {names.length > most && <li>and {count(names.length - most, "other")}</li>}
      </ul>
    </div>
  );
}

/** The merge patch that makes the record so; undefined where it is so. */
function patchOf(h: Hardware, spec: { hostname: string; rack: string; position: string }, labels: Record<string, string>): object | undefined {
  const changed = Object.entries(spec).flatMap(([k, v]) => (v.trim() === (h.spec[k as keyof typeof spec] ?? "") ? [] : [[k, v.trim() || null] as const]));
  const had = h.metadata.labels ?? {};
  const marks = [...Object.keys(had).flatMap((k) => (k in labels ? [] : [[k, null] as const])), ...Object.entries(labels).filter(([k, v]) => had[k] !== v)];
  if (changed.length + marks.length === 0) return undefined;
  return { metadata: { labels: Object.fromEntries(marks) }, spec: Object.fromEntries(changed) };
}

/** Accepts several machines; a preview says what becomes of each. */
export function AcceptMany({ names: all, onClose }: { names: string[]; onClose: (done: boolean) => void }): JSX.Element {
  const [labels, setLabels] = useState<[string, string][]>([]);
  const [note, setNote] = useState("");
  const [after, setAfter] = useState<Applied[]>();
  const action = useAction();
  const now = useUndecided(all);
  // while they are accepted here they are no others' decision
  const kept = useRef(now);
  if (!action.busy && !after) kept.current = now;
  const { open: names, decided } = kept.current;
  const body = { verb: "accept", names, options: note.trim() ? { note: note.trim() } : {} };
  const preview = useLoad(async (signal) => (names.length > 0 ? await call<ApplyResult>("POST", "/bulk", { query: { dryRun: true }, body: { verb: "accept", names }, signal }) : undefined), [names.join(",")]);
  const submit = async () => {
    const set = fromPairs(labels);
    if (Object.keys(set).length > 0) await call("POST", "/bulk", { body: { verb: "label", names, options: { set }, confirm: names.length } });
    try {
      await call("POST", "/bulk", { body: { ...body, confirm: names.length } });
    } catch (err) {
      if (err instanceof Failure && err.problem.results) setAfter(err.problem.results);
      throw err;
    }
    say(`${count(names.length, "machine")} accepted.`);
    onClose(true);
  };
  return (
    <Dialog title={`Accept ${count(names.length, "machine")}`} onClose={() => onClose(!!after)}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (!action.busy) void action.run(submit);
        }}
      >
        <Decided names={decided} />
        <ProblemBox problem={preview.problem} />
        {names.length > 0 && <Results results={after ?? preview.data?.results} />}
        <Pairs label="Labels for all of them" value={labels} onValue={setLabels} add="Add a label" />
        <Text label="Note" value={note} onValue={setNote} help="For the timeline of each." />
        <ProblemBox problem={action.problem} />
        <footer>
          <button type="button" class="button" onClick={() => onClose(!!after)}>
            {after ? "Close" : "Cancel"}
          </button>
          <button type="submit" class="button primary" disabled={action.busy || names.length === 0 || !preview.data} aria-busy={action.busy}>
            Accept {count(names.length, "machine")}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** What was, or would be, done with each machine. */
function Results({ results }: { results: Applied[] | undefined }): JSX.Element {
  if (!results) return <p class="loading">Asking what would happen…</p>;
  return (
    <Scroll label="What happens to each machine" class="short">
      <table>
        <thead>
          <tr>
            <th scope="col">Machine</th>
            <th scope="col">What happens</th>
          </tr>
        </thead>
        <tbody>
          {results.map((r) => (
            <tr key={r.name}>
              <th scope="row">{r.name}</th>
              <td class={r.result === "error" ? "wrong" : ""}>
                {r.result === "error" ? "refused: " : ""}
                {r.detail ?? r.result}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** Turns machines away: forgets them, or keeps the record so that they stay out. */
export function Reject({ names: all, onClose }: { names: string[]; onClose: (done: boolean) => void }): JSX.Element {
  const [how, setHow] = useState("delete");
  const [note, setNote] = useState("");
  const action = useAction();
  const now = useUndecided(all);
  const kept = useRef(now);
  if (!action.busy) kept.current = now;
  const { open: names, decided } = kept.current;
  const who = names.length === 1 ? names[0]! : count(names.length, "machine");
  const submit = async () => {
    const options = how === "retire" && note.trim() ? { note: note.trim() } : {};
    await call("POST", "/bulk", { body: { verb: how, names, options, confirm: names.length } });
    say(how === "delete" ? `${who}: forgotten.` : `${who}: kept out.`);
    onClose(true);
  };
  return (
    <Dialog title={`Reject ${all.length === 1 ? all[0]! : who}`} onClose={() => onClose(false)}>
      <Decided names={decided} />
      <Radios
        label="What becomes of the record?"
        value={how}
        onValue={setHow}
        of={[
          { value: "delete", text: "Forget it", help: "The record goes. If the machine netboots again it is found again." },
          { value: "retire", text: "Keep it out", help: "The record stays, retired: the machine is given nothing to boot, however often it asks." },
        ]}
      />
      {how === "retire" && <Text label="Note" value={note} onValue={setNote} help="Why, for the timeline." />}
      <p class="dim">Nothing is written to its disks in either case.</p>
      <ProblemBox problem={action.problem} />
      <footer>
        <Button onPress={() => onClose(false)}>Cancel</Button>
        <Button kind="danger" disabled={names.length === 0} onPress={() => action.run(submit)}>
          Reject
        </Button>
      </footer>
    </Dialog>
  );
}
