import assert from "node:assert/strict";
import { test } from "node:test";
import { left, Speed } from "./speed.ts";

test("a speed is known from the second look on, and begins anew with the work", () => {
  const s = new Speed();
  assert.equal(s.take(0, 0), 0);
  assert.equal(s.take(100, 1000), 100);
  assert.equal(Math.round(s.take(300, 2000)), 130);
  assert.equal(Math.round(s.take(300, 2000)), 130, "no time has passed");
  assert.equal(s.take(10, 3000), 0, "it began anew");
});

test("the time that is left is told only where it is known", () => {
  assert.equal(left(50, 100, 10), 5000);
  assert.equal(left(50, 100, 0), undefined);
  assert.equal(left(50, 0, 10), undefined);
});
