import assert from "node:assert/strict";
import { test } from "node:test";
import type { Layout, PartitionFact, WorkflowWorkflow } from "../api/types.ts";
import { holdsWords, partitionName, stretches, unused, writtenSince } from "./layout.ts";

const MB = 1e6;
const part = (number: number, start: number, bytes: number, o: Partial<PartitionFact> = {}): PartitionFact => ({ number, start, bytes, ...o });
const gpt = (...partitions: PartitionFact[]): Layout => ({ table: "gpt", partitions });

test("a small partition of a large disk can be seen, and all of it is 100 %", () => {
  const all = stretches(8e12, gpt(part(1, 1 * MB, 100 * MB, { type: "EFI system" }), part(2, 101 * MB, 5e12, { content: "xfs" })));
  assert.deepEqual(
    all.map((s) => [s.part?.number, s.tone]),
    [
      [1, "boot"],
      [2, "files"],
      [undefined, "free"],
    ],
  );
  assert.ok(all[0]!.width >= 1);
  assert.ok(Math.abs(all[2]!.from + all[2]!.width - 100) < 1e-9);
  assert.ok(Math.abs(unused(all) - (3e12 - 101 * MB)) < 10 * MB);
});

test("whatever a machine says, nothing is drawn outside the disk", () => {
  for (const parts of [
    [part(1, 5e12, 9e15), part(2, 0, 1e18), part(3, 0, 0)],
    [part(1, -4e12, 2), part(2, 1e300, 1e300)],
    Array.from({ length: 128 }, (_, i) => part(i + 1, i, 1)),
  ]) {
    let at = 0;
    for (const s of stretches(1e12, gpt(...parts))) {
      assert.ok(s.from >= at - 1e-9 && s.width >= 0 && s.from + s.width <= 100 + 1e-9, JSON.stringify(s));
      at = s.from + s.width;
    }
  }
  assert.deepEqual(stretches(0, gpt()), []);
  assert.deepEqual(stretches(1e12, { table: "none" }), []);
});

test("an extended partition is what is in it", () => {
  const all = stretches(1e9, { table: "dos", partitions: [part(1, 0, 9e8, { type: "extended" }), part(5, 1 * MB, 100 * MB, { content: "swap" })] });
  assert.deepEqual(
    all.map((s) => s.tone),
    ["swap", "free"],
  );
});

test("a disk in words", () => {
  const disk = (layout?: Layout) => ({ path: "/dev/nvme0n1", bytes: 1, ...(layout ? { layout } : {}) });
  assert.equal(holdsWords(disk()), "");
  assert.equal(holdsWords(disk({ table: "none" })), "no partition table");
  assert.equal(holdsWords(disk({ table: "none", content: "lvm2" })), "no partitions, lvm2");
  assert.equal(holdsWords(disk({ table: "unknown", problem: "the disk does not answer" })), "not known (the disk does not answer)");
  assert.equal(holdsWords(disk({ ...gpt(part(1, 0, 1, { content: "vfat", label: "EFI" }), part(2, 1, 1, { content: "ext4", name: "root" }), part(3, 2, 1, { type: "ZFS" }), part(4, 3, 1)), more: 2 }), 3), "nvme0n1p1 vfat “EFI”, nvme0n1p2 ext4 “root”, nvme0n1p3 ZFS, and 3 more");
  assert.equal(partitionName("/dev/sda", 3), "sda3");
});

test("what was written after the look is told", () => {
  const w = (kind: string, started: string, finished?: string) => [{ metadata: { name: "w1" }, status: { actions: [{ name: "a", kind, attempts: [{ boot: "B", state: "succeeded", started, ...(finished ? { finished } : {}) }] }] } }] as unknown as WorkflowWorkflow[];
  const at = "2026-11-21T03:00:00Z";
  assert.equal(writtenSince(w("image.write", "2026-11-21T03:00:01Z"), at), "w1");
  assert.equal(writtenSince(w("image.write", "2026-11-21T02:59:00Z", "2026-11-21T03:01:00Z"), at), "w1");
  assert.equal(writtenSince(w("image.write", "2026-11-21T02:59:00Z", "2026-11-21T03:00:01Z"), at), undefined);
  assert.equal(writtenSince(w("reboot", "2026-11-21T03:00:01Z", "2026-11-21T03:01:00Z"), at), undefined);
  assert.equal(writtenSince(w("image.write", "2026-11-21T03:00:01Z"), undefined), undefined);
});
