import assert from "node:assert/strict";
import { test } from "node:test";
import type { Hardware, Status } from "../api/types.ts";
import { commands, offers, step } from "./possible.ts";

const machine = (status: Status): Hardware => ({ metadata: { name: "m1" }, spec: { interfaces: [] }, status });
const told = (status: Status, active = false) => offers(machine(status), active).map((o) => (o.why ? `${o.verb} (${o.why})` : o.verb)).join(", ");

test("what moves a machine on is first; what cannot be done says why, or is absent", () => {
  assert.equal(told({ state: "pending" }), "accept, provision (accept it first), power, hold, maintain, retire, delete");
  assert.equal(told({ state: "available" }), "provision, power, inspect, hold, maintain, retire, delete");
  assert.equal(told({ state: "available", hold: true }), "unhold, provision (take it off hold first), power, inspect, maintain, retire, delete");
  assert.equal(told({ state: "provisioning", workflow: "w" }, true), "cancel, provision (workflow w runs), release, power, hold, maintain, retire, delete");
  assert.equal(told({ state: "provisioned" }), "provision, release, power, inspect, hold, maintain, retire, delete");
  assert.equal(offers(machine({ state: "provisioned" }), false)[0]!.label, "Reinstall…");
  assert.equal(told({ state: "failed", failures: 3 }), "accept, provision, release, power, inspect, hold, maintain, retire, delete");
  assert.equal(told({ state: "available", maintenance: true }), "provision, power, inspect, hold, maintained, retire, delete");
  assert.equal(told({ state: "retired" }), "delete");
});

test("each command that the appliance tells people to type is a button, a link, or is to be typed", () => {
  for (const [command, want] of [
    ["rackstrap timeline m1", "/machines/m1"],
    ["rackstrap timeline m1 --follow", "/machines/m1"],
    ["rackstrap hardware accept m1", "accept"],
    ["rackstrap hardware unhold m1", "unhold"],
    ["rackstrap hardware maintenance m1 --off", "maintained"],
    ["rackstrap hardware delete m1", "delete"],
    ["rackstrap hardware get m1", "/machines/m1?tab=edit"],
    ["rackstrap hardware list --state pending", "/pending"],
    ["rackstrap hardware inspect m1", "inspect"],
    ["rackstrap release m1", "release"],
    ["rackstrap power m1 cycle --next-boot network", "power cycle"],
    ["rackstrap power m1 status", "power status"],
    ["rackstrap provision m1 --image debian-12", "provision"],
    ["rackstrap workflow cancel w", "cancel"],
    ["rackstrap workflow get w", "/machines/m1?tab=workflow"],
    ["rackstrap subnet get lan", "/networks/lan"],
    ["rackstrap subnet list", "/networks"],
    ["rackstrap lease list --subnet lan", "/networks"],
    ["rackstrap stranger list", "/pending"],
    ["rackstrap image list", "/images"],
    ["rackstrap template list", "/templates"],
    ["rackstrap wait m1 --state available", "type: rackstrap wait m1 --state available"],
    ["journalctl -u rackstrap --since -1h", "type: journalctl -u rackstrap --since -1h"],
  ] as const) {
    const s = step(command, "m1");
    const got = "verb" in s ? `${s.verb}${s.power ? ` ${s.power}` : ""}` : "to" in s ? s.to : `type: ${s.type}`;
    assert.equal(got, want, command);
  }
});

test("commands are found in a sentence", () => {
  assert.deepEqual(commands("look into it, then type: rackstrap hardware unhold m1"), ["rackstrap hardware unhold m1"]);
  assert.deepEqual(commands("release it first (rackstrap release m1), or provision it with --reinstall"), ["rackstrap release m1"]);
  assert.deepEqual(commands("a cable"), []);
});
