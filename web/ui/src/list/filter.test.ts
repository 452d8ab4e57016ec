import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "../machines.ts";
import { command } from "./command.ts";
import { chosen, compile, longest, parse, quantity, quote, timed, toggle } from "./filter.ts";
import { installed } from "./keys.ts";
import { suggest } from "./suggest.ts";

const now = Date.parse("2026-11-21T12:00:00Z");
const ago = (s: number) => new Date(now - s * 1000).toISOString();
const row = (r: Partial<Row>): Row => ({ name: "m", uid: "u", revision: 1, state: "available", arch: "amd64", ...r }) as Row;

const rack: Row[] = [
  row({ name: "web-1", rack: "a1", position: "42", labels: { tier: "web", "example.com/pool": "x" }, cpus: 32, memoryBytes: 62.6 * 2 ** 30, disks: 2, diskBytes: 2e12, power: "on", since: ago(7200), address: "10.0.0.11", mac: "52:54:00:00:00:01" }),
  row({ name: "web-2", rack: "a10", state: "failed", hold: true, labels: { tier: "Web" }, cpus: 8, memoryBytes: 16 * 2 ** 30, disks: 1, diskBytes: 5e11, power: "off", since: ago(60), issues: 2, issue: { kind: "boot-stuck", severity: "error", since: ago(60), detail: "the worker does not come", fix: "look" } }),
  row({ name: "db-1", rack: "b 2", state: "provisioned", labels: { tier: "db" }, owner: "team-db", claim: "c1", image: "debian-13", installed: true, vendor: "Dell Inc.", product: "R640", mac: "52:54:00:aa:00:01", macs: ["52:54:00:aa:00:01", "52:54:00:aa:00:02"] }),
  row({ name: "new", state: "pending", hostname: "box", labels: { any: "none" }, serial: 'S"1' }),
];
const find = (text: string, rows = rack) => {
  const f = parse(text);
  assert.deepEqual(f.wrong, [], text);
  return rows.filter(compile(f.terms, now)).map((r) => r.name).join(" ");
};

test("what a filter finds", () => {
  for (const [text, want] of [
    ["", "web-1 web-2 db-1 new"],
    ["  \t ", "web-1 web-2 db-1 new"],
    ["state:available,failed", "web-1 web-2"],
    ["STATE:Available", "web-1"],
    ["-state:available", "web-2 db-1 new"],
    ["!state:available", "web-2 db-1 new"],
    ["state!=available,failed", "db-1 new"],
    ["-state!=available", "web-1"],
    ["rack:a1", "web-1"],
    ["rack:a*", "web-1 web-2"],
    ["rack:*1*", "web-1 web-2"],
    ["rack:*0", "web-2"],
    ['rack:"b 2"', "db-1"],
    ["rack:any", "web-1 web-2 db-1"],
    ["rack:none", "new"],
    ["rack:none,a1", "web-1 new"],
    ["position:42", "web-1"],
    ["label.tier=db", "db-1"],
    ["label.tier:web", "web-1"], // labels know upper and lower case
    ["label.tier", "web-1 web-2 db-1"],
    ["-label.tier", "new"],
    ["label.tier!=web", "web-2 db-1 new"],
    ["label.example.com/pool=x", "web-1"],
    ['label.any:"none"', "new"],
    ["label.any:none", "web-1 web-2 db-1"],
    ["label.toString", ""],
    ["label.__proto__:x", ""],
    ["hold", "web-2"],
    ["-hold", "web-1 db-1 new"],
    ['"hold"', ""],
    ["claimed", "db-1"],
    ["installed", "db-1"],
    ["owner:team-*", "db-1"],
    ["owner:none", "web-1 web-2 new"],
    ["cpus>=32", "web-1"],
    ["cpus<32", "web-2"], // of the others nothing is known
    ["-cpus>=32", "web-2 db-1 new"],
    ["cpus:8,32", "web-1 web-2"],
    ["cpus:none", "db-1 new"],
    ["memory>=64Gi", "web-1"], // 62.6 GiB is what Linux has of 64
    ["memory:16GiB", "web-2"],
    ["disk>1T", "web-1"],
    ["disk<=500G", "web-2"],
    ["disks>=2", "web-1"],
    ["image:debian*", "db-1"],
    ["image:debian", ""],
    ["image~ebian", "db-1"],
    ["issue:any", "web-2"],
    ["issue:error", "web-2"],
    ["issue:boot-*", "web-2"],
    ["-issue:any", "web-1 db-1 new"],
    ["issues>1", "web-2"],
    ["power:off", "web-2"],
    ["power:unknown", "db-1 new"],
    ["since>1h", "web-1"],
    ["since<=1m", "web-2"],
    ["since>1h30m", "web-1"],
    ["since:any", "web-1 web-2"],
    ["vendor:dell*", "db-1"],
    ['vendor:"dell inc."', "db-1"],
    ["mac:52:54:00:aa:00:02", "db-1"],
    ["mac:52:54:00:aa:*", "db-1"],
    ["52:54:00:aa:00:02", "db-1"],
    ["52:54:00:aa", "db-1"],
    ["fe80::1", ""],
    ["10.0.0.11", "web-1"],
    ["name:box", "new"],
    ["web -hold", "web-1"],
    ["WEB", "web-1 web-2"],
    ["r640", "db-1"],
    ["does not come", "web-2"],
    ['"worker does"', "web-2"],
    ['serial:"S\\"1"', "new"],
    ["-", "web-1 web-2 db-1"],
    ["state:available rack:a1 cpus>=32 nothing", ""],
  ] as [string, string][]) {
    assert.equal(find(text), want, text);
  }
});

test("what is wrong is said where it is", () => {
  for (const [text, from, to, want] of [
    ["stat:x", 0, 6, /stat is not known; did you mean state\?/],
    ["a b sttae:x", 4, 11, /did you mean state/],
    ["colour:red", 0, 10, /Labels are label\.colour/],
    ["http://x/", 0, 9, /goes in quotes/],
    ["hold:yes", 0, 8, /takes no value/],
    ["state:", 6, 7, /A value is missing after state:/],
    ["state:a, rack:b", 8, 9, /missing after the comma/],
    ["state>a", 0, 7, /compared with : != and ~ only/],
    ["cpus>many", 5, 9, /many is not a number/],
    ["cpus~3", 0, 6, /~ looks for a part/],
    ["cpus>1,2", 7, 8, />.* takes one value|> takes one value/],
    ["memory>64X", 7, 10, /write 64Gi/],
    ["memory>64i", 7, 10, /write 64Gi/],
    ["since>long", 6, 10, /write 30s/],
    ["since:1h", 6, 8, /write since>1h/],
    ['name:"abc', 5, 9, /The quote has no end/],
    ['"abc', 0, 4, /The quote has no end/],
    ["constructor:x", 0, 13, /not known/],
    ["toString:x", 0, 10, /not known/],
  ] as [string, number, number, RegExp][]) {
    const f = parse(text);
    assert.equal(f.wrong.length, 1, text);
    assert.match(f.wrong[0]!.text, want, text);
    assert.deepEqual([f.wrong[0]!.from, f.wrong[0]!.to], [from, to], text);
  }
  // what is right beside it is used
  const f = parse("state:failed colour:red");
  assert.equal(rack.filter(compile(f.terms, now)).length, 1);
});

// Whatever is typed: it is read, places lie in the text, and it costs no time.
test("hostile input", () => {
  const bits = ['"', "\\", ",", ":", "-", "!", "*", "=", ">", "<", "~", " ", "label.", "state", "any", "\n", "\u0000", "😀", "\ud800", "é", "a", "1", "Gi", "__proto__", "hold", "."];
  let seed = 7;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  for (let i = 0; i < 20000; i++) {
    let text = "";
    for (let n = random(12); n >= 0; n--) text += bits[random(bits.length)];
    const f = parse(text);
    for (const t of f.terms) assert.ok(t.from >= 0 && t.from < t.to && t.to <= text.length, text);
    for (const w of f.wrong) assert.ok(w.from >= 0 && w.from <= w.to && w.from <= text.length, text);
    const is = compile(f.terms, now);
    for (const r of rack) is(r);
    suggest(text, random(text.length + 1), rack);
    command(f);
    toggle(text, "state", "failed");
  }
  const start = process.cpuUsage(); // what others do on the machine does not count
  const long = row({ name: "a".repeat(300) });
  const f = parse(`name:${"a*".repeat(900)}b ${"x"}`);
  assert.equal([long].filter(compile(f.terms, now)).length, 0);
  assert.equal(parse("a".repeat(longest + 1)).wrong.length, 1);
  parse("label.".repeat(300) + ":");
  parse("\\".repeat(1000) + '"'.repeat(999));
  const spent = process.cpuUsage(start);
  assert.ok(spent.user + spent.system < 500_000);
});

test("a filter with another value", () => {
  assert.equal(toggle("", "state", "failed"), "state:failed");
  assert.equal(toggle("rack:a1", "state", "failed"), "rack:a1 state:failed");
  assert.equal(toggle("state:failed rack:a1", "state", "failed"), "rack:a1");
  assert.equal(toggle("state:failed,pending rack:a1", "state", "failed"), "state:pending rack:a1");
  assert.equal(toggle("x state:failed", "state", "pending"), "x state:failed,pending");
  assert.equal(toggle("-state:failed", "state", "failed"), "-state:failed state:failed");
  assert.equal(toggle("", "rack", "b 2"), 'rack:"b 2"');
  assert.deepEqual(chosen(parse("state:a,b -state:c"), "state"), ["a", "b"]);
});

// Every value can be written so that the filter means just it.
test("quoting", () => {
  for (const v of ["a", "b 2", 'S"1', "any", "none", "a*", "a,b", "\\", '\\"', "-x", "x:y", "é 😀"]) {
    const r = [row({ name: "has", rack: v }), row({ name: "other", rack: `${v}x` })];
    assert.equal(find(`rack:${quote(v)}`, r), "has", v);
  }
});

test("the same on the command line", () => {
  const list = (s: string) => `rackstrap hardware list ${s}-o wide`;
  for (const [text, want] of [
    ["", list("")],
    ["state:available,failed", list("--state available,failed ")],
    ["label.tier=db -label.gpu", list("--selector 'tier=db,!gpu' ")],
    ["label.tier:db,web", list("--selector 'tier in (db,web)' ")],
    ["-label.tier:db,web", list("--selector 'tier notin (db,web)' ")],
    ["label.tier!=db", list("--selector 'tier!=db' ")],
    ["label.tier:none state:failed", list("--selector '!tier' --state failed ")],
    ["label.tier=db", list("--selector tier=db ")],
    ["label.tier:d*", undefined],
    ["rack:a1", undefined],
    ["-state:failed", undefined],
    ["text", undefined],
    ["colour:red", undefined],
    ['label.a:"x;rm -rf"', undefined],
  ] as [string, string | undefined][]) {
    assert.equal(command(parse(text)), want, text);
  }
});

test("offers", () => {
  const offered = (text: string, caret = text.length) => {
    const s = suggest(text, caret, rack);
    return s.items.map((i) => text.slice(0, s.from) + i.insert + text.slice(s.to));
  };
  assert.ok(offered("sta").includes("state:"));
  assert.ok(offered("x -ho").includes("x -hold "));
  assert.ok(offered("lab").includes("label.tier:"));
  assert.deepEqual(offered("label.ex"), ["label.example.com/pool:"]);
  assert.deepEqual(offered("state:f"), ["state:failed"]);
  assert.deepEqual(offered("state:failed,av"), ["state:failed,available"]);
  assert.deepEqual(offered("rack:b"), ['rack:"b 2"']);
  assert.deepEqual(offered('rack:"b'), ['rack:"b 2"']);
  assert.ok(offered("owner:").includes("owner:none"));
  assert.deepEqual(offered("cpus>"), []);
  assert.deepEqual(offered("colour:"), []);
  assert.deepEqual(offered("state:f rack:a1", 7), ["state:failed rack:a1"]);
});

test("quantities", () => {
  assert.equal(quantity("size", "64Gi"), 64 * 2 ** 30);
  assert.equal(quantity("size", "64GB"), 64e9);
  assert.equal(quantity("size", "10"), 10);
  assert.equal(quantity("age", "1h30m"), 5400e3);
  assert.equal(quantity("age", "2min"), 120e3);
  assert.equal(typeof quantity("number", "1e9"), "string");
  assert.equal(timed(parse("since>1h")), true);
  assert.equal(timed(parse("cpus>1")), false);
  assert.equal(installed(Math.round(62.55 * 2 ** 30)), 64 * 2 ** 30);
  assert.equal(installed(16 * 2 ** 30), 16 * 2 ** 30);
});
