// The address space of a subnet as a picture: which address is whose.

/** Use is what an address is for. Where an address is several things the first of them counts. */
type Use = "network" | "appliance" | "gateway" | "quarantined" | "leased" | "reserved" | "excluded" | "free" | "other";

/** The uses in the order in which they count, with what they mean. */
export const uses: [Use, string][] = [
  ["network", "the network itself, or its broadcast address"],
  ["appliance", "an address of the appliance"],
  ["gateway", "the gateway"],
  ["quarantined", "used by somebody else, so lent to nobody"],
  ["leased", "lent by DHCP"],
  ["reserved", "reserved in a machine's record"],
  ["excluded", "left out of the pool"],
  ["free", "in the pool, and free"],
  ["other", "not ours to give"],
];

/** An IPv4 address as a number; NaN where the text is none. */
export function number(text: string): number {
  const parts = text.split(".");
  if (parts.length !== 4) return NaN;
  let n = 0;
  for (const p of parts) {
    if (!/^\d{1,3}$/.test(p) || Number(p) > 255) return NaN;
    n = n * 256 + Number(p);
  }
  return n;
}

/** A number as an IPv4 address. */
export const text = (n: number): string => [24, 16, 8, 0].map((shift) => Math.floor(n / 2 ** shift) % 256).join(".");

/** The first and last number of 10.0.0.100-10.0.0.199, or of one address. */
export function range(of: string): [number, number] {
  const [from, to] = of.split("-");
  const a = number((from ?? "").trim());
  return [a, to === undefined ? a : number(to.trim())];
}

/** The first and last number of a prefix like 10.0.0.0/24. */
export function span(prefix: string): [number, number] {
  const [addr, bits] = prefix.split("/");
  const size = 2 ** (32 - Number(bits));
  const first = Math.floor(number(addr ?? "") / size) * size;
  return [first, first + size - 1];
}

/** Cell is one square of the picture: one address, or in a large network several. */
export interface Cell {
  from: number;
  to: number;
  /** What most matters in it. */
  use: Use;
  /** How many addresses of it have which use. */
  counts: Partial<Record<Use, number>>;
}

/** What is known of a subnet's addresses. */
export interface Known {
  prefix: string;
  gateway?: string | undefined;
  advertise?: string | undefined;
  ranges: string[];
  excluded: string[];
  leased: string[];
  quarantined: string[];
  reserved: string[];
}

const most = 1024;

/** The picture, at most 1024 cells, and the sum of each use. Its cost depends on what is known, not on the size of the network. */
export function picture(k: Known): { cells: Cell[]; counts: Record<Use, number>; each: number } {
  const [first, last] = span(k.prefix);
  const each = Math.max(1, (last - first + 1) / most);
  const cells: Cell[] = [];
  for (let n = first; n <= last; n += each) cells.push({ from: n, to: n + each - 1, use: "other", counts: {} });
  const counts = Object.fromEntries(uses.map(([u]) => [u, 0])) as Record<Use, number>;
  const taken = new Set<number>();
  const put = (n: number, use: Use) => {
    if (!(n >= first && n <= last) || taken.has(n)) return;
    taken.add(n);
    const c = cells[Math.floor((n - first) / each)]!;
    c.counts[use] = (c.counts[use] ?? 0) + 1;
    counts[use]++;
  };
  const all = (list: string[], use: Use) => list.forEach((a) => put(number(a), use));
  put(first, "network");
  put(last, "network");
  if (k.advertise) put(number(k.advertise), "appliance");
  if (k.gateway) put(number(k.gateway), "gateway");
  all(k.quarantined, "quarantined");
  all(k.leased, "leased");
  all(k.reserved, "reserved");
  const inPool = k.ranges.map(range);
  const out = k.excluded.map(range);
  const overlap = (list: [number, number][], from: number, to: number) => list.reduce((n, [a, b]) => n + Math.max(0, Math.min(b, to) - Math.max(a, from) + 1), 0);
  const inside = (list: [number, number][], n: number) => list.some(([a, b]) => n >= a && n <= b);
  const takenOf = new Map<Cell, number[]>();
  for (const n of taken) {
    const c = cells[Math.floor((n - first) / each)]!;
    const list = takenOf.get(c);
    if (list) list.push(n);
    else takenOf.set(c, [n]);
  }
  for (const c of cells) {
    const gone = takenOf.get(c) ?? [];
    const excluded = overlap(out, c.from, c.to) - gone.filter((n) => inside(out, n)).length;
    const pool = overlap(inPool, c.from, c.to) - gone.filter((n) => inside(inPool, n) && !inside(out, n)).length - overlap(out, c.from, c.to);
    const other = c.to - c.from + 1 - gone.length - excluded - pool;
    for (const [use, n] of [["excluded", excluded], ["free", pool], ["other", other]] as [Use, number][]) {
      if (n <= 0) continue;
      c.counts[use] = n;
      counts[use] += n;
    }
    c.use = uses.find(([u]) => u !== "network" && c.counts[u])?.[0] ?? "network";
    if (each > 1 && c.counts.free && c.use !== "quarantined") c.use = (c.counts.leased ?? 0) + (c.counts.reserved ?? 0) > c.counts.free ? "leased" : "free";
  }
  return { cells, counts, each };
}
