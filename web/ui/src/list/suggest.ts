// What may be written at a place in a filter.
import type { Row } from "../machines.ts";
import { quote } from "./filter.ts";
import { flags, keyOf, keys, labelsOf } from "./keys.ts";

/** One offer. */
export interface Offer {
  /** What is written in place of the text between from and to. */
  insert: string;
  label: string;
  note: string;
  /** It is all of the text, and not only what is between from and to. */
  whole?: boolean;
}

/** Offers for the text between from and to. */
export interface Offers {
  from: number;
  to: number;
  items: Offer[];
}

const most = 40;

/** What may be written at a place; rows are all machines, for the values that exist. */
export function suggest(text: string, caret: number, rows: Row[]): Offers {
  const start = wordStart(text, caret);
  let from = start;
  if ((text[from] === "-" || text[from] === "!") && from < caret) from++;
  const word = text.slice(from, caret);
  const none: Offers = { from, to: caret, items: [] };
  if (word.startsWith('"')) return none;
  const m = /^(label\.[A-Za-z0-9\-_./]+|[A-Za-z]+)(!=|>=|<=|==|[:=~<>])/.exec(word);
  if (!m) return { from, to: caret, items: keyOffers(word, rows) };
  const name = m[1]!.startsWith("label.") ? m[1]! : m[1]!.toLowerCase();
  const key = keyOf(name);
  if (!key || key.kind !== "text") return none;
  const rest = word.slice(m[0].length);
  const comma = lastComma(rest);
  const begun = rest.slice(comma).replace(/^"/, "");
  return { from: from + m[0].length + comma, to: caret, items: valueOffers(name, begun, rows) };
}

/** Where the word begins in which the caret is; quotes keep spaces together. */
function wordStart(text: string, caret: number): number {
  let start = 0;
  let quoted = false;
  for (let i = 0; i < caret; i++) {
    if (text[i] === "\\" && quoted) i++;
    else if (text[i] === '"') quoted = !quoted;
    else if (!quoted && /\s/.test(text[i]!)) start = i + 1;
  }
  return Math.min(start, caret);
}

function lastComma(text: string): number {
  let at = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "\\" && quoted) i++;
    else if (text[i] === '"') quoted = !quoted;
    else if (text[i] === "," && !quoted) at = i + 1;
  }
  return at;
}

function keyOffers(begun: string, rows: Row[]): Offer[] {
  const b = begun.toLowerCase();
  const out: Offer[] = [];
  for (const [k, { note, kind }] of Object.entries(keys)) if (k.startsWith(b)) out.push({ insert: k + (kind === "text" ? ":" : ">"), label: k, note });
  for (const [k, { note }] of Object.entries(flags)) if (k.startsWith(b)) out.push({ insert: `${k} `, label: k, note });
  if ("label.".startsWith(b.slice(0, 6)) && b) {
    const want = b.slice(6);
    for (const [k, n] of labelsOf(rows)) {
      if (out.length >= most) break;
      if (k.toLowerCase().startsWith(want)) out.push({ insert: `label.${k}:`, label: `label.${k}`, note: String(n) });
    }
  }
  return out.length === 1 && out[0]!.label === begun && Object.hasOwn(flags, begun) ? [] : out;
}

function valueOffers(name: string, begun: string, rows: Row[]): Offer[] {
  const key = keyOf(name)!;
  const b = begun.toLowerCase();
  const out: Offer[] = [];
  for (const [v, n] of valuesOf(name, rows)) {
    if (out.length >= most) break;
    if (v.toLowerCase().includes(b)) out.push({ insert: quote(v), label: v, note: n.toLocaleString("en") });
  }
  out.sort((x, y) => Number(y.label.toLowerCase().startsWith(b)) - Number(x.label.toLowerCase().startsWith(b)));
  if (!begun && key.offer) out.push({ insert: "any", label: "any", note: "has one" }, { insert: "none", label: "none", note: "has none" });
  return out.length === 1 && out[0]!.label === begun ? [] : out;
}

/** The values of a key that machines have, with how many have them; the most used first. */
function valuesOf(name: string, rows: Row[]): [string, number][] {
  const key = keyOf(name);
  if (!key) return [];
  const n = new Map<string, number>();
  for (const r of rows) for (const v of key.of(r)) n.set(String(v), (n.get(String(v)) ?? 0) + 1);
  return [...n].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}
