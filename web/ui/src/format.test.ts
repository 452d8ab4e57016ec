import assert from "node:assert/strict";
import test from "node:test";
import { bytes, count, duration, memory, parseDuration } from "./format.ts";

test("sizes have three digits at most and a unit", () => {
  const cases: [number, string][] = [
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1 kB"],
    [1500, "1.5 kB"],
    [99_949, "99.9 kB"],
    [480e9, "480 GB"],
    [8e12, "8 TB"],
    [999_600, "1 MB"], // not 1000 kB
  ];
  for (const [n, want] of cases) assert.equal(bytes(n), want);
  assert.equal(memory(64 * 2 ** 30), "64 GiB");
});

test("a length of time has its two largest units", () => {
  const cases: [number, string][] = [
    [-5, "0 ms"],
    [850, "850 ms"],
    [1500, "1.5 s"],
    [9000, "9 s"],
    [59_999, "59 s"],
    [60_000, "1 min"],
    [725_000, "12 min 5 s"],
    [3 * 86400e3 + 4 * 3600e3 + 5e3, "3 d 4 h"],
  ];
  for (const [ms, want] of cases) assert.equal(duration(ms), want);
});

test("Go's durations are read", () => {
  const cases: [string, number][] = [
    ["1h2m3.5s", 3723500],
    ["250ms", 250],
    ["-2s", -2000],
    ["", 0],
  ];
  for (const [text, want] of cases) assert.equal(parseDuration(text), want);
});

test("numbers of things", () => {
  assert.equal(count(1, "machine"), "1 machine");
  assert.equal(count(10_000, "machine"), "10,000 machines");
  assert.equal(count(2, "entry", "entries"), "2 entries");
});
