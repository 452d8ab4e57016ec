// A machine's record as a form. It changes the YAML of the record, so that comments and
// what the form does not have stay as they are.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { parseDocument } from "yaml";
import type { Hardware, Problem } from "../api/types.ts";
import { Button } from "../ui/basic.tsx";
import { Choice, Lines, Text, Tick } from "../ui/inputs.tsx";
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
  const text = (at: Path, of: string | undefined) => ({ value: of ?? "", onValue: (v: string) => set(at, v), error: error(at.join(".")) });
  return (
    <form class="record" onSubmit={(e) => e.preventDefault()}>
      <fieldset class="card">
        <legend>Name and place</legend>
        <Text label="Host name" {...text(["spec", "hostname"], spec.hostname)} help="Of the installed system; the record's name where it is empty." />
        <Text label="Rack" {...text(["spec", "rack"], spec.rack)} />
        <Text label="Position" {...text(["spec", "position"], spec.position)} help="A unit or slot, as people call it." />
        <Text label="Asset tag" {...text(["spec", "assetTag"], spec.assetTag)} />
        <ListText label="Labels" help="One key=value a line." of={Object.entries(record.metadata?.labels ?? {}).map(([k, v]) => `${k}=${v}`)} error={error("metadata.labels")} onChange={(l) => set(["metadata", "labels"], labelsOf(l))} />
      </fieldset>
      <fieldset class="card">
        <legend>Netboot</legend>
        <Tick label="May netboot (allowPXE)" checked={spec.netboot?.allowPXE !== false} onValue={(on) => set(["spec", "netboot", "allowPXE"], on ? undefined : false)} />
        <Tick label="Workflows may begin (allowWorkflow)" checked={spec.netboot?.allowWorkflow !== false} onValue={(on) => set(["spec", "netboot", "allowWorkflow"], on ? undefined : false)} />
        <Tick label="Protected: nothing is written to its disks" checked={spec.protect === true} onValue={(on) => set(["spec", "protect"], on || undefined)} />
        <Choice
          label="Secure Boot"
          {...text(["spec", "netboot", "secureBoot"], spec.netboot?.secureBoot)}
          of={[
            ["", "by its facts and earlier boots (auto)"],
            ["on", "on"],
            ["off", "off"],
          ]}
        />
        <Choice
          label="Architecture"
          {...text(["spec", "arch"], spec.arch)}
          of={[
            ["", "amd64"],
            ["arm64", "arm64"],
          ]}
        />
        <ListText label="Kernel consoles" help="One a line, like ttyS1,115200; the last one is /dev/console." of={spec.netboot?.consoles ?? []} error={error("spec.netboot.consoles")} onChange={(l) => set(["spec", "netboot", "consoles"], l)} />
      </fieldset>
      <fieldset class="card">
        <legend>Power</legend>
        <Choice
          label="Switched by"
          value={spec.power?.driver ?? "manual"}
          of={[
            ["manual", "a person"],
            ["webhook", "a webhook"],
          ]}
          error={error("spec.power.driver")}
          onValue={(v) => set(["spec", "power"], v === "manual" ? undefined : { driver: v, url: "", secret: "" })}
        />
        {spec.power && spec.power.driver !== "manual" && (
          <>
            <Text label="URL" {...text(["spec", "power", "url"], spec.power.url)} help="Calls are POSTed there." />
            <Text label="Secret" type="password" {...text(["spec", "power", "secret"], spec.power.secret)} help="Signs the calls. (redacted) stays what it is." />
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
        <Lines label="For people" {...text(["spec", "notes"], spec.notes)} />
      </fieldset>
      <Ports spec={spec} set={set} problem={problem} />
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
    <Lines
      label={label}
      help={help}
      error={error}
      rows={Math.min(8, Math.max(2, of.length + 1))}
      value={text}
      onValue={(v) => {
        setText(v);
        onChange(list(v));
      }}
    />
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
