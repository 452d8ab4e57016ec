import type { ComponentChildren, JSX } from "preact";
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import type { Facts, RuledMachine } from "../api/types.ts";
import { seg } from "../api/call.ts";
import { bytes, count, memory } from "../format.ts";
import { Link } from "../router.tsx";
import { operator } from "../session.ts";
import { Badge, Button, Since } from "../ui/basic.tsx";
import type { Waiting } from "./waiting.ts";
import { Scroll } from "../ui/scroll.tsx";

/** The machines that wait: what they are, where they asked from, what the rules say. */
export function Table({ waiting, chosen, onChosen, onAccept, onReject }: { waiting: Waiting[]; chosen: Set<string>; onChosen: (names: Set<string>) => void; onAccept: (w: Waiting) => void; onReject: (w: Waiting) => void }): JSX.Element {
  const [opened, setOpened] = useState(new Set<string>());
  const all = waiting.every((w) => chosen.has(w.machine.metadata.name));
  return (
    <Scroll label="Machines that wait">
      <table class="waiting">
        <thead>
          <tr>
            {operator.value && (
              <th scope="col">
                <input type="checkbox" aria-label="Choose all" checked={all} onChange={(e) => onChosen(new Set(e.currentTarget.checked ? waiting.map((w) => w.machine.metadata.name) : []))} />
              </th>
            )}
            <th scope="col">Name</th>
            <th scope="col">Machine</th>
            <th scope="col">CPU and memory</th>
            <th scope="col">Disks</th>
            <th scope="col">NICs</th>
            <th scope="col">BMC</th>
            <th scope="col">Asked from</th>
            <th scope="col">Found</th>
            <th scope="col">Rules</th>
            {operator.value && <th scope="col">Decide</th>}
          </tr>
        </thead>
        <tbody>
          {waiting.map((w) => {
            const name = w.machine.metadata.name;
            const open = opened.has(name);
            return (
              <Fragment key={name}>
                <tr>
                  {operator.value && (
                    <td>
                      <input type="checkbox" aria-label={`Choose ${name}`} checked={chosen.has(name)} onChange={() => onChosen(toggled(chosen, name))} />
                    </td>
                  )}
                  <th scope="row">
                    <Link to={`/machines/${seg(name)}`}>{name}</Link>
                    <div>
                      <Button kind="quiet" aria-expanded={open} aria-label={`Facts of ${name}`} onPress={() => setOpened(toggled(opened, name))}>
                        {open ? "▾" : "▸"} facts
                      </Button>
                    </div>
                  </th>
                  <Cells w={w} />
                  {operator.value && (
                    <td>
                      <div class="row nowrap">
                        <Button kind="primary" aria-label={`Accept ${name}`} onPress={() => onAccept(w)}>
                          Accept
                        </Button>
                        <Button aria-label={`Reject ${name}`} onPress={() => onReject(w)}>
                          Reject
                        </Button>
                      </div>
                    </td>
                  )}
                </tr>
                {open && (
                  <tr>
                    <td colSpan={operator.value ? 11 : 9}>
                      <All w={w} />
                    </td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </Scroll>
  );
}

function toggled(set: Set<string>, name: string): Set<string> {
  const out = new Set(set);
  if (!out.delete(name)) out.add(name);
  return out;
}

function Cells({ w }: { w: Waiting }): JSX.Element {
  const f: Facts = w.machine.facts ?? {};
  const disks = f.disks?.filter((d) => !d.removable && d.bytes > 0) ?? [];
  const up = f.nics?.filter((n) => n.link).length ?? 0;
  return (
    <>
      <td>
        {[f.vendor, f.product].filter(Boolean).join(" ") || <span class="dim">no facts yet</span>}
        {f.serial && <div class="dim">serial {f.serial}</div>}
        {w.machine.status?.hold && <Badge tone="warn">on hold</Badge>}
      </td>
      <td class="keep">
        {f.cpus ? count(f.cpus, "CPU") : ""}
        {f.memoryBytes ? <div>{memory(f.memoryBytes)}</div> : null}
      </td>
      <td class="keep">
        {f.disks && (
          <>
            {count(disks.length, "disk")}
            {disks.length > 0 && <div>{bytes(disks.reduce((n, d) => n + d.bytes, 0))}</div>}
          </>
        )}
      </td>
      <td class="keep">
        {f.nics && (
          <>
            {count(f.nics.length, "NIC")}
            <div class="dim">{up} with link</div>
          </>
        )}
      </td>
      <td class="mono">{f.bmc?.address}</td>
      <td>
        {w.ruled?.subnet}
        <div class="mono">{w.machine.spec.interfaces[0]?.mac}</div>
      </td>
      <td>
        <Since at={w.machine.status?.discovered ?? w.machine.metadata.created} ago />
        {(w.machine.status?.conflicts ?? []).filter((c) => !c.accepted).length > 0 && (
          <div>
            <Badge tone="bad">identity in doubt</Badge>
          </div>
        )}
      </td>
      <td>
        <VerdictText ruled={w.ruled} />
      </td>
    </>
  );
}

/** What the rules would do with a machine, in words. */
export function VerdictText({ ruled }: { ruled: RuledMachine | undefined }): JSX.Element {
  const v = ruled?.verdict;
  if (!v || (v.rules ?? []).length === 0) return <span class="dim">no rule matches</span>;
  const labels = Object.entries(v.labels ?? {});
  return (
    <>
      <div>{v.rules!.join(", ")}</div>
      {labels.length > 0 && (
        <div class="row">
          {labels.map(([k, value]) => (
            <Badge key={k}>
              {k}={value}
            </Badge>
          ))}
        </div>
      )}
      <div class="dim">{v.accept ? "accepts it at its next boot" : "leaves it for a person"}</div>
      {v.provision && <div class="dim">then {v.provision.template}</div>}
      {ruled.but?.map((b) => (
        <div key={b} class="dim">
          {b}
        </div>
      ))}
    </>
  );
}

/** All that a machine said of itself. */
function All({ w }: { w: Waiting }): JSX.Element {
  const f: Facts = w.machine.facts ?? {};
  const rest: [string, ComponentChildren][] = [
    ["UUID", f.uuid],
    ["Board serial", f.boardSerial],
    ["Chassis serial", f.chassisSerial],
    ["Asset tag", f.assetTag],
    ["CPU", f.cpuModel],
    ["Architecture", f.arch],
    ["Firmware", [f.firmware, f.bios].filter(Boolean).join(", ")],
    ["Secure Boot", f.secureBoot],
    ["BMC", f.bmc && [f.bmc.address, f.bmc.mac, f.bmc.firmware, f.bmc.vlan ? `VLAN ${f.bmc.vlan}` : ""].filter(Boolean).join(", ")],
    ["Worker", [f.worker, f.kernel].filter(Boolean).join(", kernel ")],
  ];
  return (
    <div class="facts">
      {(w.machine.status?.conflicts ?? []).map((c) => (
        <p class="notice" key={c.kind + c.detail}>
          <strong>{c.kind}</strong> {c.detail}
          {c.with && (
            <>
              {" "}
              <Link to={`/machines/${seg(c.with)}`}>{c.with}</Link>
            </>
          )}
        </p>
      ))}
      <div class="cards">
        <dl class="pairs">
          {rest.map(([name, value]) =>
            value ? (
              <Fragment key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </Fragment>
            ) : null,
          )}
        </dl>
        <div>
          <h3>Disks</h3>
          <ul class="plain">
            {f.disks?.map((d) => (
              <li key={d.path}>
                <code>{d.path}</code> {d.bytes > 0 ? bytes(d.bytes) : "empty"} {[d.transport, d.rotational ? "rotating" : "", d.model, d.serial && `serial ${d.serial}`, d.removable ? "removable" : "", d.readOnly ? "read-only" : ""].filter(Boolean).join(", ")}
              </li>
            ))}
          </ul>
        </div>
        <div>
          <h3>NICs</h3>
          <ul class="plain">
            {f.nics?.map((n) => (
              <li key={n.name}>
                <code>{n.name}</code> <span class="mono">{n.mac}</span> {[n.driver, n.link ? `link ${n.mbps ? `${n.mbps} Mbit/s` : "up"}` : "no link"].filter(Boolean).join(", ")}
              </li>
            ))}
          </ul>
        </div>
        <Against ruled={w.ruled} />
      </div>
    </div>
  );
}

/** Why the rules that do not match do not. */
function Against({ ruled }: { ruled: RuledMachine | undefined }): JSX.Element | null {
  const against = Object.entries(ruled?.verdict.against ?? {});
  const out = ruled?.verdict.leftOut ?? [];
  if (against.length + out.length === 0) return null;
  return (
    <div>
      <h3>Rules that do not match</h3>
      <ul class="plain">
        {against.map(([rule, why]) => (
          <li key={rule}>
            <code>{rule}</code> {why}
          </li>
        ))}
        {out.map((o) => (
          <li key={o}>{o}</li>
        ))}
      </ul>
    </div>
  );
}
