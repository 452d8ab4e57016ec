import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Applied, Problem } from "../api/types.ts";
import { asProblem } from "../api/call.ts";
import { count } from "../format.ts";
import { Badge, Bar, Button, Dialog, Field, ProblemBox, say, State, type Tone } from "../ui/basic.tsx";
import { acts, again, labelsIn, perform, preview, reasons, whyOf, type Order } from "./bulk.ts";
import type { Verb } from "./verbs.ts";
import { pixels, useWindow } from "./window.ts";

interface Answers {
  note: string;
  reason: string;
  force: boolean;
  set: string;
  remove: string;
  nextBoot: string;
}

const unanswered: Answers = { note: "", reason: "", force: false, set: "", remove: "", nextBoot: "" };

/** The options of a verb, by what was answered; undefined where an answer is missing. */
function optionsOf(v: Verb, a: Answers): Record<string, unknown> | undefined {
  const out: Record<string, unknown> = { ...v.options };
  for (const q of v.asks) {
    if (q === "labels") {
      const set = labelsIn(a.set);
      const remove = Object.keys(labelsIn(a.remove));
      if (Object.keys(set).length + remove.length === 0) return undefined;
      Object.assign(out, { set, remove });
    } else if (a[q]) out[q] = a[q];
  }
  return out;
}

/** A verb on many machines: what would happen to each, then it happens, then what came of it. */
export function BulkDialog({ verb: v, names: first, onClose }: { verb: Verb; names: string[]; onClose: () => void }): JSX.Element {
  const [names, setNames] = useState(first);
  const [answers, setAnswers] = useState(unanswered);
  const [plan, setPlan] = useState<Applied[]>();
  const [results, setResults] = useState<Applied[]>();
  const [done, setDone] = useState(0);
  const [running, setRunning] = useState<string[]>();
  const [problem, setProblem] = useState<Problem>();
  const [typed, setTyped] = useState("");
  const [stopping, setStopping] = useState(false);
  const stop = useRef(false);
  const options = optionsOf(v, answers);
  // a note changes nothing of what would happen
  const asked = options && JSON.stringify({ ...options, note: undefined, reason: undefined });

  useEffect(() => {
    setPlan(undefined);
    setProblem(undefined);
    if (asked === undefined) return;
    const abort = new AbortController();
    setDone(0);
    const timer = window.setTimeout(
      () => {
        preview({ verb: v.verb, options: JSON.parse(asked) as Record<string, unknown> }, names, { tell: (d) => setDone(d.length), stopped: () => abort.signal.aborted, signal: abort.signal }).then(
          (p) => {
            if (!abort.signal.aborted) setPlan(p);
          },
          (err: unknown) => {
            if (!abort.signal.aborted) setProblem(asProblem(err));
          },
        );
      },
      answers === unanswered ? 0 : 400,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [asked, names]);

  const will = plan?.filter(acts) ?? [];
  const loss = v.destroys?.(will, answers.force);
  const word = loss ? (will.length === 1 ? will[0]!.name! : String(will.length)) : "";
  const ready = will.length > 0 && !running && typed.trim() === word;

  const run = async () => {
    const of = will.map((a) => a.name!);
    const order: Order = { verb: v.verb, options };
    stop.current = false;
    setStopping(false);
    setDone(0);
    setRunning(of);
    setProblem(undefined);
    try {
      const r = await perform(order, of, { tell: (d) => setDone(d.length), stopped: () => stop.current });
      setResults(r);
      const ok = r.filter((a) => !again(a)).length;
      if (ok === r.length) say(`${v.label}: done for ${count(ok, "machine")}.`);
    } catch (err) {
      setProblem(asProblem(err));
    } finally {
      setRunning(undefined);
    }
  };
  const retry = () => {
    setNames(results!.filter(again).map((a) => a.name!));
    setResults(undefined);
    setTyped("");
  };
  const title = `${v.label}: ${count(names.length, "machine")}`;

  if (running) {
    return (
      <Dialog title={title} onClose={() => undefined} wide>
        <p role="status">
          {done.toLocaleString("en")} of {count(running.length, "machine")} done{stopping && "; it stops after the part that is under way"}
        </p>
        <Bar done={done} of={running.length} label={`${v.label}: ${done} of ${running.length}`} />
        <footer>
          <Button
            disabled={stopping}
            onPress={() => {
              stop.current = true;
              setStopping(true);
            }}
          >
            Stop here
          </Button>
        </footer>
      </Dialog>
    );
  }
  if (results) {
    const left = results.filter(again);
    return (
      <Dialog title={title} onClose={onClose} wide>
        <p role="status">
          <b>{count(results.length - left.length, "machine")}</b> done
          {left.length > 0 && (
            <>
              , <b class="wrong">{left.length.toLocaleString("en")} not</b>
            </>
          )}
          .
        </p>
        <Reasons of={results} />
        <Verdicts of={[...left, ...results.filter((a) => !again(a))]} planned={false} />
        <footer>
          {left.length > 0 && <Button onPress={retry}>Look again at the {left.length.toLocaleString("en")} that are not done</Button>}
          <Button kind="primary" onPress={onClose}>
            Close
          </Button>
        </footer>
      </Dialog>
    );
  }
  const refused = plan?.filter((a) => a.result === "error") ?? [];
  const same = plan?.filter((a) => a.result === "unchanged") ?? [];
  return (
    <Dialog title={title} onClose={onClose} wide>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (ready) void run();
        }}
      >
        <Questions verb={v} answers={answers} onAnswer={(a) => setAnswers({ ...answers, ...a })} />
        <ProblemBox problem={problem} />
        {!plan && asked !== undefined && !problem && (
          <>
            <p class="dim" role="status">
              Looking at what would happen: {done.toLocaleString("en")} of {names.length.toLocaleString("en")}
            </p>
            <Bar done={done} of={names.length} label="preview" />
          </>
        )}
        {plan && (
          <>
            <p role="status">
              <b>{count(will.length, "machine")}</b> will be acted on
              {refused.length > 0 && (
                <>
                  , <b class="wrong">{refused.length.toLocaleString("en")} refused</b>
                </>
              )}
              {same.length > 0 && `, ${same.length.toLocaleString("en")} already so`}.
            </p>
            <Reasons of={plan} />
            <Verdicts of={[...will, ...refused, ...same]} planned />
          </>
        )}
        {loss && (
          <>
            <div class="notice">
              <strong>{loss}</strong>
            </div>
            <Field label={`Type ${word} to confirm`}>{(p) => <input {...p} autocomplete="off" spellcheck={false} value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />}</Field>
          </>
        )}
        <footer>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={`button ${loss ? "danger" : "primary"}`} disabled={!ready}>
            {v.label}
            {will.length > 0 && ` ${count(will.length, "machine")}`}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function Questions({ verb: v, answers: a, onAnswer }: { verb: Verb; answers: Answers; onAnswer: (a: Partial<Answers>) => void }): JSX.Element {
  const text = (key: "note" | "reason" | "set" | "remove", label: string, help: string) => (
    <Field key={key} label={label} help={help}>
      {(p) => <input {...p} autocomplete="off" value={a[key]} onInput={(e) => onAnswer({ [key]: e.currentTarget.value })} />}
    </Field>
  );
  return (
    <>
      {v.asks.map((q) => {
        switch (q) {
          case "note":
            return text("note", "Note", "The timeline shows it.");
          case "reason":
            return text("reason", "Why", "The timeline shows it.");
          case "labels":
            return (
              <div class="cards" key={q}>
                {text("set", "Set", "tier=db rack=a1")}
                {text("remove", "Remove", "the keys: tier rack")}
              </div>
            );
          case "nextBoot":
            return (
              <Field key={q} label="Boots next from">
                {(p) => (
                  <select {...p} value={a.nextBoot} onChange={(e) => onAnswer({ nextBoot: e.currentTarget.value })}>
                    <option value="">what its firmware says</option>
                    <option value="disk">disk</option>
                    <option value="network">network</option>
                  </select>
                )}
              </Field>
            );
          case "force":
            return (
              <p key={q}>
                <label>
                  <input type="checkbox" checked={a.force} onChange={(e) => onAnswer({ force: e.currentTarget.checked })} /> {v.force}
                </label>
              </p>
            );
        }
      })}
    </>
  );
}

/** Why machines are refused, each reason once. */
function Reasons({ of }: { of: Applied[] }): JSX.Element | null {
  const all = reasons(of);
  if (all.length === 0) return null;
  return (
    <div class="problem">
      <ul>
        {all.slice(0, 8).map((r) => (
          <li key={r.text}>
            <b>{r.names.length.toLocaleString("en")}×</b> {r.text}
            {r.hint && <div class="hint">{r.hint}</div>}
            <small>
              {r.names.slice(0, 6).join(", ")}
              {r.names.length > 6 && ` and ${(r.names.length - 6).toLocaleString("en")} more`}
            </small>
          </li>
        ))}
        {all.length > 8 && <li>{count(all.length - 8, "other reason")}: see the list</li>}
      </ul>
    </div>
  );
}

const words: Record<string, [planned: string, done: string, tone: Tone]> = {
  created: ["will be done", "done", "good"],
  changed: ["will be done", "done", "good"],
  deleted: ["will be deleted", "deleted", "good"],
  done: ["will be done", "done", "good"],
  unchanged: ["already so", "already so", "plain"],
  error: ["refused", "failed", "bad"],
  skipped: ["not looked at", "not begun", "warn"],
};

/** What happens, or happened, to each machine; only what can be seen is drawn. */
function Verdicts({ of, planned }: { of: Applied[]; planned: boolean }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [height] = useState(() => pixels(2.1));
  const { first, end } = useWindow(box, of.length, height);
  return (
    <div class="scroll verdicts" ref={box} tabIndex={0} role="region" aria-label="Machine by machine">
      <table aria-rowcount={of.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">Machine</th>
            <th scope="col">State</th>
            <th scope="col">{planned ? "Will happen" : "Happened"}</th>
            <th scope="col">In words</th>
          </tr>
        </thead>
        <tbody>
          {first > 0 && (
            <tr aria-hidden="true" class="space">
              <td style={{ height: `${first * height}px` }} />
            </tr>
          )}
          {of.slice(first, end).map((a, i) => {
            const [soon, past, tone] = words[a.result] ?? [a.result, a.result, "plain"];
            const why = whyOf(a);
            return (
              <tr key={a.name} aria-rowindex={first + i + 2} style={{ height: `${height}px` }}>
                <th scope="row" title={a.name}>
                  {a.name}
                </th>
                <td>{a.state && <State of={a.state} />}</td>
                <td>
                  <Badge tone={tone}>{planned ? soon : past}</Badge>
                </td>
                <td title={why}>{why}</td>
              </tr>
            );
          })}
          {end < of.length && (
            <tr aria-hidden="true" class="space">
              <td style={{ height: `${(of.length - end) * height}px` }} />
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}
