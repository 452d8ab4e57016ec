// Inputs with their labels, for forms of many fields.
import type { ComponentChildren, JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { Button, Field } from "./basic.tsx";

interface Labelled {
  label: string;
  help?: ComponentChildren;
  error?: string | undefined;
}

interface TextProps extends Labelled {
  value: string;
  onValue: (v: string) => void;
  type?: "text" | "url" | "number" | "password";
  placeholder?: string;
  required?: boolean;
  autoFocus?: boolean;
}

/** A line of text. */
export function Text({ label, help, error, value, onValue, type = "text", ...rest }: TextProps): JSX.Element {
  return (
    <Field label={label} help={help} error={error}>
      {(p) => <input {...rest} {...p} type={type as "text"} autocomplete="off" spellcheck={false} value={value} onInput={(e) => onValue(e.currentTarget.value)} />}
    </Field>
  );
}

/** Several lines of text. */
export function Lines({ label, help, error, value, onValue, rows = 4, placeholder }: Labelled & { value: string; onValue: (v: string) => void; rows?: number; placeholder?: string }): JSX.Element {
  return (
    <Field label={label} help={help} error={error}>
      {(p) => <textarea {...p} rows={rows} placeholder={placeholder} spellcheck={false} value={value} onInput={(e) => onValue(e.currentTarget.value)} />}
    </Field>
  );
}

/** One of a few; each choice is its value and what it is called. A value that is none of them is shown too. */
export function Choice({ label, help, error, value, onValue, of }: Labelled & { value: string; onValue: (v: string) => void; of: [value: string, text: string][] }): JSX.Element {
  return (
    <Field label={label} help={help} error={error}>
      {(p) => (
        <select {...p} value={value} onChange={(e) => onValue(e.currentTarget.value)}>
          {of.map(([v, text]) => (
            <option key={v} value={v}>
              {text}
            </option>
          ))}
          {!of.some(([v]) => v === value) && <option value={value}>{value}</option>}
        </select>
      )}
    </Field>
  );
}

/** Yes or no. */
export function Tick({ label, help, checked, onValue, disabled }: { label: ComponentChildren; help?: ComponentChildren; checked: boolean; onValue: (v: boolean) => void; disabled?: boolean }): JSX.Element {
  const id = useId();
  return (
    <div class="tick">
      <input type="checkbox" id={id} checked={checked} disabled={disabled} aria-describedby={help ? `${id}-note` : undefined} onChange={(e) => onValue(e.currentTarget.checked)} />
      <div>
        <label for={id}>{label}</label>
        {help && (
          <div id={`${id}-note`} class="dim">
            {help}
          </div>
        )}
      </div>
    </div>
  );
}

/** One of a few that need a sentence each. */
export function Radios({ label, value, onValue, of }: { label: string; value: string; onValue: (v: string) => void; of: { value: string; text: ComponentChildren; help?: ComponentChildren; disabled?: boolean }[] }): JSX.Element {
  const id = useId();
  return (
    <fieldset class="radios">
      <legend>{label}</legend>
      {of.map((o) => (
        <div class="tick" key={o.value}>
          <input type="radio" name={id} id={`${id}-${o.value}`} checked={value === o.value} disabled={o.disabled} onChange={() => onValue(o.value)} />
          <div>
            <label for={`${id}-${o.value}`}>{o.text}</label>
            {o.help && <div class="dim">{o.help}</div>}
          </div>
        </div>
      ))}
    </fieldset>
  );
}

/** Names with values, such as labels. */
export function Pairs({ label, help, value, onValue, nameOf = "Name", names, add = "Add" }: { label: string; help?: ComponentChildren; value: [string, string][]; onValue: (v: [string, string][]) => void; nameOf?: string; /** those that may be chosen; any where left out */ names?: string[]; add?: string }): JSX.Element {
  const [fresh, setFresh] = useState(-1);
  const put = (i: number, pair: [string, string]) => onValue(value.map((v, j) => (i === j ? pair : v)));
  return (
    <fieldset class="pairlist">
      <legend>{label}</legend>
      {help && <div class="dim">{help}</div>}
      {value.map(([k, v], i) => (
        <div class="row" key={i}>
          {names ? (
            <select aria-label={`${nameOf} ${i + 1}`} value={k} onChange={(e) => put(i, [e.currentTarget.value, v])}>
              {[...new Set([...names, k])].map((n) => (
                <option key={n}>{n}</option>
              ))}
            </select>
          ) : (
            <input aria-label={`${nameOf} ${i + 1}`} placeholder={nameOf.toLowerCase()} autoFocus={fresh === i} spellcheck={false} value={k} onInput={(e) => put(i, [e.currentTarget.value, v])} />
          )}
          <input aria-label={`Value ${i + 1}`} placeholder="value" spellcheck={false} value={v} onInput={(e) => put(i, [k, e.currentTarget.value])} />
          <Button kind="quiet" aria-label={`Remove ${k || `line ${i + 1}`}`} onPress={() => onValue(value.filter((_, j) => j !== i))}>
            ✕
          </Button>
        </div>
      ))}
      <Button
        onPress={() => {
          setFresh(value.length);
          onValue([...value, [names?.[0] ?? "", ""]]);
        }}
      >
        {add}
      </Button>
    </fieldset>
  );
}

/** Pairs as an object, without those that have no name. */
export const fromPairs = (pairs: [string, string][]): Record<string, string> => Object.fromEntries(pairs.filter(([k]) => k.trim() !== "").map(([k, v]) => [k.trim(), v.trim()]));
