// What is shown, as text for a file.
import type { Row } from "../machines.ts";
import type { Column } from "./columns.tsx";

/** A cell of a CSV file. A text that a spreadsheet would calculate gets an apostrophe before it: names and facts come from machines. */
export function csvCell(v: string | number): string {
  if (typeof v === "number") return String(v);
  const safe = /^[=+\-@\t\r\n]/.test(v) ? `'${v}` : v;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Rows as CSV (RFC 4180), with the columns that are shown. */
export function csv(rows: Row[], columns: Pick<Column, "key" | "text">[]): string {
  const lines = [columns.map((c) => csvCell(c.key)), ...rows.map((r) => columns.map((c) => csvCell(c.text(r))))];
  return lines.map((l) => l.join(",") + "\r\n").join("");
}
