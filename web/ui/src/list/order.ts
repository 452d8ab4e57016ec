// Sorting and grouping of machines, made to be done again after every event.
import type { Row } from "../machines.ts";
import { keyOf, states } from "./keys.ts";

/** What is sorted by; machines without it come last, whatever the direction. */
export type SortKey = string | number | undefined;

/** A text that sorts as people count: node-2 before node-10. */
export const natural = (s: string): string => s.toLowerCase().replace(/\d+/g, (d) => d.replace(/^0+(?=\d)/, "").padStart(12, "0"));

/** Makes a function that sorts the rows of one list. It keeps the last order: rows of which few have changed are nearly sorted, and cost next to nothing. */
export function sorter(key: (r: Row) => SortKey, descend: boolean): (rows: Row[]) => Row[] {
  const keys = new WeakMap<Row, { by: SortKey; name: string }>();
  let rank = new Map<string, number>();
  const of = (r: Row) => {
    let k = keys.get(r);
    if (!k) keys.set(r, (k = { by: key(r), name: natural(r.name) }));
    return k;
  };
  const sign = descend ? -1 : 1;
  return (rows) => {
    const known: (Row | undefined)[] = new Array<Row | undefined>(rank.size);
    const fresh: Row[] = [];
    for (const r of rows) {
      const i = rank.get(r.name);
      if (i === undefined) fresh.push(r);
      else known[i] = r;
    }
    const out = known.filter((r) => r !== undefined).concat(fresh);
    out.sort((a, b) => {
      const x = of(a);
      const y = of(b);
      if (x.by !== y.by) {
        if (x.by === undefined) return 1;
        if (y.by === undefined) return -1;
        return x.by < y.by ? -sign : sign;
      }
      return x.name < y.name ? -sign : x.name > y.name ? sign : 0;
    });
    rank = new Map(out.map((r, i) => [r.name, i]));
    return out;
  };
}

/** A group of machines that have a value in common. */
export interface Group {
  /** Empty for those without a value. */
  value: string;
  rows: Row[];
}

/** The rows in groups, in the order that they have; states come in the order of a machine's life, others as people count, no value last. */
export function groups(rows: Row[], by: string): Group[] {
  const key = keyOf(by);
  if (!key) return [];
  const found = new Map<string, Row[]>();
  for (const r of rows) {
    const v = String(key.of(r)[0] ?? "");
    const g = found.get(v);
    if (g) g.push(r);
    else found.set(v, [r]);
  }
  const rank = (v: string): string => (by === "state" ? String(states.findIndex((s) => s === v)) : natural(v));
  return [...found]
    .map(([value, rows]) => ({ value, rows, rank: rank(value) }))
    .sort((a, b) => Number(!a.value) - Number(!b.value) || (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0))
    .map(({ value, rows }) => ({ value, rows }));
}

/** How many rows each value of a key has. */
export function counts(rows: Row[], by: string): Map<string, number> {
  const key = keyOf(by)!;
  const n = new Map<string, number>();
  for (const r of rows) for (const v of key.of(r)) n.set(String(v), (n.get(String(v)) ?? 0) + 1);
  return n;
}
