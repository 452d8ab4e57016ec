// The list of events: live, filtered, searched, paused, older ones on demand.
import type { JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Event, EventList, Problem } from "../api/types.ts";
import { asProblem, call } from "../api/call.ts";
import { listen } from "../api/stream.ts";
import { add, inView, search, wanted, type EventFilter } from "../eventlog.ts";
import { when } from "../format.ts";
import { rows } from "../machines.ts";
import { Link, query, setQuery } from "../router.tsx";
import { Button, Empty, ProblemBox } from "./basic.tsx";
import { Reason, reasons } from "./reason.tsx";

const page = 300;

interface Log {
  events: Event[];
  problem: Problem | undefined;
  loading: boolean;
  /** Nothing older is kept. */
  whole: boolean;
  paused: boolean;
  /** How many came while paused. */
  held: number;
  older: () => Promise<void>;
  pause: (on: boolean) => void;
}

function useLog(f: EventFilter): Log {
  const [events, setEvents] = useState<Event[]>([]);
  const [problem, setProblem] = useState<Problem>();
  const [loading, setLoading] = useState(true);
  const [whole, setWhole] = useState(false);
  const [paused, setPaused] = useState(false);
  const [held, setHeld] = useState(0);
  const waiting = useRef<Event[]>([]);
  const stopped = useRef(false);
  const ask = (before: string | undefined, signal?: AbortSignal) =>
    call<EventList>("GET", "/events", { query: { hardware: f.machine, reason: f.reason, by: f.by, limit: page, before }, signal });
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    let came: Event[] = [];
    const read = () => {
      setLoading(true);
      ask(undefined, abort.signal)
        .then(
          (l) => {
            setEvents((was) => add(was, l.items));
            setWhole(l.items.length < page);
            setProblem(undefined);
          },
          (err: unknown) => !abort.signal.aborted && setProblem(asProblem(err)),
        )
        .finally(() => !abort.signal.aborted && setLoading(false));
    };
    setEvents([]);
    waiting.current = [];
    setHeld(0);
    read();
    const flush = () => {
      timer = 0;
      const some = came;
      came = [];
      if (stopped.current) {
        waiting.current = add(waiting.current, some);
        setHeld(waiting.current.length);
      } else setEvents((was) => add(was, some));
    };
    const end = listen({
      event: (e) => {
        if (!wanted(f, e)) return;
        came.push(e);
        timer ||= window.setTimeout(flush, 50); // many at once are one drawing, in a hidden page too
      },
      relist: () => {
        setEvents([]); // between what is here and what comes now something is missing
        read();
      },
    });
    return () => {
      abort.abort();
      clearTimeout(timer);
      end();
    };
  }, [f.machine, f.reason, f.by]);
  return {
    events,
    problem,
    loading,
    whole,
    paused,
    held,
    older: async () => {
      const oldest = events[events.length - 1]?.id;
      try {
        const l = await ask(oldest);
        setEvents((was) => add(was, l.items));
        setWhole(l.items.length < page);
        setProblem(undefined);
      } catch (err) {
        setProblem(asProblem(err));
      }
    },
    pause: (on) => {
      stopped.current = on;
      setPaused(on);
      if (on) return;
      const some = waiting.current;
      waiting.current = [];
      setHeld(0);
      setEvents((was) => add(was, some));
    },
  };
}

/** The events of one machine, or of all where machine is undefined. The filter is in the URL. */
export function Events({ machine }: { machine?: string }): JSX.Element {
  const q = query.value;
  const f: EventFilter = { machine: machine ?? q.get("machine") ?? "", reason: q.get("reason") ?? "", by: q.get("by") ?? "", text: q.get("q") ?? "" };
  const log = useLog(f);
  const shown = useMemo(() => search(log.events, f.text), [log.events, f.text]);
  return (
    <div class="stack">
      <Filter f={f} fixed={machine !== undefined} events={log.events} />
      <div class="row">
        <Button aria-pressed={log.paused} onPress={() => log.pause(!log.paused)}>
          {log.paused ? `Go on${log.held > 0 ? ` (${log.held} new)` : ""}` : "Pause"}
        </Button>
        <span class="dim">
          {log.loading ? "Loading…" : `${shown.length.toLocaleString("en")} events${f.text ? ` of ${log.events.length.toLocaleString("en")} that are loaded` : ""}${log.paused ? ", paused" : ""}`}
        </span>
      </div>
      <ProblemBox problem={log.problem} />
      {shown.length > 0 && <Table events={shown} machine={machine === undefined} />}
      {!log.loading && !log.problem && shown.length === 0 && (
        <Empty title={f.reason || f.by || f.machine || f.text ? "No event fits the filter" : "Nothing has happened yet"}>
          <p>What happens is shown here as it happens.</p>
        </Empty>
      )}
      {!log.whole && !log.loading && log.events.length > 0 && <Button onPress={log.older}>Show older events</Button>}
    </div>
  );
}

function Filter({ f, fixed, events }: { f: EventFilter; fixed: boolean; events: Event[] }): JSX.Element {
  const id = useId();
  const [words, setWords] = useState<string[]>([]);
  useEffect(() => {
    reasons().then(
      (all) => setWords([...all.keys()]),
      () => {}, // the field works without suggestions
    );
  }, []);
  const people = useMemo(() => [...new Set(events.flatMap((e) => (e.by ? [e.by] : [])))].sort(), [events]);
  const names = fixed || !f.machine ? [] : rows.value.filter((r) => r.name.startsWith(f.machine)).slice(0, 20);
  return (
    <form class="filter" role="search" aria-label="Events" onSubmit={(e) => e.preventDefault()}>
      {!fixed && (
        <label>
          Machine
          <Word name="machine" value={f.machine} list={`${id}-m`} suggestions={names.map((r) => r.name)} />
        </label>
      )}
      <label>
        Reason
        <Word name="reason" value={f.reason} list={`${id}-r`} suggestions={words} />
      </label>
      <label>
        By
        <Word name="by" value={f.by} list={`${id}-b`} suggestions={people} />
      </label>
      <label class="grow">
        Text
        <input type="search" value={f.text} placeholder="in what is loaded" onInput={(e) => setQuery({ q: e.currentTarget.value })} />
      </label>
    </form>
  );
}

/** A word of the filter; it counts when it was left or chosen, since half a word is none. */
function Word({ name, value, list, suggestions }: { name: string; value: string; list: string; suggestions: string[] }): JSX.Element {
  return (
    <>
      <input
        value={value}
        list={list}
        spellcheck={false}
        autocomplete="off"
        onInput={(e) => {
          const v = e.currentTarget.value;
          if (v === "" || suggestions.includes(v)) setQuery({ [name]: v });
        }}
        onChange={(e) => setQuery({ [name]: e.currentTarget.value.trim() })}
      />
      <datalist id={list}>
        {suggestions.map((s) => (
          <option key={s} value={s} />
        ))}
      </datalist>
    </>
  );
}

const rowHeight = 32;

function Table({ events, machine }: { events: Event[]; machine: boolean }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [view, setView] = useState(800);
  const first = useRef(events[0]?.id);
  useLayoutEffect(() => {
    const b = box.current!;
    const watch = new ResizeObserver(() => setView(b.clientHeight));
    watch.observe(b);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    // who reads further down is not moved by what comes in above
    const was = events.findIndex((e) => e.id === first.current);
    if (was > 0 && box.current!.scrollTop > rowHeight) box.current!.scrollTop += was * rowHeight;
    first.current = events[0]?.id;
  }, [events]);
  const { from, to } = inView(events.length, rowHeight, top, view);
  return (
    <div class="scroll log" ref={box} tabIndex={0} role="region" aria-label="Events, the newest first" onScroll={(e) => setTop(e.currentTarget.scrollTop)}>
      <table class="events" aria-rowcount={events.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">When</th>
            {machine && <th scope="col">Machine</th>}
            <th scope="col">Reason</th>
            <th scope="col">By</th>
            <th scope="col" class="num">
              Times
            </th>
            <th scope="col">What happened</th>
          </tr>
        </thead>
        <tbody>
          {from > 0 && <tr aria-hidden="true" style={{ height: `${from * rowHeight}px` }} />}
          {events.slice(from, to).map((e, i) => (
            <tr key={e.id} aria-rowindex={from + i + 2}>
              <td>
                <time dateTime={e.last}>{when(e.last)}</time>
              </td>
              {machine && <td>{e.machine ? <Link to={`/machines/${encodeURIComponent(e.machine)}`}>{e.machine}</Link> : <span class="dim">appliance</span>}</td>}
              <td>
                <Reason of={e.reason} />
              </td>
              <td>{e.by}</td>
              <td class="num" title={e.count > 1 ? `first ${when(e.first)}` : undefined}>
                {e.count > 1 ? `${e.count}×` : ""}
              </td>
              <td>{e.text}</td>
            </tr>
          ))}
          {to < events.length && <tr aria-hidden="true" style={{ height: `${(events.length - to) * rowHeight}px` }} />}
        </tbody>
      </table>
    </div>
  );
}
