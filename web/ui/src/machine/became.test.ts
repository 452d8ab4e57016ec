import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "../machines.ts";
import { became } from "./became.ts";

const row = (o: Partial<Row> = {}) => ({ name: "m1", uid: "u1", state: "pending", ...o }) as Row;

test("what became of a machine is told as far as it matters", () => {
  const cases: [Row, Row | undefined, string[]][] = [
    [row(), row(), []],
    [row({ revision: 1, power: "on" }), row({ revision: 2, power: "off" }), []],
    [row(), undefined, ["its record was deleted"]],
    [row(), row({ uid: "u2", state: "available" }), ["its record was deleted and made anew: it may be another machine"]],
    [row(), row({ state: "available" }), ["it was pending and is available"]],
    [row({ state: "available" }), row({ state: "provisioning", active: true, workflow: "w1" }), ["it was available and is provisioning", "workflow w1 works on it"]],
    [row({ state: "provisioning", active: true, workflow: "w1" }), row({ state: "failed", workflow: "w1" }), ["it was provisioning and is failed", "workflow w1 ended"]],
    [row({ active: true, workflow: "w1" }), row({ active: true, workflow: "w1" }), []],
    [row(), row({ hold: true, maintenance: true }), ["it is on hold", "it is in maintenance"]],
    [row({ hold: true, maintenance: true }), row(), ["it is off hold", "its maintenance is over"]],
    [row(), row({ claim: "c1", owner: "ops" }), ["ops claimed it"]],
    [row({ claim: "c1", owner: "ops" }), row(), ["its claim ended"]],
  ];
  for (const [was, is, want] of cases) assert.deepEqual(became(was, is), want);
});
