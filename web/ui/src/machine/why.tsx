// Why a machine does not move, in plain words, and what would keep an install from
// beginning; with the button that does what is to be done.
import type { JSX } from "preact";
import type { Check, Explanation, Hardware, ImageList, Issue, Validation } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { useLive } from "../live.ts";
import { Link, query, setQuery } from "../router.tsx";
import { operator } from "../session.ts";
import { Badge, Button, Copy, Field, ProblemBox, Since, toneOf, useLoad } from "../ui/basic.tsx";
import { commands, labelOf, step } from "./possible.ts";
import { about } from "./read.ts";
import { VerbButton } from "./verbs.tsx";

/** The words of an explanation have times in them ("12 s ago"), which no event tells. */
const stale = 15_000;

/** Why it is where it is, and whether it can be installed. */
export function WhyPanel({ hw }: { hw: Hardware }): JSX.Element {
  return (
    <div class="cards why">
      <Explain hw={hw} />
      <Validate hw={hw} />
    </div>
  );
}

function Explain({ hw }: { hw: Hardware }): JSX.Element {
  const name = hw.metadata.name;
  const read = useLive((signal) => call<Explanation>("GET", `/hardware/${seg(name)}/explain`, { signal }), about(name), [name], () => stale);
  const e = read.data;
  return (
    <section class="card" aria-label="Why">
      <h2>Why is it where it is?</h2>
      <ProblemBox problem={read.problem} />
      {!e && !read.problem && <p class="loading">Loading…</p>}
      {e && (
        <div class="stack">
          <p class="summary">{e.summary}</p>
          <Switches hw={hw} />
          {e.do && e.do.length > 0 && <Steps hw={hw} commands={e.do} />}
          {e.issues?.map((i) => <OneIssue key={i.kind} hw={hw} issue={i} />)}
          <ul class="known">
            {e.lines?.map((l, i) => (
              <li key={i}>{l}</li>
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}

/** The operator's own switches, where they stand in the way. */
function Switches({ hw }: { hw: Hardware }): JSX.Element | null {
  const n = hw.spec.netboot ?? {};
  if (n.allowPXE !== false && n.allowWorkflow !== false) return null;
  return (
    <div class="notice">
      <p>{[n.allowPXE === false ? "The record says allowPXE: false: it gets an address and no boot program." : "", n.allowWorkflow === false ? "The record says allowWorkflow: false: no workflow can begin." : ""].join(" ")}</p>
      <div class="row">
        {n.allowPXE === false && <VerbButton hw={hw} verb="allowPXE" />}
        {n.allowWorkflow === false && <VerbButton hw={hw} verb="allowWorkflow" />}
      </div>
    </div>
  );
}

/** What to do: a button for each command that the page can do, the command itself for those who type. */
function Steps({ hw, commands }: { hw: Hardware; commands: string[] }): JSX.Element {
  return (
    <div>
      <h3>What to do</h3>
      <ol class="steps">
        {commands.map((c, i) => (
          <li key={c}>
            <Do hw={hw} command={c} first={i === 0} />
            <Copy text={c} />
          </li>
        ))}
      </ol>
    </div>
  );
}

function Do({ hw, command, first }: { hw: Hardware; command: string; first?: boolean }): JSX.Element | null {
  const s = step(command, hw.metadata.name);
  if ("verb" in s) return operator.value ? <VerbButton hw={hw} verb={s.verb} label={s.power === "status" ? "Ask for its power…" : s.power ? `Power ${s.power}…` : labelOf(s.verb)} power={s.power} kind={first ? "primary" : "plain"} /> : null;
  if ("to" in s) {
    return (
      <Link to={s.to} class="button">
        {s.label}
      </Link>
    );
  }
  return null;
}

function OneIssue({ hw, issue }: { hw: Hardware; issue: Issue }): JSX.Element {
  return (
    <div class="issue">
      <div class="row">
        <Badge tone={toneOf(issue.severity)}>{issue.severity}</Badge>
        <strong>{issue.kind}</strong>
        <span class="dim">
          for <Since at={issue.since} />
        </span>
      </div>
      <p>{issue.detail}</p>
      <Fix hw={hw} text={issue.fix} />
    </div>
  );
}

/** Advice, with a button for each command in it. */
function Fix({ hw, text }: { hw: Hardware; text: string }): JSX.Element {
  return (
    <p class="fix">
      {text} {commands(text).map((c) => <Do key={c} hw={hw} command={c} />)}
      {/\bspec\.[a-zA-Z.[\]]+/.test(text) && operator.value && (
        <Link to={`/machines/${encodeURIComponent(hw.metadata.name)}?tab=edit`} class="button">
          Edit the record
        </Link>
      )}
    </p>
  );
}

function Validate({ hw }: { hw: Hardware }): JSX.Element {
  const name = hw.metadata.name;
  const image = query.value.get("image") ?? "";
  const images = useLoad((signal) => call<ImageList>("GET", "/images", { signal }), []);
  const reinstall = hw.status?.state === "provisioned";
  const read = useLive((signal) => call<Validation>("GET", `/hardware/${seg(name)}/validate`, { query: { image, reinstall: reinstall || undefined }, signal }), about(name), [name, image, reinstall]);
  const v = read.data;
  return (
    <section class="card" aria-label="Checklist">
      <div class="row">
        <h2>{reinstall ? "Can it be installed anew?" : "Can it be installed?"}</h2>
        {v && <Badge tone={v.ready ? "good" : "bad"}>{v.ready ? "✓ ready" : "✗ not yet"}</Badge>}
      </div>
      <Field label="With the image">
        {(p) => (
          <select {...p} value={image} onChange={(e) => setQuery({ image: e.currentTarget.value })}>
            <option value="">any</option>
            {images.data?.items.map((i) => (
              <option key={i.metadata.name} value={i.metadata.name}>
                {i.metadata.name}
                {i.status?.state && i.status.state !== "ready" ? ` (${i.status.state})` : ""}
              </option>
            ))}
            {image && !images.data?.items.some((i) => i.metadata.name === image) && <option value={image}>{image}</option>}
          </select>
        )}
      </Field>
      <ProblemBox problem={images.problem ?? read.problem} />
      {!v && !read.problem && <p class="loading">Loading…</p>}
      <ul class="checks">
        {v?.checks.map((c, i) => (
          <OneCheck key={i} hw={hw} check={c} />
        ))}
      </ul>
      {v?.ready && operator.value && (
        <div class="row">
          <Link to={`/provision?machines=${encodeURIComponent(name)}${image ? `&image=${encodeURIComponent(image)}` : ""}`} class="button primary">
            Provision…
          </Link>
          <Button kind="quiet" onPress={read.reload}>
            Look again
          </Button>
        </div>
      )}
    </section>
  );
}

function OneCheck({ hw, check: c }: { hw: Hardware; check: Check }): JSX.Element {
  const sign = c.ok ? "✓" : c.warning ? "!" : "✗";
  const word = c.ok ? "in order" : c.warning ? "warning" : "missing";
  return (
    <li class={c.ok ? "good" : c.warning ? "warn" : "bad"}>
      <span class="sign" aria-hidden="true">
        {sign}
      </span>
      <div>
        <strong>{c.name}</strong> <span class="hidden-text">{word}: </span>
        {c.detail}
        {c.fix && <Fix hw={hw} text={c.fix} />}
      </div>
    </li>
  );
}
