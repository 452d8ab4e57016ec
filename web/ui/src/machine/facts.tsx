// What the worker found in a machine: plain tables, and its disks to scale.
import type { ComponentChildren, JSX } from "preact";
import type { DiskFact, Hardware, IdentityConflict, Lease, LeaseList, NicFact, WorkflowWorkflow } from "../api/types.ts";
import { call } from "../api/call.ts";
import { bytes, count, memory, when } from "../format.ts";
import { useLive } from "../live.ts";
import { Link } from "../router.tsx";
import { Badge, Empty, ProblemBox, Since, type Tone } from "../ui/basic.tsx";
import { Scroll } from "../ui/scroll.tsx";
import { Layouts } from "./disks.tsx";
import { about } from "./read.ts";
import { VerbButton } from "./verbs.tsx";

/** What is known of a machine's parts. */
export function FactsPanel({ hw, workflows }: { hw: Hardware; workflows: WorkflowWorkflow[] }): JSX.Element {
  const f = hw.facts;
  const leases = useLive((signal) => call<LeaseList>("GET", "/leases", { query: { machine: hw.metadata.name }, signal }), about(hw.metadata.name), [hw.metadata.name]);
  return (
    <div class="stack">
      <Conflicts hw={hw} />
      {!f && (
        <Empty title="Nothing is known of what is in it">
          <p>Its worker has not reported yet. An inspection boots the worker once and writes nothing.</p>
          <VerbButton hw={hw} verb="inspect" />
        </Empty>
      )}
      {f && (
        <>
          <p class="dim">
            Reported <Since at={f.collected} ago />, {f.collected && when(f.collected)} by worker {f.worker || "of unknown version"}, kernel {f.kernel || "unknown"}.
          </p>
          <div class="cards">
            <System hw={hw} />
            <Firmware hw={hw} />
          </div>
          <Disks hw={hw} workflows={workflows} />
          <Layouts hw={hw} workflows={workflows} />
        </>
      )}
      <Ports hw={hw} leases={leases.data?.items ?? []} />
      <ProblemBox problem={leases.problem} />
    </div>
  );
}

const conflictWords: Record<IdentityConflict["kind"], string> = {
  "duplicate-uuid": "another machine has the same system UUID",
  "duplicate-serial": "another machine has the same serial number",
  "mac-elsewhere": "one of its NICs is in another record",
  "machine-replaced": "it is not the machine that was there before",
  "nic-changed": "its NICs are not those of the record",
};

function Conflicts({ hw }: { hw: Hardware }): JSX.Element | null {
  const all = hw.status?.conflicts ?? [];
  if (all.length === 0) return null;
  return (
    <section class="card" aria-label="Identity">
      <h2>Is it the machine of its record?</h2>
      {all.map((c) => (
        <div key={`${c.kind} ${c.with ?? ""}`} class={c.accepted ? "dim" : "notice"}>
          <p>
            <strong>{conflictWords[c.kind]}</strong> <code>{c.kind}</code> for <Since at={c.since} />
            {c.accepted ? `; accepted ${when(c.accepted)}` : ""}
          </p>
          <p>{c.detail}</p>
          {c.with && (
            <p>
              The other one: <Link to={`/machines/${encodeURIComponent(c.with)}`}>{c.with}</Link>
            </p>
          )}
          {c.was && (
            <p>
              Before it was: {[c.was.serial && `serial ${c.was.serial}`, c.was.uuid && `UUID ${c.was.uuid}`, c.was.board && `board ${c.was.board}`, c.was.chassis && `chassis ${c.was.chassis}`].filter(Boolean).join(", ") || "unknown"}; now serial {hw.facts?.serial || "unknown"}, UUID{" "}
              {hw.facts?.uuid || "unknown"}
            </p>
          )}
        </div>
      ))}
      {all.some((c) => !c.accepted) && <VerbButton hw={hw} verb="accept" label="It is the right one: accept" />}
    </section>
  );
}

function Pairs({ of }: { of: [string, ComponentChildren][] }): JSX.Element {
  return (
    <dl class="pairs">
      {of
        .filter(([, v]) => v)
        .map(([k, v]) => (
          <>
            <dt>{k}</dt>
            <dd>{v}</dd>
          </>
        ))}
    </dl>
  );
}

function System({ hw }: { hw: Hardware }): JSX.Element {
  const f = hw.facts!;
  const differs = f.arch && f.arch !== (hw.spec.arch ?? "amd64");
  return (
    <section class="card" aria-label="System">
      <h2>System</h2>
      <Pairs
        of={[
          ["machine", [f.vendor, f.product].filter(Boolean).join(" ")],
          ["processor", f.cpuModel],
          ["threads", f.cpus ? String(f.cpus) : ""],
          ["memory", f.memoryBytes ? memory(f.memoryBytes) : ""],
          ["architecture", differs ? <span class="wrong">{`${f.arch}, and the record says ${hw.spec.arch ?? "amd64"}`}</span> : f.arch],
          ["serial", f.serial],
          ["system UUID", f.uuid && <code>{f.uuid}</code>],
          ["board serial", f.boardSerial],
          ["chassis serial", f.chassisSerial],
          ["asset tag", f.assetTag && hw.spec.assetTag && f.assetTag !== hw.spec.assetTag ? <span class="wrong">{`${f.assetTag}, and the record says ${hw.spec.assetTag}`}</span> : f.assetTag],
        ]}
      />
    </section>
  );
}

function Firmware({ hw }: { hw: Hardware }): JSX.Element {
  const f = hw.facts!;
  const b = f.bmc;
  return (
    <section class="card" aria-label="Firmware and controller">
      <h2>Firmware and controller</h2>
      <Pairs
        of={[
          ["firmware", f.firmware === "uefi" ? "UEFI" : f.firmware === "bios" ? "BIOS" : f.firmware],
          ["version", f.bios],
          ["Secure Boot", f.secureBoot || "the firmware does not say"],
          ["BMC address", b ? (b.address ?? "none") : "none was found"],
          ["BMC MAC", b?.mac && <code>{b.mac}</code>],
          ["BMC VLAN", b?.vlan ? String(b.vlan) : ""],
          ["BMC firmware", b?.firmware],
          ["switched by", hw.spec.power && hw.spec.power.driver !== "manual" ? `${hw.spec.power.driver}${hw.spec.power.url ? `, ${hw.spec.power.url}` : ""}` : "a person"],
        ]}
      />
    </section>
  );
}

/** Whether a disk of the status is this one; a serial number counts more than a path. */
const same = (d: DiskFact, r: { path: string; serial?: string }) => (d.serial && r.serial ? d.serial === r.serial : d.path === r.path);

/** The path of the disk that the system was written to. */
function systemDisk(hw: Hardware, workflows: WorkflowWorkflow[]): string | undefined {
  const w = workflows.find((w) => w.metadata.name === hw.status?.install?.workflow);
  for (const a of w?.status?.actions ?? []) {
    if (a.kind !== "image.write") continue;
    const done = a.attempts?.find((t) => t.state === "succeeded");
    if (done?.result?.disk) return done.result.disk;
  }
  return undefined;
}

function Disks({ hw, workflows }: { hw: Hardware; workflows: WorkflowWorkflow[] }): JSX.Element {
  const disks = hw.facts?.disks ?? [];
  const largest = Math.max(1, ...disks.map((d) => d.bytes));
  const system = hw.status?.installed ? systemDisk(hw, workflows) : undefined;
  const total = disks.filter((d) => !d.removable).reduce((n, d) => n + d.bytes, 0);
  const known = (p: string | undefined) => disks.find((d) => d.path === p || (d.serial && p === `serial=${d.serial}`));
  const on = known(system);
  return (
    <section class="card" aria-label="Disks">
      <h2>{disks.length === 0 ? "No disk was found" : `${count(disks.length, "disk")}, ${bytes(total)}`}</h2>
      {disks.length > 0 && (
        <Scroll label="Disks, to scale">
          <table class="disks">
            <thead>
              <tr>
                <th scope="col">Disk</th>
                <th scope="col">To scale</th>
                <th scope="col" class="num">
                  Size
                </th>
                <th scope="col">Model</th>
                <th scope="col">Serial</th>
                <th scope="col">State</th>
              </tr>
            </thead>
            <tbody>
              {disks.map((d) => {
                const marks = marksOf(hw, d, on === d);
                return (
                  <tr key={d.path}>
                    <th scope="row">
                      <code>{d.path}</code>
                    </th>
                    <td class="scale">
                      <svg width="100%" height="16" aria-hidden="true">
                        <rect class={on === d ? "system" : marks.some((m) => m.tone === "warn") ? "dirty" : "disk"} width={`${Math.max(1, (100 * d.bytes) / largest)}%`} height="14" y="1" rx="2" />
                      </svg>
                    </td>
                    <td class="num">{bytes(d.bytes)}</td>
                    <td>
                      {d.model || "unknown"} <small>{[d.transport, d.rotational ? "rotating" : "solid state"].filter(Boolean).join(", ")}</small>
                    </td>
                    <td>{d.serial ? <code title={d.wwn ? `WWN ${d.wwn}` : undefined}>{d.serial}</code> : <span class="dim">none</span>}</td>
                    <td>
                      <span class="row">
                        {marks.map((m) => (
                          <Badge key={m.text} tone={m.tone} title={m.title}>
                            {m.text}
                          </Badge>
                        ))}
                      </span>
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </Scroll>
      )}
      <Missing hw={hw} />
    </section>
  );
}

interface DiskMark {
  text: string;
  tone: Tone;
  title?: string;
}

function marksOf(hw: Hardware, d: DiskFact, system: boolean): DiskMark[] {
  const out: DiskMark[] = [];
  const s = hw.status ?? {};
  if (system) out.push({ text: "system", tone: "good", title: "The operating system was written to it" });
  else if (s.dirty?.some((r) => same(d, r))) out.push({ text: "written to", tone: "warn", title: "A workflow wrote to it and it was not wiped since" });
  const w = s.wiped?.disks.find((r) => same(d, r));
  if (w && s.wiped) out.push({ text: "wiped", tone: "good", title: `${w.method}, ${bytes(w.verified)} read back, ${when(s.wiped.at)}` });
  if (d.readOnly) out.push({ text: "read-only", tone: "plain", title: "No action can write it" });
  if (d.removable) out.push({ text: "removable", tone: "plain", title: "No action uses it" });
  return out;
}

/** Disks that were written to and are not in the machine any more. */
function Missing({ hw }: { hw: Hardware }): JSX.Element | null {
  const gone = (hw.status?.dirty ?? []).filter((r) => !hw.facts?.disks?.some((d) => same(d, r)));
  if (gone.length === 0) return null;
  return (
    <div class="notice">
      <p>
        Written to, not wiped, and not in the machine any more: <strong>{gone.map((r) => `${r.path}${r.serial ? ` (serial ${r.serial})` : ""}`).join(", ")}</strong>. A wipe waits for them, unless a human says that they were taken out.
      </p>
      <VerbButton hw={hw} verb="accept" label="They were taken out: accept" />
    </div>
  );
}

interface Port {
  mac: string;
  fact: NicFact | undefined;
  spec: Hardware["spec"]["interfaces"][number] | undefined;
  lease: Lease | undefined;
}

/** The ports of the record and of the machine, side by side. */
function ports(hw: Hardware, leases: Lease[]): Port[] {
  const facts = hw.facts?.nics ?? [];
  const specs = hw.spec.interfaces ?? [];
  const of = (mac: string) => leases.find((l) => l.mac === mac);
  const own = (n: NicFact) => n.permanent ?? n.mac;
  const out: Port[] = specs.map((s) => ({ mac: s.mac, spec: s, fact: facts.find((n) => n.mac === s.mac || n.permanent === s.mac), lease: of(s.mac) }));
  for (const n of facts) {
    if (!out.some((p) => p.fact === n)) out.push({ mac: own(n), fact: n, spec: undefined, lease: of(n.mac) });
  }
  return out;
}

function Ports({ hw, leases }: { hw: Hardware; leases: Lease[] }): JSX.Element {
  const all = ports(hw, leases);
  return (
    <section class="card" aria-label="Network">
      <h2>{count(all.length, "network port")}</h2>
      <Scroll label="Network ports">
        <table>
          <thead>
            <tr>
              <th scope="col">MAC</th>
              <th scope="col">Port</th>
              <th scope="col">Link</th>
              <th scope="col">Reserved</th>
              <th scope="col">Has now</th>
              <th scope="col">Subnet</th>
            </tr>
          </thead>
          <tbody>
            {all.map((p) => (
              <tr key={p.mac}>
                <th scope="row">
                  <code>{p.mac}</code>
                  {!p.spec && (
                    <div>
                      <Badge title="DHCP does not know this port">not in the record</Badge>
                    </div>
                  )}
                  {hw.facts && !p.fact && (
                    <div>
                      <Badge tone="warn" title="The worker did not see this port">
                        not in the machine
                      </Badge>
                    </div>
                  )}
                  {p.spec?.dhcp === false && (
                    <div>
                      <Badge tone="warn">dhcp: false</Badge>
                    </div>
                  )}
                </th>
                <td>
                  {p.fact?.name ?? p.spec?.name ?? <span class="dim">unknown</span>} {p.fact?.driver && <small>{p.fact.driver}</small>}
                </td>
                <td>{p.fact ? p.fact.link ? <Badge tone="good">{p.fact.mbps ? `up, ${speed(p.fact.mbps)}` : "up"}</Badge> : <Badge tone="warn">no link</Badge> : <span class="dim">unknown</span>}</td>
                <td>{p.spec?.addresses?.join(", ") || <span class="dim">none</span>}</td>
                <td>{p.lease ? <span title={`until ${when(p.lease.expires)}`}>{`${p.lease.address} (${p.lease.state})`}</span> : <span class="dim">nothing</span>}</td>
                <td>{p.lease ? <Link to={`/networks/${encodeURIComponent(p.lease.subnet)}`}>{p.lease.subnet}</Link> : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

const speed = (mbps: number): string => (mbps >= 1000 ? `${mbps / 1000} Gbit/s` : `${mbps} Mbit/s`);
