// What can be shown of a machine in a column.
import type { ComponentChildren, JSX } from "preact";
import { bytes, count, memory, when } from "../format.ts";
import { progress, type Row } from "../machines.ts";
import { Link } from "../router.tsx";
import { moved, pace } from "../speed.ts";
import { seg } from "../api/call.ts";
import { Badge, Bar, Since, State, toneOf } from "../ui/basic.tsx";
import { installed, states } from "./keys.ts";
import { natural, type SortKey } from "./order.ts";

/** What a cell can ask of its page. */
export interface Act {
  /** Shows a machine's issue and its fix. */
  issue: (r: Row) => void;
}

/** A column of the table of machines. */
export interface Column {
  key: string;
  head: string;
  /** How wide it is, in rem. */
  width: number;
  num?: boolean;
  sort: (r: Row) => SortKey;
  /** tab is the tabIndex of what can be pressed in it. */
  cell: (r: Row, act: Act, tab: number) => ComponentChildren;
  /** What an export has of it. */
  text: (r: Row) => string | number;
}

const plain = (key: string, head: string, width: number, of: (r: Row) => string | undefined, mono = false): Column => ({
  key,
  head,
  width,
  sort: (r) => {
    const v = of(r);
    return v ? natural(v) : undefined;
  },
  cell: (r) => (mono ? <span class="mono">{of(r)}</span> : of(r)),
  text: (r) => of(r) ?? "",
});

const moment = (key: string, head: string, of: (r: Row) => string | undefined): Column => ({
  key,
  head,
  width: 7.5,
  sort: (r) => {
    const v = of(r);
    return v ? -Date.parse(v) : undefined; // the shortest time first
  },
  cell: (r) => <Since at={of(r)} />,
  text: (r) => of(r) ?? "",
});

const amount = (key: string, head: string, width: number, of: (r: Row) => number | undefined, show: (n: number) => string): Column => ({
  key,
  head,
  width,
  num: true,
  sort: (r) => of(r) || undefined,
  cell: (r) => {
    const n = of(r);
    return n ? show(n) : "";
  },
  text: (r) => of(r) ?? "",
});

/** An address as it sorts: by number. */
function addressKey(r: Row): SortKey {
  if (!r.address) return undefined;
  return r.address.includes(":") ? `~${r.address}` : natural(r.address);
}

/** The words of a machine beside its state. */
export function besides(r: Row): string[] {
  const out: string[] = [];
  if (r.hold) out.push("on hold");
  if (r.maintenance) out.push("maintenance");
  if (r.protect) out.push("protected");
  return out;
}

/** How far the workflow of a machine is; nothing where it does not move. */
export function Moving({ of: r, short = false }: { of: Row; short?: boolean }): JSX.Element | null {
  if (!r.active || !r.workflow) return null;
  const p = progress(r.workflow).value;
  if (!p || p.done === 0) return short ? <Bar done={0} of={0} label={`${r.name} is moving`} /> : <span class="dim">{p?.note || "under way"}</span>;
  const text = moved(p);
  return (
    <span class="going" title={p.note ? `${p.note}: ${text}` : text}>
      <Bar done={p.done} of={p.total ?? 0} label={`progress of ${r.name}`} />
      {!short && <small>{p.total && p.total > p.done ? pace(p) || text : text}</small>}
    </span>
  );
}

const powerSign: Record<string, string> = { on: "● on", off: "○ off" };

const all: Column[] = [
  {
    key: "name",
    head: "Name",
    width: 12,
    sort: () => undefined,
    cell: (r, _, tab) => (
      <Link to={`/machines/${seg(r.name)}`} tabIndex={tab}>
        {r.name}
      </Link>
    ),
    text: (r) => r.name,
  },
  {
    key: "state",
    head: "State",
    width: 12,
    sort: (r) => states.findIndex((s) => s === r.state),
    cell: (r) => (
      <>
        <State of={r.state} />
        {besides(r).map((w) => (
          <Badge key={w} tone="warn" title={w === "maintenance" ? r.maintenanceNote : r.holdReason}>
            {w}
          </Badge>
        ))}
      </>
    ),
    text: (r) => [r.state, ...besides(r)].join(", "),
  },
  moment("since", "For", (r) => r.since),
  {
    key: "progress",
    head: "Progress",
    width: 13.5,
    sort: (r) => {
      const p = r.active && r.workflow ? progress(r.workflow).peek() : undefined;
      return p ? (p.total ? p.done / p.total : 0) : r.active ? -1 : undefined;
    },
    cell: (r) => <Moving of={r} />,
    text: (r) => {
      const p = r.active && r.workflow ? progress(r.workflow).peek() : undefined;
      return p ? moved(p) : "";
    },
  },
  {
    key: "power",
    head: "Power",
    width: 6,
    sort: (r) => r.power || undefined,
    cell: (r) => powerSign[r.power ?? ""] ?? <span class="dim">unknown</span>,
    text: (r) => r.power || "unknown",
  },
  { ...plain("address", "Address", 9.5, (r) => r.address, true), sort: addressKey },
  plain("mac", "MAC", 10.5, (r) => r.mac, true),
  plain("owner", "Owner", 9, (r) => r.owner),
  plain("claim", "Claim", 9, (r) => r.claim),
  plain("labels", "Labels", 14, (r) => Object.entries(r.labels ?? {}).map(([k, v]) => (v ? `${k}=${v}` : k)).join(", ")),
  amount("cpus", "CPUs", 4.5, (r) => r.cpus, String),
  { ...amount("memory", "Memory", 6, (r) => (r.memoryBytes ? installed(r.memoryBytes) : undefined), memory), text: (r) => r.memoryBytes ?? "" },
  {
    ...amount("disks", "Disks", 7.5, (r) => r.diskBytes, String),
    cell: (r) => (r.disks ? `${r.disks} × ${bytes((r.diskBytes ?? 0) / r.disks)}` : ""),
  },
  plain("image", "Image", 10, (r) => r.image),
  {
    key: "issue",
    head: "Issue",
    width: 13,
    sort: (r) => (r.issue ? `${["error", "warning", "info"].indexOf(r.issue.severity)}${r.issue.kind}` : undefined),
    cell: (r, act, tab) =>
      r.issue && (
        <button type="button" class={`badge ${toneOf(r.issue.severity)} pressed`} tabIndex={tab} title={`${r.issue.detail}\n${r.issue.fix}`} onClick={() => act.issue(r)}>
          {r.issue.severity === "error" ? "✕" : r.issue.severity === "warning" ? "!" : "i"} {r.issue.kind}
          {(r.issues ?? 0) > 1 && ` +${r.issues! - 1}`}
        </button>
      ),
    text: (r) => (r.issue ? `${r.issue.kind}: ${r.issue.detail}` : ""),
  },
  plain("rack", "Rack", 6, (r) => r.rack),
  plain("position", "Position", 5.5, (r) => r.position),
  plain("vendor", "Vendor", 9, (r) => r.vendor),
  plain("product", "Product", 10, (r) => r.product),
  plain("serial", "Serial", 9, (r) => r.serial, true),
  plain("asset", "Asset tag", 8, (r) => r.assetTag),
  plain("hostname", "Host name", 10, (r) => r.hostname ?? r.name),
  plain("arch", "Arch", 5, (r) => r.arch),
  plain("firmware", "Firmware", 6, (r) => r.firmware),
  plain("driver", "Power by", 6.5, (r) => r.powerDriver || "manual"),
  plain("workflow", "Workflow", 12, (r) => r.workflow),
  moment("up", "OS up for", (r) => r.osUp),
  moment("discovered", "Found", (r) => r.discovered),
  moment("deadline", "Deadline", (r) => r.deadline),
  plain("uid", "UID", 16, (r) => r.uid, true),
];
const deadline = all.find((c) => c.key === "deadline")!;
deadline.cell = (r) => r.deadline && <span title={when(r.deadline)}>{when(r.deadline).slice(11)}</span>;

/** The columns that there are, besides those of labels. */
export const columns: readonly Column[] = all;

/** The columns that are shown where nobody chose. */
export const usual = ["name", "state", "since", "progress", "issue", "power", "address", "rack", "position", "owner", "image", "cpus", "memory", "disks"];

/** The same where there is little room. */
export const few = ["name", "state", "progress", "issue", "since", "address"];

/** The column of a key; label:KEY is one of a label. */
function column(key: string): Column | undefined {
  if (key.startsWith("label:") && key.length > 6) {
    const label = key.slice(6);
    return plain(key, label, 8, (r) => (r.labels && Object.hasOwn(r.labels, label) ? r.labels[label] : undefined));
  }
  return all.find((c) => c.key === key);
}

/** The columns of a list of keys; what is not known, or is there twice, is left out, and the name is always there. */
export function columnsOf(keys: string[]): Column[] {
  const out = [...new Set(keys)].map(column).filter((c) => c !== undefined);
  return out.some((c) => c.key === "name") ? out : [all[0]!, ...out];
}

/** How many of what, for a title. */
export const machines = (n: number): string => count(n, "machine");
