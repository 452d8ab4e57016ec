// The machines that wait to be accepted, with their facts and with what the rules make of
// them.
import { useEffect, useRef } from "preact/hooks";
import type { Hardware, HardwareList, Problem, Rule, RuleList, RuledMachine, RulesTested } from "../api/types.ts";
import { call } from "../api/call.ts";
import { changes, useLive } from "../live.ts";
import { row, rows } from "../machines.ts";

/** A machine that waits, and what the rules would make of it. */
export interface Waiting {
  machine: Hardware;
  ruled: RuledMachine | undefined;
}

const rulesChange = changes("rules");

/** The machines that wait, the latest found first, and the rules. */
export function useWaiting(): { waiting: Waiting[] | undefined; rules: Rule[] | undefined; problem: Problem | undefined; reload: () => void } {
  const live = useLive(
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
    (e) => (!!e.machine && row(e.machine)?.state === "pending") || rulesChange(e),
    [],
  );
  // one comes or goes when its row says so, which is later than the event
  const names = rows.value
    .filter((r) => r.state === "pending")
    .map((r) => r.name)
    .join(",");
  const was = useRef(names);
  useEffect(() => {
    if (was.current !== names) live.reload();
    was.current = names;
  }, [names]);
  return { waiting: live.data?.waiting, rules: live.data?.rules, problem: live.problem, reload: live.reload };
}
