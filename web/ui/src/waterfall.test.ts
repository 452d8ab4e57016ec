import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attempt, BootTimeline, Reason, Span, TimelineLine } from "./api/types.ts";
import { layout, merge, ticks } from "./waterfall.ts";

const started = "2026-11-21T03:00:00Z";
const at = (s: number) => new Date(Date.parse(started) + s * 1000).toISOString();
const span = (name: string, from: number, took: number, o: Partial<Span> = {}): Span => ({ name, at: `${from}s`, took: `${took}s`, ended: true, ...o });
const line = (id: string, reason: Reason, s: number, o: Partial<TimelineLine> = {}): TimelineLine => ({ id, reason, at: `${s}s`, text: reason, count: 1, first: at(s), last: at(s), ...o });
const boot = (id: string, split: Span[], lines: TimelineLine[] = []): BootTimeline => ({ boot: id, started, lines, split });
const tried = (from: number, to: number | undefined, o: Partial<Attempt> = {}): Attempt => ({ boot: "B", state: "succeeded", started: at(from), ...(to === undefined ? {} : { finished: at(to) }), ...o });

test("the parts of a boot are lanes on one axis", () => {
  const p = layout(boot("B", [span("power on", 0, 60), span("address", 60, 2), span("boot program", 62, 1, { bytes: 1e6 }), span("write", 63, 37)]), [], 0);
  assert.deepEqual(
    p.lanes.map((l) => [l.label, l.group, l.bars[0]!.from, l.bars[0]!.to, l.bytes]),
    [
      ["firmware", "netboot", 0, 60e3, 0],
      ["DHCP", "netboot", 60e3, 62e3, 0],
      ["boot program (TFTP or HTTP)", "netboot", 62e3, 63e3, 1e6],
      ["write", "work", 63e3, 100e3, 0],
    ],
  );
  assert.equal(p.total, 100e3);
  assert.equal(p.running, false);
});

test("OS up is marked at the end of the bar that it ends, however they were rounded", () => {
  // 7.4 ms and 2000.4 ms of the bar, 2007.8 ms of the event
  const p = layout(boot("B", [{ ...span("installed system", 0, 0), at: "7ms", took: "2s" }], [{ ...line("1", "os-up", 0), at: "2.008s" }]), [], 0);
  assert.deepEqual(p.marks, [{ at: 2007, text: "OS up", good: true }]);
});

test("what runs grows by the time since it was read; what ended does not", () => {
  const b = boot("B", [span("address", 0, 2), span("boot script", 2, 5, { ended: false })]);
  for (const [ago, want] of [
    [0, 7e3],
    [3500, 10.5e3],
  ] as const) {
    const p = layout(b, [], ago);
    assert.equal(p.total, want);
    assert.equal(p.lanes[0]!.took, 2e3);
    assert.equal(p.running, true);
  }
});

test("the way somebody had to walk is no part of the picture", () => {
  const p = layout(boot("B", [span("somebody switches it on", 0, 600), span("address", 600, 1)], [line("1", "os-up", 700)]), [], 0);
  assert.equal(p.waited, 600e3);
  assert.deepEqual(p.lanes.map((l) => l.bars[0]), [{ from: 0, to: 1e3, outcome: "done" }]);
  assert.deepEqual(p.marks, [], "what came after the last part does not stretch the axis");
});

test("tries of an action are bars of one lane, each with what came of it", () => {
  const split = [span("wipe", 10, 5), span("wipe", 20, 10, { ended: false })];
  const attempts = [tried(10, 15, { state: "failed", message: "no disk" }), tried(0, 1, { boot: "earlier" }), tried(16, 18, { interrupted: true, state: "failed" }), tried(20, undefined, { state: "running" })];
  const p = layout(boot("B", split), [{ name: "wipe", attempts }], 2000);
  assert.equal(p.lanes.length, 1);
  assert.deepEqual(
    p.lanes[0]!.bars.map((b) => [b.from, b.to, b.outcome, b.attempt, b.message]),
    [
      [10e3, 15e3, "failed", 1, "no disk"],
      [16e3, 18e3, "interrupted", 3, undefined],
      [20e3, 32e3, "running", 4, undefined],
    ],
  );
});

test("a boot of which nothing is known has an axis and no lane", () => {
  const p = layout(boot("B", []), [], 0);
  assert.deepEqual([p.lanes.length, p.total, p.end], [0, 0, 1000]);
});

test("an action may have the name of a phase of a machine that means no harm", () => {
  const p = layout(boot("B", [span("__proto__", 0, 1), span("constructor", 1, 1)]), [], 0);
  assert.deepEqual(p.lanes.map((l) => [l.label, l.group]), [["__proto__", "work"], ["constructor", "work"]]);
});

test("ticks are few, round, and say their unit", () => {
  for (const end of [1, 950, 1000, 4200, 59e3, 61e3, 601e3, 3.7e6, 8.1e7, 5e9]) {
    const all = ticks(end);
    assert.ok(all.length >= 1 && all.length <= 7, `${end}: ${all.length} ticks`);
    for (const t of all) assert.match(t.text, /\d+(\.\d)? (s|min|h|d)$/, `${end}: ${t.text}`);
    assert.equal(new Set(all.map((t) => t.text)).size, all.length, `${end}: ${all.map((t) => t.text)}`);
  }
  assert.deepEqual(ticks(60e3).map((t) => t.text), ["0 s", "10 s", "20 s", "30 s", "40 s", "50 s", "1 min"]);
});

test("what is read again takes the place of what was there", () => {
  const a = boot("A", [], [line("1", "boot-started", 0)]);
  const b = boot("B", [], [line("2", "boot-started", 0), line("3", "power-asked", 9)]);
  const b2 = boot("B", [], [line("2", "boot-started", 0), line("3", "power-asked", 9), line("4", "acked", 10)]);
  const c = boot("C", [], [line("3", "power-asked", 9), line("5", "boot-started", 20)]);
  assert.deepEqual(merge([a, b], [b2], true), [b2]);
  assert.equal(merge([a, b], [b2], false), undefined, "one that may be cut off tells nothing");
  assert.deepEqual(merge([a, b], [a, b2], false), [a, b2]);
  assert.deepEqual(
    merge([a, b], [b, c], false)!.map((x) => x.lines.map((l) => l.id)),
    [["1"], ["2"], ["3", "5"]],
    "what switched it on is in the boot that came of it, once",
  );
});
