// The filter of the lists of machines, from text to a test. Pure: it knows no page.
//
//   state:available,failed rack:a1 label.tier=db -hold cpus>=32 memory>=64Gi since>1h "any text"
//
// Terms are separated by spaces and must all hold; a comma is "or"; a dash before a term
// turns it round. `*` stands for any text, `~` asks for a part, any and none ask whether
// there is a value. What is in double quotes is taken as it is.
import type { Row } from "../machines.ts";
import { flags, keyOf, keys } from "./keys.ts";

/** How long a filter may be, in characters. */
export const longest = 2000;

/** How a value is compared. */
type Op = ":" | "!=" | "~" | ">" | ">=" | "<" | "<=";

/** A value as it was written. */
interface Value {
  text: string;
  quoted: boolean;
  from: number;
  to: number;
}

/** One term and where it stands in the text. */
export interface Term {
  from: number;
  to: number;
  not: boolean;
  /** Empty for text that is searched for. */
  key: string;
  /** Missing for text, a flag, and a label that must be there. */
  op?: Op;
  values: Value[];
}

/** What is wrong, and where. */
interface Wrong {
  from: number;
  to: number;
  text: string;
  /** It ends with the text: whoever types it may not be ready. */
  open?: boolean;
}

/** A filter that was read. Terms that are wrong are not in it. */
export interface Filter {
  text: string;
  terms: Term[];
  wrong: Wrong[];
}

const space = /\s/;
// a MAC or an IPv6 address is no key with a value
const address = /^(?:[0-9a-f]{2}(?:[:-][0-9a-f]{0,2}){1,5}|[0-9a-f]{0,4}:[0-9a-f:]*:[0-9a-f:.]*)$/i;
const head = /(label\.[A-Za-z0-9\-_./]+|[A-Za-z][A-Za-z0-9_.-]*)(!=|>=|<=|==|[:=~<>])/y;

/** Reads a filter. Nothing that people can type makes it throw. */
export function parse(text: string): Filter {
  const out: Filter = { text, terms: [], wrong: [] };
  if (text.length > longest) {
    out.wrong.push({ from: longest, to: text.length, text: `The filter has ${text.length} characters; it may have ${longest}.` });
    return out;
  }
  let i = 0;
  while (i < text.length) {
    if (space.test(text[i]!)) i++;
    else i = readTerm(text, i, out);
  }
  return out;
}

/** Reads the term at i and answers where it ends. */
function readTerm(text: string, from: number, out: Filter): number {
  let i = from;
  const not = (text[i] === "-" || text[i] === "!") && i + 1 < text.length && !space.test(text[i + 1]!);
  if (not) i++;
  const term: Term = { from, to: from, not, key: "", values: [] };
  if (text[i] === '"') {
    const v = readValue(text, i, out, false);
    term.to = v.to;
    term.values = [v];
    if (v.text) out.terms.push(term);
    return v.to;
  }
  const end = wordEnd(text, i);
  head.lastIndex = i;
  const m = head.exec(text);
  if (!m || address.test(text.slice(i, end))) {
    const word = text.slice(i, end);
    term.to = end;
    if (word.startsWith("label.") && word.length > 6) term.key = word;
    else if (Object.hasOwn(flags, word.toLowerCase())) term.key = word.toLowerCase();
    else term.values = [{ text: word, quoted: false, from: i, to: end }];
    out.terms.push(term);
    return end;
  }
  term.key = m[1]!.startsWith("label.") ? m[1]! : m[1]!.toLowerCase();
  term.op = (m[2] === "=" || m[2] === "==" ? ":" : m[2]) as Op;
  const before = out.wrong.length;
  i = readValues(text, i + m[0].length, term, out);
  term.to = i;
  judge(term, out, before, i - from);
  return i;
}

/** Reads values with commas between them. */
function readValues(text: string, i: number, term: Term, out: Filter): number {
  for (;;) {
    const v = readValue(text, i, out, true);
    term.values.push(v);
    i = v.to;
    if (text[i] !== ",") return i;
    i++;
  }
}

/** Reads one value, in quotes or not. */
function readValue(text: string, from: number, out: Filter, list: boolean): Value {
  if (text[from] !== '"') {
    let to = from;
    while (to < text.length && !space.test(text[to]!) && !(list && text[to] === ",")) to++;
    return { text: text.slice(from, to), quoted: false, from, to };
  }
  let s = "";
  for (let i = from + 1; i < text.length; i++) {
    if (text[i] === '"') return { text: s, quoted: true, from, to: i + 1 };
    if (text[i] === "\\" && (text[i + 1] === '"' || text[i + 1] === "\\")) i++;
    s += text[i];
  }
  out.wrong.push({ from, to: text.length, text: 'The quote has no end: close it with ".', open: true });
  return { text: s, quoted: true, from, to: text.length };
}

function wordEnd(text: string, i: number): number {
  while (i < text.length && !space.test(text[i]!)) i++;
  return i;
}

/** Takes a term with a key into the filter, or says what is wrong with it. */
function judge(term: Term, out: Filter, before: number, length: number): void {
  const wrong = (text: string, at: { from: number; to: number; open?: boolean } = { from: term.from, to: term.from + length }) => void out.wrong.push({ from: at.from, to: at.to, text, ...(at.open && { open: true }) });
  if (out.wrong.length > before) return; // a quote without end
  const key = keyOf(term.key);
  if (!key) {
    if (Object.hasOwn(flags, term.key)) return wrong(`${term.key} takes no value: write ${term.key}, or -${term.key}.`);
    const near = nearest(term.key);
    return wrong(`${term.key} is not known${near ? `; did you mean ${near}?` : "."} Labels are label.${term.key}; text with a sign in it goes in quotes.`);
  }
  const empty = term.values.find((v) => v.text === "" && !v.quoted);
  if (empty) return wrong(`A value is missing after ${term.values.length > 1 ? "the comma" : term.key + term.op}.`, { from: empty.from, to: empty.from + 1, open: empty.to === out.text.length });
  const compares = term.op !== ":" && term.op !== "!=" && term.op !== "~";
  if (compares && key.kind === "text") return wrong(`${term.key} is text: it can be compared with : != and ~ only.`);
  if (term.op === "~" && key.kind !== "text") return wrong(`~ looks for a part of a text; ${term.key} is compared with > >= < <=.`);
  if (compares && term.values.length > 1) return wrong(`${term.op} takes one value.`, term.values[1]);
  if (key.kind !== "text") {
    for (const v of term.values) {
      if (isWord(v)) continue;
      const said = quantity(key.kind, v.text);
      const at = { from: v.from, to: v.to, open: v.to === out.text.length };
      if (typeof said === "string") return wrong(`${term.key}: ${said}`, at);
      if (key.kind === "age" && !compares) return wrong(`${term.key} is a length of time: write ${term.key}>${v.text} or ${term.key}<${v.text}.`, at);
    }
  }
  out.terms.push(term);
}

const isWord = (v: Value): boolean => !v.quoted && (v.text.toLowerCase() === "any" || v.text.toLowerCase() === "none");

/** The key that was probably meant. */
function nearest(word: string): string | undefined {
  let best: string | undefined;
  let least = word.length < 4 ? 2 : 3;
  for (const k of [...Object.keys(keys), ...Object.keys(flags)]) {
    const d = distance(word.slice(0, 20), k);
    if (d < least) [best, least] = [k, d];
  }
  return best;
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
    row = next;
  }
  return row[b.length]!;
}

/** A number, a size in bytes or a length of time in milliseconds; a sentence where it is none. */
export function quantity(kind: "number" | "size" | "age", text: string): number | string {
  if (kind === "number") return /^\d{1,15}(\.\d+)?$/.test(text) ? Number(text) : `${text} is not a number.`;
  if (kind === "size") {
    const m = /^(\d{1,15}(?:\.\d+)?)([kmgtp]?)(i?)b?$/i.exec(text);
    if (!m || (m[3] && !m[2])) return `${text} is not a size: write 64Gi, 512M or 2T.`;
    return Number(m[1]) * (m[3] ? 1024 : 1000) ** " kmgtp".indexOf(m[2] ? m[2].toLowerCase() : " ");
  }
  const unit: Record<string, number> = { s: 1e3, m: 60e3, min: 60e3, h: 3600e3, d: 86400e3, w: 7 * 86400e3 };
  if (!/^(\d{1,9}(\.\d+)?(min|[smhdw]))+$/i.test(text)) return `${text} is not a length of time: write 30s, 15m, 2h, 1h30m, 3d or 1w.`;
  let total = 0;
  for (const [, n, u] of text.matchAll(/([\d.]+)(min|[smhdw])/gi)) total += Number(n) * unit[u!.toLowerCase()]!;
  return total;
}

/** A test of machines. */
export type Test = (r: Row) => boolean;

/** More of a machine in which text is searched for, in lower case. */
export type More = (r: Row) => string;

/** The terms of a filter as a test; now, in milliseconds, is what ages are measured to. */
export function compile(terms: Term[], now: number, more?: More): Test {
  // what costs least is asked first; text is searched for in everything that a machine has
  const tests = [...terms].sort((a, b) => Number(!a.key) - Number(!b.key)).map((t) => test(t, now, more));
  return (r) => {
    for (const t of tests) if (!t(r)) return false;
    return true;
  };
}

/** Whether a filter goes by the time, so that what it finds changes by itself. */
export const timed = (f: Filter): boolean => f.terms.some((t) => t.op && keyOf(t.key)?.kind === "age");

function test(t: Term, now: number, more: More | undefined): Test {
  const is = positive(t, now, more);
  const not = t.not !== (t.op === "!=");
  return not ? (r) => !is(r) : is;
}

function positive(t: Term, now: number, more: More | undefined): Test {
  if (!t.key) {
    const word = t.values[0]!.text.toLowerCase();
    return (r) => haystack(r).includes(word) || !!more?.(r).includes(word);
  }
  if (!t.op && Object.hasOwn(flags, t.key)) return flags[t.key]!.of;
  const key = keyOf(t.key)!;
  if (!t.op) return (r) => key.of(r).length > 0;
  const each = t.values.map((v): ((have: (string | number)[]) => boolean) => {
    if (isWord(v)) return v.text.toLowerCase() === "any" ? (have) => have.length > 0 && have[0] !== 0 : (have) => have.length === 0 || have[0] === 0;
    if (key.kind === "text") {
      const match = textMatch(v, t.op === "~", !!key.exact);
      return (have) => have.some((h) => match(String(h)));
    }
    const want = quantity(key.kind, v.text) as number;
    const compare = comparison(t.op!, want);
    return key.kind === "age" ? (have) => have.some((h) => compare(now - (h as number))) : (have) => have.some((h) => compare(h as number));
  });
  if (each.length === 1) {
    const f = each[0]!;
    return (r) => f(key.of(r));
  }
  return (r) => {
    const have = key.of(r);
    return each.some((f) => f(have));
  };
}

function comparison(op: Op, want: number): (have: number) => boolean {
  switch (op) {
    case ">":
      return (have) => have > want;
    case ">=":
      return (have) => have >= want;
    case "<":
      return (have) => have < want;
    case "<=":
      return (have) => have <= want;
    default:
      return (have) => have === want;
  }
}

/** Compares a text: as a whole, as a part, or by a pattern with `*`. */
function textMatch(v: Value, part: boolean, exact: boolean): (have: string) => boolean {
  const fold = (s: string) => (exact ? s : s.toLowerCase());
  const want = fold(v.text);
  if (part) return (have) => fold(have).includes(want);
  if (v.quoted || !want.includes("*")) return (have) => fold(have) === want;
  const pieces = want.split("*");
  return (have) => glob(fold(have), pieces);
}

/** Whether text is the pieces with anything between them. Linear: no pattern is slow. */
function glob(text: string, pieces: string[]): boolean {
  const first = pieces[0]!;
  const last = pieces[pieces.length - 1]!;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  for (const p of pieces.slice(1, -1)) {
    const i = text.indexOf(p, at);
    if (i < 0) return false;
    at = i + p.length;
  }
  return at <= text.length - last.length;
}

const stacks = new WeakMap<Row, string>();

/** Everything that people may look for in a machine, in lower case. */
function haystack(r: Row): string {
  let s = stacks.get(r);
  if (s === undefined) {
    const labels = Object.entries(r.labels ?? {}).map(([k, v]) => `${k}=${v}`);
    s = [r.name, r.hostname, r.state, r.address, ...(r.macs ?? [r.mac]), r.rack, r.position, r.assetTag, r.serial, r.vendor, r.product, r.arch, r.owner, r.claim, r.image, r.workflow, r.issue?.kind, r.issue?.detail, r.maintenanceNote, ...labels]
      .filter((v) => v)
      .join("\n")
      .toLowerCase();
    stacks.set(r, s);
  }
  return s;
}

/** A value as it must be written in a filter. */
export function quote(value: string): string {
  return value !== "" && !/[\s",*\\]/.test(value) && !/^(any|none)$/i.test(value) ? value : `"${value.replace(/[\\"]/g, "\\$&")}"`;
}

/** The filter with key:value in it, or without it where it is there already; other values of the key stay. */
export function toggle(text: string, key: string, value: string): string {
  const f = parse(text);
  const t = f.terms.find((t) => t.key === key && !t.not && t.op === ":");
  if (!t) return `${text.trim()} ${key}:${quote(value)}`.trim();
  const values = t.values.map((v) => ({ text: v.text, as: text.slice(v.from, v.to) }));
  const left = values.some((v) => v.text === value) ? values.filter((v) => v.text !== value) : [...values, { text: value, as: quote(value) }];
  const term = left.length > 0 ? `${key}:${left.map((v) => v.as).join(",")}` : "";
  return `${text.slice(0, t.from)}${term}${text.slice(t.to)}`.replace(/ {2,}/g, " ").trim();
}

/** The values of a key that a filter asks for. */
export const chosen = (f: Filter, key: string): string[] => f.terms.filter((t) => t.key === key && !t.not && t.op === ":").flatMap((t) => t.values.map((v) => v.text));
