import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Severity, State as HardwareState } from "../api/types.ts";
import { seg } from "../api/call.ts";
import { link } from "../api/stream.ts";
import { count } from "../format.ts";
import { complete, progress, rows, type Row } from "../machines.ts";
import { Link } from "../router.tsx";
import { pace } from "../speed.ts";
import { Badge, Bar, Since, State, toneOf } from "../ui/basic.tsx";
import { FirstRun } from "../overview/first.tsx";
import { Trend } from "../overview/trend.tsx";

const states: HardwareState[] = ["pending", "available", "provisioning", "provisioned", "releasing", "failed", "retired"];

/** What goes on: how many machines are where, what moves, what does not and why, and how long installs take. */
export default function Overview(): JSX.Element {
  const all = rows.value;
  if (all.length === 0) {
    return complete.value ? <FirstRun /> : <p class="loading">Reading the machines…</p>;
  }
  return (
    <div class="stack">
      <div class="head">
        <h1>Overview</h1>
        <span class="dim">{count(all.length, "machine")}</span>
      </div>
      <Counts all={all} />
      <div class="cards">
        <Moving all={all} />
        <Issues all={all} />
      </div>
      <Trend />
    </div>
  );
}

function Counts({ all }: { all: Row[] }): JSX.Element {
  const counts = useMemo(() => {
    const out = new Map<string, number>();
    for (const r of all) out.set(r.state, (out.get(r.state) ?? 0) + 1);
    return out;
  }, [all]);
  const hold = useMemo(() => all.filter((r) => r.hold).length, [all]);
  const maintenance = useMemo(() => all.filter((r) => r.maintenance).length, [all]);
  return (
    <ul class="tiles" aria-label="Machines by state">
      {states.map((s) => (
        <Tile key={s} n={counts.get(s) ?? 0} label={s} tone={toneOf(s)} filter={`state:${s}`} />
      ))}
      <Tile n={hold} label="on hold" tone={hold > 0 ? "warn" : "plain"} filter="hold" />
      <Tile n={maintenance} label="in maintenance" tone="plain" filter="maintenance" />
    </ul>
  );
}

function Tile({ n, label, tone, filter }: { n: number; label: string; tone: string; filter: string }): JSX.Element {
  return (
    <li>
      <Link to={`/machines?q=${encodeURIComponent(filter)}`} class={`tile ${n > 0 ? tone : "none"}`}>
        <b>{n.toLocaleString("en")}</b> {label}
      </Link>
    </li>
  );
}

const most = 12;

function Moving({ all }: { all: Row[] }): JSX.Element {
  const moving = useMemo(() => all.filter((r) => r.active || r.state === "provisioning" || r.state === "releasing").sort((a, b) => (a.since ?? "").localeCompare(b.since ?? "")), [all]);
  return (
    <section class="card" aria-labelledby="moving">
      <h2 id="moving">Moving now</h2>
      {moving.length === 0 && <p class="dim">No machine is being installed or wiped.</p>}
      <ul class="plain lined">
        {moving.slice(0, most).map((r) => (
          <Mover key={r.name} r={r} />
        ))}
      </ul>
      {moving.length > most && <Link to="/machines?q=state%3Aprovisioning%2Creleasing">and {count(moving.length - most, "other")}</Link>}
    </section>
  );
}

function Mover({ r }: { r: Row }): JSX.Element {
  const p = progress(r.workflow ?? "").value;
  return (
    <li class="mover">
      <div class="row">
        <Link to={`/machines/${seg(r.name)}`}>{r.name}</Link> <State of={r.state} />
        <span class="dim">
          for <Since at={r.since} />
        </span>
        {r.issue && <Badge tone={toneOf(r.issue.severity)}>{r.issue.kind}</Badge>}
        <span class="end num">{p && pace(p)}</span>
      </div>
      {r.active && <Bar done={p?.done ?? 0} of={p?.total ?? 0} label={`progress of ${r.name}`} />}
    </li>
  );
}

const weight: Record<Severity, number> = { error: 0, warning: 1, info: 2 };

function Issues({ all }: { all: Row[] }): JSX.Element {
  const kinds = useMemo(() => {
    const out = new Map<string, Row[]>();
    for (const r of all) {
      if (!r.issue) continue;
      const list = out.get(r.issue.kind);
      if (list) list.push(r);
      else out.set(r.issue.kind, [r]);
    }
    return [...out].sort(([, a], [, b]) => weight[a[0]!.issue!.severity] - weight[b[0]!.issue!.severity] || b.length - a.length);
  }, [all]);
  return (
    <section class="card" aria-labelledby="issues">
      <h2 id="issues">What does not get on</h2>
      {kinds.length === 0 && <p class="dim">No machine needs anything.</p>}
      <ul class="plain lined">
        {kinds.map(([kind, list]) => (
          <li key={kind} class="issue">
            <div class="row">
              <Badge tone={toneOf(list[0]!.issue!.severity)}>{list[0]!.issue!.severity}</Badge>
              <Link to={`/machines?q=${encodeURIComponent(`issue:${kind}`)}`}>
                {kind} <b>{list.length > 1 ? `×${list.length}` : ""}</b>
              </Link>
              {list.length <= 3 && list.map((r) => <Link key={r.name} to={`/machines/${seg(r.name)}?tab=why`} class="dim">{r.name}</Link>)}
            </div>
            <p>{list[0]!.issue!.detail}</p>
            {list[0]!.issue!.fix && <p class="dim">→ {list[0]!.issue!.fix}</p>}
          </li>
        ))}
      </ul>
      {link.value === "lost" && <p class="dim">As it was when the connection was lost.</p>}
    </section>
  );
}
