import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import type { Action, Check, Erasure, Problem, Provision, Provisioned, Template } from "../api/types.ts";
import { asProblem, call, seg } from "../api/call.ts";
import { count, when } from "../format.ts";
import { complete, row } from "../machines.ts";
import { holdsWords } from "../machine/layout.ts";
import { Link } from "../router.tsx";
import { Badge, Bar, Button, Confirm, ProblemBox, type Tone } from "../ui/basic.tsx";
import { Tick } from "../ui/inputs.tsx";
import { Scroll } from "../ui/scroll.tsx";
import { DiskText } from "./image.tsx";
import { imageText, request, type Draft } from "./draft.ts";
import { keyOf } from "./machines.tsx";
import { draft, each, start } from "./state.ts";

/** What the appliance says of the install of one machine. */
interface Looked {
  machine: string;
  /** What the machine was then. */
  key: string;
  request: Provision;
  answer?: Provisioned | undefined;
  problem?: Problem | undefined;
}

/** How an install would go: begins and gets there, begins and does not, or is refused. */
type Outlook = "ready" | "doubtful" | "refused";

const outlook = (l: Looked): Outlook => (l.problem || !l.answer ? "refused" : (l.answer.checks ?? []).some((c) => !c.ok && !c.warning) ? "doubtful" : "ready");

const words: Record<Outlook, [string, Tone]> = { ready: ["ready", "good"], doubtful: ["will not succeed", "bad"], refused: ["refused", "bad"] };

/** Asks the appliance what would happen to each machine, and starts it. */
export function Review({ template, onStarted }: { template: Template | undefined; onStarted: () => void }): JSX.Element {
  const d = draft.value;
  const [turn, setTurn] = useState(0);
  const { looked, done } = useLook(d, template, turn);
  const [risky, setRisky] = useState(false);
  // what was asked stays as it was read: a machine that changes under the question is the appliance's to refuse
  const [asking, setAsking] = useState<Looked[]>();
  const by = (o: Outlook) => looked.filter((l) => outlook(l) === o);
  const going = looked.filter((l) => outlook(l) === "ready" || (risky && outlook(l) === "doubtful"));
  const left = d.machines.length - going.length;
  return (
    <>
      <p>
        <strong>{imageText(d)}</strong> on {count(d.machines.length, "machine")}
        {d.disk ? `, disk ${d.disk}` : ""}, template {d.template || template?.metadata.name}, {d.ownUserData ? "user-data of your own" : "user-data of the records"}
        {d.waitForPhoneHome ? ", done when the system phones home" : ""}.
      </p>
      {!done && (
        <div class="asking">
          <Bar done={looked.length} of={d.machines.length} label="Asking the appliance" />
          <p role="status">
            Asking the appliance what would happen: {looked.length} of {d.machines.length}
          </p>
        </div>
      )}
      {done && (
        <div class="row">
          <p role="status">
            {count(by("ready").length, "machine")} ready
            {by("doubtful").length > 0 && <>, {by("doubtful").length} will not succeed</>}
            {by("refused").length > 0 && <>, {by("refused").length} refused</>}.
          </p>
          <Button kind="quiet" onPress={() => setTurn(turn + 1)}>
            Ask again
          </Button>
        </div>
      )}
      <ul class="plain stack reviewed">
        {[...by("refused"), ...by("doubtful"), ...by("ready")].map((l) => (
          <Machine key={l.machine} l={l} open={d.machines.length <= 3} />
        ))}
      </ul>
      {done && (
        <>
          {by("doubtful").length > 0 && <Tick label={`Start the ${by("doubtful").length} that will not succeed too`} checked={risky} onValue={setRisky} help="Their workflows begin, and wait or fail until what is missing is there." />}
          {left > 0 && going.length > 0 && <p class="notice">{count(left, "machine")} {left === 1 ? "is" : "are"} left out.</p>}
          {going.length === 0 && <p class="notice">No machine can be installed like this. Go back and change what the reasons name.</p>}
          <div class="row buttons">
            <Button kind="primary" disabled={going.length === 0} onPress={() => setAsking(going)}>
              Install {count(going.length, "machine")}…
            </Button>
          </div>
        </>
      )}
      {asking && (
        <Ask
          going={asking}
          onClose={() => setAsking(undefined)}
          onConfirm={() => {
            setAsking(undefined);
            void start(asking.map(({ machine, request }) => ({ machine, request })));
            onStarted();
          }}
        />
      )}
    </>
  );
}

const keyNow = (machine: string, d: Draft): string => {
  const r = row(machine);
  return r ? keyOf(r, d.reinstall) : "";
};

/** Asks for a dry run of each machine, again when the draft or turn changes, and of one that somebody changes meanwhile. */
function useLook(d: Draft, template: Template | undefined, turn: number): { looked: Looked[]; done: boolean } {
  const shown = useRef(signal<{ looked: Looked[]; done: boolean }>({ looked: [], done: false })).current;
  useEffect(() => {
    if (!complete.value || !template) return;
    const abort = new AbortController();
    const looked: Looked[] = [];
    shown.value = { looked: [], done: false };
    const timer = window.setInterval(() => {
      if (looked.length !== shown.peek().looked.length) shown.value = { looked: [...looked], done: false };
    }, 200);
    void look(d, template, abort.signal, (l) => looked.push(l)).then(() => {
      clearInterval(timer);
      if (!abort.signal.aborted) shown.value = { looked, done: true };
    });
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [d, template, turn, complete.value]);
  const { done } = shown.value;
  useEffect(() => {
    const { looked } = shown.peek();
    const old = done ? looked.filter((l) => l.key !== keyNow(l.machine, d)) : [];
    if (old.length === 0) return;
    const abort = new AbortController();
    const fresh = new Map<string, Looked>();
    // the checksum that was found for all of them is theirs too
    const checksum = looked.find((l) => l.request.checksum)?.request.checksum ?? d.checksum;
    void look({ ...d, checksum, machines: old.map((l) => l.machine) }, template!, abort.signal, (l) => fresh.set(l.machine, l)).then(() => {
      if (!abort.signal.aborted) shown.value = { looked: looked.map((l) => fresh.get(l.machine) ?? l), done: true };
    });
    return () => abort.abort();
  }, [done, d.machines.map((n) => keyNow(n, d)).join("\n")]);
  return shown.value;
}

async function look(d: Draft, template: Template, abort: AbortSignal, tell: (l: Looked) => void): Promise<void> {
  let checksum = "";
  const one = async (machine: string) => {
    if (abort.aborted) return;
    const key = keyNow(machine, d);
    const r = request(d, machine, template, row(machine)?.claim);
    if (checksum) r.checksum = checksum;
    try {
      const answer = await call<Provisioned>("POST", `/hardware/${seg(machine)}/provision`, { query: { dryRun: true }, body: r, signal: abort });
      const found = answer.workflow.spec.params?.["checksum"];
      if (r.checksum?.includes("://") && typeof found === "string") {
        // a list of checksums is read once, for all of them, so that all get the same image
        checksum = r.checksum = found;
      }
      tell({ machine, key, request: r, answer });
    } catch (err) {
      if (!abort.aborted) tell({ machine, key, request: r, problem: asProblem(err) });
    }
  };
  const [first, ...rest] = d.machines;
  if (first) await one(first);
  await each(rest, one);
}

/** One machine: what is lost, what is done, what speaks against it. */
function Machine({ l, open }: { l: Looked; open: boolean }): JSX.Element {
  const o = outlook(l);
  const [text, tone] = words[o];
  const checks = (l.answer?.checks ?? []).filter((c) => !c.ok);
  return (
    <li class="card" aria-label={l.machine}>
      <div class="row">
        <Link to={`/machines/${seg(l.machine)}`}>{l.machine}</Link>
        <Badge tone={tone}>{text}</Badge>
        {checks.some((c) => c.warning) && <Badge tone="warn">{count(checks.filter((c) => c.warning).length, "warning")}</Badge>}
      </div>
      <ProblemBox problem={l.problem} />
      {l.answer?.erases?.map((e, i) => <Erased key={i} e={e} />)}
      <Checks checks={checks} />
      {l.answer && (
        <details open={open}>
          <summary>What is done: {count(l.answer.workflow.status?.actions?.length ?? 0, "action")}</summary>
          <Actions actions={l.answer.workflow.status?.actions ?? []} />
        </details>
      )}
    </li>
  );
}

function Checks({ checks }: { checks: Check[] }): JSX.Element | null {
  if (checks.length === 0) return null;
  return (
    <ul class="plain">
      {checks.map((c) => (
        <li key={c.name + c.detail}>
          <Badge tone={c.warning ? "warn" : "bad"}>{c.name}</Badge> {c.detail}
          {c.fix && <div class="hint dim">{c.fix}</div>}
        </li>
      ))}
    </ul>
  );
}

/** A disk whose content is lost. */
function Erased({ e }: { e: Erasure }): JSX.Element {
  return (
    <p class={e.holds === "nothing" ? "" : "notice"}>
      <strong>Erases</strong> {e.disk ? <DiskText disk={e.disk} /> : <>{e.wanted || "its only disk"}: {e.why}</>}
      <br />
      {e.detail}
      {e.disk?.layout && (
        <span class="on-disk">
          On it, as of {when(e.seen)}: {holdsWords(e.disk)}
        </span>
      )}
    </p>
  );
}

function Actions({ actions }: { actions: Action[] }): JSX.Element {
  return (
    <ol class="action-list">
      {actions.map((a) => (
        <li key={a.name}>
          <strong>{a.name}</strong> <code>{a.kind}</code>
          {options(a).map(([k, v]) => (
            <div key={k}>
              <span class="dim">{k}</span> <code>{v}</code>
            </div>
          ))}
        </li>
      ))}
    </ol>
  );
}

/** The options of an action as names and text, without those that say nothing. */
function options(a: Action): [string, string][] {
  if (typeof a.with !== "object" || a.with === null) return a.with === undefined ? [] : [["", String(a.with)]];
  return Object.entries(a.with as Record<string, unknown>)
    .filter(([, v]) => v !== "" && v !== null && v !== false)
    .map(([k, v]) => [k, typeof v === "string" ? v : JSON.stringify(v)]);
}

/** The last question before anything is written. Where something is, or may be, on a disk a word must be typed. */
function Ask({ going, onClose, onConfirm }: { going: Looked[]; onClose: () => void; onConfirm: () => void }): JSX.Element {
  const erases = going.flatMap((l) => (l.answer?.erases ?? []).map((e) => ({ machine: l.machine, e })));
  const held = erases.filter(({ e }) => e.holds !== "nothing");
  const systems = going.filter((l) => row(l.machine)?.state === "provisioned");
  const word = held.length + systems.length === 0 ? "" : going.length === 1 ? going[0]!.machine : `erase ${going.length} machines`;
  const most = 30;
  return (
    <Confirm title={`Install ${count(going.length, "machine")}?`} word={word} verb="Install" onClose={onClose} onConfirm={async () => onConfirm()}>
      {systems.length > 0 && (
        <p class="notice">
          <strong>{count(systems.length, "machine")}</strong> {systems.length === 1 ? "has a system, which is destroyed." : "have systems, which are destroyed."}
        </p>
      )}
      {held.length > 0 ? <p>What is on these disks is lost for ever:</p> : <p>Nothing is lost: what is written to was wiped and read back.</p>}
      {held.length > 0 && (
        <Scroll label="Disks that are erased" class="short">
          <ul class="plain">
            {held.slice(0, most).map(({ machine, e }) => (
              <li key={machine + (e.disk?.path ?? "")}>
                <strong>{machine}</strong> {e.disk ? <DiskText disk={e.disk} /> : e.wanted || "its only disk"}
                <div class="dim">{e.detail}</div>
              </li>
            ))}
          </ul>
        </Scroll>
      )}
      {held.length > most && <p>and {count(held.length - most, "more disk")}.</p>}
    </Confirm>
  );
}
