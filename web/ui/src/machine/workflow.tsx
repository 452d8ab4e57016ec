// The workflows of a machine: actions, attempts, what they said.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Action, Attempt, WorkflowWorkflow } from "../api/types.ts";
import { now } from "../clock.ts";
import { bytes, duration, parseDuration, when } from "../format.ts";
import type { Live } from "../live.ts";
import { progress } from "../machines.ts";
import { Link } from "../router.tsx";
import { operator } from "../session.ts";
import { moved } from "../speed.ts";
import { Badge, Bar, Empty, ProblemBox, Since, State, toneOf } from "../ui/basic.tsx";
import { LongText } from "../ui/longtext.tsx";
import { Scroll } from "../ui/scroll.tsx";
import { AttemptLog } from "./log.tsx";

/** All workflows of a machine, the newest first and open. */
export function WorkflowPanel({ name, list }: { name: string; list: Live<WorkflowWorkflow[]> }): JSX.Element {
  const { data, problem } = list;
  if (!data) return problem ? <ProblemBox problem={problem} /> : <p class="loading">Loading…</p>;
  if (data.length === 0) {
    return (
      <Empty title="No workflow was ever started on it">
        {operator.value && <Link to={`/provision?machines=${encodeURIComponent(name)}`}>Provision it</Link>}
      </Empty>
    );
  }
  return (
    <div class="stack">
      <ProblemBox problem={problem} />
      {data.map((w, i) => (
        <OneWorkflow key={w.metadata.name} workflow={w} newest={i === 0} />
      ))}
    </div>
  );
}

function OneWorkflow({ workflow: w, newest }: { workflow: WorkflowWorkflow; newest: boolean }): JSX.Element {
  const [open, setOpen] = useState<boolean>();
  const shown = open ?? newest;
  const st = w.status;
  const image = w.spec.params?.["image"];
  const took = st?.started ? (st.finished ? Date.parse(st.finished) : now.value) - Date.parse(st.started) : 0;
  return (
    <details class="card boot" open={shown} onToggle={(e) => e.currentTarget.open !== shown && setOpen(e.currentTarget.open)}>
      <summary>
        <h3>{w.metadata.name}</h3>
        <State of={st?.state ?? "pending"} />
        <span class="dim">
          {[w.spec.purpose ?? "", `template ${w.spec.template}`, typeof image === "string" ? `image ${image}` : ""].filter(Boolean).join(", ")} · <Since at={w.metadata.created} ago />
          {took > 0 ? ` · ${duration(took)}` : ""}
        </span>
      </summary>
      {shown && (
        <div class="stack">
          {st?.message && <p class={toneOf(st.state ?? "") === "bad" ? "wrong" : "dim"}>{st.message}</p>}
          <p>
            <Link to={`/templates/${encodeURIComponent(w.spec.template)}`}>{`Template ${w.spec.template}`}</Link>
          </p>
          <ol class="actions">
            {(st?.actions ?? []).map((a, i) => (
              <OneAction key={a.name} workflow={w.metadata.name} action={a} index={i} current={st?.current === i && st.state === "running"} />
            ))}
          </ol>
        </div>
      )}
    </details>
  );
}

function OneAction({ workflow, action: a, index, current }: { workflow: string; action: Action; index: number; current: boolean }): JSX.Element {
  const attempts = a.attempts ?? [];
  const p = current ? progress(workflow).value : undefined;
  const mine = p && p.action === index && p.attempt === attempts.length - 1 ? p : undefined;
  return (
    <li>
      <div class="row">
        <strong>{a.name}</strong> <code>{a.kind}</code> <State of={a.state} />
        <small>
          {a.timeout && parseDuration(a.timeout) > 0 ? `at most ${duration(parseDuration(a.timeout))} a try, ` : ""}
          {a.retries > 0 ? `tried again up to ${a.retries}×` : "tried once"}
        </small>
      </div>
      {mine && (
        <>
          <Bar done={mine.done} of={mine.total ?? 0} label={`How far ${a.name} is`} />
          <small class="num">{[moved(mine), mine.note].filter(Boolean).join(" · ")}</small>
        </>
      )}
      {attempts.length > 0 && (
        <Scroll label={`Attempts of ${a.name}`}>
          <table class="attempts">
            <thead>
              <tr>
                <th scope="col" class="num">
                  Attempt
                </th>
                <th scope="col">State</th>
                <th scope="col">Began</th>
                <th scope="col" class="num">
                  Took
                </th>
                <th scope="col">What it did</th>
              </tr>
            </thead>
            <tbody>
              {attempts.map((t, i) => (
                <OneAttempt key={i} workflow={workflow} action={index} number={i + 1} attempt={t} file={`${workflow}-${a.name}-${i + 1}`} />
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </li>
  );
}

function OneAttempt({ workflow, action, number, attempt: t, file }: { workflow: string; action: number; number: number; attempt: Attempt; file: string }): JSX.Element {
  const took = t.started ? (t.finished ? Date.parse(t.finished) : now.value) - Date.parse(t.started) : 0;
  const r = t.result;
  const figures = [
    r?.disk && `disk ${r.disk}`,
    r?.sourceBytes && `${bytes(r.sourceBytes)} over the network`,
    r?.writtenBytes && `${bytes(r.writtenBytes)} written${took > 0 ? `, ${bytes((r.writtenBytes * 1000) / took)}/s` : ""}`,
    r?.wiped?.length && r.wiped.map((d) => `${d.path}: ${d.method}, ${bytes(d.verified)} of ${bytes(d.bytes)} read back`).join("; "),
    r?.checksum,
    r?.compared && `compared with ${r.compared}`,
  ].filter(Boolean);
  const running = t.state === "running";
  return (
    <>
      <tr>
        <td class="num">{number}</td>
        <td>
          <span class="row">
            <State of={t.state} />
            {t.interrupted && (
              <Badge tone="warn" title="The machine restarted; this uses up no retry">
                interrupted
              </Badge>
            )}
            {t.permanent && (
              <Badge tone="bad" title="The worker says that trying again cannot help">
                for good
              </Badge>
            )}
          </span>
        </td>
        <td>
          <time dateTime={t.started}>{when(t.started)}</time>
        </td>
        <td class="num">{duration(took)}</td>
        <td>
          {t.message && <LongText text={t.message} file={`${file}.txt`} label={`What attempt ${number} said`} />}
          {figures.length > 0 && <small class="figures">{figures.join(" · ")}</small>}
        </td>
      </tr>
      {(running || (t.logBytes ?? 0) > 0) && (
        <tr class="log">
          <td colSpan={5}>
            <AttemptLog place={{ workflow, action, attempt: number }} size={t.logBytes ?? 0} running={running} file={`${file}.log`} />
          </td>
        </tr>
      )}
    </>
  );
}
