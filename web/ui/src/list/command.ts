// The same filter on the command line, where the appliance's own selectors can say it.
import type { Filter, Term } from "./filter.ts";

const plain = /^[A-Za-z0-9\-_./]*$/;

/** The command that lists the same machines; undefined where only the UI can find them. */
export function command(f: Filter): string | undefined {
  if (f.wrong.length > 0) return undefined;
  const selector: string[] = [];
  const states: string[] = [];
  for (const t of f.terms) {
    if (t.key === "state" && !t.not && t.op === ":" && states.length === 0 && t.values.every(literal)) states.push(...t.values.map((v) => v.text.toLowerCase()));
    else {
      const s = t.key.startsWith("label.") ? requirement(t) : undefined;
      if (s === undefined) return undefined;
      selector.push(s);
    }
  }
  const words = ["rackstrap hardware list"];
  if (selector.length > 0) words.push(`--selector ${shell(selector.join(","))}`);
  if (states.length > 0) words.push(`--state ${states.join(",")}`);
  return `${words.join(" ")} -o wide`;
}

const literal = (v: Term["values"][number]): boolean => plain.test(v.text) && (v.quoted || !/^(any|none)$/i.test(v.text));

/** A term about a label as a requirement of a selector. */
function requirement(t: Term): string | undefined {
  const label = t.key.slice(6);
  const not = t.not !== (t.op === "!=");
  const word = t.values.length === 1 && !t.values[0]!.quoted ? t.values[0]!.text.toLowerCase() : "";
  if (!t.op || word === "any" || word === "none") return not !== (word === "none") ? `!${label}` : label;
  if (t.op === "~" || !t.values.every(literal)) return undefined;
  const values = t.values.map((v) => v.text);
  return values.length === 1 ? `${label}${not ? "!=" : "="}${values[0]}` : `${label} ${not ? "notin" : "in"} (${values.join(",")})`;
}

/** A word as a shell takes it. */
const shell = (s: string): string => (/^[A-Za-z0-9\-_./=,]+$/.test(s) ? s : `'${s.replaceAll("'", "'\\''")}'`);
