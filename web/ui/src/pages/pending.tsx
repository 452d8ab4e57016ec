import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { AcceptMany, AcceptOne, Reject } from "../pending/decide.tsx";
import { Rules } from "../pending/rules.tsx";
import { Strangers } from "../pending/strangers.tsx";
import { Table } from "../pending/table.tsx";
import { useWaiting, type Waiting } from "../pending/waiting.ts";
import { count } from "../format.ts";
import { Link, query, setQuery } from "../router.tsx";
import { operator } from "../session.ts";
import { Button, Empty, ProblemBox } from "../ui/basic.tsx";
import { Tabs } from "../ui/tabs.tsx";

/** Machines that were found, and who is not let in: what is known of them, and who decides. */
export default function Pending(): JSX.Element {
  const { waiting, rules, problem, reload } = useWaiting();
  return (
    <>
      <div class="head">
        <h1>Pending</h1>
      </div>
      <ProblemBox problem={problem} />
      <Tabs
        label="Pending"
        tabs={[
          { key: "machines", label: `Machines${waiting?.length ? ` (${waiting.length})` : ""}`, panel: () => <Machines waiting={waiting} reload={reload} /> },
          { key: "rules", label: `Rules${rules?.length ? ` (${rules.length})` : ""}`, panel: () => (rules ? <Rules rules={rules} waiting={waiting ?? []} onChange={reload} /> : <p class="loading">Loading…</p>) },
        ]}
      />
    </>
  );
}

function Machines({ waiting, reload }: { waiting: Waiting[] | undefined; reload: () => void }): JSX.Element {
  const [marked, setMarked] = useState(new Set<string>());
  const [open, setOpen] = useState<{ kind: "accept" | "reject"; names: string[] }>();
  const words = (query.value.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const shown = (waiting ?? []).filter((w) => words.every((word) => textOf(w).includes(word)));
  const chosen = new Set(shown.map((w) => w.machine.metadata.name).filter((n) => marked.has(n)));
  const close = (done: boolean) => {
    setOpen(undefined);
    if (!done) return;
    setMarked(new Set());
    reload();
  };
  const one = open?.kind === "accept" && open.names.length === 1 ? waiting?.find((w) => w.machine.metadata.name === open.names[0]) : undefined;
  return (
    <>
      {!waiting && <p class="loading">Loading…</p>}
      {waiting?.length === 0 && (
        <Empty title="No machine waits to be accepted">
          <p>
            A machine without a record is found where its <Link to="/networks">subnet</Link> has discovery on, when it netboots. Rules accept some by themselves.
          </p>
        </Empty>
      )}
      {waiting && waiting.length > 0 && (
        <>
          <div class="tools">
            <input type="search" aria-label="Search the machines that wait" placeholder="name, vendor, serial, MAC, subnet…" value={query.value.get("q") ?? ""} onInput={(e) => setQuery({ q: e.currentTarget.value })} />
            {operator.value && (
              <div class="row" role="group" aria-label="With the machines that are chosen">
                <span class="dim" role="status">
                  {chosen.size > 0 ? `${count(chosen.size, "machine")} chosen` : ""}
                </span>
                <Button kind="primary" disabled={chosen.size === 0} onPress={() => setOpen({ kind: "accept", names: [...chosen] })}>
                  Accept the chosen…
                </Button>
                <Button disabled={chosen.size === 0} onPress={() => setOpen({ kind: "reject", names: [...chosen] })}>
                  Reject the chosen…
                </Button>
              </div>
            )}
          </div>
          {shown.length === 0 ? (
            <Empty title="No machine that waits is like that" />
          ) : (
            <Table waiting={shown} chosen={chosen} onChosen={setMarked} onAccept={(w) => setOpen({ kind: "accept", names: [w.machine.metadata.name] })} onReject={(w) => setOpen({ kind: "reject", names: [w.machine.metadata.name] })} />
          )}
        </>
      )}
      <Strangers />
      {one && <AcceptOne w={one} onClose={() => close(true)} />}
      {open?.kind === "accept" && open.names.length > 1 && <AcceptMany names={open.names} onClose={close} />}
      {open?.kind === "reject" && <Reject names={open.names} onClose={close} />}
    </>
  );
}

const textOf = ({ machine: h, ruled }: Waiting): string =>
  [h.metadata.name, h.facts?.vendor, h.facts?.product, h.facts?.serial, h.facts?.uuid, h.facts?.cpuModel, h.facts?.arch, ruled?.subnet, ...h.spec.interfaces.map((n) => n.mac), ...(h.facts?.nics ?? []).map((n) => n.mac), ...Object.entries(h.metadata.labels ?? {}).map(([k, v]) => `${k}=${v}`)].join(" ").toLowerCase();
