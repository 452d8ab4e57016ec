// Accepting and rejecting machines, one or many.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Applied, ApplyResult, Hardware } from "../api/types.ts";
import { call, Failure, seg } from "../api/call.ts";
import { count } from "../format.ts";
import { row } from "../machines.ts";
import { go } from "../router.tsx";
import { Button, Dialog, ProblemBox, say, Since, useAction, useLoad } from "../ui/basic.tsx";
import { fromPairs, Pairs, Radios, Text } from "../ui/inputs.tsx";
import { VerdictText } from "./table.tsx";
import type { Waiting } from "./waiting.ts";
import { Scroll } from "../ui/scroll.tsx";

/** Accepts one machine: what it is called and where it stands is said first. */
export function AcceptOne({ w, onClose }: { w: Waiting; onClose: () => void }): JSX.Element {
  const { machine: h, ruled } = w;
  const name = h.metadata.name;
  const [hostname, setHostname] = useState(h.spec.hostname ?? "");
  const [rack, setRack] = useState(h.spec.rack ?? "");
  const [position, setPosition] = useState(h.spec.position ?? "");
  const [labels, setLabels] = useState<[string, string][]>(Object.entries(h.metadata.labels ?? {}));
  const [note, setNote] = useState("");
  const action = useAction();
  const doubts = (h.status?.conflicts ?? []).filter((c) => !c.accepted);
  const submit = async (install: boolean) => {
    const change = patchOf(h, { hostname, rack, position }, fromPairs(labels));
    if (change) await call("PATCH", `/hardware/${seg(name)}`, { body: change, ifMatch: h.metadata.revision });
    await call<Hardware>("POST", `/hardware/${seg(name)}/accept`, { body: note.trim() ? { note: note.trim() } : {} });
    say(`${name} is accepted.`);
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
        <p>
          The machine becomes <strong>available</strong> and restarts. All its Ethernet NICs that no other record has come into its record.
        </p>
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
        {(ruled?.verdict.rules ?? []).length > 0 && (
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
            Cancel
          </button>
          <button type="button" class="button" disabled={action.busy} onClick={() => void action.run(() => submit(true))}>
            Accept and install…
          </button>
          <button type="submit" class="button primary" disabled={action.busy} aria-busy={action.busy}>
            Accept
          </button>
        </footer>
      </form>
    </Dialog>
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
export function AcceptMany({ names, onClose }: { names: string[]; onClose: (done: boolean) => void }): JSX.Element {
  const [labels, setLabels] = useState<[string, string][]>([]);
  const [note, setNote] = useState("");
  const [after, setAfter] = useState<Applied[]>();
  const action = useAction();
  const body = { verb: "accept", names, options: note.trim() ? { note: note.trim() } : {} };
  const preview = useLoad((signal) => call<ApplyResult>("POST", "/bulk", { query: { dryRun: true }, body: { verb: "accept", names }, signal }), [names.join(",")]);
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
        <ProblemBox problem={preview.problem} />
        <Results results={after ?? preview.data?.results} />
        <Pairs label="Labels for all of them" value={labels} onValue={setLabels} add="Add a label" />
        <Text label="Note" value={note} onValue={setNote} help="For the timeline of each." />
        <ProblemBox problem={action.problem} />
        <footer>
          <button type="button" class="button" onClick={() => onClose(!!after)}>
            {after ? "Close" : "Cancel"}
          </button>
          <button type="submit" class="button primary" disabled={action.busy || !preview.data} aria-busy={action.busy}>
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
export function Reject({ names, onClose }: { names: string[]; onClose: (done: boolean) => void }): JSX.Element {
  const [how, setHow] = useState("delete");
  const [note, setNote] = useState("");
  const action = useAction();
  const who = names.length === 1 ? names[0]! : count(names.length, "machine");
  const submit = async () => {
    const other = names.filter((n) => row(n) && row(n)!.state !== "pending");
    if (other.length > 0) {
      const detail = `Somebody else decided about ${other.slice(0, 6).join(", ")}${other.length > 6 ? ` and ${other.length - 6} more` : ""} meanwhile.`;
      throw new Failure({ type: "", title: "decided meanwhile", status: 409, code: "conflict", detail, hint: "Nothing was done. Close this and choose again among those that still wait." });
    }
    const options = how === "retire" && note.trim() ? { note: note.trim() } : {};
    await call("POST", "/bulk", { body: { verb: how, names, options, confirm: names.length } });
    say(how === "delete" ? `${who}: forgotten.` : `${who}: kept out.`);
    onClose(true);
  };
  return (
    <Dialog title={`Reject ${who}`} onClose={() => onClose(false)}>
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
        <Button kind="danger" onPress={() => action.run(submit)}>
          Reject
        </Button>
      </footer>
    </Dialog>
  );
}
