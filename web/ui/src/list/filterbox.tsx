// The filter of a list of machines: the text, what may be written next, and what is wrong with it.
import { computed, useComputed, useSignal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { now } from "../clock.ts";
import { row, rows, type Row } from "../machines.ts";
import { query, setQuery } from "../router.tsx";
import { compile, parse, timed, type Filter, type More, type Test } from "./filter.ts";
import { suggest, type Offer, type Offers } from "./suggest.ts";

/** A filter that people type, which is also in the URL as ?q=. */
export interface Filtering {
  text: ReadonlySignal<string>;
  filter: ReadonlySignal<Filter>;
  test: ReadonlySignal<Test>;
  /** The time that ages are measured to; it goes on in steps, and only where the filter has an age. */
  clock: ReadonlySignal<number>;
  set: (text: string) => void;
}

// ages are looked at anew this often, in milliseconds
const step = 5000;

function filtering(text: Signal<string>, more: More | undefined, changed: (t: string) => void): Filtering {
  const filter = computed(() => parse(text.value));
  const clock = computed(() => (timed(filter.value) ? Math.floor(now.value / step) * step : 0));
  return {
    text,
    filter,
    clock,
    test: computed(() => compile(filter.value.terms, clock.value, more)),
    set: (t) => {
      text.value = t;
      changed(t);
    },
  };
}

/** The filter of the page; the URL follows what is typed a moment later. More is text of machines that only this page has. */
export function useFilter(more?: More): Filtering {
  const text = useSignal(query.peek().get("q") ?? "");
  const timer = useRef(0);
  const made = useRef<Filtering>(undefined);
  const of = useRef(more);
  of.current = more;
  const url = useComputed(() => query.value.get("q") ?? "");
  const wrote = useRef(url.peek());
  useEffect(() => {
    if (url.value === wrote.current) return;
    clearTimeout(timer.current); // a link, or the way back: what was typed before it is over
    text.value = wrote.current = url.value;
  }, [url.value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  made.current ??= filtering(text, more && ((r) => of.current!(r)), () => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      wrote.current = text.peek().trim();
      setQuery({ q: wrote.current });
    }, 250);
  });
  return made.current;
}

/** The filter of one field, which is in no URL. */
export function useFieldFilter(begin: string, changed: (t: string) => void): Filtering {
  const text = useSignal(begin);
  const tell = useRef(changed);
  tell.current = changed;
  const made = useRef<Filtering>(undefined);
  made.current ??= filtering(text, undefined, (t) => tell.current(t));
  return made.current;
}

/** How many machines are offered by name at a time. */
const named = 12;

/** The machines that a filter finds, as offers of their names; none where one is named as a whole. */
function machineOffers(f: Filtering): Offer[] {
  if (row(f.text.peek().trim())) return [];
  const out: Offer[] = [];
  for (const r of rows.peek()) {
    if (out.length === named) break;
    if (f.test.peek()(r)) out.push({ insert: r.name, label: r.name, note: [r.state, r.rack && `rack ${r.rack}`, [r.vendor, r.product].filter(Boolean).join(" ")].filter(Boolean).join(", "), whole: true });
  }
  return out;
}

/** The field in which a filter is typed. Where one machine is to be named, the machines that it finds are offered first. */
export function FilterBox({ of: f, one }: { of: Filtering; /** the label of a field that names one machine */ one?: string }): JSX.Element {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [offers, setOffers] = useState<Offers>();
  const [picked, setPicked] = useState(-1);
  const [typing, setTyping] = useState(false);
  const wrong = f.filter.value.wrong.filter((w) => !w.open || !typing);
  const items = offers?.items ?? [];

  const offer = () => {
    const el = input.current!;
    const some = suggest(el.value, el.selectionStart ?? el.value.length, rows.peek() as Row[]);
    setOffers(one ? { ...some, items: [...machineOffers(f), ...some.items] } : some);
    setPicked(-1);
  };
  const take = (i: number) => {
    const o = items[i]!;
    const el = input.current!;
    if (o.whole) {
      f.set(o.insert);
      setOffers(undefined);
      return;
    }
    const before = el.value.slice(0, offers!.from) + o.insert;
    const rest = el.value.slice(offers!.to).replace(/^\S*/, "");
    const next = /[:>]$/.test(o.insert) || /^\s/.test(rest) || o.insert.endsWith(" ") ? "" : " ";
    el.value = before + next + rest;
    f.set(el.value);
    el.setSelectionRange(before.length + next.length, before.length + next.length);
    el.focus();
    if (/[:>]$/.test(o.insert)) offer();
    else setOffers(undefined);
  };
  const key = (e: KeyboardEvent) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      if (items.length === 0) offer();
      else setPicked((n) => (e.key === "ArrowDown" ? (n + 1) % items.length : (n <= 0 ? items.length : n) - 1));
    } else if (e.key === "Enter" && picked >= 0 && items.length > 0) take(picked);
    else if (e.key === "Enter") {
      setTyping(false);
      setOffers(undefined);
    } else if (e.key === "Escape" && items.length > 0) setOffers(undefined);
    else if (e.key === "Escape" && f.text.peek()) {
      f.set("");
    } else return;
    e.preventDefault();
    e.stopPropagation();
  };
  useEffect(() => {
    if (picked >= 0) document.getElementById(`${id}-${picked}`)?.scrollIntoView({ block: "nearest" });
  }, [picked]);
  return (
    <div class="finder">
      <label class={one ? undefined : "hidden-text"} for={id}>
        {one ?? "Filter"}
      </label>
      <input
        ref={input}
        id={id}
        type="search"
        role="combobox"
        list={undefined}
        aria-autocomplete="list"
        aria-expanded={items.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={picked >= 0 ? `${id}-${picked}` : undefined}
        aria-invalid={wrong.length > 0 ? true : undefined}
        aria-describedby={`${id}-wrong`}
        placeholder={one ? "name, or state:available rack:a1 …" : "Filter: state:failed rack:a1 label.tier=db -hold cpus>=32 memory>=64Gi since>1h text"}
        autocomplete="off"
        spellcheck={false}
        value={f.text.value}
        onInput={(e) => {
          setTyping(true);
          f.set(e.currentTarget.value);
          offer();
        }}
        onClick={offer}
        onKeyDown={key}
        onBlur={() => {
          setTyping(false);
          setOffers(undefined);
        }}
      />
      <ul id={`${id}-list`} role="listbox" aria-label="What may be written here" class={items.length > 0 ? "offers" : "offers none"}>
        {items.map((o, i) => (
          <li
            key={o.whole ? `machine ${o.label}` : o.label}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === picked}
            onPointerDown={(e) => {
              e.preventDefault(); // the field keeps the focus
              take(i);
            }}
          >
            <code>{o.label}</code> <small>{o.note}</small>
          </li>
        ))}
      </ul>
      <div id={`${id}-wrong`} class="wrongs" aria-live="polite">
        {wrong.map((w) => (
          <p key={`${w.from} ${w.text}`} class="wrong">
            <button type="button" class="button quiet" title="Go there" onClick={() => (input.current!.focus(), input.current!.setSelectionRange(w.from, w.to))}>
              at {w.from + 1}
            </button>{" "}
            {f.text.value.slice(w.from, w.to).trim() && (
              <>
                <mark>{f.text.value.slice(w.from, w.to).slice(0, 80)}</mark>{" "}
              </>
            )}
            {w.text} The rest of the filter is used without it.
          </p>
        ))}
      </div>
    </div>
  );
}
