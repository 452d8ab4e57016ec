// A machine's record as a form. It changes the YAML of the record, so that comments and
// what the form does not have stay as they are.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { parseDocument } from "yaml";
import type { Hardware, Problem } from "../api/types.ts";
import { Button, Field } from "../ui/basic.tsx";
import type { FormProps } from "../ui/record.tsx";
import { changed, type Path } from "./change.ts";

type Spec = Partial<Hardware["spec"]>;

/** The form. */
export function HardwareForm({ value, onChange, problem }: FormProps): JSX.Element {
  const doc = parseDocument(value);
  if (doc.errors.length > 0) return <p class="notice">{`The YAML cannot be read, so there is no form of it: ${doc.errors[0]!.message.split("\n")[0]}`}</p>;
  const record = (doc.toJS() ?? {}) as { metadata?: { labels?: Record<string, string> }; spec?: Spec };
  const spec = record.spec ?? {};
  const set = (path: Path, v: unknown) => onChange(changed(value, path, v));
  const error = (field: string) => problem?.errors?.find((e) => e.field === field || e.field.startsWith(`${field}[`) || e.field.startsWith(`${field}.`))?.detail;
  const part = { spec, set, error };
  return (
    <form class="record" onSubmit={(e) => e.preventDefault()}>
      <fieldset class="card">
        <legend>Name and place</legend>
        <Text {...part} label="Host name" at={["spec", "hostname"]} of={spec.hostname} help="Of the installed system; the record's name where it is empty." />
        <Text {...part} label="Rack" at={["spec", "rack"]} of={spec.rack} />
        <Text {...part} label="Position" at={["spec", "position"]} of={spec.position} help="A unit or slot, as people call it." />
        <Text {...part} label="Asset tag" at={["spec", "assetTag"]} of={spec.assetTag} />
        <ListText label="Labels" help="One key=value a line." of={Object.entries(record.metadata?.labels ?? {}).map(([k, v]) => `${k}=${v}`)} error={error("metadata.labels")} onChange={(l) => set(["metadata", "labels"], labelsOf(l))} />
      </fieldset>
      <fieldset class="card">
        <legend>Netboot</legend>
        <Switch label="May netboot (allowPXE)" on={spec.netboot?.allowPXE !== false} onChange={(on) => set(["spec", "netboot", "allowPXE"], on ? undefined : false)} />
        <Switch label="Workflows may begin (allowWorkflow)" on={spec.netboot?.allowWorkflow !== false} onChange={(on) => set(["spec", "netboot", "allowWorkflow"], on ? undefined : false)} />
        <Switch label="Protected: nothing is written to its disks" on={spec.protect === true} onChange={(on) => set(["spec", "protect"], on || undefined)} />
        <Choice label="Secure Boot" of={spec.netboot?.secureBoot ?? ""} options={{ "": "by its facts and earlier boots (auto)", on: "on", off: "off" }} error={error("spec.netboot.secureBoot")} onChange={(v) => set(["spec", "netboot", "secureBoot"], v)} />
        <Choice label="Architecture" of={spec.arch ?? ""} options={{ "": "amd64", arm64: "arm64" }} error={error("spec.arch")} onChange={(v) => set(["spec", "arch"], v)} />
        <ListText label="Kernel consoles" help="One a line, like ttyS1,115200; the last one is /dev/console." of={spec.netboot?.consoles ?? []} error={error("spec.netboot.consoles")} onChange={(l) => set(["spec", "netboot", "consoles"], l)} />
      </fieldset>
      <fieldset class="card">
        <legend>Power</legend>
        <Choice
          label="Switched by"
          of={spec.power?.driver ?? "manual"}
          options={{ manual: "a person", webhook: "a webhook" }}
          error={error("spec.power.driver")}
          onChange={(v) => set(["spec", "power"], v === "manual" ? undefined : { driver: v, url: "", secret: "" })}
        />
        {spec.power && spec.power.driver !== "manual" && (
          <>
            <Text {...part} label="URL" at={["spec", "power", "url"]} of={spec.power.url} help="Calls are POSTed there." />
            <Text {...part} label="Secret" at={["spec", "power", "secret"]} of={spec.power.secret} secret help="Signs the calls. (redacted) stays what it is." />
          </>
        )}
      </fieldset>
      <fieldset class="card">
        <legend>For the installed system</legend>
        <ListText label="SSH keys" help="One a line; they are for the default user." of={spec.sshKeys ?? []} error={error("spec.sshKeys")} onChange={(l) => set(["spec", "sshKeys"], l)} />
        <p class="dim">{spec.userData ? "User-data is set; it reads (redacted) and stays as it is. Replace it in the YAML." : "User-data is set in the YAML, as spec.userData."}</p>
      </fieldset>
      <fieldset class="card">
        <legend>Notes</legend>
        <Field label="For people" error={error("spec.notes")}>
          {(p) => <textarea {...p} rows={4} value={spec.notes ?? ""} onChange={(e) => set(["spec", "notes"], e.currentTarget.value)} />}
        </Field>
      </fieldset>
      <Ports {...part} problem={problem} />
    </form>
  );
}

function labelsOf(lines: string[]): Record<string, string> | undefined {
  if (lines.length === 0) return undefined;
  return Object.fromEntries(
    lines.map((l) => {
      const i = l.indexOf("=");
      return i < 0 ? [l, ""] : [l.slice(0, i).trim(), l.slice(i + 1).trim()];
    }),
  );
}

interface Part {
  spec: Spec;
  set: (path: Path, value: unknown) => void;
  error: (field: string) => string | undefined;
}

function Text({ label, at, of, help, secret, set, error }: Part & { label: string; at: Path; of: string | undefined; help?: string; secret?: boolean }): JSX.Element {
  return (
    <Field label={label} help={help} error={error(at.join("."))}>
      {(p) => {
        const rest = { ...p, spellcheck: false, autocomplete: "off", value: of ?? "", onInput: (e: { currentTarget: HTMLInputElement }) => set(at, e.currentTarget.value) } as const;
        return secret ? <input {...rest} type="password" /> : <input {...rest} />;
      }}
    </Field>
  );
}

function Switch({ label, on, onChange }: { label: string; on: boolean; onChange: (on: boolean) => void }): JSX.Element {
  return (
    <label class="check field">
      <input type="checkbox" checked={on} onChange={(e) => onChange(e.currentTarget.checked)} /> {label}
    </label>
  );
}

function Choice({ label, of, options, error, onChange }: { label: string; of: string; options: Record<string, string>; error: string | undefined; onChange: (v: string) => void }): JSX.Element {
  return (
    <Field label={label} error={error}>
      {(p) => (
        <select {...p} value={of} onChange={(e) => onChange(e.currentTarget.value)}>
          {Object.entries(options).map(([v, text]) => (
            <option key={v} value={v}>
              {text}
            </option>
          ))}
          {!(of in options) && <option value={of}>{of}</option>}
        </select>
      )}
    </Field>
  );
}

/** A list as lines. What is typed stays as it is while it is typed; the list has no empty lines. */
function ListText({ label, help, of, error, onChange }: { label: string; help: string; of: string[]; error: string | undefined; onChange: (list: string[]) => void }): JSX.Element {
  const [text, setText] = useState(of.join("\n"));
  const list = (t: string) => t.split("\n").map((l) => l.trim()).filter(Boolean);
  const key = of.join("\n");
  useEffect(() => {
    if (list(text).join("\n") !== key) setText(key);
  }, [key]);
  return (
    <Field label={label} help={help} error={error}>
      {(p) => (
        <textarea
          {...p}
          rows={Math.min(8, Math.max(2, of.length + 1))}
          spellcheck={false}
          value={text}
          onInput={(e) => {
            setText(e.currentTarget.value);
            onChange(list(e.currentTarget.value));
          }}
        />
      )}
    </Field>
  );
}

function Ports({ spec, set, problem }: Part & { problem: Problem | undefined }): JSX.Element {
  const all = spec.interfaces ?? [];
  const wrong = (i: number) => problem?.errors?.filter((e) => e.field.startsWith(`spec.interfaces[${i}]`)) ?? [];
  const at = (i: number, key: string): Path => ["spec", "interfaces", i, key];
  return (
    <fieldset class="card ports">
      <legend>Network ports</legend>
      {all.map((n, i) => (
        <div key={i} class="port" role="group" aria-label={`Port ${i + 1}`}>
          <label>
            MAC
            <input value={n.mac ?? ""} spellcheck={false} aria-invalid={wrong(i).length > 0 || undefined} placeholder="52:54:00:12:34:56" onInput={(e) => set(at(i, "mac"), e.currentTarget.value.trim())} />
          </label>
          <label>
            Name
            <input value={n.name ?? ""} spellcheck={false} placeholder="as it comes" onInput={(e) => set(at(i, "name"), e.currentTarget.value.trim())} />
          </label>
          <label class="grow">
            Addresses, with commas
            <Addresses of={n.addresses ?? []} onChange={(l) => set(at(i, "addresses"), l)} />
          </label>
          <label class="check">
            <input type="checkbox" checked={n.dhcp !== false} onChange={(e) => set(at(i, "dhcp"), e.currentTarget.checked ? undefined : false)} /> DHCP answers it
          </label>
          <Button kind="quiet" aria-label={`Remove port ${i + 1}`} onPress={() => set(["spec", "interfaces", i], undefined)}>
            Remove
          </Button>
          {wrong(i).map((e) => (
            <p key={e.field} class="wrong">
              {e.detail}
            </p>
          ))}
        </div>
      ))}
      <Button onPress={() => set(["spec", "interfaces", all.length], { mac: "" })}>Add a port</Button>
    </fieldset>
  );
}

function Addresses({ of, onChange }: { of: string[]; onChange: (list: string[]) => void }): JSX.Element {
  const [text, setText] = useState(of.join(", "));
  const list = (t: string) => t.split(/[\s,]+/).filter(Boolean);
  const key = of.join(", ");
  useEffect(() => {
    if (list(text).join(", ") !== key) setText(key);
  }, [key]);
  return (
    <input
      value={text}
      spellcheck={false}
      placeholder="10.0.0.5/24"
      onInput={(e) => {
        setText(e.currentTarget.value);
        onChange(list(e.currentTarget.value));
      }}
    />
  );
}
