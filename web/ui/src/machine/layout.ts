// What is on a disk, as a picture and in words. What is reported is a machine's own word:
// partitions may overlap, or end beyond the disk.
import type { DiskFact, Layout, PartitionFact, WorkflowWorkflow } from "../api/types.ts";

/** A stretch of a disk: a partition, or room that none takes. */
interface Stretch {
  part?: PartitionFact;
  /** In bytes. */
  size: number;
  /** Where it is drawn and how wide, in percent of the whole. */
  from: number;
  width: number;
  tone: Tone;
}

export type Tone = "boot" | "files" | "swap" | "member" | "other" | "free";

const members = ["lvm2", "mdraid", "luks"];

/** What a partition is for, as its colour says it. */
function toneOf(p: PartitionFact): Tone {
  if (/^EFI|boot$/i.test(p.type ?? "")) return "boot";
  if (p.content === "swap") return "swap";
  if (members.includes(p.content ?? "")) return "member";
  return p.content ? "files" : "other";
}

/** Gaps below this many bytes are alignment. */
const gap = 4 << 20;
/** The least width that can be seen and pointed at, in percent. */
const least = 1.2;

/** The stretches of a disk of so many bytes from its begin to its end. */
export function stretches(bytes: number, l: Layout): Stretch[] {
  const out: Stretch[] = [];
  let end = 0;
  const free = (to: number) => {
    if (to - end >= gap) out.push({ size: to - end, from: 0, width: 0, tone: "free" });
  };
  const parts = (l.partitions ?? []).filter((p) => p.type !== "extended").sort((a, b) => a.start - b.start);
  for (const p of parts) {
    const start = Math.min(Math.max(p.start, end), bytes);
    const stop = Math.min(Math.max(p.start + p.bytes, start), bytes);
    free(start);
    out.push({ part: p, size: p.bytes, from: 0, width: stop - start, tone: toneOf(p) });
    end = Math.max(end, stop);
  }
  if (l.table === "gpt" || l.table === "dos") free(bytes);
  // Where each is at least so wide that it can be seen, the large ones give the room.
  const min = Math.min(least, 100 / Math.max(1, out.length));
  const drawn = (s: Stretch) => (s.part ? s.width : s.size);
  const all = out.reduce((n, s) => n + drawn(s), 0);
  const spare = 100 - min * out.length;
  let at = 0;
  for (const s of out) {
    s.width = min + (all > 0 ? (spare * drawn(s)) / all : 0);
    s.from = at;
    at += s.width;
  }
  return out;
}

/** What no partition takes, in bytes. */
export const unused = (all: Stretch[]): number => all.reduce((n, s) => n + (s.part ? 0 : s.size), 0);

/** How the kernel names a partition: sda1, nvme0n1p1. */
export function partitionName(disk: string, n: number): string {
  const name = disk.slice(disk.lastIndexOf("/") + 1);
  return `${name}${/\d$/.test(name) ? "p" : ""}${n}`;
}

const quoted = (content: string, label: string | undefined): string => (label ? `${content} “${label}”` : content);

/** What is in a partition, or else what its table says it is for. */
const partitionWords = (p: PartitionFact): string => (p.content ? quoted(p.content, p.label || p.name) : p.type || "of unknown content");

const tables: Record<Layout["table"], string> = { gpt: "GPT", dos: "MBR", none: "no partition table", unknown: "not known" };

/** What kind of table a disk has, or what fills it. */
export const layoutWords = (l: Layout): string => (l.content ? `no partitions, ${quoted(l.content, l.label)}` : tables[l.table]) + (l.problem ? ` (${l.problem})` : "");

/** What is on a disk in one line; empty where that is not known. */
export function holdsWords(d: DiskFact, most = 8): string {
  const l = d.layout;
  if (!l) return "";
  const parts = l.partitions ?? [];
  if (parts.length === 0) return layoutWords(l);
  const more = Math.max(0, parts.length - most) + (l.more ?? 0);
  return [...parts.slice(0, most).map((p) => `${partitionName(d.path, p.number)} ${partitionWords(p)}`), ...(more ? [`and ${more} more`] : [])].join(", ");
}

/** A worker reports what it left within so many milliseconds; an action that ended later was not followed by a report. */
const lag = 15_000;

/** The workflow that wrote to the disks after they were looked at at a time, if any did. */
export function writtenSince(workflows: WorkflowWorkflow[], at: string | undefined): string | undefined {
  if (!at) return undefined;
  const looked = Date.parse(at);
  const after = (t: string | undefined, ms: number) => t !== undefined && Date.parse(t) > looked + ms;
  return workflows.find((w) => w.status?.actions?.some((a) => a.kind !== "reboot" && a.kind !== "poweroff" && a.attempts?.some((t) => after(t.started, 0) || after(t.finished, lag))))?.metadata.name;
}
