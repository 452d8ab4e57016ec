import assert from "node:assert/strict";
import test from "node:test";
import { Known } from "./known.ts";

const row = (name: string, state: string) => ({ name, state });
const all = (k: Known<{ name: string; state: string }>) => [...k.rows.values()].map((r) => `${r.name} ${r.state}`).sort();

test("a page of the list does not write over what an event made us read meanwhile", () => {
  const k = new Known<{ name: string; state: string }>();
  k.begin();
  k.page([row("a", "available")]);
  k.read(["a", "b"], [row("a", "failed"), row("b", "failed")]);
  k.page([row("b", "available"), row("c", "available")]);
  k.whole(new Set());
  assert.deepEqual(all(k), ["a failed", "b failed", "c available"]);
});

test("a machine that came or went while the list was read is there, or gone", () => {
  const k = new Known<{ name: string; state: string }>();
  k.page([row("old", "available"), row("late", "available")]);
  k.begin();
  k.page([row("a", "available"), row("gone", "available")]);
  k.read(["new", "gone"], [row("new", "pending")]);
  k.page([row("gone", "available")]);
  k.whole(new Set(["late"]));
  assert.deepEqual(all(k), ["a available", "late available", "new pending"]);
});

test("a row keeps its place when it is read by name", () => {
  const k = new Known<{ name: string; state: string }>();
  k.page([row("a", "1"), row("b", "1")]);
  k.read(["a"], [row("a", "2")]);
  assert.deepEqual([...k.rows.keys()], ["a", "b"]);
});
