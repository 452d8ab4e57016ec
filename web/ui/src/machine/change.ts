// One change of a YAML document that leaves the rest of it as it was written.
import { isMap, parseDocument, type Document } from "yaml";

/** The keys and numbers that lead to a value. */
export type Path = (string | number)[];

/** The text with another value at a path; nothing, and what only held nothing, is taken out. */
export function changed(text: string, path: Path, value: unknown): string {
  const doc = parseDocument(text);
  const empty = value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
  if (empty) remove(doc, path);
  else doc.setIn(path, typeof value === "object" ? doc.createNode(value) : value);
  return doc.toString({ lineWidth: 0 });
}

function remove(doc: Document, path: Path): void {
  if (!doc.hasIn(path)) return;
  doc.deleteIn(path);
  const parent = path.slice(0, -1);
  const left = doc.getIn(parent);
  if (parent.length > 1 && isMap(left) && left.items.length === 0) remove(doc, parent);
}
