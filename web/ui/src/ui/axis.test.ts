import assert from "node:assert/strict";
import { test } from "node:test";
import { ticks, timeTicks } from "./axis.ts";

test("ticks are round, begin at 0 and reach over the largest", () => {
  assert.deepEqual(ticks(10), [0, 5, 10]);
  assert.deepEqual(ticks(7), [0, 2, 4, 6, 8]);
  assert.deepEqual(ticks(0.3), [0, 0.1, 0.2, 0.3]);
  assert.deepEqual(ticks(0), [0, 1]);
  assert.deepEqual(ticks(NaN), [0, 1]);
  for (const max of [1, 3, 9.99, 12345, 1e9]) {
    const t = ticks(max);
    assert.ok(t[t.length - 1]! >= max && t[t.length - 2]! < max && t.length <= 7, `${max}: ${t}`);
  }
});

test("times have the unit that fits", () => {
  assert.equal(timeTicks(90e3).unit, "s");
  assert.deepEqual(timeTicks(10 * 60e3), { unit: "min", ms: 60e3, at: [0, 300e3, 600e3] });
  assert.equal(timeTicks(5 * 3600e3).unit, "h");
});
