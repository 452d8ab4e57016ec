// New machines: one by a form, or many as YAML, looked at before anything is written.
import type { Diagnostic } from "@codemirror/lint";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Applied, ApplyResult, Hardware, Problem } from "../api/types.ts";
import { asProblem, call, Failure } from "../api/call.ts";
import { count } from "../format.ts";
import { Badge, Button, Dialog, ProblemBox, say, toneOf, useAction, type Tone } from "../ui/basic.tsx";
import { Editor } from "../ui/editor.tsx";
import { Choice, Text } from "../ui/inputs.tsx";
import { labelsIn, whyOf } from "./bulk.ts";

/** The dialog in which machines are added. */
export function Add({ onClose }: { onClose: () => void }): JSX.Element {
  const [yaml, setYAML] = useState(false);
  return (
    <Dialog title="Add machines" onClose={onClose} wide={yaml}>
      <div class="row" role="group" aria-label="How">
        <button type="button" class={`button ${yaml ? "" : "primary"}`} aria-pressed={!yaml} onClick={() => setYAML(false)}>
          One machine
        </button>
        <button type="button" class={`button ${yaml ? "primary" : ""}`} aria-pressed={yaml} onClick={() => setYAML(true)}>
          Paste YAML
        </button>
      </div>
      {yaml ? <Documents onClose={onClose} /> : <One onClose={onClose} />}
    </Dialog>
  );
}

interface Form {
  name: string;
  mac: string;
  address: string;
  rack: string;
  position: string;
  labels: string;
  driver: string;
  url: string;
  secret: string;
}

const blank: Form = { name: "", mac: "", address: "", rack: "", position: "", labels: "", driver: "", url: "", secret: "" };

/** Which field of the record a field of the form is. */
const fieldOf: Record<string, keyof Form> = {
  "metadata.name": "name",
  "metadata.labels": "labels",
  "spec.interfaces[0].mac": "mac",
  "spec.interfaces[0].addresses": "address",
  "spec.rack": "rack",
  "spec.position": "position",
  "spec.power.url": "url",
  "spec.power.secret": "secret",
};

/** The record that a form means. What is empty is left out; what is wrong the appliance says. */
function recordOf(f: Form): unknown {
  const labels = labelsIn(f.labels);
  return {
    apiVersion: "rackstrap/v1",
    kind: "Hardware",
    metadata: { name: f.name.trim(), ...(Object.keys(labels).length > 0 && { labels }) },
    spec: {
      interfaces: [{ mac: f.mac.trim(), ...(f.address.trim() && { addresses: f.address.trim().split(/[\s,]+/) }) }],
      ...(f.rack.trim() && { rack: f.rack.trim() }),
      ...(f.position.trim() && { position: f.position.trim() }),
      ...(f.driver && { power: { driver: f.driver, url: f.url.trim(), secret: f.secret } }),
    },
  };
}

/** Sorts the errors of a problem to the fields of the form; what is about no field stays a problem. */
function sorted(p: Problem | undefined): { at: Partial<Record<keyof Form, string>>; rest: Problem | undefined } {
  const at: Partial<Record<keyof Form, string>> = {};
  const left = (p?.errors ?? []).filter((e) => {
    const prefix = Object.keys(fieldOf).find((k) => e.field === k || e.field.startsWith(`${k}.`) || e.field.startsWith(`${k}[`));
    if (!prefix) return true;
    const field = fieldOf[prefix]!;
    at[field] = [at[field], e.detail].filter((t) => t).join("; ");
    return false;
  });
  return { at, rest: p && (left.length > 0 || Object.keys(at).length === 0) ? { ...p, errors: left } : undefined };
}

function One({ onClose }: { onClose: () => void }): JSX.Element {
  const [form, setForm] = useState(blank);
  const action = useAction();
  const { at, rest } = sorted(action.problem);
  const field = (key: keyof Form) => ({ value: form[key], onValue: (v: string) => setForm({ ...form, [key]: v }), error: at[key] });
  const add = (more: boolean) =>
    action.run(async () => {
      const made = await call<Hardware>("POST", "/hardware", { body: recordOf(form) });
      say(`${made.metadata.name} is added.`);
      if (more) setForm({ ...form, name: "", mac: "", address: "", position: "" });
      else onClose();
    });
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault();
        if (!action.busy) void add((e.submitter as HTMLButtonElement | null)?.value === "more");
      }}
    >
      <div class="pairs-of-fields">
        <Text label="Name" help="like node-17" required {...field("name")} />
        <Text label="MAC" help="of the NIC that boots: 52:54:00:12:34:56" required {...field("mac")} />
        <Text label="Address" help="reserved for it: 10.0.0.17/24; from the pool where empty" {...field("address")} />
        <Text label="Rack" help="like a1" {...field("rack")} />
        <Text label="Position" help="unit or slot: 42" {...field("position")} />
        <Text label="Labels" help="tier=db pool=prod" {...field("labels")} />
        <Choice
          label="Power"
          help={form.driver ? "Calls are POSTed to the URL, signed with the secret." : "A person presses its button; the page says when."}
          of={[
            ["", "by hand"],
            ["webhook", "by webhook"],
          ]}
          {...field("driver")}
        />
        {form.driver === "webhook" && (
          <>
            <Text label="Webhook URL" help="https://power.example.org/rack1" required {...field("url")} />
            <Text label="Webhook secret" help="16 characters or more: openssl rand -hex 32" required type="password" {...field("secret")} />
          </>
        )}
      </div>
      <ProblemBox problem={rest} />
      <footer>
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="button" value="more" disabled={action.busy}>
          Add, and another
        </button>
        <button type="submit" class="button primary" value="one" disabled={action.busy} aria-busy={action.busy}>
          Add
        </button>
      </footer>
    </form>
  );
}

const sample = `# One document for each machine; other kinds (Subnet, Template, Image, Rule) go here too.
apiVersion: rackstrap/v1
kind: Hardware
metadata:
  name: node-17
  labels: {tier: db}
spec:
  rack: a1
  position: "17"
  interfaces:
    - mac: 52:54:00:00:00:17
      addresses: [10.0.0.17/24]
---
`;

const outcomes: Record<string, Tone> = { created: "good", changed: "busy", unchanged: "plain", error: "bad", skipped: "warn" };

/** The errors of the documents at their lines. */
function marks(text: string, results: Applied[] | undefined): Diagnostic[] {
  const starts = [0];
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) starts.push(i + 1);
  return (results ?? [])
    .filter((a) => a.result === "error")
    .map((a) => {
      const from = Math.min(starts[(a.line ?? 1) - 1] ?? 0, text.length);
      const end = text.indexOf("\n", from);
      return { from, to: end < 0 ? text.length : end, severity: "error", message: whyOf(a) };
    });
}

/** Documents of records, as `rackstrap apply` takes them. */
function Documents({ onClose }: { onClose: () => void }): JSX.Element {
  const [text, setText] = useState(sample);
  const [looked, setLooked] = useState<{ text: string; results: Applied[]; problem?: Problem }>();
  const [busy, setBusy] = useState(false);
  const send = async (dryRun: boolean) => {
    setBusy(true);
    try {
      const { results } = await call<ApplyResult>("POST", "/apply", { body: text, query: { dryRun: dryRun || undefined } });
      if (dryRun) setLooked({ text, results });
      else {
        say(`Applied: ${summary(results)}.`);
        onClose();
      }
    } catch (err) {
      setLooked({ text, results: (err instanceof Failure && err.problem.results) || [], problem: asProblem(err) });
    } finally {
      setBusy(false);
    }
  };
  const current = looked?.text === text ? looked : undefined;
  const writes = current && !current.problem ? current.results.filter((a) => a.result === "created" || a.result === "changed").length : 0;
  return (
    <div class="stack">
      <p>
        <label>
          Read a file: <input type="file" accept=".yaml,.yml,.json" onChange={(e) => void e.currentTarget.files?.[0]?.text().then(setText)} />
        </label>
      </p>
      <Editor value={text} onChange={setText} label="Records as YAML" check={(t) => marks(t, t === looked?.text ? looked.results : undefined)} onSave={() => void send(true)} />
      {current?.problem && <ProblemBox problem={{ ...current.problem, ...(current.results.length > 0 && { errors: [] }) }} />}
      {current && current.results.length > 0 && (
        <div class="scroll verdicts documents" tabIndex={0} role="region" aria-label="Document by document">
          <table>
            <thead>
              <tr>
                <th scope="col" class="num">
                  Line
                </th>
                <th scope="col">Record</th>
                <th scope="col">What will happen</th>
                <th scope="col">In words</th>
              </tr>
            </thead>
            <tbody>
              {current.results.map((a) => (
                <tr key={a.index}>
                  <td class="num">{a.line}</td>
                  <th scope="row">
                    {a.kind} {a.name}
                  </th>
                  <td>
                    <Badge tone={outcomes[a.result] ?? toneOf(a.result)}>{a.result}</Badge>
                  </td>
                  <td class="wraps">
                    {whyOf(a)}
                    {a.hint && <div class="hint">{a.hint}</div>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <footer>
        <Button onPress={onClose}>Cancel</Button>
        <Button kind={writes > 0 ? "plain" : "primary"} disabled={busy} onPress={() => send(true)}>
          Look what would happen
        </Button>
        <Button kind="primary" disabled={busy || writes === 0} onPress={() => send(false)}>
          Apply{writes > 0 && ` ${count(writes, "document")}`}
        </Button>
      </footer>
    </div>
  );
}

/** What was done, by kinds: 3 created, 1 unchanged. */
function summary(results: Applied[]): string {
  const n = new Map<string, number>();
  for (const a of results) n.set(a.result, (n.get(a.result) ?? 0) + 1);
  return [...n].map(([k, c]) => `${c} ${k}`).join(", ");
}
