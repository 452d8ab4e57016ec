import assert from "node:assert/strict";
import { test } from "node:test";
import type { Applied } from "../api/types.ts";
import type { Row } from "../machines.ts";
import { labelsIn, reasons, whyOf } from "./bulk.ts";
import { csv, csvCell } from "./export.ts";
import { counts, groups, natural, sorter } from "./order.ts";
import { height, linesOf, racksOf, unitsOf } from "./places.ts";
import { readViews, viewOf, viewQuery } from "./views.ts";

const row = (name: string, r: Partial<Row> = {}): Row => ({ name, uid: name, revision: 1, state: "available", arch: "amd64", ...r }) as Row;
const names = (rows: Row[]) => rows.map((r) => r.name).join(" ");

test("names sort as people count", () => {
  const s = sorter(() => undefined, false);
  assert.equal(names(s([row("n10"), row("n9"), row("N1"), row("a"), row("n009b")])), "a N1 n9 n009b n10");
  assert.ok(natural("007") === natural("7"));
});

test("what has no value is last, both ways, and equal ones go by name", () => {
  const rows = [row("b", { rack: "r1" }), row("none"), row("a", { rack: "r1" }), row("c", { rack: "r0" })];
  const by = (r: Row) => r.rack;
  assert.equal(names(sorter(by, false)(rows)), "c a b none");
  assert.equal(names(sorter(by, true)(rows)), "b a c none");
});

// The order that is kept is the one that is right, whatever changes, comes and goes.
test("sorting again and again", () => {
  let seed = 3;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  const key = (r: Row) => (r.cpus === 0 ? undefined : r.cpus);
  const kept = sorter(key, false);
  let rows = Array.from({ length: 300 }, (_, i) => row(`m${i}`, { cpus: random(9) }));
  for (let turn = 0; turn < 60; turn++) {
    rows = rows.filter(() => random(40) > 0).map((r) => (random(10) === 0 ? { ...r, cpus: random(9) } : r));
    rows.push(row(`new${turn}`, { cpus: random(9) }));
    assert.equal(names(kept(rows)), names(sorter(key, false)(rows)));
  }
});

test("of 10,000 machines only the one that changed is looked at", () => {
  const rows = Array.from({ length: 10_000 }, (_, i) => row(`node-${(i * 7919) % 10_000}`, { rack: `r${i % 200}` }));
  let looked = 0;
  const s = sorter((r) => (looked++, natural(r.rack!)), false);
  s(rows);
  assert.equal(looked, 10_000);
  rows[5] = { ...rows[5]!, rack: "r999" };
  assert.equal(s(rows).at(-1), rows[5]);
  assert.equal(looked, 10_001);
});

test("groups", () => {
  const rows = [row("a", { state: "failed", rack: "r10" }), row("b", { state: "pending", rack: "r9" }), row("c"), row("d", { rack: "r9", labels: { tier: "x" } })];
  const show = (by: string) => groups(rows, by).map((g) => `${g.value}=${names(g.rows)}`).join("; ");
  assert.equal(show("state"), "pending=b; available=c d; failed=a");
  assert.equal(show("rack"), "r9=b d; r10=a; =c");
  assert.equal(show("label.tier"), "x=d; =a b c");
  assert.equal(show("nonsense"), "");
  assert.deepEqual([...counts(rows, "state")], [["failed", 1], ["pending", 1], ["available", 2]]);
});

test("racks", () => {
  for (const [text, want] of [["1", "1+1"], ["U42", "42+1"], ["u7", "7+1"], ["12-10", "10+3"], ["0", ""], ["61", ""], ["left", ""], ["", ""], [undefined, ""], ["1.5", ""], ["999999", ""]] as [string | undefined, string][]) {
    const u = unitsOf(text);
    assert.equal(u ? `${u.unit}+${u.high}` : "", want, text);
  }
  const { racks, unplaced } = racksOf([row("m2", { rack: "a10", position: "3" }), row("m1", { rack: "a2", position: "1-2" }), row("m3", { rack: "a2", position: "2" }), row("m4", { rack: "a2", position: "left" }), row("m5", { rack: "a2" }), row("m6")]);
  assert.deepEqual(racks.map((r) => [r.name, r.units, r.places.map((p) => `${p.unit}+${p.high} ${names(p.rows)}`).join("; "), names(r.others)]), [
    ["a2", 42, "1+2 m1 m3", "m5 m4"],
    ["a10", 42, "3+1 m2", ""],
  ]);
  assert.equal(names(unplaced), "m6");
  // every unit is drawn once, from the top; many empty ones are one line
  const lines = (...positions: string[]) => linesOf(racksOf(positions.map((p) => row(p, { rack: "r", position: p }))).racks[0]!);
  const show = (l: ReturnType<typeof lines>) => l.map((n) => ("place" in n ? `[${n.place.unit}+${n.place.high}]` : `${n.to}-${n.from}/${height(n)}`)).join(" ");
  assert.equal(show(lines("42", "40", "36-37", "1")), "[42+1] 41-41/1 [40+1] 39-38/2 [36+2] 35-2/1 [1+1]");
  assert.equal(show(lines("2")), "42-3/1 [2+1] 1-1/1");
  assert.equal(show(lines("48")), "[48+1] 47-1/1");
});

test("CSV calculates nothing", () => {
  for (const [text, want] of [["=1+1", "'=1+1"], ["+x", "'+x"], ["-x", "'-x"], ["@x", "'@x"], ["\t=1", "'\t=1"], ['=HYPERLINK("x")', `"'=HYPERLINK(""x"")"`], ["a,b", '"a,b"'], ['a"b', '"a""b"'], ["a\nb", '"a\nb"'], ["a=b", "a=b"]] as [string, string][]) {
    assert.equal(csvCell(text), want);
  }
  assert.equal(csvCell(-5), "-5");
  assert.equal(csv([row("=x", { cpus: 4 })], [{ key: "name", text: (r) => r.name }, { key: "cpus", text: (r) => r.cpus ?? "" }]), "name,cpus\r\n'=x,4\r\n");
});

test("views that are kept", () => {
  assert.deepEqual(readViews(null), []);
  assert.deepEqual(readViews("{"), []);
  assert.deepEqual(readViews('[{"name":1},null,7,{"name":"a","query":"q=x&evil=1"},{"name":"","query":""}]'), [{ name: "a", query: "q=x" }]);
  assert.deepEqual(readViews('{"a":1}'), []);
  assert.equal(viewOf(new URLSearchParams("sort=-name&tab=x&q=a b")), viewQuery({ q: "a b", sort: "-name" }));
});

test("what a bulk verb says", () => {
  const results: Applied[] = [
    { index: 0, name: "m1", result: "error", detail: "m1 is provisioned", hint: "rackstrap release m1" },
    { index: 1, name: "m2", result: "error", detail: "m2 is provisioned" },
    { index: 2, name: "m3", result: "error", detail: "is held", errors: [{ field: "spec.x", detail: "is wrong" }] },
    { index: 3, name: "m4", result: "changed", changes: [{ field: "metadata.labels.tier", from: "a", to: "b" }, { field: "metadata.labels.x", to: "y" }] },
  ];
  assert.deepEqual(reasons(results).map((r) => [r.text, r.names.join(" "), r.hint]), [
    ["… is provisioned", "m1 m2", "rackstrap release NAME"],
    ["is held; spec.x is wrong", "m3", undefined],
  ]);
  assert.equal(whyOf(results[3]!), "metadata.labels.tier: a → b; metadata.labels.x: nothing → y");
  assert.deepEqual(labelsIn(" tier=db,rack=a=1  gpu "), { tier: "db", rack: "a=1", gpu: "" });
});
