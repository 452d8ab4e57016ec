// The head of the machine page: what it is, what it does, and what can be done.
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { ApiWorkflow, Hardware } from "../api/types.ts";
import { now } from "../clock.ts";
import { duration } from "../format.ts";
import { progress, report, row } from "../machines.ts";
import { Link } from "../router.tsx";
import { moved } from "../speed.ts";
import { Badge, Bar, Since, State } from "../ui/basic.tsx";
import { Reason } from "../ui/reason.tsx";
import { offers } from "./possible.ts";
import { Verbs } from "./verbs.tsx";

/** Whether a workflow is not at its end. */
export const isActive = (w: ApiWorkflow | undefined): boolean => w?.status?.state === "running" || w?.status?.state === "pending";

/** The head of the page of a machine; workflow is its active one, or its last. */
export function Head({ hw, workflow, gone }: { hw: Hardware; workflow: ApiWorkflow | undefined; gone: boolean }): JSX.Element {
  const s = hw.status ?? {};
  const active = isActive(workflow);
  return (
    <header class="machine">
      <div class="head">
        <div>
          <span class="crumb">
            <Link to="/machines">Machines</Link> /{"\u00a0"}
          </span>
          <h1>{hw.metadata.name}</h1>
        </div>
        <State of={s.state ?? "available"} />
        <span>
          for <Since at={s.since ?? hw.metadata.created} />
        </span>
        <PowerBadge hw={hw} />
        {s.hold && (
          <span class="row">
            <Badge tone="warn">on hold</Badge>
            {s.holdReason && <Reason of={s.holdReason} />}
          </span>
        )}
        {s.maintenance && <Badge tone="warn" title={s.maintenanceNote}>{`in maintenance${s.maintenanceNote ? `: ${s.maintenanceNote}` : ""}`}</Badge>}
        {hw.spec.protect && (
          <Badge tone="good" title="Nothing is written to its disks">
            protected
          </Badge>
        )}
        {s.osUp && (
          <Badge tone="good">
            OS up <Since at={s.osUp} ago />
          </Badge>
        )}
      </div>
      <Where hw={hw} />
      {active && workflow && <Moving hw={hw} workflow={workflow} />}
      {!gone && <Verbs hw={hw} offers={offers(hw, active)} />}
    </header>
  );
}

function PowerBadge({ hw }: { hw: Hardware }): JSX.Element | null {
  const p = hw.status?.power;
  if (p?.error) {
    return (
      <Badge tone="bad" title={p.error}>
        power: {p.error}
      </Badge>
    );
  }
  if (p?.state) {
    return (
      <Badge tone={p.state === "on" ? "good" : "plain"} title={p.checked ? `asked at ${p.checked}` : undefined}>
        power {p.state}
      </Badge>
    );
  }
  return <Badge title="Nobody has asked its controller yet, or a person switches it">{hw.spec.power && hw.spec.power.driver !== "manual" ? "power not known" : "switched by hand"}</Badge>;
}

/** Addresses, owner, place. */
function Where({ hw }: { hw: Hardware }): JSX.Element {
  const s = hw.status ?? {};
  const lent = row(hw.metadata.name)?.address;
  const reserved = (hw.spec.interfaces ?? []).flatMap((n) => n.addresses ?? []);
  const parts: [string, ComponentChildren][] = [];
  const add = (label: string, value: ComponentChildren) => value && parts.push([label, value]);
  add("address", reserved.length > 0 ? reserved.join(", ") : lent ? `${lent} (lent)` : "none yet");
  add("MAC", (hw.spec.interfaces ?? []).map((n) => n.mac).join(", "));
  add("host name", hw.spec.hostname);
  add("owner", s.claim ? `${s.claim.owner} (claim ${s.claim.id})` : s.reserved ? `kept for ${s.reserved.for}` : "nobody");
  add("rack", hw.spec.rack && `${hw.spec.rack}${hw.spec.position ? `, ${hw.spec.position}` : ""}`);
  add("asset tag", hw.spec.assetTag);
  add("machine", [hw.facts?.vendor, hw.facts?.product].filter(Boolean).join(" "));
  add("serial", hw.facts?.serial);
  return (
    <>
      <dl class="where">
        {parts.map(([k, v]) => (
          <div key={k}>
            <dt>{k}</dt>
            <dd>{v}</dd>
          </div>
        ))}
      </dl>
      {hw.metadata.labels && Object.keys(hw.metadata.labels).length > 0 && (
        <div class="row labels">
          {Object.entries(hw.metadata.labels).map(([k, v]) => (
            <span key={k} class="badge">{`${k}=${v}`}</span>
          ))}
        </div>
      )}
    </>
  );
}

/** What it does now: the action, how far, how fast, until when. */
function Moving({ hw, workflow }: { hw: Hardware; workflow: ApiWorkflow }): JSX.Element {
  const name = workflow.metadata.name;
  const st = workflow.status;
  useEffect(() => {
    if (workflow.progress && !progress(name).peek()) report(workflow.progress);
  }, [name, workflow.progress]);
  const actions = st?.actions ?? [];
  const current = actions[st?.current ?? 0];
  const attempts = current?.attempts ?? [];
  const running = attempts[attempts.length - 1];
  const p = progress(name).value;
  const mine = p && p.action === st?.current && p.attempt === attempts.length - 1 ? p : undefined;
  const deadline = hw.status?.deadline ? Date.parse(hw.status.deadline) - now.value : 0;
  return (
    <div class="moves">
      <div class="row">
        <strong>{st?.state === "pending" || !current ? "Waits for its worker" : `${(st?.current ?? 0) + 1} of ${actions.length}: ${current.name}`}</strong>
        {current && st?.state === "running" && <code>{current.kind}</code>}
        {attempts.length > 1 && <Badge tone="warn">{`attempt ${attempts.length}`}</Badge>}
        {running?.started && !running.finished && (
          <span class="dim">
            for <Since at={running.started} />
          </span>
        )}
        {mine && <span class="num">{moved(mine)}</span>}
        {mine?.note && <span class="dim">{mine.note}</span>}
        {hw.status?.deadline && <span class={deadline < 0 ? "wrong" : "dim"}>{deadline < 0 ? `should have ended ${duration(-deadline)} ago` : `must end within ${duration(Math.floor(deadline / 1000) * 1000)}`}</span>}
      </div>
      <Bar done={mine?.done ?? 0} of={mine?.total ?? 0} label={`How far ${current?.name ?? "the workflow"} is`} />
      {st?.message && <p class="dim">{st.message}</p>}
    </div>
  );
}
