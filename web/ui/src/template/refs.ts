// The ${…} of templates: where they are in a text, and what they may mean.
import type { Parameter, Template, Variable } from "../api/types.ts";

/** A piece of a text: words, or the name of a parameter or variable. */
interface Piece {
  text: string;
  ref: boolean;
}

/** A text cut at its ${name}s; $${ is a literal ${, as the appliance reads it. What is no name stays text. */
export function pieces(text: string): Piece[] {
  const out: Piece[] = [];
  const add = (t: string, ref: boolean) => {
    const last = out[out.length - 1];
    if (!ref && last && !last.ref) last.text += t;
    else if (t) out.push({ text: t, ref });
  };
  let at = 0;
  for (const m of text.matchAll(/\$\$\{|\$\{([\w.-]{1,64})\}/g)) {
    add(text.slice(at, m.index), false);
    if (m[1] === undefined) add("${", false);
    else add(m[1], true);
    at = m.index + m[0].length;
  }
  add(text.slice(at), false);
  return out;
}

/** The names that the actions of a template use, with the actions that use them. */
export function uses(t: Template): Map<string, string[]> {
  const out = new Map<string, string[]>();
  for (const a of t.spec.actions) {
    for (const name of refs(a.with)) out.set(name, [...(out.get(name) ?? []), a.name]);
  }
  return out;
}

function refs(v: unknown): Set<string> {
  if (typeof v === "string") return new Set(pieces(v).filter((p) => p.ref).map((p) => p.text));
  if (v && typeof v === "object") return new Set(Object.values(v).flatMap((e) => [...refs(e)]));
  return new Set();
}

/** What a ${name} stands for, in words. */
export function meaning(name: string, parameters: readonly Parameter[], variables: readonly Variable[]): string {
  const p = parameters.find((p) => p.name === name);
  if (p) return `parameter, ${p.type || "string"}, ${p.default === undefined || p.default === null ? "must be given" : "may be left out"}${p.description ? `: ${p.description}` : ""}`;
  const v = variables.find((v) => v.name === name);
  return v ? `of the machine: ${v.means}` : "is not declared";
}

/** What is typed for parameters, as the API wants it: what is left empty is the template's default. */
export function given(parameters: readonly Parameter[], typed: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(parameters.flatMap((p) => (typed[p.name] ? [[p.name, typed[p.name]!]] : [])));
}

/** The errors of a request that are about parameters, by parameter; the rest is said elsewhere. */
export function paramErrors(errors: readonly { field: string; detail: string }[] | undefined): Record<string, string> {
  return Object.fromEntries((errors ?? []).flatMap((e) => (e.field.startsWith("spec.params.") ? [[e.field.slice("spec.params.".length), e.detail]] : [])));
}
