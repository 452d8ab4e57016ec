import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Event } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { listen } from "../api/stream.ts";
import { count, duration } from "../format.ts";
import { progress, row } from "../machines.ts";
import { go, Link } from "../router.tsx";
import { moved } from "../speed.ts";
import { Badge, Bar, Button, Confirm, ProblemBox, Since, type Tone } from "../ui/basic.tsx";
import { again, reset, runs, type Run } from "./state.ts";
import { Scroll } from "../ui/scroll.tsx";

/** How far an install is, as the list says it. */
type Phase = "asking" | "refused" | "waiting" | "working" | "starting" | "up" | "failed" | "ended";

const tones: Record<Phase, [string, Tone]> = {
  asking: ["being asked for", "busy"],
  refused: ["not started", "bad"],
  waiting: ["waits for its netboot", "busy"],
  working: ["is being installed", "busy"],
  starting: ["installed, its system starts", "busy"],
  up: ["OS up", "good"],
  failed: ["failed", "bad"],
  ended: ["ended", "warn"],
};

/** Where it is; heard says whether an action of it was told of. */
function phase(r: Run, heard: boolean): Phase {
  if (r.state !== "started") return r.state;
  const m = row(r.machine);
  if (!m) return "ended";
  if (m.workflow !== r.workflow) return Date.now() - r.at < 3000 ? "waiting" : "ended";
  if (m.osUp && Date.parse(m.osUp) > r.at) return "up";
  if (m.state === "failed") return "failed";
  if (m.state === "provisioned") return "starting";
  if (!m.active) return "ended";
  return heard || progress(r.workflow).value ? "working" : "waiting";
}

/** The machines that were started, until their systems are up. */
export function Progress(): JSX.Element {
  const all = runs.value ?? [];
  const last = useLast(all);
  const [stopping, setStopping] = useState<Run>();
  const n = (p: Phase[]) => all.filter((r) => p.includes(phase(r, !!last.get(r.machine)?.action))).length;
  const refused = all.filter((r) => r.state === "refused");
  const over = n(["up", "failed", "refused", "ended"]);
  return (
    <>
      <p role="status">
        {n(["up"])} of {count(all.length, "machine")} up
        {n(["failed", "ended"]) > 0 && <>, {n(["failed", "ended"])} failed or ended</>}
        {refused.length > 0 && <>, {refused.length} not started</>}
        {over < all.length && <>, {all.length - over} on the way</>}.
      </p>
      <div class="row buttons">
        {refused.length > 0 && (
          <Button kind="primary" onPress={() => Promise.all(refused.map(again))}>
            Try the {count(refused.length, "refused machine")} again
          </Button>
        )}
        <Button
          onPress={() => {
            reset();
            go("/provision");
          }}
        >
          Install others
        </Button>
        <Link class="button" to="/machines">
          All machines
        </Link>
      </div>
      <Scroll label="Machines that are installed">
        <table>
          <thead>
            <tr>
              <th scope="col">Machine</th>
              <th scope="col">State</th>
              <th scope="col">Progress</th>
              <th scope="col">For</th>
              <th scope="col">Last heard</th>
              <th scope="col">
                <span class="hidden-text">Stop</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {all.map((r) => (
              <Line key={r.machine} r={r} last={last.get(r.machine)} onStop={() => setStopping(r)} />
            ))}
          </tbody>
        </table>
      </Scroll>
      {stopping && (
        <Confirm
          title={`Stop the install of ${stopping.machine}?`}
          word=""
          verb="Stop it"
          onClose={() => setStopping(undefined)}
          onConfirm={async () => {
            await call("POST", `/workflows/${seg(stopping.workflow)}/cancel`, { body: { reason: "stopped in the wizard" } });
            setStopping(undefined);
          }}
        >
          <p>What was written stays on its disk, so that the machine has no whole system until it is installed or released.</p>
        </Confirm>
      )}
    </>
  );
}

function Line({ r, last, onStop }: { r: Run; last: Event | undefined; onStop: () => void }): JSX.Element {
  const p = phase(r, !!last?.action);
  const [text, tone] = tones[p];
  const m = row(r.machine);
  const moving = p === "waiting" || p === "working";
  const end = p === "up" && m?.osUp ? Date.parse(m.osUp) : undefined;
  return (
    <tr>
      <th scope="row">
        <Link to={`/machines/${seg(r.machine)}`}>{r.machine}</Link>
      </th>
      <td>
        <Badge tone={tone}>{text}</Badge>
        {m?.hold && <Badge tone="warn">on hold</Badge>}
      </td>
      <td class="state-of-image">
        <Moving r={r} p={p} last={last} />
        <ProblemBox problem={r.problem} />
        {r.state === "refused" && <Button onPress={() => again(r)}>Try again</Button>}
        {m?.issue && p !== "up" && r.state === "started" && (
          <div class={m.issue.severity === "error" ? "wrong" : ""}>
            {m.issue.detail}
            <div class="hint dim">{m.issue.fix}</div>
          </div>
        )}
      </td>
      <td class="keep">{end ? duration(end - r.at) : <Since at={new Date(r.at).toISOString()} />}</td>
      <td>
        {last ? (
          <>
            {last.text}
            <div class="dim">
              <Since at={last.last} ago />
            </div>
          </>
        ) : null}
      </td>
      <td>
        {moving && (
          <Button aria-label={`Stop the install of ${r.machine}`} onPress={onStop}>
            Stop
          </Button>
        )}
      </td>
    </tr>
  );
}

/** Which action runs and how far it is. Only some actions count bytes. */
function Moving({ r, p, last }: { r: Run; p: Phase; last: Event | undefined }): JSX.Element | null {
  const at = progress(r.workflow).value;
  if (p !== "working") return null;
  const told = r.actions.findIndex((a) => a.name === last?.action);
  const i = told >= 0 ? told : (at?.action ?? 0);
  const name = r.actions[i]?.name ?? "work";
  const counts = at && at.action === i && at.done < (at.total ?? Infinity);
  return (
    <>
      <div>
        {name}{" "}
        <span class="dim">
          ({i + 1} of {r.actions.length})
        </span>
      </div>
      {counts && (
        <>
          <Bar done={at.done} of={at.total ?? 0} label={`${name} of ${r.machine}`} />
          <small class="num">{[moved(at), at.note].filter(Boolean).join(" · ")}</small>
        </>
      )}
    </>
  );
}

/** The last event of each machine since the start. */
function useLast(all: Run[]): Map<string, Event> {
  const [last, setLast] = useState(new Map<string, Event>());
  const names = all.map((r) => r.machine).join(",");
  useEffect(() => {
    const mine = new Set(names.split(","));
    let pending = new Map<string, Event>();
    let timer = 0;
    const off = listen({
      event: (e) => {
        if (!e.machine || !mine.has(e.machine)) return;
        pending.set(e.machine, e);
        timer ||= window.setTimeout(() => {
          timer = 0;
          const fresh = pending;
          pending = new Map();
          setLast((was) => new Map([...was, ...fresh]));
        }, 100);
      },
    });
    return () => {
      off();
      clearTimeout(timer);
    };
  }, [names]);
  return last;
}
