// The timeline of a machine: each boot as a waterfall, and below it what happened, in
// words.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { BootTimeline, TimelineLine, WorkflowWorkflow } from "../api/types.ts";
import { now } from "../clock.ts";
import { bytes, duration, parseDuration, rate, when } from "../format.ts";
import type { Live } from "../live.ts";
import type { Timeline } from "../api/types.ts";
import { progress } from "../machines.ts";
import { Link } from "../router.tsx";
import { moved } from "../speed.ts";
import { Badge, Button, Empty, ProblemBox, Since } from "../ui/basic.tsx";
import { Reason } from "../ui/reason.tsx";
import { Scroll } from "../ui/scroll.tsx";
import { about, layout, type ActionRun, type Bar, type Lane, type Picture } from "../waterfall.ts";

/** What the timeline is shown of. */
interface TimelineProps {
  name: string;
  timeline: Live<Timeline>;
  workflows: WorkflowWorkflow[];
  /** The workflow that is not ended. */
  active: string | undefined;
  all: boolean;
  onAll: () => void;
}

/** All boots, the newest first and open. */
export function TimelinePanel({ name, timeline, workflows, active, all, onAll }: TimelineProps): JSX.Element {
  const { data, problem } = timeline;
  if (!data) return problem ? <ProblemBox problem={problem} /> : <p class="loading">Loading…</p>;
  const boots = [...data.boots].reverse();
  const lines = boots.reduce((n, b) => n + b.lines.length, 0);
  return (
    <div class="stack">
      <ProblemBox problem={problem} />
      {!boots.some((b) => b.boot) && (
        <Empty title="It was never seen to boot">
          <p>When its first packet comes, it is here by itself. If it stays empty: its cable and VLAN, its boot order, and the interfaces in the appliance's configuration.</p>
          <Link to={`/machines/${encodeURIComponent(name)}?tab=why`}>Why it does not move</Link>
        </Empty>
      )}
      {boots.map((b, i) => (
        <Boot key={b.boot ?? ""} boot={b} newest={i === 0} read={timeline.at} workflows={workflows} active={i === 0 ? active : undefined} />
      ))}
      {!all && lines >= 1000 && <Button onPress={onAll}>Show everything that is kept</Button>}
    </div>
  );
}

const outcome = (b: BootTimeline): { tone: "good" | "busy" | "bad" | "plain"; word: string } => {
  const has = (...reasons: string[]) => b.lines.some((l) => reasons.includes(l.reason));
  if (b.ended) return { tone: "bad", word: "no worker" };
  if (has("os-up")) return { tone: "good", word: "OS up" };
  if (has("workflow-succeeded")) return { tone: "good", word: "workflow done" };
  if (has("workflow-failed", "workflow-timeout")) return { tone: "bad", word: "workflow failed" };
  if (b.split?.some((s) => !s.ended)) return { tone: "busy", word: "under way" };
  if (has("sent-to-disk", "os-seen")) return { tone: "good", word: "booted its disk" };
  if (has("worker-connected")) return { tone: "plain", word: "worker came" };
  return { tone: "plain", word: "booted" };
};

interface BootProps {
  boot: BootTimeline;
  newest: boolean;
  read: number;
  workflows: WorkflowWorkflow[];
  active: string | undefined;
}

function Boot({ boot, newest, read, workflows, active }: BootProps): JSX.Element {
  const [open, setOpen] = useState<boolean>();
  const shown = open ?? newest;
  const began = boot.lines.find((l) => l.reason === "boot-started");
  const end = outcome(boot);
  return (
    <details class="card boot" open={shown} onToggle={(e) => e.currentTarget.open !== shown && setOpen(e.currentTarget.open)}>
      <summary>
        <h3>
          {boot.boot ? "Boot" : "Before its first boot"} <time dateTime={boot.started}>{when(boot.started)}</time>
        </h3>
        {boot.boot && <Badge tone={end.tone}>{end.word}</Badge>}
        <span class="dim">
          <Since at={boot.started} ago />
          {began?.detail ? ` · ${began.detail}` : ""}
        </span>
      </summary>
      {shown && <Inside boot={boot} read={read} workflows={workflows} active={active} />}
    </details>
  );
}

/** What the workflows of this boot say of their actions. */
function runsOf(boot: BootTimeline, workflows: WorkflowWorkflow[]): ActionRun[] {
  const names = new Set(boot.lines.flatMap((l) => (l.workflow ? [l.workflow] : [])));
  return workflows.filter((w) => names.has(w.metadata.name)).flatMap((w) => (w.status?.actions ?? []).map((a) => ({ name: a.name, attempts: a.attempts ?? [] })));
}

function Inside({ boot, read, workflows, active }: Omit<BootProps, "newest">): JSX.Element {
  const goesOn = boot.split?.some((s) => !s.ended);
  // only what goes on looks at the clock, so that a page of old boots is drawn once
  const picture = layout(boot, runsOf(boot, workflows), goesOn ? Math.max(0, now.value - read) : 0);
  return (
    <div class="stack">
      {boot.ended && (
        <div class="problem">
          <strong>{`It ended without a worker: ${boot.ended}`}</strong>
          {boot.fix && <p class="hint">{boot.fix}</p>}
        </div>
      )}
      {picture.waited > 0 && <p class="dim">{`${duration(picture.waited)} passed before it was switched on; the picture begins after that.`}</p>}
      {picture.lanes.length > 0 && <Waterfall picture={picture} active={active} />}
      <Lines lines={boot.lines} />
    </div>
  );
}

const groupNames = { wait: "waiting", netboot: "netboot", work: "actions", system: "installed system" } as const;

/** Where the time went, by group, in words. */
function sums(p: Picture): string {
  const groups = (["netboot", "work", "system"] as const).map((g) => [groupNames[g], p.lanes.filter((l) => l.group === g).reduce((n, l) => n + l.took, 0)] as const);
  return groups
    .filter(([, ms]) => ms > 0)
    .map(([g, ms]) => `${g} ${duration(ms)}`)
    .join(" · ");
}

function Waterfall({ picture, active }: { picture: Picture; active: string | undefined }): JSX.Element {
  const { end } = picture;
  return (
    <Scroll label="Where the time went">
      <table class="waterfall">
        <caption>
          <strong>{duration(picture.total)}</strong> {picture.running ? "so far" : "in all"} <span class="dim">{sums(picture)}</span>
        </caption>
        <thead>
          <tr>
            <th scope="col">Phase</th>
            <th scope="col" class="axis">
              <span class="hidden-text">When, as a picture</span>
              <svg width="100%" height="16" aria-hidden="true">
                {picture.ticks.map((t, i) => (
                  <text key={t.at} x={`${(100 * t.at) / end}%`} y="12" text-anchor={i === 0 ? "start" : t.at > end * 0.92 ? "end" : "middle"}>
                    {t.text}
                  </text>
                ))}
              </svg>
            </th>
            <th scope="col" class="num wide">
              Began
            </th>
            <th scope="col" class="num">
              Took
            </th>
            <th scope="col" class="num wide">
              Moved
            </th>
          </tr>
        </thead>
        <tbody>
          {picture.lanes.map((l) => (
            <LaneRow key={l.name} lane={l} picture={picture} active={l.running && l.group === "work" ? active : undefined} />
          ))}
          {picture.marks.map((m) => (
            <tr key={m.text} class="mark">
              <th scope="row" class={m.good ? "good" : "bad"}>
                {m.good ? "✓" : "✗"} {m.text}
              </th>
              <td class="axis">
                <svg width="100%" height="24" aria-hidden="true">
                  <Grid picture={picture} />
                  <rect class={m.good ? "good" : "failed"} x={`${Math.min(99, (100 * m.at) / end)}%`} y="6" width="3" height="12" rx="1" />
                </svg>
              </td>
              <td class="num wide">{duration(m.at)}</td>
              <td />
              <td class="wide" />
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

const Grid = ({ picture }: { picture: Picture }): JSX.Element => (
  <>
    {picture.ticks.map((t) => (
      <line key={t.at} x1={`${(100 * t.at) / picture.end}%`} x2={`${(100 * t.at) / picture.end}%`} y1="0" y2="100%" />
    ))}
  </>
);

const signs = { done: "", running: "…", failed: "✗", interrupted: "↻" } as const;

const words = { done: "done", running: "runs", failed: "failed", interrupted: "interrupted by a restart" } as const;

const told = (l: Lane, b: Bar): string => `${l.label}${b.attempt ? `, attempt ${b.attempt}` : ""}: ${words[b.outcome]}, ${duration(b.to - b.from)}${b.message ? `: ${b.message}` : ""}`;

function LaneRow({ lane, picture, active }: { lane: Lane; picture: Picture; active: string | undefined }): JSX.Element {
  const { end } = picture;
  const bad = lane.bars.filter((b) => b.outcome === "failed" || b.outcome === "interrupted");
  return (
    <>
      <tr>
        <th scope="row" title={about(lane.name)}>
          {lane.label}
          {lane.bars.length > 1 && <small>{` ×${lane.bars.length}`}</small>}
        </th>
        <td class="axis">
          <svg width="100%" height="24" aria-hidden="true">
            <Grid picture={picture} />
            {lane.bars.map((b, i) => (
              <rect key={i} class={`${lane.group} ${b.outcome}`} x={`${(100 * b.from) / end}%`} y="6" width={`${Math.max(0.4, (100 * (b.to - b.from)) / end)}%`} height="12" rx="2">
                <title>{told(lane, b)}</title>
              </rect>
            ))}
          </svg>
        </td>
        <td class="num wide">{duration(lane.bars[0]?.from ?? 0)}</td>
        <td class="num">
          {lane.running && <span class="hidden-text">so far </span>}
          {duration(lane.took)}
          {lane.running ? " …" : ""}
        </td>
        <td class="num wide">
          {lane.bytes > 0 && (
            <span title={rate((lane.bytes * 1000) / Math.max(1, lane.took))}>
              {bytes(lane.bytes)}
              <small>{` ${rate((lane.bytes * 1000) / Math.max(1, lane.took))}`}</small>
            </span>
          )}
        </td>
      </tr>
      {active && <Moving workflow={active} />}
      {bad.length > 0 && (
        <tr class="note">
          <td />
          <td colSpan={4}>
            {bad.map((b, i) => (
              <div key={i} class={b.outcome === "failed" ? "wrong" : "dim"}>
                {signs[b.outcome]} {b.attempt ? `attempt ${b.attempt} ` : ""}
                {words[b.outcome]}
                {b.message ? `: ${b.message}` : ""}
              </div>
            ))}
          </td>
        </tr>
      )}
    </>
  );
}

/** How far the running action is, below its bar. */
function Moving({ workflow }: { workflow: string }): JSX.Element | null {
  const p = progress(workflow).value;
  if (!p || !p.done) return null;
  return (
    <tr class="note">
      <td />
      <td colSpan={4}>{[moved(p), p.note].filter(Boolean).join(" · ")}</td>
    </tr>
  );
}

const most = 300;

/** What happened, line by line. */
function Lines({ lines }: { lines: TimelineLine[] }): JSX.Element {
  const [all, setAll] = useState(false);
  const shown = all ? lines : lines.slice(-most);
  return (
    <>
      {shown.length < lines.length && <Button kind="quiet" onPress={() => setAll(true)}>{`Show the ${lines.length - shown.length} lines before`}</Button>}
      <Scroll label="What happened">
        <table class="lines">
          <caption class="hidden-text">What happened in this boot</caption>
          <thead>
            <tr>
              <th scope="col" class="num">
                At
              </th>
              <th scope="col">Reason</th>
              <th scope="col">What happened</th>
              <th scope="col" class="num">
                Times
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((l) => (
              <Line key={l.id} line={l} />
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

const noted = (l: TimelineLine): string => [l.by ? `by ${l.by}` : "", l.bytes ? bytes(l.bytes) : "", l.took && parseDuration(l.took) >= 1 ? duration(parseDuration(l.took)) : ""].filter(Boolean).join(", ");

function Line({ line: l }: { line: TimelineLine }): JSX.Element {
  const note = noted(l);
  return (
    <tr>
      <td class="num" title={when(l.first)}>
        <time dateTime={l.first}>+{duration(parseDuration(l.at))}</time>
      </td>
      <td>
        <Reason of={l.reason} />
      </td>
      <td class="what">
        {l.text} {note && <small>{note}</small>}
      </td>
      <td class="num" title={l.count > 1 ? `first ${when(l.first)}, last ${when(l.last)}` : undefined}>
        {l.count > 1 ? (
          <>
            {`${l.count}×`} <small>{`until +${duration(parseDuration(l.at) + Date.parse(l.last) - Date.parse(l.first))}`}</small>
          </>
        ) : (
          <span class="hidden-text">once</span>
        )}
      </td>
    </tr>
  );
}
