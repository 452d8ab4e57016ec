import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { AcceptMany, AcceptOne, Reject } from "../pending/decide.tsx";
import { Rules } from "../pending/rules.tsx";
import { Strangers } from "../pending/strangers.tsx";
import { Table } from "../pending/table.tsx";
import { useWaiting, type Waiting } from "../pending/waiting.ts";
import { count } from "../format.ts";
import { FilterBox, useFilter } from "../list/filterbox.tsx";
import { row, type Row } from "../machines.ts";
import { Link } from "../router.tsx";
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
  const [open, setOpen] = useState<{ kind: "accept" | "reject"; names: string[] } | { kind: "one"; w: Waiting }>();
  const texts = useMemo(() => new Map(waiting?.map((w) => [w.machine.metadata.name, textOf(w)])), [waiting]);
  const f = useFilter((r) => texts.get(r.name) ?? "");
  const shown = (waiting ?? []).filter((w) => f.test.value(rowOf(w)));
  const chosen = new Set(shown.map((w) => w.machine.metadata.name).filter((n) => marked.has(n)));
  const close = (done: boolean) => {
    setOpen(undefined);
    if (!done) return;
    setMarked(new Set());
    reload();
  };
  const accept = (ws: Waiting[]) => setOpen(ws.length === 1 ? { kind: "one", w: ws[0]! } : { kind: "accept", names: ws.map((w) => w.machine.metadata.name) });
  // it is asked about until that is answered, also when it waits no more
  const one = open?.kind === "one" ? (waiting?.find((w) => w.machine.metadata.uid === open.w.machine.metadata.uid) ?? open.w) : undefined;
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
            <FilterBox of={f} />
            {operator.value && (
              <div class="row" role="group" aria-label="With the machines that are chosen">
                <span class="dim" role="status">
                  {chosen.size > 0 ? `${count(chosen.size, "machine")} chosen` : ""}
                </span>
                <Button kind="primary" disabled={chosen.size === 0} onPress={() => accept(shown.filter((w) => chosen.has(w.machine.metadata.name)))}>
                  Accept the chosen…
                </Button>
                <Button disabled={chosen.size === 0} onPress={() => setOpen({ kind: "reject", names: [...chosen] })}>
                  Reject the chosen…
                </Button>
              </div>
            )}
          </div>
          {shown.length === 0 ? (
            <Empty title="No machine that waits matches the filter">
              <Button onPress={() => f.set("")}>Clear the filter</Button>
            </Empty>
          ) : (
            <Table waiting={shown} chosen={chosen} onChosen={setMarked} onAccept={(w) => accept([w])} onReject={(w) => setOpen({ kind: "reject", names: [w.machine.metadata.name] })} />
          )}
        </>
      )}
      <Strangers />
      {one && <AcceptOne w={one} onClose={() => close(true)} />}
      {open?.kind === "accept" && <AcceptMany names={open.names} onClose={close} />}
      {open?.kind === "reject" && <Reject names={open.names} onClose={close} />}
    </>
  );
}

/** The row of a machine that waits; it may be later than the list. */
const rowOf = ({ machine: h }: Waiting): Row => row(h.metadata.name) ?? ({ name: h.metadata.name, uid: h.metadata.uid, state: "pending", labels: h.metadata.labels } as Row);

/** What is known of a machine that waits besides its row. */
const textOf = ({ machine: h, ruled }: Waiting): string => [h.facts?.uuid, h.facts?.cpuModel, ruled?.subnet, h.facts?.bmc?.address, ...(h.facts?.nics ?? []).map((n) => n.mac)].join("\n").toLowerCase();
