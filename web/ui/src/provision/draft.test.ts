import assert from "node:assert/strict";
import { test } from "node:test";
import type { Template } from "../api/types.ts";
import { asked, empty, imageText, missing, request, starter, values, type Draft } from "./draft.ts";

const template: Template = {
  metadata: { name: "mine" },
  spec: { parameters: [{ name: "image" }, { name: "disk", default: "" }, { name: "channel", default: "stable" }, { name: "cores", type: "int" }, { name: "lock", type: "bool", default: false }, { name: "key", type: "secret" }], actions: [] },
};

test("a request has what was said, and nothing else", () => {
  const d: Draft = { ...empty(), machines: ["a"], image: "debian-12" };
  assert.deepEqual(request(d, "a", undefined, undefined), { format: "cloud-config", image: "debian-12" });
  assert.deepEqual(request({ ...d, from: "url", url: " https://x/y ", checksum: "sha256:aa", reinstall: true }, "a", undefined, "c1"), { format: "cloud-config", image: "https://x/y", checksum: "sha256:aa", reinstall: true });
  assert.deepEqual(request({ ...d, from: "query", os: "debian", osVersion: "12", claimed: true }, "a", undefined, "c1"), { format: "cloud-config", os: "debian", osVersion: "12", claim: "c1" });
});

test("user-data that was written and then put aside is not sent", () => {
  const d: Draft = { ...empty(), image: "x", userData: "#cloud-config\n" };
  assert.equal(request(d, "a", undefined, undefined).userData, undefined);
  assert.equal(request({ ...d, ownUserData: true }, "a", undefined, undefined).userData, "#cloud-config\n");
});

test("parameters have the types of their template", () => {
  assert.deepEqual(
    asked(template).map((p) => p.name),
    ["channel", "cores", "lock", "key"],
  );
  assert.deepEqual(values(asked(template), { channel: "", cores: "4", lock: "true", key: "s3" }), { cores: 4, lock: true, key: "s3" });
  // what is no number is the appliance's to refuse
  assert.deepEqual(values(asked(template), { cores: "many" }), { cores: "many" });
});

test("a static network is of one machine; the gateway goes with addresses of its family", () => {
  const d: Draft = { ...empty(), image: "x", network: "static", addresses: { a: "10.0.0.5/24, fd00::5/64" }, gateway: "10.0.0.1", nameservers: "10.0.0.2 10.0.0.3", search: "" };
  assert.deepEqual(request(d, "a", undefined, undefined).static, { addresses: [{ address: "10.0.0.5/24", gateway: "10.0.0.1" }, { address: "fd00::5/64" }], nameservers: ["10.0.0.2", "10.0.0.3"] });
  assert.deepEqual(request(d, "b", undefined, undefined).static, { nameservers: ["10.0.0.2", "10.0.0.3"] });
  assert.equal(request({ ...d, network: "record" }, "a", undefined, undefined).static, undefined);
});

test("a step says what it lacks", () => {
  const d = empty();
  assert.match(missing(d, "machines"), /at least one/);
  assert.match(missing(d, "image"), /Choose an image/);
  assert.match(missing({ ...d, from: "query" }, "image"), /must be in the image/);
  assert.equal(missing({ ...d, from: "query", kubernetesVersion: "1.30" }, "image"), "");
  assert.equal(imageText({ ...d, from: "query", os: "debian", kubernetesVersion: "1.30" }), "debian Kubernetes 1.30");
});

test("a starter cannot be broken by a host name or a key", () => {
  const text = starter("cloud-config", 'a"b', ['ssh-ed25519 AAAA x"y: #z']);
  assert.match(text, /^#cloud-config\n/);
  assert.ok(text.includes('hostname: "a\\"b"'));
  assert.ok(text.includes('      - "ssh-ed25519 AAAA x\\"y: #z"'));
  const ignition = JSON.parse(starter("ignition", "n 1", ["k"])) as { passwd: { users: { sshAuthorizedKeys: string[] }[] } };
  assert.deepEqual(ignition.passwd.users[0]?.sshAuthorizedKeys, ["k"]);
});
