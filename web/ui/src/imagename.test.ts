import assert from "node:assert/strict";
import { test } from "node:test";
import { guess } from "./imagename.ts";

test("what a file is called says what is in it", () => {
  for (const [file, want] of [
    ["debian-12-genericcloud-amd64.qcow2", { name: "debian-12-genericcloud-amd64", os: "debian", osVersion: "12", kubernetesVersion: "", arch: "amd64" }],
    ["https://cloud-images.example/releases/ubuntu-24.04-server-cloudimg-arm64.img?x=1", { name: "ubuntu-24-04-server-cloudimg-arm64", os: "ubuntu", osVersion: "24.04", kubernetesVersion: "", arch: "arm64" }],
    ["Rocky-9-GenericCloud.latest.x86_64.qcow2", { name: "rocky-9-genericcloud-latest-x86-64", os: "rocky", osVersion: "9", kubernetesVersion: "", arch: "amd64" }],
    ["ubuntu-22.04-kube-v1.30.2.raw.gz", { name: "ubuntu-22-04-kube-v1-30-2", os: "ubuntu", osVersion: "22.04", kubernetesVersion: "1.30.2", arch: "" }],
    ["0042-ubuntu-24.04.img", { name: "0042-ubuntu-24-04", os: "ubuntu", osVersion: "24.04", kubernetesVersion: "", arch: "" }],
    ["disk.raw.zst", { name: "disk", os: "", osVersion: "", kubernetesVersion: "", arch: "" }],
    ["%E0%A4%A.img", { name: "e0-a4-a", os: "", osVersion: "", kubernetesVersion: "", arch: "" }],
    ["", { name: "", os: "", osVersion: "", kubernetesVersion: "", arch: "" }],
  ] as const) {
    assert.deepEqual(guess(file), want, file);
  }
});

test("a name is always one that a record may have", () => {
  for (const f of ["---.img", "ü.raw", `${"x".repeat(80)}.img`, "a_.b_.qcow2"]) {
    assert.match(guess(f).name, /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$/, f);
  }
});
