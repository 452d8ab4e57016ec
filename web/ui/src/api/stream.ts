import { signal } from "@preact/signals";
import type { Event, Progress } from "./types.ts";
import { address, call } from "./call.ts";

/** Link is how the page is connected to the event stream. */
type Link = "connecting" | "live" | "lost";

/** The state of the connection, for everybody who shows it. */
export const link = signal<Link>("connecting");

/** When the connection was lost; 0 while it is there. */
export const lostAt = signal(0);

interface Listener {
  event?: (e: Event) => void;
  progress?: (p: Progress) => void;
  /** Everything must be read anew: the stream does not reach back so far. */
  relist?: () => void;
}

const listeners = new Set<Listener>();
let source: EventSource | undefined;
let cursor = 0;
let again = 0;
let wait = 500;

/** Counts the streams; an answer to one before is too late. */
let turn = 0;

/** Calls l for what the appliance says, until the answer is called. */
export function listen(l: Listener): () => void {
  listeners.add(l);
  return () => listeners.delete(l);
}

/** Follows the events after a cursor, and goes on after every interruption. */
export function follow(after: number): void {
  stop();
  cursor = after;
  open();
}

/** Ends the stream. */
export function stop(): void {
  turn++;
  clearTimeout(again);
  source?.close();
  source = undefined;
  link.value = "connecting";
  lostAt.value = 0;
}

function open(): void {
  const s = new EventSource(address("/events", { after: cursor || undefined }));
  source = s;
  s.onopen = () => {
    link.value = "live";
    lostAt.value = 0;
    wait = 500;
  };
  s.addEventListener("event", (m) => {
    cursor = Number(m.lastEventId) || cursor;
    const e = JSON.parse(m.data) as Event;
    for (const l of listeners) l.event?.(e);
  });
  s.addEventListener("progress", (m) => {
    const p = JSON.parse(m.data) as Progress;
    for (const l of listeners) l.progress?.(p);
  });
  s.addEventListener("compacted", () => {
    stop(); // the same cursor would be refused again
    for (const l of listeners) l.relist?.();
  });
  s.onerror = () => {
    // the browser's own retry does not come back from an error status, so ours is used
    s.close();
    if (source !== s) return;
    if (link.value !== "lost") {
      link.value = "lost";
      lostAt.value = Date.now();
    }
    later();
  };
}

function later(): void {
  again = window.setTimeout(() => void retry(), wait);
  wait = Math.min(wait * 2, 5000);
}

/** Opens the stream again. An event source does not tell why it failed, so the API is asked first: where the session has ended, that is said. */
async function retry(): Promise<void> {
  clearTimeout(again);
  const mine = ++turn;
  try {
    await call("GET", "/whoami");
  } catch {
    if (mine === turn) later();
    return;
  }
  if (mine === turn) open();
}

window.addEventListener("online", () => {
  if (link.value === "lost") void retry();
});
