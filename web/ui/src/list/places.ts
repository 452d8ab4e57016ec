// Where machines stand: racks with units, 42 at the top, and what has no unit.
import type { Row } from "../machines.ts";
import { natural } from "./order.ts";

/** Machines that stand at one place of a rack. */
interface Place {
  /** The lowest unit. */
  unit: number;
  /** How many units it is high. */
  high: number;
  rows: Row[];
}

/** A rack, by what its machines say. */
export interface Rack {
  name: string;
  /** How many units it has; 0 where no machine says a unit. */
  units: number;
  places: Place[];
  /** Machines of the rack with a position that is no unit, or with none. */
  others: Row[];
  size: number;
}

/** How many units a rack is drawn with, and may have at most; a higher number is a slot, not a unit. */
const usual = 42;
const tallest = 60;

/** The units of a position: 17, u17 or U17, and 17-18 for what is two high; undefined is another text. */
export function unitsOf(position: string | undefined): { unit: number; high: number } | undefined {
  const m = /^\s*u?(\d{1,3})(?:\s*-\s*u?(\d{1,3}))?\s*$/i.exec(position ?? "");
  if (!m) return undefined;
  const a = Number(m[1]);
  const b = m[2] ? Number(m[2]) : a;
  const [low, top] = a < b ? [a, b] : [b, a];
  return low >= 1 && top <= tallest ? { unit: low, high: top - low + 1 } : undefined;
}

const cmp = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The racks of some machines, as people count them, and the machines that stand in none. */
export function racksOf(rows: Row[]): { racks: Rack[]; unplaced: Row[] } {
  const by = new Map<string, Row[]>();
  const unplaced: Row[] = [];
  for (const r of rows) {
    if (!r.rack) unplaced.push(r);
    else if (by.has(r.rack)) by.get(r.rack)!.push(r);
    else by.set(r.rack, [r]);
  }
  const racks = [...by].map(([name, of]) => rackOf(name, of));
  racks.sort((a, b) => cmp(natural(a.name), natural(b.name)));
  unplaced.sort((a, b) => cmp(natural(a.name), natural(b.name)));
  return { racks, unplaced };
}

function rackOf(name: string, rows: Row[]): Rack {
  const spans: Place[] = [];
  const others: Row[] = [];
  for (const r of rows) {
    const u = unitsOf(r.position);
    if (u) spans.push({ ...u, rows: [r] });
    else others.push(r);
  }
  // what shares a unit shares a place: halves of a chassis, or a mistake that should be seen
  spans.sort((a, b) => a.unit - b.unit || cmp(natural(a.rows[0]!.name), natural(b.rows[0]!.name)));
  const places: Place[] = [];
  for (const s of spans) {
    const last = places.at(-1);
    if (last && s.unit < last.unit + last.high) {
      last.high = Math.max(last.high, s.unit + s.high - last.unit);
      last.rows.push(...s.rows);
    } else places.push(s);
  }
  others.sort((a, b) => cmp(natural(a.position ?? ""), natural(b.position ?? "")) || cmp(natural(a.name), natural(b.name)));
  const top = places.reduce((n, p) => Math.max(n, p.unit + p.high - 1), 0);
  return { name, units: top === 0 ? 0 : Math.max(usual, top), places, others, size: rows.length };
}

/** A line of a rack's picture: a place with machines, or empty units. */
type Line = { place: Place } | { from: number; to: number };

// so many empty units in a row are drawn as one line
const fold = 4;

/** The lines of a rack, from the top. */
export function linesOf(r: Rack): Line[] {
  const out: Line[] = [];
  let top = r.units;
  for (const place of r.places.toReversed()) {
    const end = place.unit + place.high;
    if (end <= top) out.push({ from: end, to: top });
    out.push({ place });
    top = place.unit - 1;
  }
  if (top > 0) out.push({ from: 1, to: top });
  return out;
}

/** How many units high a line is drawn. */
export const height = (l: Line): number => ("place" in l ? l.place.high : l.to - l.from + 1 >= fold ? 1 : l.to - l.from + 1);

/** Whether a line stands for more empty units than it is high. */
export const folded = (l: Line): boolean => !("place" in l) && l.to - l.from + 1 >= fold;
