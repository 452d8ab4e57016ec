// The small parts that all pages are made of.
import type { ButtonHTMLAttributes, ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { now } from "../clock.ts";
import { duration, when } from "../format.ts";
import { asProblem, askAgain, silent } from "../api/call.ts";
import type { Problem } from "../api/types.ts";

/** How urgent something is; it chooses a colour, never alone: a word or sign goes with it. */
export type Tone = "plain" | "good" | "busy" | "warn" | "bad";

/** A word in a coloured frame. */
export function Badge({ tone = "plain", children, title }: { tone?: Tone; children: ComponentChildren; title?: string | undefined }): JSX.Element {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}

const tones: Record<string, Tone> = {
  pending: "warn",
  available: "plain",
  provisioning: "busy",
  provisioned: "good",
  releasing: "busy",
  failed: "bad",
  retired: "plain",
  running: "busy",
  succeeded: "good",
  "timed-out": "bad",
  cancelled: "plain",
  error: "bad",
  warning: "warn",
  info: "plain",
};

/** The tone of a lifecycle state, a workflow's state or a severity. */
export const toneOf = (word: string): Tone => tones[word] ?? "plain";

/** A state as a badge. */
export const State = ({ of }: { of: string }): JSX.Element => <Badge tone={toneOf(of)}>{of}</Badge>;

/** How long ago something was, going on; the exact time is in its title. */
export function Since({ at, ago = false }: { at: string | undefined; ago?: boolean }): JSX.Element | null {
  if (!at) return null;
  const ms = now.value - Date.parse(at);
  return (
    <time dateTime={at} title={when(at)}>
      {duration(Math.max(0, Math.floor(ms / 1000) * 1000))}
      {ago ? " ago" : ""}
    </time>
  );
}

/** A button. While what it does is under way it cannot be pressed again and says so; a failure that its page does not show is said in the corner. */
export function Button({ onPress, kind = "plain", children, disabled, ...rest }: { onPress: () => unknown; kind?: "plain" | "primary" | "danger" | "quiet" } & Omit<ButtonHTMLAttributes<HTMLButtonElement>, "onClick">): JSX.Element {
  const [busy, setBusy] = useState(false);
  const alive = useRef(true);
  useEffect(() => () => void (alive.current = false), []);
  const press = async () => {
    setBusy(true);
    try {
      await onPress();
    } catch (err) {
      const p = asProblem(err);
      say(p.detail || p.title, "bad");
    } finally {
      if (alive.current) setBusy(false);
    }
  };
  return (
    <button type="button" {...rest} class={`button ${kind} ${rest.class ?? ""}`} disabled={disabled || busy} aria-busy={busy} onClick={press}>
      {children}
    </button>
  );
}

/** A bar that says how far something is; of === 0 is not known. */
export function Bar({ done, of, label }: { done: number; of: number; label: string }): JSX.Element {
  return of > 0 ? <progress class="bar" max={of} value={Math.min(done, of)} aria-label={label} /> : <progress class="bar" aria-label={label} />;
}

/** A problem where the user acted: what is wrong, field by field, and what to do. */
export function ProblemBox({ problem }: { problem: Problem | undefined }): JSX.Element | null {
  if (!problem) return null;
  return (
    <div class="problem" role="alert">
      <strong>{problem.detail || problem.title}</strong>
      {problem.errors && problem.errors.length > 0 && (
        <ul>
          {problem.errors.map((e) => (
            <li key={e.field}>
              <code>{e.field}</code> {e.detail}
            </li>
          ))}
        </ul>
      )}
      {problem.hint && <p class="hint">{problem.hint}</p>}
    </div>
  );
}

/** A verb's state: run() does it and keeps what went wrong. */
export function useAction(): { busy: boolean; problem: Problem | undefined; run: <T>(f: () => Promise<T>) => Promise<T | undefined>; clear: () => void } {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  return {
    busy,
    problem,
    clear: () => setProblem(undefined),
    run: async (f) => {
      setBusy(true);
      setProblem(undefined);
      try {
        return await f();
      } catch (err) {
        setProblem(asProblem(err));
        return undefined;
      } finally {
        setBusy(false);
      }
    },
  };
}

/** What is read from the API for a page, again whenever one of deps changes or reload is called, and until the appliance answers. */
export function useLoad<T>(read: (signal: AbortSignal) => Promise<T>, deps: unknown[]): { data: T | undefined; problem: Problem | undefined; loading: boolean; reload: () => void } {
  const [data, setData] = useState<T>();
  const [problem, setProblem] = useState<Problem>();
  const [loading, setLoading] = useState(true);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    setLoading(true);
    read(abort.signal)
      .then((d) => {
        if (abort.signal.aborted) return;
        setData(d);
        setProblem(undefined);
      })
      .catch((err: unknown) => {
        if (!abort.signal.aborted) setProblem(asProblem(err));
      })
      .finally(() => {
        if (!abort.signal.aborted) setLoading(false);
      });
    return () => abort.abort();
  }, [...deps, turn]);
  useEffect(() => {
    if (!silent(problem)) return;
    const timer = setTimeout(() => setTurn((n) => n + 1), askAgain);
    return () => clearTimeout(timer);
  }, [problem]);
  return { data, problem, loading, reload: () => setTurn((n) => n + 1) };
}

/** A labelled input; error and help are read with it. */
export function Field({ label, help, error, children }: { label: string; help?: ComponentChildren; error?: string | undefined; children: (props: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean | undefined }) => ComponentChildren }): JSX.Element {
  const id = useId();
  const note = help || error ? `${id}-note` : undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": note, "aria-invalid": error ? true : undefined })}
      {note && (
        <div id={note} class="note">
          {error && <span class="wrong">{error} </span>}
          {help}
        </div>
      )}
    </div>
  );
}

/** Gives the focus back to what had it; to what is around that where it is not shown any more. */
function giveBack(to: Element | null): void {
  if (!(to instanceof HTMLElement)) return;
  to.focus();
  if (document.activeElement === to) return;
  (to.closest("details")?.querySelector<HTMLElement>("summary") ?? document.getElementById("main"))?.focus({ preventScroll: true });
}

/** A modal dialog; Escape closes it, the backdrop too where nothing is typed in it. */
export function Dialog({ title, onClose, children, wide = false }: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const d = ref.current!;
    const before = document.activeElement;
    d.showModal();
    return () => {
      d.close();
      giveBack(before);
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={wide ? "wide" : ""}
      aria-labelledby={id}
      onCancel={(e) => {
        e.preventDefault();
        onClose();
      }}
      onClose={() => {
        // Escape twice closes it whatever was said before: it stays as long as its page shows it
        const d = ref.current;
        if (!d) return;
        onClose();
        setTimeout(() => ref.current === d && !d.open && d.showModal());
      }}
      onMouseDown={(e) => {
        if (e.target === ref.current && !ref.current?.querySelector("form")) onClose();
      }}
    >
      <div class="dialog">
        <header>
          <h2 id={id}>{title}</h2>
          <button type="button" class="button quiet" aria-label="Close" onClick={onClose}>
            ✕
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** A dialog before something that cannot be taken back: the word must be typed. Children say what will happen. */
export function Confirm({ title, word, verb, over = false, onClose, onConfirm, children }: { title: string; /** what must be typed; none is asked for where empty */ word: string; verb: string; /** what it is about is there no more */ over?: boolean; onClose: () => void; onConfirm: () => Promise<unknown>; children: ComponentChildren }): JSX.Element {
  const [typed, setTyped] = useState("");
  const action = useAction();
  const ready = typed.trim() === word && !over;
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (ready && !action.busy) void action.run(onConfirm);
        }}
      >
        {children}
        {word && (
          <Field label={`Type ${word} to confirm`}>
            {(p) => <input {...p} autoFocus autocomplete="off" spellcheck={false} value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />}
          </Field>
        )}
        <ProblemBox problem={action.problem} />
        <footer>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={`button ${word ? "danger" : "primary"}`} disabled={!ready || action.busy} aria-busy={action.busy}>
            {verb}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** What is shown where there is nothing: why, and what to do. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p class="title">{title}</p>
      {children}
    </div>
  );
}

/** Text that people will want elsewhere, with a button that copies it. */
export function Copy({ text }: { text: string }): JSX.Element {
  const [done, setDone] = useState(false);
  return (
    <span class="copy">
      <code>{text}</code>
      <button
        type="button"
        class="button quiet"
        aria-label={`Copy ${text}`}
        onClick={() => {
          navigator.clipboard.writeText(text).then(
            () => {
              setDone(true);
              setTimeout(() => setDone(false), 1500);
            },
            () => say("The browser does not let pages copy. Select the text and copy it.", "warn"),
          );
        }}
      >
        {done ? "✓" : "copy"}
      </button>
    </span>
  );
}

interface Said {
  id: number;
  text: string;
  tone: Tone;
}

const said = signal<Said[]>([]);
let last = 0;

/** Says in a corner, and to screen readers, that something was done. What failed is shown where it was asked for, not here. */
export function say(text: string, tone: Tone = "good"): void {
  const id = ++last;
  said.value = [...said.value.slice(-3), { id, text, tone }];
  setTimeout(() => (said.value = said.value.filter((s) => s.id !== id)), 6000);
}

/** Where say() speaks. */
export function Sayings(): JSX.Element {
  return (
    <div class="sayings" role="status" aria-live="polite">
      {said.value.map((s) => (
        <div key={s.id} class={`saying ${s.tone}`}>
          {s.text}
        </div>
      ))}
    </div>
  );
}
