// A record as YAML: edit, see what the appliance would change, then change it. It is
// loaded when somebody edits:
//   const { RecordEditor } = await import("../ui/record.tsx")
import type { CompletionSource } from "@codemirror/autocomplete";
import type { Diagnostic } from "@codemirror/lint";
import type { ComponentType, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { isMap, isSeq, LineCounter, parse, parseDocument, stringify } from "yaml";
import type { Applied, Problem } from "../api/types.ts";
import { asProblem, call, Failure, seg } from "../api/call.ts";
import { Button, ProblemBox, useAction } from "./basic.tsx";
import { Diff, Editor } from "./editor.tsx";
import { masked } from "./mask.ts";

/** What of a record people write; status and facts are the appliance's. */
export interface Editable {
  apiVersion?: string | undefined;
  kind?: string | undefined;
  metadata: { name: string; labels?: Record<string, string> | undefined; revision?: number | undefined };
  spec: unknown;
}

/** The YAML that is edited: what people write, without what the appliance knows. */
export function written(r: Editable): string {
  const { name, labels } = r.metadata;
  return stringify({ apiVersion: r.apiVersion, kind: r.kind, metadata: labels && Object.keys(labels).length > 0 ? { name, labels } : { name }, spec: r.spec }, { lineWidth: 0 });
}

/** Errors of YAML itself, and those that the appliance named by field, at their places. */
export function diagnostics(text: string, problem: Problem | undefined): Diagnostic[] {
  const lines = new LineCounter();
  const doc = parseDocument(text, { lineCounter: lines });
  const out: Diagnostic[] = doc.errors.map((e) => ({ from: e.pos[0], to: Math.max(e.pos[1], e.pos[0] + 1), severity: "error", message: e.message.split("\n")[0] ?? "" }));
  for (const e of problem?.errors ?? []) {
    const at = place(doc, e.field);
    out.push({ from: at[0], to: at[1], severity: "error", message: `${e.field}: ${e.detail}` });
  }
  return out.map((d) => ({ ...d, from: Math.min(d.from, text.length), to: Math.min(d.to, text.length) }));
}

/** Where a field like spec.pool.ranges[0] is in a document; its nearest parent where it is missing. */
function place(doc: ReturnType<typeof parseDocument>, field: string): [number, number] {
  const path = [...field.matchAll(/[^.[\]]+/g)].map(([p]) => (/^\d+$/.test(p) ? Number(p) : p));
  let node: unknown = doc.contents;
  let at: [number, number] = [0, 1];
  for (const p of path) {
    if (isMap(node)) {
      const pair = node.items.find((i) => String(i.key) === String(p));
      const key = pair?.key as { range?: [number, number, number] } | undefined;
      if (!pair || !key?.range) return at;
      at = [key.range[0], key.range[1]];
      node = pair.value;
    } else if (isSeq(node) && typeof p === "number") {
      node = node.items[p];
      const r = (node as { range?: [number, number, number] } | undefined)?.range;
      if (!r) return at;
      at = [r[0], r[1]];
    } else return at;
  }
  return at;
}

/** What a form changes: the YAML of a record, and what the appliance said of it. */
export interface FormProps {
  value: string;
  onChange: (text: string) => void;
  problem: Problem | undefined;
}

/** What is edited. */
interface RecordEditorProps {
  /** Like /subnets; the record's name goes behind it. */
  path: string;
  /** The record as it is; a template of one where it is new. */
  record: Editable;
  isNew?: boolean;
  complete?: CompletionSource;
  /** A form that changes the same YAML, for those who write none; people choose between the two. */
  form?: ComponentType<FormProps>;
  /** Hears of each change of the YAML. */
  onText?: (text: string) => void;
  onSaved: (name: string) => void;
  onCancel: () => void;
}

/** What was found when typing paused: places with their lines, or a problem that has no place. */
interface Verdict {
  places: { line: number; message: string }[];
  problem: Problem | undefined;
}

function Said({ verdict: v }: { verdict: Verdict | undefined }): JSX.Element {
  return (
    <div role="status" class="verdict">
      {v && v.places.length === 0 && !v.problem && <span class="dim">✓ The appliance would take it.</span>}
      {v && v.places.length === 0 && v.problem && <span class="wrong">✗ {v.problem.detail}</span>}
      {v && v.places.length > 0 && (
        <ul class="plain">
          {v.places.map((p, i) => (
            <li key={i}>
              <span class="wrong">✗ Line {p.line}:</span> {p.message}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Edit, review, apply. Somebody else's change in between is shown and not written over. */
export function RecordEditor({ path, record, isNew = false, complete, form: Form, onText, onSaved, onCancel }: RecordEditorProps): JSX.Element {
  const [base, setBase] = useState(record);
  const [value, setValue] = useState(() => written(record));
  const [review, setReview] = useState<Applied>();
  const [theirs, setTheirs] = useState<Editable>();
  const [found, setFound] = useState<Problem>();
  const [asForm, setAsForm] = useState(true);
  const action = useAction();
  const [verdict, setVerdict] = useState<Verdict>();
  const turn = useRef(0);
  const send = async (dryRun: boolean, body = value) => {
    const query = { dryRun: dryRun || undefined };
    if (!isNew) return await call<Applied>("PUT", `${path}/${seg(base.metadata.name)}`, { body, ifMatch: base.metadata.revision, query });
    return await call<Applied>("POST", path, { body, query });
  };
  const write = (text: string) => {
    setValue(text);
    onText?.(text);
  };
  // what is wrong is said while it is written: the syntax here, all else by the appliance
  const check = async (text: string): Promise<Diagnostic[]> => {
    const mine = ++turn.current;
    let problem: Problem | undefined;
    const syntax = diagnostics(text, undefined);
    if (syntax.length === 0) await send(true, text).catch((err: unknown) => (problem = asProblem(err)));
    if (mine !== turn.current) return [];
    setFound(problem);
    const all = diagnostics(text, problem);
    setVerdict({ places: all.map((d) => ({ line: text.slice(0, d.from).split("\n").length, message: d.message })), problem });
    return all;
  };
  const conflict = async (err: unknown) => {
    if (!isNew && err instanceof Failure && err.problem.code === "conflict") setTheirs(await call<Editable>("GET", `${path}/${seg(base.metadata.name)}`));
    setFound(asProblem(err));
    throw err;
  };
  const look = () => action.run(() => send(true).then((a) => (setFound(undefined), setReview(a)), conflict));
  const save = () =>
    action.run(async () => {
      await send(false).catch(conflict);
      onSaved(isNew ? ((parse(value) as Editable | null)?.metadata?.name ?? "") : base.metadata.name);
    });
  if (theirs) {
    return (
      <div class="stack">
        <div class="notice" role="alert">
          <strong>Somebody else changed {base.metadata.name} meanwhile.</strong> On the left is what is there now, on the right what you wrote.
        </div>
        <Diff before={written(theirs)} after={masked(value)} label="their record and yours" />
        <div class="row">
          <Button kind="primary" onPress={() => (setBase(theirs), setTheirs(undefined), action.clear(), setReview(undefined))}>
            Go on with mine
          </Button>
          <Button onPress={() => (setBase(theirs), setValue(written(theirs)), setTheirs(undefined), action.clear(), setReview(undefined))}>Take theirs, and edit again</Button>
        </div>
      </div>
    );
  }
  if (review) {
    return (
      <div class="stack">
        {review.result === "unchanged" ? <p>Nothing differs from what is there.</p> : <Diff before={isNew ? "" : written(base)} after={masked(value)} label="what is there, and what will be" />}
        <ProblemBox problem={action.problem} />
        <div class="row">
          <Button kind="primary" disabled={review.result === "unchanged"} onPress={save}>
            {isNew ? "Create" : "Apply"}
          </Button>
          <Button onPress={() => setReview(undefined)}>Back to editing</Button>
        </div>
      </div>
    );
  }
  return (
    <div class="stack">
      {Form && (
        <div class="row" role="group" aria-label="How to edit">
          <Button aria-pressed={asForm} onPress={() => setAsForm(true)}>
            Form
          </Button>
          <Button aria-pressed={!asForm} onPress={() => setAsForm(false)}>
            YAML
          </Button>
        </div>
      )}
      {Form && asForm ? (
        <Form value={value} onChange={write} problem={found} />
      ) : (
        <>
          <Editor value={value} onChange={write} label={`YAML of ${base.metadata.name}`} check={check} {...(complete ? { complete } : {})} onSave={look} />
          {!action.problem && <Said verdict={verdict} />}
        </>
      )}
      <ProblemBox problem={action.problem} />
      <div class="row">
        <Button kind="primary" onPress={look}>
          Review
        </Button>
        <Button onPress={onCancel}>Cancel</Button>
      </div>
    </div>
  );
}
