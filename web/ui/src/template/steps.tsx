// The steps of a template, or of one that was rendered, as people read them.
import type { JSX } from "preact";
import type { Action, ActionKinds, ActionSpec, Parameter } from "../api/types.ts";
import { count, duration, parseDuration } from "../format.ts";
import { plain } from "../plain.ts";
import { Badge } from "../ui/basic.tsx";
import { meaning, pieces } from "./refs.ts";

/** What steps are shown: as written, with ${…}, or rendered. */
interface StepsProps {
  actions: readonly (ActionSpec | Action)[];
  /** What the kinds do; nothing is said of them while it is not there. */
  about: ActionKinds | undefined;
  /** Those that ${…} may mean, where the steps are as written. */
  parameters?: readonly Parameter[];
  label: string;
}

/** The steps, one below the other: what each does, its options, its time and tries. */
export function Steps({ actions, about, parameters, label }: StepsProps): JSX.Element {
  return (
    <ol class="steps" aria-label={label}>
      {actions.map((a, i) => (
        <Step key={i} action={a} about={about} parameters={parameters} />
      ))}
    </ol>
  );
}

function Step({ action: a, about, parameters }: { action: ActionSpec | Action; about: ActionKinds | undefined; parameters: readonly Parameter[] | undefined }): JSX.Element {
  const kind = about?.items.find((k) => k.kind === a.kind);
  // of a rendered action the API has put the kind's own ones in place
  const timeout = "state" in a ? (a.timeout ?? "") : (a.timeout ?? kind?.timeout ?? "");
  const ms = parseDuration(timeout);
  const retries = a.retries ?? kind?.retries;
  const options = a.with && typeof a.with === "object" ? Object.entries(a.with) : [];
  return (
    <li>
      <div class="row">
        <strong>{a.name}</strong> <code>{a.kind}</code>
        {kind?.destroys && <Badge tone="warn">overwrites disks</Badge>}
        <small>
          {ms > 0 ? `at most ${duration(ms)} a try` : "no time limit"}
          {retries === undefined ? "" : retries > 0 ? `, then up to ${count(retries, "retry", "retries")}` : ", tried once"}
        </small>
      </div>
      {kind && <p class="dim">{kind.does}</p>}
      {typeof a.with === "string" && <p class="dim">Its options are hidden: {a.with}</p>}
      {options.length > 0 && (
        <dl class="pairs">
          {options.map(([k, v]) => (
            <Option key={k} name={k} value={v} about={about} parameters={parameters} />
          ))}
        </dl>
      )}
    </li>
  );
}

function Option({ name, value, about, parameters }: { name: string; value: unknown; about: ActionKinds | undefined; parameters: readonly Parameter[] | undefined }): JSX.Element {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  return (
    <>
      <dt>{name}</dt>
      <dd>{text === "" ? <span class="dim">(empty)</span> : text.includes("\n") ? <pre class="short">{parameters ? marked(text, parameters, about) : plain(text)}</pre> : <code>{parameters ? marked(text, parameters, about) : plain(text)}</code>}</dd>
    </>
  );
}

/** A text with its ${…} marked, each with what it means. */
const marked = (text: string, parameters: readonly Parameter[], about: ActionKinds | undefined) =>
  pieces(text).map((p, i) =>
    p.ref ? (
      <span key={i} class="ref" title={meaning(p.text, parameters, about?.variables ?? [])}>{`\${${p.text}}`}</span>
    ) : (
      plain(p.text)
    ),
  );
