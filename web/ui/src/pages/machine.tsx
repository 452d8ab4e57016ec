import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiWorkflow, Event, Hardware } from "../api/types.ts";
import { call, Failure, seg } from "../api/call.ts";
import { listen } from "../api/stream.ts";
import { when } from "../format.ts";
import { useLive } from "../live.ts";
import { row, rows } from "../machines.ts";
import { Link, query } from "../router.tsx";
import { operator } from "../session.ts";
import { FactsPanel } from "../machine/facts.tsx";
import { Head, isActive } from "../machine/head.tsx";
import { about, useMachine, useTimeline, useWorkflows } from "../machine/read.ts";
import { TimelinePanel } from "../machine/timeline.tsx";
import { AskedVerb } from "../machine/verbs.tsx";
import { WhyPanel } from "../machine/why.tsx";
import { WorkflowPanel } from "../machine/workflow.tsx";
import { Badge, Empty, ProblemBox } from "../ui/basic.tsx";
import { Events } from "../ui/events.tsx";
import { lazy } from "../ui/lazy.tsx";
import { Tabs, type Tab } from "../ui/tabs.tsx";

const Edit = lazy(() => import("../machine/edit.tsx").then((m) => m.Edit));

/** One machine. */
export default function Machine({ params }: { params: Record<string, string> }): JSX.Element {
  const name = params["name"] ?? "";
  const machine = useMachine(name);
  const hw = machine.data;
  const missing = machine.problem?.status === 404;
  const deleted = useDeleted(name);
  const first = useRef<string | undefined>(undefined);
  const known = useRef<string | undefined>(undefined);
  first.current ??= hw?.metadata.uid;
  // another record is shown from the beginning, unless somebody is writing: what is typed stays, and applying it is refused
  if (!known.current || query.value.get("tab") !== "edit") known.current = hw?.metadata.uid;
  if (!hw) {
    if (missing) return <Unknown name={name} hint={machine.problem?.hint} />;
    return machine.problem ? <ProblemBox problem={machine.problem} /> : <p class="loading">Loading…</p>;
  }
  return (
    <>
      {missing && <Gone hw={hw} event={deleted} />}
      {!missing && <ProblemBox problem={machine.problem} />}
      {!missing && first.current !== hw.metadata.uid && (
        <div class="notice" role="alert">
          <strong>{`The record of ${name} was deleted and made anew`}</strong> while the page was open. This is the new one; it may be another machine.
        </div>
      )}
      <Known key={known.current} hw={hw} gone={missing} />
      <AskedVerb hw={hw} />
    </>
  );
}

/** The event that a machine's record was deleted, while one looked. */
function useDeleted(name: string): Event | undefined {
  const [event, setEvent] = useState<Event>();
  useEffect(() => listen({ event: (e) => e.machine === name && e.reason === "record-deleted" && setEvent(e) }), [name]);
  return event;
}

function Unknown({ name, hint }: { name: string; hint: string | undefined }): JSX.Element {
  const word = name.toLowerCase();
  const like = rows.value.filter((r) => r.name.includes(word) || r.hostname?.includes(word) || r.mac === word || r.assetTag?.toLowerCase() === word).slice(0, 10);
  return (
    <Empty title={`There is no machine ${name}`}>
      {hint && <p>{hint}</p>}
      {like.length > 0 && (
        <p>
          Do you mean{" "}
          {like.map((r, i) => (
            <>
              {i > 0 && ", "}
              <Link to={`/machines/${encodeURIComponent(r.name)}`}>{r.name}</Link>
            </>
          ))}
          ?
        </p>
      )}
      <p>
        <Link to="/machines">All machines</Link> · <Link to="/pending">Machines that wait to be accepted</Link>
      </p>
    </Empty>
  );
}

/** The record was deleted while one looked: what was known stays on the page. */
function Gone({ hw, event }: { hw: Hardware; event: Event | undefined }): JSX.Element {
  const macs = new Set((hw.spec.interfaces ?? []).map((n) => n.mac));
  const again = rows.value.find((r) => r.name !== hw.metadata.name && [r.mac, ...(r.macs ?? [])].some((m) => m && macs.has(m)));
  return (
    <div class="notice" role="alert">
      <strong>{`The record of ${hw.metadata.name} was deleted`}</strong>
      {event && (
        <>
          {" "}
          at {when(event.first)}
          {event.by ? ` by ${event.by}` : ""}
        </>
      )}
      . The page shows what was last known of it.{" "}
      {again ? (
        <>
          Its MAC is in the record of <Link to={`/machines/${encodeURIComponent(again.name)}`}>{again.name}</Link> now.
        </>
      ) : (
        <Link to="/machines">All machines</Link>
      )}
    </div>
  );
}

/** The workflow that the machine's status names, with its progress; undefined where there is none, or none any more. */
async function currentWorkflow(name: string | undefined, signal: AbortSignal): Promise<ApiWorkflow | undefined> {
  if (!name) return undefined;
  try {
    return await call<ApiWorkflow>("GET", `/workflows/${seg(name)}`, { signal });
  } catch (err) {
    if (err instanceof Failure && err.status === 404) return undefined;
    throw err;
  }
}

function Known({ hw, gone }: { hw: Hardware; gone: boolean }): JSX.Element {
  const name = hw.metadata.name;
  const [all, setAll] = useState(false);
  const timeline = useTimeline(name, all);
  const workflows = useWorkflows(name);
  const last = hw.status?.workflow;
  const current = useLive((signal) => currentWorkflow(last, signal), about(name), [last]);
  const workflow = current.data?.metadata.name === last ? current.data : undefined;
  const list = withCurrent(workflows.data ?? [], workflow);
  const issues = row(name)?.issues ?? hw.status?.issues?.length ?? 0;
  const tabs: Tab[] = [
    { key: "timeline", label: "Timeline", panel: () => <TimelinePanel name={name} timeline={timeline} workflows={list} active={workflow && isActive(workflow) ? last : undefined} all={all} onAll={() => setAll(true)} /> },
    {
      key: "why",
      label: (
        <>
          Why {issues > 0 && <Badge tone="warn">{issues}</Badge>}
        </>
      ),
      panel: () => (gone ? <Empty title="The record is gone" /> : <WhyPanel hw={hw} />),
    },
    { key: "facts", label: "Facts", panel: () => <FactsPanel hw={hw} workflows={list} /> },
    { key: "workflow", label: "Workflow", panel: () => <WorkflowPanel name={name} list={{ ...workflows, data: workflows.data && list }} /> },
    { key: "events", label: "Events", panel: () => (gone ? <Empty title="The record is gone">Its events can still be found among all: <Link to="/events">Events</Link></Empty> : <Events machine={name} />) },
  ];
  if (operator.value && (!gone || query.value.get("tab") === "edit")) tabs.push({ key: "edit", label: "Edit", panel: () => <Edit hw={hw} /> });
  return (
    <>
      <Head hw={hw} workflow={workflow} gone={gone} />
      <Tabs label={`Machine ${name}`} tabs={tabs} />
    </>
  );
}

/** The list with the newest state of the one that runs. */
function withCurrent(list: ApiWorkflow[], current: ApiWorkflow | undefined): ApiWorkflow[] {
  if (!current) return list;
  const i = list.findIndex((w) => w.metadata.name === current.metadata.name);
  return i < 0 ? [current, ...list] : list.with(i, current);
}
