import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { batch, signal } from "@preact/signals";
import type { Problem, Validation } from "../api/types.ts";
import { asProblem, call, seg } from "../api/call.ts";
import { bytes, count, memory } from "../format.ts";
import { FilterBox, useFilter, type Filtering } from "../list/filterbox.tsx";
import { complete, row, rows, type Row } from "../machines.ts";
import { Link, query, setQuery } from "../router.tsx";
import { Badge, Button, Empty, State } from "../ui/basic.tsx";
import { Tick } from "../ui/inputs.tsx";
import { draft, each, put } from "./state.ts";
import { Scroll } from "../ui/scroll.tsx";

/** What the appliance says of a machine before anything is chosen for it. */
interface Judged {
  /** What was looked at: another state of the machine is asked about again. */
  key: string;
  checks?: Validation | undefined;
  problem?: Problem | undefined;
}

const judged = signal(new Map<string, Judged>());

/** What a machine is now: where it is another text, what the appliance said of it is out of date. */
export const keyOf = (r: Row, reinstall: boolean): string => [r.uid, r.revision, r.state, r.hold, r.maintenance, r.workflow, r.active, r.claim, reinstall].join(" ");

const most = 200;

const shows: [string, string, (r: Row) => boolean][] = [
  ["", "Free", (r) => r.state === "available"],
  ["installed", "Installed", (r) => r.state === "provisioned"],
  ["all", "All", () => true],
];

/** Which machines: a list to choose from, and what the appliance says of those that are chosen. */
export function Machines(): JSX.Element {
  const chosen = draft.value.machines;
  useJudge();
  const f = useFilter();
  const show = shows.find(([k]) => k === (query.value.get("show") ?? "")) ?? shows[0]!;
  const found = rows.value.filter((r) => show[2](r) && f.test.value(r));
  const set = new Set(chosen);
  const toggle = (name: string) => put({ machines: set.has(name) ? chosen.filter((n) => n !== name) : [...chosen, name] });
  const all = found.length > 0 && found.every((r) => set.has(r.name));
  return (
    <div class="beside machines-step">
      <section class="card" aria-labelledby="pick">
        <h3 id="pick">Choose</h3>
        <div class="tools">
          <FilterBox of={f} />
          <div class="row" role="group" aria-label="Which machines are listed">
            {shows.map(([k, text, of]) => (
              <button key={k} type="button" class="button" aria-pressed={show[0] === k} onClick={() => setQuery({ show: k })}>
                {text} <small>{rows.value.filter(of).length.toLocaleString("en")}</small>
              </button>
            ))}
          </div>
        </div>
        {found.length === 0 ? (
          <None show={show[0]} filter={f} />
        ) : (
          <>
            <Scroll label="Machines to choose from" class="picker">
              <table>
                <thead>
                  <tr>
                    <th scope="col">
                      <input
                        type="checkbox"
                        aria-label={`Choose all ${found.length}`}
                        checked={all}
                        onChange={() => put({ machines: all ? without(chosen, found) : [...new Set([...chosen, ...found.map((r) => r.name)])] })}
                      />
                    </th>
                    <th scope="col">Name</th>
                    <th scope="col">State</th>
                    <th scope="col">Machine</th>
                    <th scope="col">Disks</th>
                    <th scope="col">Rack</th>
                  </tr>
                </thead>
                <tbody>
                  {found.slice(0, most).map((r) => (
                    <tr key={r.name}>
                      <td>
                        <input type="checkbox" aria-label={`Choose ${r.name}`} checked={set.has(r.name)} onChange={() => toggle(r.name)} />
                      </td>
                      <th scope="row">{r.name}</th>
                      <td>
                        <State of={r.state} />
                        {r.hold && <Badge tone="warn">on hold</Badge>}
                        {r.image && <div class="dim">{r.image}</div>}
                      </td>
                      <td>
                        {[r.vendor, r.product].filter(Boolean).join(" ")}
                        <div class="dim">{[r.arch, r.cpus ? count(r.cpus, "CPU") : "", r.memoryBytes ? memory(r.memoryBytes) : ""].filter(Boolean).join(", ")}</div>
                      </td>
                      <td class="keep">
                        {r.disks ? count(r.disks, "disk") : ""}
                        {r.diskBytes ? <div class="dim">{bytes(r.diskBytes)}</div> : null}
                      </td>
                      <td>{[r.rack, r.position].filter(Boolean).join(" / ")}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
            {found.length > most && <p class="dim">{count(found.length - most, "more machine")} below: filter for them. The box at the top chooses all {found.length.toLocaleString("en")}.</p>}
          </>
        )}
      </section>
      <Chosen names={chosen} onDrop={(names) => put({ machines: chosen.filter((n) => !names.includes(n)) })} />
    </div>
  );
}

function without(names: string[], found: Row[]): string[] {
  const out = new Set(found.map((r) => r.name));
  return names.filter((n) => !out.has(n));
}

/** Why there is nothing to choose from, and where to go. */
function None({ show, filter: f }: { show: string; filter: Filtering }): JSX.Element {
  if (!complete.value) return <p class="loading">Reading the machines…</p>;
  if (f.text.value.trim()) {
    const others = rows.value.filter(f.test.value).length;
    return (
      <Empty title="No machine matches the filter">
        {others > 0 && <p>{count(others, "machine")} among all would: choose All above to see why they are not free.</p>}
        <Button onPress={() => f.set("")}>Clear the filter</Button>
      </Empty>
    );
  }
  if (rows.value.length === 0) {
    return (
      <Empty title="There is no machine yet">
        <p>
          Switch one on, with the network first in its boot order: <Link to="/pending">it is found</Link> where its <Link to="/networks">subnet</Link> has discovery on.
        </p>
      </Empty>
    );
  }
  if (show === "installed") return <Empty title="No machine is installed" />;
  const states = new Map<string, number>();
  for (const r of rows.value) states.set(r.state, (states.get(r.state) ?? 0) + 1);
  return (
    <Empty title="No machine is free">
      <p>{[...states].map(([s, n]) => `${count(n, "machine")} ${n === 1 ? "is" : "are"} ${s}`).join(", ")}.</p>
      <p>
        {states.has("pending") && (
          <>
            <Link to="/pending">Accept those that wait</Link>.{" "}
          </>
        )}
        One that is provisioned is free after its release, or is installed anew: choose it among the installed.
      </p>
    </Empty>
  );
}

/** Asks the appliance about the machines that are chosen, each again when it changed. */
function useJudge(): void {
  const { machines, reinstall } = draft.value;
  const wanted = machines.flatMap((n) => {
    const r = row(n);
    return r ? [{ name: n, key: keyOf(r, reinstall) }] : [];
  });
  const text = wanted.map((w) => w.name + w.key).join("\n");
  useEffect(() => {
    const abort = new AbortController();
    const open = wanted.filter((w) => judged.peek().get(w.name)?.key !== w.key);
    const found = new Map<string, Judged>();
    const keep = () => {
      if (abort.signal.aborted || found.size === 0) return;
      batch(() => (judged.value = new Map([...judged.value, ...found])));
      found.clear();
    };
    const timer = window.setInterval(keep, 200);
    void each(open, async ({ name, key }) => {
      if (abort.signal.aborted) return;
      try {
        const checks = await call<Validation>("GET", `/hardware/${seg(name)}/validate`, { query: { reinstall: reinstall || undefined }, signal: abort.signal });
        found.set(name, { key, checks });
      } catch (err) {
        found.set(name, { key, problem: asProblem(err) });
      }
    }).then(() => {
      keep();
      clearInterval(timer);
    });
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [text]);
}

// a disk, an image and a login are said in the next steps
const later = new Set(["disk", "image", "template", "login", "user-data"]);

/** Why a machine cannot be installed, as far as that is known before anything is said of the install. */
export function refusals(name: string): { detail: string; fix: string }[] | undefined {
  if (complete.value && !row(name)) return [{ detail: "there is no such machine", fix: "" }];
  const r = row(name);
  if (r?.claim && !draft.value.claimed) return [{ detail: `it is claimed by ${r.owner ?? "somebody"}`, fix: "Say above that it is installed for its owner, or leave it out." }];
  const j = judged.value.get(name);
  if (!j) return undefined;
  if (j.problem) return [{ detail: j.problem.detail ?? j.problem.title, fix: j.problem.hint ?? "" }];
  return j.checks!.checks.filter((c) => !c.ok && !c.warning && !later.has(c.name)).map((c) => ({ detail: c.detail, fix: c.fix ?? "" }));
}

function Chosen({ names, onDrop }: { names: string[]; onDrop: (names: string[]) => void }): JSX.Element {
  const [open, setOpen] = useState(false);
  const refused = names.filter((n) => (refusals(n)?.length ?? 0) > 0);
  const waits = names.filter((n) => refusals(n) === undefined).length;
  const installed = names.filter((n) => row(n)?.state === "provisioned");
  const claims = names.filter((n) => row(n)?.claim);
  const shown = [...refused, ...names.filter((n) => !refused.includes(n))].slice(0, open ? undefined : 50);
  return (
    <section class="card" aria-labelledby="chosen">
      <div class="head">
        <h3 id="chosen">Chosen: {count(names.length, "machine")}</h3>
        {names.length > 0 && (
          <Button kind="quiet" onPress={() => onDrop(names)}>
            Choose none
          </Button>
        )}
      </div>
      {installed.length > 0 && (
        <Tick
          label={installed.length === 1 ? "Install it anew, though it has a system" : `Install ${installed.length} machines anew, though they have a system`}
          checked={draft.value.reinstall}
          onValue={(reinstall) => put({ reinstall })}
          help="What is on their disks is destroyed. The review names each disk."
        />
      )}
      {claims.length > 0 && (
        <Tick
          label={`Install ${count(claims.length, "claimed machine")} for ${claims.length === 1 ? (row(claims[0]!)?.owner ?? "its owner") : "their owners"}`}
          checked={draft.value.claimed}
          onValue={(claimed) => put({ claimed })}
          help="Each under the claim that it has; the appliance refuses it otherwise."
        />
      )}
      <p role="status" class={refused.length > 0 ? "wrong" : "dim"}>
        {waits > 0 ? `Asking about ${count(waits, "machine")}…` : refused.length > 0 ? `${count(refused.length, "machine")} cannot be installed.` : names.length > 0 ? "All of them can be installed." : "None yet."}
      </p>
      {refused.length > 0 && waits === 0 && <Button onPress={() => onDrop(refused)}>Leave out {count(refused.length, "machine")}</Button>}
      <ul class="plain chosen">
        {shown.map((n) => {
          const why = refusals(n);
          return (
            <li key={n}>
              <span>
                <Link to={`/machines/${seg(n)}`}>{n}</Link>{" "}
                {why === undefined ? <span class="dim">…</span> : why.length === 0 ? <Badge tone="good">can be installed</Badge> : <Badge tone="bad">refused</Badge>}
                {why?.map((w) => (
                  <div key={w.detail}>
                    {w.detail}
                    {w.fix && <div class="hint dim">{w.fix}</div>}
                  </div>
                ))}
              </span>
              <Button kind="quiet" aria-label={`Leave out ${n}`} onPress={() => onDrop([n])}>
                ✕
              </Button>
            </li>
          );
        })}
      </ul>
      {names.length > shown.length && (
        <Button kind="quiet" onPress={() => setOpen(true)}>
          Show all {names.length}
        </Button>
      )}
    </section>
  );
}
