// The machines that wait to be accepted, with their facts and with what the rules make of
// them, read again when an event says that one of them changed.
import { useEffect, useState } from "preact/hooks";
import type { Hardware, HardwareList, Problem, Rule, RuleList, RuledMachine, RulesTested } from "../api/types.ts";
import { call } from "../api/call.ts";
import { listen } from "../api/stream.ts";
import { rows } from "../machines.ts";
import { useLoad } from "../ui/basic.tsx";

/** A machine that waits, and what the rules would make of it. */
export interface Waiting {
  machine: Hardware;
  ruled: RuledMachine | undefined;
}

/** The names of the machines that wait, as text: it changes when one comes or goes. */
export const waitingNames = (): string => rows.value.filter((r) => r.state === "pending").map((r) => r.name).sort().join(",");

/** The machines that wait, the latest found first. */
export function useWaiting(): { waiting: Waiting[] | undefined; rules: Rule[] | undefined; problem: Problem | undefined; reload: () => void } {
  const [turn, setTurn] = useState(0);
  const names = waitingNames();
  useEffect(() => {
    let timer = 0;
    const soon = () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => setTurn((n) => n + 1), 300);
    };
    const mine = new Set(names.split(","));
    const off = listen({ event: (e) => ((e.machine && mine.has(e.machine)) || (e.reason === "api-change" && e.detail?.includes("/rules")) ? soon() : undefined), relist: soon });
    return () => {
      off();
      clearTimeout(timer);
    };
  }, [names]);
  const load = useLoad(
    async (signal) => {
      const [list, rules] = await Promise.all([
        call<HardwareList>("GET", "/hardware", { query: { state: "pending", limit: 1000 }, signal }),
        call<RuleList>("GET", "/rules", { signal }),
      ]);
      const hardware = list.items.map((h) => h.metadata.name);
      const tested = hardware.length > 0 ? await call<RulesTested>("POST", "/rules/test", { body: { hardware }, signal }) : { machines: [] };
      const ruled = new Map(tested.machines.map((m) => [m.hardware, m]));
      const waiting = list.items.map((machine) => ({ machine, ruled: ruled.get(machine.metadata.name) }));
      waiting.sort((a, b) => (b.machine.status?.discovered ?? "").localeCompare(a.machine.status?.discovered ?? ""));
      return { waiting, rules: rules.items };
    },
    [names, turn],
  );
  return { waiting: load.data?.waiting, rules: load.data?.rules, problem: load.problem, reload: load.reload };
}
