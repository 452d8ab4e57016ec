import assert from "node:assert/strict";
import { test } from "node:test";
import { below, options, place, type Schemas } from "./schema.ts";

const all: Schemas = {
  Hardware: { properties: { kind: { const: "Hardware" }, metadata: { $ref: "#/components/schemas/Meta" }, spec: { $ref: "#/components/schemas/Spec" } } },
  Meta: { properties: { name: { type: "string" }, labels: { additionalProperties: { type: "string" } } }, required: ["name"] },
  Spec: { properties: { interfaces: { type: "array", items: { $ref: "#/components/schemas/NIC" } }, protect: { type: "boolean" }, netboot: { $ref: "#/components/schemas/Netboot" } } },
  NIC: { properties: { mac: { type: "string", examples: ["52:54:00:12:34:56"] }, addresses: { type: "array", items: { type: "string" } }, dhcp: { type: "boolean" } }, required: ["mac"] },
  Netboot: { properties: { secureBoot: { enum: ["auto", "on", "off"] }, allowPXE: { type: "boolean" } } },
};

/** The place of the bar in a text, and what may be written there. */
function offered(text: string): { path: string; offers: string } {
  const pos = text.indexOf("|");
  const p = place(text.replace("|", ""), pos);
  if (!p) return { path: "nowhere", offers: "" };
  return { path: `${p.path.join(".")} ${p.writes}`, offers: options(all, all["Hardware"], p).map((o) => o.label).join(" ") };
}

test("the place in a document and what may stand there", () => {
  for (const [text, path, offers] of [
    ["|", " key", "kind metadata spec"],
    ["kind: |", "kind value", "Hardware"],
    ["kind: Hardware\nm|", " key", "metadata spec"],
    ["metadata:\n  |", "metadata key", "name labels"],
    ["metadata:\n  name: x\n  l|\nspec: {}\n", "metadata key", "labels"],
    ["spec:\n  interfaces:\n    - |", "spec.interfaces.[] key", "mac addresses dhcp"],
    ["spec:\n  interfaces:\n  - |", "spec.interfaces.[] key", "mac addresses dhcp"],
    ["spec:\n  interfaces:\n    - mac: 52:54:00:00:00:01\n      |", "spec.interfaces.[] key", "addresses dhcp"],
    ["spec:\n  interfaces:\n    - mac: a\n    - mac: b\n      dhcp: |", "spec.interfaces.[].dhcp value", "true false"],
    ["spec:\n  interfaces:\n    - mac: |", "spec.interfaces.[].mac value", "52:54:00:12:34:56"],
    ["spec:\n  netboot:\n    secureBoot: |\n", "spec.netboot.secureBoot value", "auto on off"],
    ["spec:\n  protect: true\n  # why\n\n  |", "spec key", "interfaces netboot"],
    ["a: b\n---\nmetadata:\n  |", "metadata key", "name labels"],
    ["spec:\n  netboot: {|", "nowhere", ""],
    ["# |", "nowhere", ""],
    ["metadata:\n  labels:\n    rack: |", "metadata.labels.rack value", ""],
  ] as const) {
    assert.deepEqual(offered(text), { path, offers }, JSON.stringify(text));
  }
});

test("what has parts is begun with the place of its first one", () => {
  const text = "spec:\n  i";
  const p = place(text, text.length)!;
  const apply = (label: string) => options(all, all["Hardware"], p).find((o) => o.label === label)?.apply;
  assert.deepEqual([apply("interfaces"), apply("netboot"), apply("protect")], ["interfaces:\n    - ", "netboot:\n    ", "protect: "]);
});

test("no place of a document is an error", () => {
  const text = "spec:\n  interfaces:\n  - mac: 'a'\n    addresses:\n    - 10.0.0.1/24\n - odd\n\t tab: x\n  notes: |\n    text: here\n";
  for (let i = 0; i <= text.length; i++) {
    const p = place(text, i);
    if (p) options(all, all["Hardware"], p);
  }
  assert.equal(below(all, all["Hardware"], ["spec", "no", "such"]), undefined);
});
