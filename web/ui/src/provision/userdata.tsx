import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Hardware } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { bytes, count } from "../format.ts";
import { Button, ProblemBox, useAction, useLoad } from "../ui/basic.tsx";
import { Choice, Lines, Radios, Text, Tick } from "../ui/inputs.tsx";
import { lazy } from "../ui/lazy.tsx";
import { builtIn, starter, type Draft, type Format } from "./draft.ts";
import { draft, put } from "./state.ts";

const Editor = lazy(() => import("../ui/editor.tsx").then((m) => m.Editor));

const formats: [Format, string][] = [
  ["cloud-config", "cloud-init: Debian, Ubuntu, Fedora Cloud, …"],
  ["ignition", "Ignition: Fedora CoreOS, Flatcar"],
  ["talos", "Talos"],
];

// what a record takes (MaxUserData); a file that is larger is not read at all
const largest = 256 << 10;

/** What the installed system is told, and when the install has succeeded. */
export function UserData(): JSX.Element {
  const d = draft.value;
  const quiet = d.format !== "cloud-config";
  return (
    <div class="beside">
      <section class="card" aria-labelledby="ud">
        <h3 id="ud">User-data</h3>
        <Choice label="Format" value={d.format} onValue={(f) => put({ format: f as Format, ...(f === "cloud-config" ? {} : { waitForPhoneHome: false }) })} of={formats} help={d.template ? `The template is ${d.template}.` : `The built-in template is ${builtIn[d.format]}.`} />
        <Radios
          label="Whose"
          value={d.ownUserData ? "own" : "record"}
          onValue={(v) => put({ ownUserData: v === "own" })}
          of={[
            { value: "record", text: "That of each machine's record", help: "Where the record has none: one that lets its SSH keys in." },
            { value: "own", text: "Mine, the same for all", help: d.machines.length > 1 ? "Each machine still gets its own host name." : undefined },
          ]}
        />
        {d.ownUserData && <Own />}
      </section>
      <section class="card" aria-labelledby="net">
        <h3 id="net">Network of the installed system</h3>
        <Network />
        <h3>When is it done?</h3>
        <Tick
          label="When the system phones home"
          checked={d.waitForPhoneHome}
          disabled={quiet}
          onValue={(waitForPhoneHome) => put({ waitForPhoneHome })}
          help={quiet ? "Not with this format: nothing in it knows whom to call." : "Otherwise when all is written and the machine restarts. cloud-init calls when it is through; where it does not, the install fails at its deadline."}
        />
      </section>
    </div>
  );
}

/** The editor, with something to begin from. */
function Own(): JSX.Element {
  const d = draft.value;
  const picker = useRef<HTMLInputElement>(null);
  const action = useAction();
  const take = async (file: File | undefined) => {
    if (!file) return;
    if (file.size > largest) throw new Error(`${file.name} has ${bytes(file.size)}; user-data may have ${bytes(largest)}.`);
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    put({ userData: text });
  };
  return (
    <>
      <div class="row">
        <Button onPress={() => picker.current?.click()}>Take a file…</Button>
        <input
          ref={picker}
          type="file"
          class="hidden-text"
          tabIndex={-1}
          aria-label="File of user-data"
          onChange={(e) => {
            const file = e.currentTarget.files?.[0];
            e.currentTarget.value = "";
            void action.run(() => take(file));
          }}
        />
        {d.userData !== "" && <span class="dim">{count(d.userData.split("\n").length, "line")}, {bytes(new Blob([d.userData]).size)}</span>}
      </div>
      <ProblemBox problem={action.problem && { ...action.problem, hint: "User-data is UTF-8 text. For a compressed or binary one use the command line." }} />
      {d.format === "talos" ? <p class="dim">Make it with <code>talosctl gen config</code>, and take the file.</p> : <Starter />}
      <Editor value={d.userData} onChange={(userData) => put({ userData })} label="User-data" />
      {d.format !== "ignition" && <Lines label="More meta-data" rows={2} value={d.metaData} onValue={(metaData) => put({ metaData })} placeholder="key: value" help="For the NoCloud seed, a line each." />}
    </>
  );
}

/** Writes user-data that lets keys in. */
function Starter(): JSX.Element {
  const d = draft.value;
  const one = d.machines.length === 1 ? d.machines[0]! : "";
  const first = d.machines[0];
  const load = useLoad(async (signal) => (first ? call<Hardware>("GET", `/hardware/${seg(first)}`, { signal }) : undefined), [first]);
  const [keys, setKeys] = useState("");
  const [hostname, setHostname] = useState("");
  useEffect(() => {
    if (!load.data) return;
    setKeys((k) => k || (load.data?.spec.sshKeys ?? []).join("\n"));
    if (one) setHostname((h) => h || (load.data?.spec.hostname ?? one));
  }, [load.data]);
  const write = () => {
    const list = keys
      .split("\n")
      .map((k) => k.trim())
      .filter(Boolean);
    put({ userData: starter(d.format, one ? hostname.trim() : "", list) });
  };
  return (
    <details open={d.userData === ""}>
      <summary>Begin with one that lets SSH keys in</summary>
      <Lines label="SSH keys" rows={3} value={keys} onValue={setKeys} placeholder="ssh-ed25519 AAAA… you" help="One a line." />
      {one && <Text label="Host name" value={hostname} onValue={setHostname} />}
      <Button onPress={write} disabled={keys.trim() === ""}>
        {d.userData === "" ? "Write it" : "Write it over what is there"}
      </Button>
    </details>
  );
}

function Network(): JSX.Element {
  const d = draft.value;
  const most = 50;
  return (
    <>
      <Radios
        label="Where it comes from"
        value={d.network}
        onValue={(network) => put({ network: network as Draft["network"] })}
        of={[
          { value: "record", text: "The records and subnets", help: "Each machine's addresses, else DHCP." },
          { value: "static", text: "Addresses for this install" },
          { value: "own", text: "A network-config (version 2), the same for all", disabled: d.format === "ignition", help: d.format === "ignition" ? "Not with Ignition: put it into the Ignition config." : undefined },
        ]}
      />
      {d.network === "static" && (
        <>
          {d.machines.slice(0, most).map((n) => (
            <Text key={n} label={`Address of ${n}`} value={d.addresses[n] ?? ""} onValue={(v) => put({ addresses: { ...d.addresses, [n]: v } })} placeholder="10.0.0.5/24" />
          ))}
          {d.machines.length > most && <p class="notice">{count(d.machines.length - most, "more machine")}: for so many put the addresses into their records.</p>}
          <div class="columns">
            <Text label="Gateway" value={d.gateway} onValue={(gateway) => put({ gateway })} placeholder="10.0.0.1" />
            <Text label="Nameservers" value={d.nameservers} onValue={(nameservers) => put({ nameservers })} placeholder="10.0.0.1 10.0.0.2" />
            <Text label="Search domains" value={d.search} onValue={(search) => put({ search })} placeholder="rack.example" />
          </div>
        </>
      )}
      {d.network === "own" && <Editor value={d.networkConfig} onChange={(networkConfig) => put({ networkConfig })} label="Network configuration" />}
    </>
  );
}
