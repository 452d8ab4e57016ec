// Views: a filter, a grouping, columns and an order that have a name. Each is a query of
// the URL, so that a link to it shows the same to everybody; names are kept in the browser.
import { signal } from "@preact/signals";

/** A view by its name. */
interface View {
  name: string;
  /** The query of the URL, as the page writes it. */
  query: string;
}

/** The parameters that make a view. */
const parts = ["q", "group", "cols", "sort"] as const;

/** The views that everybody has. */
export const builtIn: View[] = [
  { name: "All", query: "" },
  { name: "Needs attention", query: viewQuery({ q: "issue:error,warning", sort: "issue" }) },
  { name: "Moving now", query: viewQuery({ q: "moving", sort: "-since" }) },
  { name: "Free", query: viewQuery({ q: "state:available -claimed -hold -maintenance" }) },
  { name: "Pending", query: viewQuery({ q: "state:pending", cols: "name,since,mac,address,vendor,product,serial,cpus,memory,disks,issue", sort: "-since" }) },
];

/** The query of a view, in one order, so that equal views are equal texts. */
export function viewQuery(of: Partial<Record<(typeof parts)[number], string | null>>): string {
  const q = new URLSearchParams();
  for (const p of parts) if (of[p]) q.set(p, of[p]);
  return q.toString();
}

/** The view that a URL shows. */
export const viewOf = (q: URLSearchParams): string => viewQuery(Object.fromEntries(parts.map((p) => [p, q.get(p)])));

const place = "rackstrap.views";
const most = 50;

/** Reads views as they are kept; what is no view is left out. */
export function readViews(text: string | null): View[] {
  try {
    const all: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(all)) return [];
    return all
      .filter((v): v is View => typeof v === "object" && v !== null && typeof (v as View).name === "string" && typeof (v as View).query === "string" && (v as View).name !== "")
      .slice(0, most)
      .map((v) => ({ name: v.name.slice(0, 60), query: viewOf(new URLSearchParams(v.query)) }));
  } catch {
    return [];
  }
}

/** The views of this browser. */
export const saved = signal<View[]>(stored());

function stored(): View[] {
  try {
    return readViews(localStorage.getItem(place));
  } catch {
    return []; // a browser may forbid it
  }
}

function keep(views: View[]): void {
  saved.value = views;
  try {
    localStorage.setItem(place, JSON.stringify(views));
  } catch {
    // they last as long as the page
  }
}

/** Keeps a view; one of the same name is replaced. */
export const keepView = (v: View): void => keep([...saved.value.filter((s) => s.name !== v.name), v].slice(-most));

/** Forgets a view. */
export const forgetView = (name: string): void => keep(saved.value.filter((s) => s.name !== name));
