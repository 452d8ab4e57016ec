// Files that are being uploaded. They go on whatever page is shown; leaving the site asks.
import { effect, signal, untracked } from "@preact/signals";
import { address, call, Failure, problemOf, seg, signedOut } from "./api/call.ts";
import type { Problem } from "./api/types.ts";
import { away, me } from "./session.ts";
import { say } from "./ui/basic.tsx";
import { Speed } from "./speed.ts";

/** Upload is one file on its way into an image. */
export interface Upload {
  id: number;
  /** The image's name. */
  name: string;
  file: File;
  /** Parameters of the request: checksum, format, arch, … */
  fields: Record<string, string>;
  /** away: the session has ended; it is sent again when the same person has signed in again. */
  state: "sending" | "checking" | "away" | "failed";
  sent: number;
  /** Bytes a second; 0 is not known yet. */
  rate: number;
  problem?: Problem | undefined;
}

/** Those that are under way, or failed and not put away yet. */
export const uploads = signal<Upload[]>([]);

const requests = new Map<number, XMLHttpRequest>();
let last = 0;

const change = (id: number, to: Partial<Upload>) => (uploads.value = uploads.value.map((u) => (u.id === id ? { ...u, ...to } : u)));

/** Ends an upload, or puts away one that failed. */
export function dismiss(id: number): void {
  requests.get(id)?.abort();
  requests.delete(id);
  uploads.value = uploads.value.filter((u) => u.id !== id);
}

/** Sends a file as an image's. The browser reads it piece by piece: its size does not matter. */
export function upload(name: string, file: File, fields: Record<string, string>): void {
  const id = ++last;
  uploads.value = [...uploads.value, { id, name, file, fields, state: "sending", sent: 0, rate: 0 }];
  send(id);
}

/** Sends one that failed once more. */
export function again(id: number): void {
  change(id, { state: "sending", sent: 0, rate: 0, problem: undefined });
  send(id);
}

function send(id: number): void {
  const u = uploads.peek().find((u) => u.id === id)!;
  const r = new XMLHttpRequest();
  const speed = new Speed();
  requests.set(id, r);
  r.open("PUT", address(`/images/${seg(u.name)}/blob`, u.fields));
  r.setRequestHeader("Accept", "application/json");
  r.setRequestHeader("Content-Type", "application/octet-stream");
  r.upload.onprogress = (e) => change(id, { sent: e.loaded, rate: speed.take(e.loaded, e.timeStamp) });
  r.upload.onload = () => change(id, { state: "checking", sent: u.file.size });
  r.onload = () => {
    requests.delete(id);
    if (r.status < 300) {
      dismiss(id);
      say(`${u.file.name} is here. The appliance looks at it now.`);
      finished.value++;
      return;
    }
    if (r.status === 401) {
      change(id, { state: "away" });
      signedOut();
      return;
    }
    void problemOf(new Response(r.responseText, { status: r.status, statusText: r.statusText })).then((problem) => change(id, { state: "failed", problem }));
  };
  r.onerror = () => {
    requests.delete(id);
    void why().then((problem) => change(id, problem ? { state: "failed", problem } : { state: "away" }));
  };
  r.send(u.file);
}

/** Why an upload broke off: an appliance that refuses it may end the connection before the browser reads that. Nothing where the session has ended. */
async function why(): Promise<Problem | undefined> {
  try {
    await call("GET", "/whoami");
  } catch (err) {
    if (err instanceof Failure && err.status === 401) return undefined;
  }
  return broken;
}

const broken: Problem = {
  type: "",
  title: "the upload broke off",
  status: 0,
  code: "unavailable",
  detail: "The connection was lost, or the file cannot be read any more.",
  hint: "Send it again: an upload begins anew. For a large file over a poor line put it on a web server and add it by its URL, which is resumed.",
};

/** Counts the uploads that have ended well. */
export const finished = signal(0);

effect(() => {
  if (me.value === null) untracked(() => uploads.value.forEach((u) => dismiss(u.id))); // they are of who has signed out
});

effect(() => {
  if (!away.value) untracked(() => uploads.value.forEach((u) => u.state === "away" && again(u.id)));
});

const warn = (e: BeforeUnloadEvent) => e.preventDefault();
effect(() => {
  const busy = uploads.value.some((u) => u.state !== "failed");
  if (busy) window.addEventListener("beforeunload", warn);
  else window.removeEventListener("beforeunload", warn);
});
