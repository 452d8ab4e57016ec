// What machines are found, grouped and sorted by: the words of the filter.
import type { Row } from "../machines.ts";

/** Kind says how a key is compared. */
type Kind = "text" | "number" | "size" | "age";

/** One word of the filter. */
interface Key {
  kind: Kind;
  /** What it is, for the list of suggestions. */
  note: string;
  /** The values of a machine; none where it has none. Ages are points in time in milliseconds. */
  of: (r: Row) => (string | number)[];
  /** Whether the values that exist are offered. */
  offer?: boolean;
  /** Whether upper and lower case differ; in labels they do. */
  exact?: boolean;
}

const one = (v: string | undefined): string[] => (v ? [v] : []);
const some = (v: number | undefined): number[] => (v ? [v] : []);
const at = (v: string | undefined): number[] => (v ? [Date.parse(v)] : []);

/** The states in the order of a machine's life. */
export const states = ["pending", "available", "provisioning", "provisioned", "releasing", "failed", "retired"] as const;

/** The words with values. */
export const keys: Record<string, Key> = {
  state: { kind: "text", note: "where it is in its life", of: (r) => [r.state], offer: true },
  name: { kind: "text", note: "its name, or its host name", of: (r) => [r.name, ...one(r.hostname)] },
  rack: { kind: "text", note: "the rack it stands in", of: (r) => one(r.rack), offer: true },
  position: { kind: "text", note: "unit or slot in the rack", of: (r) => one(r.position), offer: true },
  address: { kind: "text", note: "IP address: 10.0.0.*", of: (r) => one(r.address) },
  mac: { kind: "text", note: "MAC of any NIC: 52:54:00:*", of: (r) => r.macs ?? one(r.mac) },
  owner: { kind: "text", note: "who claimed it", of: (r) => one(r.owner), offer: true },
  claim: { kind: "text", note: "the id of the claim", of: (r) => one(r.claim) },
  image: { kind: "text", note: "what is, or is being, installed", of: (r) => one(r.image), offer: true },
  issue: { kind: "text", note: "kind of an issue, or error, warning, info", of: (r) => (r.issue ? [r.issue.kind, r.issue.severity] : []), offer: true },
  power: { kind: "text", note: "on, off or unknown", of: (r) => [r.power || "unknown"], offer: true },
  driver: { kind: "text", note: "what switches its power", of: (r) => [r.powerDriver || "manual"], offer: true },
  workflow: { kind: "text", note: "its active or last workflow", of: (r) => one(r.workflow) },
  vendor: { kind: "text", note: "who made it", of: (r) => one(r.vendor), offer: true },
  product: { kind: "text", note: "what model it is", of: (r) => one(r.product), offer: true },
  serial: { kind: "text", note: "its serial number", of: (r) => one(r.serial) },
  asset: { kind: "text", note: "its asset tag", of: (r) => one(r.assetTag) },
  arch: { kind: "text", note: "amd64 or arm64", of: (r) => one(r.arch), offer: true },
  firmware: { kind: "text", note: "bios or uefi", of: (r) => one(r.firmware), offer: true },
  cpus: { kind: "number", note: "logical CPUs: cpus>=32", of: (r) => some(r.cpus) },
  memory: { kind: "size", note: "memory as bought: memory>=64Gi", of: (r) => (r.memoryBytes ? [installed(r.memoryBytes)] : []) },
  disk: { kind: "size", note: "all its disks together: disk>1T", of: (r) => some(r.diskBytes) },
  disks: { kind: "number", note: "how many disks: disks>=4", of: (r) => (r.cpus ? [r.disks ?? 0] : []) },
  issues: { kind: "number", note: "how many issues: issues>1", of: (r) => [r.issues ?? 0] },
  since: { kind: "age", note: "how long in its state: since>1h", of: (r) => at(r.since) },
  up: { kind: "age", note: "how long its system is up: up>7d", of: (r) => at(r.osUp) },
  discovered: { kind: "age", note: "how long ago it was found: discovered<1d", of: (r) => at(r.discovered) },
};

/** The words without a value. */
export const flags: Record<string, { note: string; of: (r: Row) => boolean }> = {
  hold: { note: "waits for a human", of: (r) => !!r.hold },
  maintenance: { note: "a human works on it", of: (r) => !!r.maintenance },
  protected: { note: "its disks are never written", of: (r) => !!r.protect },
  claimed: { note: "somebody has it", of: (r) => !!r.claim },
  installed: { note: "has a system that we wrote", of: (r) => !!r.installed },
  moving: { note: "a workflow works on it", of: (r) => !!r.active || r.state === "provisioning" || r.state === "releasing" },
};

/** The key of a word: one of keys, or label.KEY. */
export function keyOf(word: string): Key | undefined {
  if (word.startsWith("label.") && word.length > 6) {
    const label = word.slice(6);
    return { kind: "text", note: "label", of: (r) => (r.labels && Object.hasOwn(r.labels, label) ? [r.labels[label]!] : []), offer: true, exact: true };
  }
  return Object.hasOwn(keys, word) ? keys[word] : undefined;
}

/** The labels that machines have, with how many have them; the most used first. */
export function labelsOf(rows: Row[]): [string, number][] {
  const n = new Map<string, number>();
  for (const r of rows) for (const k in r.labels) n.set(k, (n.get(k) ?? 0) + 1);
  return [...n].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

/** The installed memory by what Linux has of it; the same rule as claims go by (hardware.Installed). */
export function installed(total: number): number {
  const whole = 256 * 2 ** 20;
  if (total < whole || total % whole === 0) return total;
  let step = 1;
  while (step * 16 <= total) step *= 2;
  const up = Math.ceil(total / step) * step;
  return up - total > Math.floor(total / 16) ? total : up;
}
