// What may be written at a place of a template: its own keys by the OpenAPI document, the
// options of an action by its kind, and what ${ may name.
import type { Completion, CompletionContext, CompletionResult, CompletionSource } from "@codemirror/autocomplete";
import type { ActionKind, ActionKinds } from "../api/types.ts";
import { completer, options, place, type Place, type Schema } from "../ui/schema.ts";

/** A parameter that a document declares. */
interface Declared {
  name: string;
  type: string;
  description: string;
}

/** The parameters that a document declares, though it may be half written. */
export function declared(text: string): Declared[] {
  const lines = text.split("\n");
  const at = lines.findIndex((l) => /^\s*parameters\s*:/.test(l));
  if (at < 0) return [];
  const column = indent(lines[at]!);
  const out: Declared[] = [];
  let own: string[] = [lines[at]!.slice(lines[at]!.indexOf(":") + 1)];
  for (const l of lines.slice(at + 1)) {
    if (l.trim() !== "" && (indent(l) < column || (indent(l) === column && !/^\s*-/.test(l)))) break;
    own.push(l);
  }
  own = own.filter((l) => !/^\s*#/.test(l));
  for (const item of own.join("\n").split(/\n\s*-\s+|^\s*\[?\s*(?=\{)|(?<=\}),\s*(?=\{)/)) {
    const name = word(item, "name");
    if (name) out.push({ name, type: word(item, "type") || "string", description: word(item, "description") });
  }
  return out;
}

const word = (text: string, key: string): string => (new RegExp(`(?:^|[\\s{,])${key}\\s*:\\s*("[^"\\n]*"|'[^'\\n]*'|[^,}\\n]*)`).exec(text)?.[1] ?? "").trim().replace(/^["']|["']$/g, "");

const indent = (line: string): number => line.length - line.trimStart().length;

/** The kind of the action whose options are written at a position; "" where it has none yet, undefined where no options are. */
export function kindAt(text: string, pos: number): string | undefined {
  const lines = text.split("\n");
  const at = text.slice(0, pos).split("\n").length - 1;
  const column = pos - (text.lastIndexOf("\n", pos - 1) + 1);
  const line = lines[at]!;
  const same = /(?:^|[\s{,-])with\s*:\s*\{/.exec(line.slice(0, column));
  const inside = /^\s*-\s*\{/.test(line) && same;
  if (inside) return word(line, "kind");
  let key = -1;
  let here = at;
  if (same) key = line.indexOf("with", same.index);
  else {
    let limit = Math.min(column, line.trim() === "" ? column : indent(line));
    for (here = at - 1; here >= 0; here--) {
      const l = lines[here]!;
      if (l.trim() === "" || indent(l) >= limit) continue;
      const found = /^(\s*(?:-\s+)?)with\s*:\s*$/.exec(l);
      if (found) {
        key = found[1]!.length;
        break;
      }
      if (/^\s*-/.test(l)) return undefined;
      limit = indent(l);
    }
  }
  if (key < 0) return undefined;
  const kind = (l: string) => {
    const m = /^(\s*(?:-\s+)?)kind\s*:\s*["']?([\w.]*)/.exec(l);
    return m && m[1]!.length === key ? m[2] : undefined;
  };
  for (let i = here; i >= 0; i--) {
    const l = lines[i]!;
    const k = kind(l);
    if (k !== undefined) return k;
    if (/^\s*-\s/.test(l) && indent(l) < key) break;
  }
  for (let i = here + 1; i < lines.length; i++) {
    const l = lines[i]!;
    if (l.trim() !== "" && indent(l) < key) break;
    const k = kind(l);
    if (k !== undefined) return k;
  }
  return "";
}

/** Where one is in `with: {…}` on one line; undefined elsewhere. */
export function flow(text: string, pos: number): Place | undefined {
  const start = text.lastIndexOf("\n", pos - 1) + 1;
  const before = text.slice(start, pos);
  const open = /(?:^|[\s{,-])with\s*:\s*\{/.exec(before);
  if (!open) return undefined;
  const inner = before.slice(open.index + open[0].length).replace(/\$\{[^}]*\}/g, (m) => "x".repeat(m.length));
  if (/[{}]/.test(inner)) return undefined;
  const entry = inner.slice(inner.lastIndexOf(",") + 1);
  const colon = entry.indexOf(":");
  const typed = /[^\s:,{"']*$/.exec(before)![0];
  const whole = text.slice(start + open.index + open[0].length, (text + "\n").indexOf("\n", pos)).replace(/\$\{[^}]*\}/g, "");
  const present = colon < 0 ? [...whole.split("}")[0]!.matchAll(/(?:^|,)\s*([\w]+)\s*:/g)].map((m) => m[1]!) : [];
  return { path: colon < 0 ? [] : [entry.slice(0, colon).trim()], writes: colon < 0 ? "key" : "value", from: pos - typed.length, present };
}

/** The ${ that is being written before a position: where its name begins. */
export function reference(text: string, pos: number): number | undefined {
  const m = /(\$?)\$\{([\w.-]*)$/.exec(text.slice(text.lastIndexOf("\n", pos - 1) + 1, pos));
  return m && !m[1] ? pos - m[2]!.length : undefined;
}

/** What may be written at a position, and where it begins; null where nothing is known. */
export function offers(text: string, pos: number, about: ActionKinds): { from: number; options: Completion[] } | null {
  const ref = reference(text, pos);
  if (ref !== undefined) {
    const closed = text.slice(pos).startsWith("}");
    return { from: ref, options: names(text, about).map((n) => ({ ...n, apply: n.label + (closed ? "" : "}") })) };
  }
  const p = flow(text, pos) ?? place(text, pos);
  if (p && p.path.join(".") === "spec.actions.[].kind") {
    return { from: p.from, options: about.items.map((k) => ({ label: k.kind, type: "enum", info: `${k.does}${k.last ? " The last action." : ""}` })) };
  }
  const kind = kindAt(text, pos);
  if (!p || kind === undefined) return null;
  const inWith = p.path[0] === "spec" ? p.path.slice(p.path.indexOf("with") + 1) : p.path;
  const known = about.items.find((k) => k.kind === kind);
  const found = known ? options({}, optionsOf(known), { ...p, path: inWith }) : [];
  if (p.writes === "value" && inWith.length > 0) {
    const quoted = /["']$/.test(text.slice(0, p.from));
    found.push(...names(text, about).map((n) => ({ ...n, label: `\${${n.label}}`, apply: quoted ? `\${${n.label}}` : `"\${${n.label}}"`, boost: -1 })));
  }
  return { from: p.from, options: found };
}

/** The schema of the options of a kind. */
const optionsOf = (k: ActionKind): Schema => k.options as Schema;

function names(text: string, about: ActionKinds): Completion[] {
  return [
    ...declared(text).map((p) => ({ label: p.name, type: "variable", detail: `parameter, ${p.type}`, ...(p.description ? { info: p.description } : {}), boost: 1 })),
    ...about.variables.map((v) => ({ label: v.name, type: "constant", detail: "built in", info: v.means })),
  ];
}

const template = completer("Template");

/** Completes the YAML of a template; about() tells what actions can do. */
export function templateCompleter(about: () => Promise<ActionKinds>): CompletionSource {
  return async (c: CompletionContext): Promise<CompletionResult | null> => {
    const text = c.state.doc.toString();
    try {
      const found = offers(text, c.pos, await about());
      if (found) return found.options.length > 0 && (c.explicit || c.pos > found.from || reference(text, c.pos) !== undefined) ? { from: found.from, options: found.options, validFor: /^[\w.-]*$/ } : null;
    } catch {
      return null; // writing goes on without help
    }
    return await template(c);
  };
}
