// Events in a list that grows at both ends: new ones as they happen, old ones on demand.
import type { Event } from "./api/types.ts";

/** What is shown of all events; empty shows everything. */
export interface EventFilter {
  machine: string;
  reason: string;
  by: string;
  /** Words that must be in the text; only what is loaded is searched. */
  text: string;
}

/** Whether an event that came is one that was asked for. Text is not looked at. */
export const wanted = (f: EventFilter, e: Event): boolean => (!f.machine || e.machine === f.machine) && (!f.reason || e.reason === f.reason) && (!f.by || e.by === f.by);

/** How many are kept in the page; the oldest go first. */
export const kept = 20_000;

/** Adds events to a list that has the newest first. One that is there already is replaced where it is: it happened again. */
export function add(list: Event[], more: Event[]): Event[] {
  if (more.length === 0) return list;
  const fresh = new Map(more.map((e) => [e.id, e]));
  const out = list.map((e) => {
    const again = fresh.get(e.id);
    if (!again) return e;
    fresh.delete(e.id);
    return again;
  });
  if (fresh.size > 0) {
    out.push(...fresh.values());
    out.sort((a, b) => (a.id < b.id ? 1 : a.id > b.id ? -1 : 0));
  }
  return out.length > kept ? out.slice(0, kept) : out;
}

/** The events that have all words of the text in what is shown of them. */
export function search(list: Event[], text: string): Event[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return list;
  return list.filter((e) => {
    const all = `${e.machine ?? ""} ${e.reason} ${e.text} ${e.workflow ?? ""} ${e.by ?? ""}`.toLowerCase();
    return words.every((w) => all.includes(w));
  });
}

/** Slice is the part of a long list that is in view, with some rows around it. */
interface Slice {
  from: number;
  to: number;
}

/** The rows in view of a list whose rows are equally high. */
export function inView(count: number, height: number, top: number, view: number, around = 12): Slice {
  const from = Math.max(0, Math.min(count, Math.floor(top / height)) - around);
  return { from, to: Math.min(count, Math.ceil((top + view) / height) + around) };
}
