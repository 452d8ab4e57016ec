import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "./api/types.ts";
import { add, inView, kept, search, wanted } from "./eventlog.ts";

const ev = (id: string, o: Partial<Event> = {}): Event => ({ id, reason: "acked", text: "confirmed the address", count: 1, first: "2026-11-21T03:00:00Z", last: "2026-11-21T03:00:00Z", ...o });
const ids = (l: Event[]) => l.map((e) => e.id).join("");

test("new events come first, repeated ones stay where they are", () => {
  let l = add([], [ev("b"), ev("a"), ev("c")]);
  assert.equal(ids(l), "cba");
  l = add(l, [ev("a", { count: 5 }), ev("d")]);
  assert.equal(ids(l), "dcba");
  assert.equal(l[3]!.count, 5);
  assert.equal(add(l, []), l);
});

test("a page that is open for weeks does not grow for ever", () => {
  const many = Array.from({ length: kept + 10 }, (_, i) => ev(String(i).padStart(6, "0")));
  const l = add([], many);
  assert.equal(l.length, kept);
  assert.equal(l[0]!.id, String(kept + 9).padStart(6, "0"));
});

test("filter and search", () => {
  const f = { machine: "m1", reason: "", by: "", text: "" };
  assert.ok(wanted(f, ev("a", { machine: "m1" })));
  assert.ok(!wanted(f, ev("a", { machine: "m2" })));
  assert.ok(!wanted({ ...f, by: "ci" }, ev("a", { machine: "m1" })));
  assert.ok(!wanted({ ...f, reason: "offered" }, ev("a", { machine: "m1" })));
  const l = [ev("a", { machine: "m1" }), ev("b", { machine: "m2", by: "ci" })];
  assert.equal(ids(search(l, "ADDRESS m2")), "b");
  assert.equal(ids(search(l, "ci acked")), "b");
  assert.equal(search(l, "  "), l);
});

test("only the rows in view are made", () => {
  assert.deepEqual(inView(10_000, 32, 0, 640), { from: 0, to: 32 });
  assert.deepEqual(inView(10_000, 32, 32_000, 640), { from: 988, to: 1032 });
  assert.deepEqual(inView(3, 32, 0, 640), { from: 0, to: 3 });
  assert.deepEqual(inView(3, 32, 99_999, 640), { from: 0, to: 3 });
});
