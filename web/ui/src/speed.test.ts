import assert from "node:assert/strict";
import { test } from "node:test";
import { moved, pace, Speed } from "./speed.ts";

test("a speed is known from the second look on, and begins anew with the work", () => {
  const s = new Speed();
  assert.equal(s.take(0, 0), 0);
  assert.equal(s.take(100, 1000), 100);
  assert.equal(Math.round(s.take(300, 2000)), 130);
  assert.equal(Math.round(s.take(300, 2000)), 130, "no time has passed");
  assert.equal(s.take(10, 3000), 0, "it began anew");
});

test("what is moved is told with how fast and how long still, as far as that is known", () => {
  const cases: [Parameters<typeof moved>[0], string, string][] = [
    [{ done: 1.2e9, total: 4e9, rate: 120e6 }, "1.2 GB of 4 GB · 120 MB/s · 24 s left", "120 MB/s · 24 s left"],
    [{ done: 1e9, total: 4e9, rate: 0 }, "1 GB of 4 GB", ""],
    [{ done: 1e9, rate: 5e6 }, "1 GB · 5 MB/s", "5 MB/s"],
    [{ done: 1e9, total: undefined, rate: 0 }, "1 GB", ""],
    [{ done: 4e9, total: 4e9, rate: 5e6 }, "4 GB of 4 GB · 5 MB/s", "5 MB/s"],
    [{ done: 5e9, total: 4e9, rate: 5e6 }, "5 GB of 4 GB · 5 MB/s", "5 MB/s"], // a source may be longer than it said
    [{ done: 3.9e9, total: 4e9, rate: 1e9 }, "3.9 GB of 4 GB · 1 GB/s · 1 s left", "1 GB/s · 1 s left"], // never 0 s
    [{ done: 0, total: 4e9, rate: 20e6 }, "0 B of 4 GB · 20 MB/s · 3 min 20 s left", "20 MB/s · 3 min 20 s left"],
    [{ done: 1e9, total: 4e9, rate: NaN }, "1 GB of 4 GB", ""],
  ];
  for (const [m, all, fast] of cases) {
    assert.equal(moved(m), all);
    assert.equal(pace(m), fast);
  }
});
