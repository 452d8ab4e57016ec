// Secrets that somebody typed into a record, hidden where the record is shown for review:
// people look over shoulders and share their screens.
import { isAlias, isMap, isNode, isSeq, parseDocument, type Node } from "yaml";

/** What the appliance shows in place of a secret that it has. */
const kept = "(redacted)";

/** What stands in place of one that is new. */
const fresh = "(new secret)";

/** The YAML of a record with the secrets in it hidden; the rest is as it was written. */
export function masked(text: string): string {
  const doc = parseDocument(text);
  if (doc.errors.length > 0) return "# This cannot be read here, and may have secrets in it: it is not shown.\n";
  const hidden = new Set<Node>();
  const hide = (v: unknown) => {
    const node = isAlias(v) ? v.resolve(doc) : v;
    if (isNode(node)) hidden.add(node);
  };
  hide(doc.getIn(["spec", "power", "secret"], true));
  hide(doc.getIn(["spec", "userData"], true));
  const parameters = doc.getIn(["spec", "parameters"]);
  for (const p of isSeq(parameters) ? parameters.items : []) if (isMap(p) && p.get("type") === "secret") hide(p.get("default", true));
  // from the end, so that what comes before stays where it is
  let out = text;
  for (const node of [...hidden].sort((a, b) => b.range![0] - a.range![0])) {
    const [from, to] = node.range!;
    const was = text.slice(from, to);
    const said = String(node.toJSON() ?? "");
    if (said !== "" && said !== kept) out = out.slice(0, from) + fresh + (was.endsWith("\n") ? "\n" : "") + out.slice(to);
  }
  return out;
}
