import type { Problem } from "./types.ts";

/** Failure is what every call throws that does not succeed: the API's problem, or a connection that was lost (status 0). */
export class Failure extends Error {
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(problem.detail || problem.title);
    this.problem = problem;
  }
  get status(): number {
    return this.problem.status;
  }
}

/** Options of a call. */
interface Call {
  query?: Record<string, string | number | boolean | undefined>;
  /** Sent as JSON; a string as YAML; a Blob as it is. */
  body?: unknown;
  /** The revision that must still be there. */
  ifMatch?: number | undefined;
  signal?: AbortSignal | undefined;
}

const listeners = new Set<() => void>();

/** Tells that an answer said that nobody is signed in; call does it by itself. */
export function signedOut(): void {
  listeners.forEach((f) => f());
}

/** Calls f whenever an answer says that nobody is signed in. */
export function onSignedOut(f: () => void): void {
  listeners.add(f);
}

/** How soon what could not be read is asked for again when the appliance does not answer, in milliseconds. */
export const askAgain = 2000;

/** Whether the appliance did not answer at all. */
export const silent = (p: Problem | undefined): boolean => p?.status === 0 && p.code === "unavailable";

/** The API's answer to a request below /api/v1; undefined where it has no body. Throws a Failure. */
export async function call<T>(method: string, path: string, o: Call = {}): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  let body: BodyInit | undefined;
  if (o.body instanceof Blob) {
    body = o.body;
    headers["Content-Type"] = "application/octet-stream";
  } else if (typeof o.body === "string") {
    body = o.body;
    headers["Content-Type"] = "application/yaml";
  } else if (o.body !== undefined) {
    body = JSON.stringify(o.body);
    headers["Content-Type"] = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  }
  if (o.ifMatch) headers["If-Match"] = `"${o.ifMatch}"`;
  let answer: Response;
  try {
    answer = await fetch(address(path, o.query), { method, headers, body: body ?? null, signal: o.signal ?? null, credentials: "same-origin", cache: "no-store" });
  } catch (err) {
    if (o.signal?.aborted) throw err;
    throw new Failure({ type: "", title: "no answer", status: 0, code: "unavailable", detail: "The appliance does not answer.", hint: "The page goes on by itself when it is back. On the appliance: systemctl status rackstrap" });
  }
  if (answer.ok) {
    return (answer.status === 204 ? undefined : await answer.json()) as T;
  }
  const failure = new Failure(await problemOf(answer));
  if (answer.status === 401) signedOut();
  throw failure;
}

/** The URL of a path below /api/v1. */
export function address(path: string, query: Call["query"] = {}): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(query)) {
    if (v !== undefined && v !== "") q.set(k, String(v));
  }
  const text = q.toString();
  return `/api/v1${path}${text ? `?${text}` : ""}`;
}

/** A segment of a path: names come from people and machines. */
export function seg(name: string): string {
  return encodeURIComponent(name);
}

/** The problem of an answer that is not a success. */
export async function problemOf(answer: Response): Promise<Problem> {
  const plain: Problem = { type: "", title: answer.statusText || "failed", status: answer.status, code: "internal", detail: `The appliance answered ${answer.status}.` };
  try {
    return { ...plain, ...((await answer.json()) as Problem) };
  } catch {
    return plain;
  }
}

/** What a thing that was thrown is, as a problem that can be shown. */
export function asProblem(err: unknown): Problem {
  if (err instanceof Failure) return err.problem;
  return { type: "", title: "failed", status: 0, code: "internal", detail: err instanceof Error ? err.message : String(err), hint: "Reload the page; if it stays so, it is a defect of the UI." };
}
