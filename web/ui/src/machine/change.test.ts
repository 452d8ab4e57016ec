import assert from "node:assert/strict";
import { test } from "node:test";
import { changed } from "./change.ts";

const yaml = `kind: Hardware
metadata:
  name: m1
spec:
  # the port in slot 2
  interfaces:
    - mac: 52:54:00:00:00:01
      addresses: [10.0.0.5/24]
  netboot:
    allowPXE: false
  userData: (redacted)
`;

test("a field changes its line and nothing else", () => {
  assert.equal(changed(yaml, ["spec", "interfaces", 0, "mac"], "52:54:00:00:00:02"), yaml.replace("00:01", "00:02").replace("[10.0.0.5/24]", "[ 10.0.0.5/24 ]"));
});

test("a default is taken out, with the map that only held it", () => {
  const got = changed(yaml, ["spec", "netboot", "allowPXE"], undefined);
  assert.ok(!got.includes("netboot"), got);
  assert.ok(got.includes("userData: (redacted)"));
  assert.equal(changed(got, ["spec", "netboot", "allowPXE"], undefined), got);
});

test("what is not there is made", () => {
  const got = changed(yaml, ["spec", "interfaces", 1], { mac: "" });
  assert.match(got, /- mac: ""/);
  assert.match(changed(yaml, ["metadata", "labels"], { rack: "r1" }), /labels:\n {4}rack: r1/);
  assert.match(changed(yaml, ["spec", "sshKeys"], ["ssh-ed25519 AAAA x"]), /sshKeys:\n {4}- ssh-ed25519 AAAA x/);
});
