import assert from "node:assert/strict";
import { test } from "node:test";
import type { ActionKinds, Template } from "../api/types.ts";
import { declared, flow, kindAt, offers, reference } from "./complete.ts";
import { given, meaning, paramErrors, pieces, uses } from "./refs.ts";

const about = {
  apiVersion: "rackstrap/v1",
  kind: "ActionKinds",
  items: [
    { kind: "disk.wipe", does: "Destroys.", retries: 1, options: { type: "object", properties: { disk: { type: "string", description: "Which disk", examples: ["smallest"] }, mode: { type: "string", enum: ["quick", "zero"] } } } },
    { kind: "image.write", does: "Streams.", retries: 2, options: { type: "object", properties: { image: { type: "string" }, insecure: { type: "boolean" } }, required: ["image"] } },
    { kind: "reboot", does: "Restarts.", retries: 1, last: true, options: { type: "object" } },
  ],
  variables: [{ name: "hardware.name", means: "the name" }],
} as unknown as ActionKinds;

const labels = (marked: string) => {
  const pos = marked.indexOf("|");
  return offers(marked.replace("|", ""), pos, about)?.options.map((o) => o.label);
};

const head = `spec:
  parameters:
    - name: image
      description: "what, to write"
    # - name: no
    - {name: disk, type: string, default: ""}
  actions:
`;

test("a text is cut at its references as the appliance cuts it", () => {
  assert.deepEqual(pieces("a ${b.c} $${d} ${e f} ${}"), [
    { text: "a ", ref: false },
    { text: "b.c", ref: true },
    { text: " ${d} ${e f} ${}", ref: false },
  ]);
  assert.deepEqual(pieces("${x}${y}").map((p) => p.text), ["x", "y"]);
  assert.deepEqual(pieces(""), []);
});

test("what a template uses, what that means, and what is sent for it", () => {
  const t = { metadata: { name: "t" }, spec: { parameters: [{ name: "image", description: "what" }, { name: "n", type: "int", default: 0 }], actions: [{ name: "a", kind: "image.write", with: { image: "${image}", deep: [{ x: "${n} ${n}" }] } }, { name: "b", kind: "reboot" }] } } as unknown as Template;
  assert.deepEqual([...uses(t)], [["image", ["a"]], ["n", ["a"]]]);
  assert.equal(meaning("image", t.spec.parameters!, about.variables), "parameter, string, must be given: what");
  assert.equal(meaning("n", t.spec.parameters!, []), "parameter, int, may be left out");
  assert.equal(meaning("hardware.name", [], about.variables), "of the machine: the name");
  assert.equal(meaning("x", [], []), "is not declared");
  assert.deepEqual(given(t.spec.parameters!, { image: "debian", n: "", gone: "x" }), { image: "debian" });
  assert.deepEqual(paramErrors([{ field: "spec.params.a", detail: "wrong" }, { field: "spec", detail: "x" }]), { a: "wrong" });
});

test("the parameters of a document that is half written", () => {
  assert.deepEqual(declared(head), [
    { name: "image", type: "string", description: "what, to write" },
    { name: "disk", type: "string", description: "" },
  ]);
  assert.deepEqual(declared("spec:\n  parameters: [{name: a}, {name: b, type: int}]\n  actions: []\n").map((p) => `${p.name}:${p.type}`), ["a:string", "b:int"]);
  assert.deepEqual(declared("spec:\n  parameters:\n  - name: same\n    type: secret\n  timeout: 1h\n"), [{ name: "same", type: "secret", description: "" }]);
  assert.deepEqual(declared("spec: {}"), []);
});

test("the kind of the action around a position", () => {
  const at = (marked: string) => kindAt(marked.replace("|", ""), marked.indexOf("|"));
  assert.equal(at(head + "    - name: wipe\n      kind: disk.wipe\n      with:\n        |"), "disk.wipe");
  assert.equal(at(head + "    - name: wipe\n      with:\n        disk: |\n      kind: disk.wipe\n"), "disk.wipe");
  assert.equal(at(head + "    - name: a\n      kind: reboot\n    - kind: image.write\n      with: {ima|}\n"), "image.write");
  assert.equal(at(head + "    - {name: a, kind: disk.wipe, with: {disk: |}}"), "disk.wipe");
  assert.equal(at(head + "    - name: a\n      with:\n        |"), "");
  assert.equal(at(head + "    - name: a\n      kind: disk.wipe\n      |"), undefined);
  assert.equal(at("spec:\n  desc|"), undefined);
});

test("what is offered at a place", () => {
  assert.deepEqual(labels(head + "    - name: wipe\n      kind: |"), ["disk.wipe", "image.write", "reboot"]);
  assert.deepEqual(labels(head + "    - name: wipe\n      kind: disk.wipe\n      with:\n        |"), ["disk", "mode"]);
  assert.deepEqual(labels(head + "    - name: wipe\n      kind: disk.wipe\n      with:\n        disk: x\n        m|"), ["mode"]);
  assert.deepEqual(labels(head + "    - name: wipe\n      kind: disk.wipe\n      with:\n        mode: |"), ["quick", "zero", "${image}", "${disk}", "${hardware.name}"]);
  assert.deepEqual(labels(head + "    - name: wipe\n      kind: disk.wipe\n      with: {disk: a, |}"), ["mode"]);
  assert.deepEqual(labels(head + '    - {name: w, kind: image.write, with: {image: "${|"}}'), ["image", "disk", "hardware.name"]);
  assert.equal(labels(head + '    - {name: w, kind: image.write, with: {image: "$${|"}}'), undefined);
  assert.equal(labels(head + "    - name: wipe\n      |"), undefined);
  assert.deepEqual(labels(head + "    - name: wipe\n      kind: none\n      with:\n        |"), []);
});

test("a reference is closed once", () => {
  const at = (marked: string) => offers(marked.replace("|", ""), marked.indexOf("|"), about)?.options[0]?.apply;
  assert.equal(at(head + '    - {with: {image: "${|"}}'), "image}");
  assert.equal(at(head + '    - {with: {image: "${|}"}}'), "image");
  assert.equal(reference("a $${b", 6), undefined);
  assert.equal(reference("a ${b", 5), 4);
});

test("places in a map on one line", () => {
  const at = (marked: string) => flow(marked.replace("|", ""), marked.indexOf("|"));
  assert.deepEqual(at('with: {disk: "${disk}", mo|, x: 1}'), { path: [], writes: "key", from: 24, present: ["disk", "x"] });
  assert.deepEqual(at("with: {mode: q|}"), { path: ["mode"], writes: "value", from: 13, present: [] });
  assert.equal(at("with: {a: b} |"), undefined);
  assert.equal(at("kind: {|"), undefined);
});
