// What may be written at a place of a YAML document, by the appliance's own OpenAPI
// document.
import type { Completion, CompletionContext, CompletionResult, CompletionSource } from "@codemirror/autocomplete";
import { Failure, problemOf } from "../api/call.ts";

/** Schema is a JSON Schema, as far as the appliance's document uses it. */
export interface Schema {
  $ref?: string;
  type?: string;
  format?: string;
  description?: string;
  enum?: string[];
  const?: string;
  examples?: unknown[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema;
}

/** Schemas are all of a document, by name. */
export type Schemas = Record<string, Schema>;

let fetched: Promise<Schemas> | undefined;

/** All schemas of the appliance, fetched once. Throws a Failure. */
function schemas(): Promise<Schemas> {
  fetched ??= fetch("/openapi.json", { credentials: "same-origin" })
    .then(async (r) => {
      if (!r.ok) throw new Failure(await problemOf(r));
      return ((await r.json()) as { components: { schemas: Schemas } }).components.schemas;
    })
    .catch((err: unknown) => {
      fetched = undefined; // the next one asks again
      throw err;
    });
  return fetched;
}

/** Place is where a position in a document is. */
export interface Place {
  /** The keys above it; "[]" is an entry of a list. */
  path: string[];
  /** Whether a key is written there, or the value of the last key of path. */
  writes: "key" | "value";
  /** Where the word begins that is being written. */
  from: number;
  /** The column of its key; nothing where it is not on a line of its own. */
  column?: number;
  /** The keys that its mapping has already. */
  present: string[];
}

interface Token {
  col: number;
  /** A key's name; undefined is the dash of a list. */
  key: string | undefined;
}

const keyed = /^("[^"]*"|'[^']*'|[\w$.\/-]+)\s*:(?:\s|$)/;

/** The dashes and the key at the start of a line. */
function tokens(line: string): Token[] {
  const out: Token[] = [];
  let col = line.length - line.trimStart().length;
  while (/^-(\s|$)/.test(line.slice(col))) {
    out.push({ col, key: undefined });
    const rest = line.slice(col + 1);
    col += 1 + rest.length - rest.trimStart().length;
  }
  const key = keyed.exec(line.slice(col));
  if (key) out.push({ col, key: key[1]!.replace(/^["']|["']$/g, "") });
  return out;
}

const isContent = (line: string) => line.trim() !== "" && !/^\s*#/.test(line);

/** Where a position is; undefined inside a comment or a flow collection. A document that is being written is rarely whole, so it goes by indentation. */
export function place(text: string, pos: number): Place | undefined {
  const start = text.lastIndexOf("\n", pos - 1) + 1;
  const before = text.slice(start, pos);
  if (/(^|\s)#/.test(before) || /[[{]/.test(before)) return undefined;
  const lines = text.split("\n");
  const at = text.slice(0, start).split("\n").length - 1;
  const mine = tokens(before);
  const lastKey = mine[mine.length - 1]?.key;
  const path: string[] = [];
  let limit: number;
  let dash = false;
  let dashes: Token[];
  const writes = lastKey === undefined ? "key" : "value";
  if (lastKey !== undefined) {
    path.push(lastKey);
    limit = mine[mine.length - 1]!.col;
    dashes = mine.slice(0, -1);
  } else {
    const last = mine[mine.length - 1];
    const rest = last ? before.slice(last.col + 1) : before;
    limit = (last ? last.col + 1 : 0) + rest.length - rest.trimStart().length;
    dashes = mine;
  }
  const column = limit;
  for (const d of dashes.reverse()) {
    path.unshift("[]");
    limit = d.col;
    dash = true;
  }
  for (let i = at - 1; i >= 0 && (limit > 0 || dash); i--) {
    const line = lines[i]!;
    if (line === "---") break;
    if (!isContent(line)) continue;
    for (const t of tokens(line).reverse()) {
      if (t.key === undefined ? t.col < limit : t.col < limit || (dash && t.col === limit)) {
        path.unshift(t.key ?? "[]");
        limit = t.col;
        dash = t.key === undefined;
      }
    }
  }
  const word = /[^\s:]*$/.exec(before)![0];
  return { path, writes, from: pos - word.length, column, present: writes === "key" ? siblings(lines, at, column) : [] };
}

/** The keys of the mapping around a line whose keys begin in a column. */
function siblings(lines: string[], at: number, column: number): string[] {
  const out: string[] = [];
  const take = (i: number): boolean => {
    const line = lines[i]!;
    if (!isContent(line)) return true;
    const all = tokens(line);
    const key = all.find((t) => t.key !== undefined && t.col === column);
    if (key && i !== at) out.push(key.key!);
    const first = line.length - line.trimStart().length;
    return first >= column;
  };
  if (!/^\s*-\s/.test(lines[at]!)) for (let i = at - 1; i >= 0 && take(i); i--);
  for (let i = at + 1; i < lines.length && (lines[i]!.length - lines[i]!.trimStart().length >= column || !isContent(lines[i]!)); i++) take(i);
  return out;
}

/** The schema at a path below one; undefined where anything may stand. */
export function below(all: Schemas, from: Schema | undefined, path: string[]): Schema | undefined {
  let s = resolve(all, from);
  for (const p of path) {
    if (!s) return undefined;
    s = resolve(all, p === "[]" ? s.items : (s.properties?.[p] ?? s.additionalProperties));
  }
  return s;
}

/** The schema that a reference means. */
function resolve(all: Schemas, s: Schema | undefined): Schema | undefined {
  for (let i = 0; s?.$ref && i < 10; i++) {
    const to: Schema | undefined = all[s.$ref.replace("#/components/schemas/", "")];
    s = to && s.description && !to.description ? { ...to, description: s.description } : to;
  }
  return s;
}

/** What may be written at a place. */
export function options(all: Schemas, root: Schema | undefined, p: Place): Completion[] {
  if (p.writes === "value") return values(below(all, root, p.path));
  const s = below(all, root, p.path);
  const indent = p.column === undefined ? undefined : " ".repeat(p.column + 2);
  return Object.entries(s?.properties ?? {})
    .filter(([k]) => !p.present.includes(k))
    .map(([k, raw]) => {
      const v = resolve(all, raw) ?? {};
      const list = v.type === "array";
      const map = v.properties !== undefined || v.additionalProperties !== undefined;
      const info = raw.description ?? v.description;
      return {
        label: k,
        type: "property",
        detail: (list ? "list" : (v.enum?.join(" | ").slice(0, 40) ?? v.format ?? v.type ?? "")) + (s?.required?.includes(k) ? ", needed" : ""),
        ...(info ? { info } : {}),
        apply: indent === undefined || !(list || map) ? `${k}: ` : `${k}:\n${indent}${list ? "- " : ""}`,
        boost: s?.required?.includes(k) ? 1 : 0,
      };
    });
}

function values(s: Schema | undefined): Completion[] {
  if (!s) return [];
  const words = s.const ? [s.const] : (s.enum ?? (s.type === "boolean" ? ["true", "false"] : (s.examples ?? []).map(String)));
  return words.filter((w) => w !== "").map((w) => ({ label: w, type: s.enum ? "enum" : "constant" }));
}

/** Completes the YAML of one kind of record, like Hardware or Template. Loads the schemas when it is asked first. */
export function completer(kind: string): CompletionSource {
  return async (c: CompletionContext): Promise<CompletionResult | null> => {
    const p = place(c.state.doc.toString(), c.pos);
    if (!p || (!c.explicit && c.pos === p.from && p.writes === "key")) return null;
    try {
      const all = await schemas();
      const found = options(all, all[kind], p);
      return found.length > 0 ? { from: p.from, options: found, validFor: /^[\w.-]*$/ } : null;
    } catch {
      return null; // writing goes on without help
    }
  };
}
