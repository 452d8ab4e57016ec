// What an attempt wrote: the end of it first, more on demand, and what comes while it runs.
// The appliance sends it as it comes, so nothing is asked for again and again.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { address, asProblem, Failure, problemOf, seg } from "../api/call.ts";
import type { Problem } from "../api/types.ts";
import { bytes } from "../format.ts";
import { lines, plain } from "../plain.ts";
import { Button, ProblemBox } from "../ui/basic.tsx";
import { after, before, step, type Shown } from "./logtext.ts";

/** How long after a followed log was cut off it is asked for again, in milliseconds. */
const again = 2000;

/** How near to the end a reader is who wants to see what comes, in pixels. */
const near = 24;

/** Which attempt: action counts from 0, attempt from 1. */
interface Place {
  workflow: string;
  action: number;
  attempt: number;
}

const pathOf = (p: Place) => `/workflows/${seg(p.workflow)}/actions/${p.action}/attempts/${p.attempt}/log`;

/** Calls to for each piece of a part of a log; the number of the byte it begins at comes first. Throws a Failure. */
async function read(place: Place, query: Record<string, number | boolean>, signal: AbortSignal, begins: (from: number, size: number) => void, to: (text: string) => void): Promise<void> {
  try {
    const answer = await fetch(address(pathOf(place), query), { signal, credentials: "same-origin", cache: "no-store" });
    if (!answer.ok || !answer.body) throw new Failure(await problemOf(answer));
    begins(Number(answer.headers.get("Rackstrap-Log-Offset")), Number(answer.headers.get("Rackstrap-Log-Size")));
    const decoder = new TextDecoder();
    const reader = answer.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      const text = decoder.decode(value, { stream: !done });
      if (text) to(text);
      if (done) return;
    }
  } catch (err) {
    if (signal.aborted || err instanceof Failure) throw err;
    throw new Failure({ type: "", title: "cut off", status: 0, code: "unavailable", detail: "The log was cut off: the appliance does not answer.", hint: "A log that is followed goes on by itself when it is back; else open it again." });
  }
}

/** The log of an attempt, read when it is opened. */
export function AttemptLog({ place, size, running, file }: { place: Place; size: number; running: boolean; file: string }): JSX.Element {
  const [open, setOpen] = useState(false);
  return (
    <details class="log" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        Log of attempt {place.attempt} <small>{size > 0 ? bytes(size) : "nothing yet"}</small>
      </summary>
      {open && <OpenLog place={place} known={size} running={running} file={file} />}
    </details>
  );
}

function OpenLog({ place, known, running, file }: { place: Place; known: number; running: boolean; file: string }): JSX.Element {
  const [shown, setShown] = useState<Shown>();
  const [size, setSize] = useState(0); // of the whole, as far as it is known
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const [following, setFollowing] = useState(running);
  const box = useRef<HTMLPreElement>(null);
  const top = useRef(0);
  const latest = useRef<Shown | undefined>(undefined);
  latest.current = shown;
  const put = (s: Shown) => {
    latest.current = s;
    setShown(s);
    setSize((n) => Math.max(n, s.next));
  };

  // the end of what is there, and then, of one that runs, what comes
  useEffect(() => {
    const abort = new AbortController();
    void follow(abort.signal);
    return () => abort.abort();
  }, [following]);

  async function follow(signal: AbortSignal): Promise<void> {
    try {
      if (!latest.current) {
        await end(signal);
        if (!following && !signal.aborted) return;
      }
    } catch (err) {
      if (signal.aborted) return;
      if (!(err instanceof Failure && err.status === 404 && running)) {
        setProblem(asProblem(err));
        return;
      }
      put({ from: 0, next: 0, text: "" });
    }
    while (following && !signal.aborted) {
      try {
        let waiting = "";
        let frame = 0;
        const show = () => {
          frame = 0;
          if (!signal.aborted && latest.current) put(after(latest.current, waiting));
          waiting = "";
        };
        await read(place, { offset: latest.current?.next ?? 0, follow: true }, signal, () => setProblem(undefined), (text) => {
          waiting += text;
          frame ||= requestAnimationFrame(show);
        });
        cancelAnimationFrame(frame);
        show();
        setFollowing(false); // it has ended
        return;
      } catch (err) {
        if (signal.aborted) return;
        setProblem(asProblem(err));
        if (err instanceof Failure && err.status >= 400 && err.status < 500) return;
        await new Promise((done) => setTimeout(done, again));
      }
    }
  }

  /** Shows the last window. */
  async function end(signal?: AbortSignal): Promise<void> {
    let s: Shown = { from: 0, next: 0, text: "" };
    await read(
      place,
      { tail: step },
      signal ?? new AbortController().signal,
      (from) => (s = { from, next: from, text: "" }),
      (text) => (s = after(s, text)),
    );
    if (!signal?.aborted) put(s);
  }

  async function press(what: () => Promise<void>): Promise<void> {
    setBusy(true);
    try {
      await what();
      setProblem(undefined);
    } catch (err) {
      setProblem(asProblem(err));
    }
    setBusy(false);
  }

  const earlier = () =>
    press(async () => {
      setFollowing(false);
      const s = latest.current!;
      const from = Math.max(0, s.from - step);
      let text = "";
      await read(place, { offset: from, limit: s.from - from }, new AbortController().signal, () => {}, (t) => (text += t));
      const old = box.current?.scrollHeight ?? 0;
      put(before(latest.current!, text));
      // what was looked at stays where it is
      requestAnimationFrame(() => box.current && (box.current.scrollTop += box.current.scrollHeight - old));
    });
  const later = () =>
    press(async () => {
      let text = "";
      await read(place, { offset: latest.current!.next, limit: step }, new AbortController().signal, (_, n) => setSize(n), (t) => (text += t));
      put(after(latest.current!, text));
    });
  const toEnd = () =>
    press(async () => {
      await end();
      if (box.current) box.current.scrollTop = box.current.scrollHeight;
      if (running) setFollowing(true);
    });

  useLayoutEffect(() => {
    if (following && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [shown, following]);
  const scrolled = (el: HTMLPreElement) => {
    const atEnd = el.scrollHeight - el.scrollTop - el.clientHeight < near;
    if (following && !atEnd && el.scrollTop < top.current) setFollowing(false);
    top.current = el.scrollTop;
  };

  const text = useMemo(() => (shown ? lines(plain(shown.text)).join("\n") : ""), [shown]);
  if (!shown) return problem ? <ProblemBox problem={problem} /> : <p class="loading">Loading…</p>;
  const whole = Math.max(size, known);
  const more = whole > shown.next;
  return (
    <div class="stack">
      <div class="row">
        {shown.from > 0 && <Button kind="quiet" disabled={busy} onPress={earlier}>{`Earlier (${bytes(shown.from)} before)`}</Button>}
        {more && !following && <Button kind="quiet" disabled={busy} onPress={later}>{`Later (${bytes(whole - shown.next)} after)`}</Button>}
        {(more || running) && !following && (
          <Button kind="quiet" disabled={busy} onPress={toEnd}>
            {running ? "Follow" : "To the end"}
          </Button>
        )}
        {following && running && <small role="status">Follows what comes; scroll up to stop</small>}
        <a href={address(pathOf(place))} download={file}>
          Download
        </a>
      </div>
      <ProblemBox problem={problem} />
      <pre class="said" tabIndex={0} role="region" aria-label={`Log of attempt ${place.attempt}`} ref={box} onScroll={(e) => scrolled(e.currentTarget)}>
        {text}
      </pre>
    </div>
  );
}
