import assert from "node:assert/strict";
import { test } from "node:test";
import { number, picture, range, span, text, type Known } from "./addresses.ts";

const none: Known = { prefix: "10.0.0.0/24", ranges: [], excluded: [], leased: [], quarantined: [], reserved: [] };

test("addresses and ranges are read as they are written", () => {
  assert.equal(number("255.255.255.255"), 2 ** 32 - 1);
  assert.equal(text(number("192.168.7.9")), "192.168.7.9");
  for (const bad of ["", "1.2.3", "1.2.3.256", "1.2.3.x", "fe80::1"]) assert.ok(Number.isNaN(number(bad)), bad);
  assert.deepEqual(range("10.0.0.5"), [number("10.0.0.5"), number("10.0.0.5")]);
  assert.deepEqual(range("10.0.0.5-10.0.0.9").map(text), ["10.0.0.5", "10.0.0.9"]);
  assert.deepEqual(span("10.1.2.3/16").map(text), ["10.1.0.0", "10.1.255.255"]);
});

test("each address counts once, as what matters most", () => {
  const p = picture({ ...none, gateway: "10.0.0.1", ranges: ["10.0.0.100-10.0.0.119"], excluded: ["10.0.0.110-10.0.0.111"], leased: ["10.0.0.100", "10.0.0.5"], quarantined: ["10.0.0.101", "10.0.0.110"], reserved: ["10.0.0.5", "10.0.0.102", "10.9.9.9"] });
  assert.equal(p.cells.length, 256);
  assert.deepEqual(p.counts, { network: 2, appliance: 0, gateway: 1, quarantined: 2, leased: 2, reserved: 1, excluded: 1, free: 15, other: 232 });
  assert.equal(p.cells[100]!.use, "leased");
  assert.equal(p.cells[110]!.use, "quarantined");
  assert.equal(p.cells[111]!.use, "excluded");
  assert.equal(p.cells[104]!.use, "free");
  assert.equal(p.cells[50]!.use, "other");
});

test("a large network is drawn in blocks, and nothing is lost in them", () => {
  const p = picture({ ...none, prefix: "10.0.0.0/8", ranges: ["10.1.0.0-10.1.255.255"], excluded: ["10.1.3.0-10.1.3.255"], leased: ["10.1.0.7", "10.1.3.7"], reserved: ["10.200.0.1"] });
  assert.equal(p.cells.length, 1024);
  assert.equal(p.each, 16384);
  assert.equal(p.counts.free, 65536 - 256 - 1);
  assert.equal(p.counts.excluded, 255);
  assert.equal(p.counts.leased, 2);
  assert.equal(Object.values(p.counts).reduce((a, b) => a + b), 2 ** 24);
  for (const c of p.cells) assert.equal(Object.values(c.counts).reduce((a, b) => a + b, 0), c.to - c.from + 1);
});
