// Inputs for the parameters of a template, by their types.
import type { JSX } from "preact";
import { useId } from "preact/hooks";
import type { ImageList, Parameter } from "../api/types.ts";
import { call } from "../api/call.ts";
import { Field, useLoad } from "../ui/basic.tsx";
import { Choice, Lines } from "../ui/inputs.tsx";

/** What is typed for parameters, by name. */
export type Typed = Readonly<Record<string, string>>;

/** One input for each parameter; what is wrong stands below its input. */
export function Params({ parameters, typed, onTyped, errors }: { parameters: readonly Parameter[]; typed: Typed; onTyped: (t: Typed) => void; errors: Readonly<Record<string, string>> }): JSX.Element | null {
  if (parameters.length === 0) return <p class="dim">The template has no parameters.</p>;
  return (
    // a form, so that browsers know what the password fields belong to
    <form class="columns" onSubmit={(e) => e.preventDefault()} autocomplete="off">
      {parameters.map((p) => (
        <Param key={p.name} p={p} value={typed[p.name] ?? ""} onValue={(v) => onTyped({ ...typed, [p.name]: v })} error={errors[p.name]} />
      ))}
    </form>
  );
}

/** Parameters whose values are rarely one line. */
const long = /^(userData|vendorData|metaData|network|config|content)$/;

function Param({ p, value, onValue, error }: { p: Parameter; value: string; onValue: (v: string) => void; error: string | undefined }): JSX.Element {
  const id = useId();
  const must = p.default === undefined || p.default === null;
  const label = must ? `${p.name} *` : p.name;
  const otherwise = must ? undefined : p.default === "" ? "may be left out" : p.type === "secret" ? "has a default" : `default: ${String(p.default)}`;
  const help = [p.description, otherwise].filter(Boolean).join(" · ");
  if (p.type === "bool") {
    return (
      <Choice
        label={label}
        help={help}
        error={error}
        value={value}
        onValue={onValue}
        of={[
          ["", must ? "choose" : "the default"],
          ["true", "true"],
          ["false", "false"],
        ]}
      />
    );
  }
  // a password field has one line: what is pasted there loses its line breaks, so a long secret is hidden by style
  if (long.test(p.name)) return p.type === "secret" ? <Hidden label={label} help={help} error={error} value={value} onValue={onValue} /> : <Lines label={label} help={help} error={error} value={value} onValue={onValue} rows={2} />;
  if (p.name === "image" && p.type !== "secret") {
    return (
      <Field label={label} help={help} error={error}>
        {(f) => (
          <>
            <input {...f} list={id} required={must} autocomplete="off" spellcheck={false} value={value} onInput={(e) => onValue(e.currentTarget.value)} />
            <Images id={id} />
          </>
        )}
      </Field>
    );
  }
  return (
    <Field label={label} help={help} error={error}>
      {(f) => <input {...f} type={(p.type === "secret" ? "password" : p.type === "int" ? "number" : "text") as "text"} required={must} autocomplete={p.type === "secret" ? "new-password" : "off"} spellcheck={false} value={value} onInput={(e) => onValue(e.currentTarget.value)} />}
    </Field>
  );
}

function Hidden({ label, help, error, value, onValue }: { label: string; help: string; error: string | undefined; value: string; onValue: (v: string) => void }): JSX.Element {
  return (
    <Field label={label} help={help} error={error}>
      {(f) => <textarea {...f} class="masked" rows={2} autocomplete="off" spellcheck={false} value={value} onInput={(e) => onValue(e.currentTarget.value)} />}
    </Field>
  );
}

/** The names of the images, to choose from. */
function Images({ id }: { id: string }): JSX.Element {
  const list = useLoad((signal) => call<ImageList>("GET", "/images", { signal }), []);
  return (
    <datalist id={id}>
      {(list.data?.items ?? []).map((i) => (
        <option key={i.metadata.name} value={i.metadata.name} />
      ))}
    </datalist>
  );
}
