import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Lease, LeaseState, Subnet } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { picture, text, uses, type Cell } from "../addresses.ts";
import { now } from "../clock.ts";
import { count, duration, when } from "../format.ts";
import { useLive } from "../live.ts";
import { rows } from "../machines.ts";
import { go, Link, query, setQuery } from "../router.tsx";
import { operator } from "../session.ts";
import { Badge, Button, Confirm, Empty, ProblemBox, say, Since, useAction, type Tone } from "../ui/basic.tsx";
import { lazy } from "../ui/lazy.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { aboutSubnets, knownOf, useLeases } from "./networks.tsx";

const RecordEditor = lazy(() => import("../ui/record.tsx").then((m) => m.RecordEditor));

/** One subnet: its addresses as a picture, its leases, its record. */
export default function Network({ params }: { params: Record<string, string> }): JSX.Element {
  const name = params["name"]!;
  const subnet = useLive((signal) => call<Subnet>("GET", `/subnets/${seg(name)}`, { signal }), aboutSubnets, [name]);
  const leases = useLeases(name);
  const [deleting, setDeleting] = useState(false);
  const s = subnet.data;
  return (
    <>
      <div class="head">
        <h1>
          <span class="crumb">
            <Link to="/networks">Networks</Link> /{" "}
          </span>
          {name}
        </h1>
        {s && <code>{s.spec.prefix}</code>}
        {s && operator.value && (
          <div class="right">
            <Button onPress={() => setDeleting(true)}>Delete…</Button>
          </div>
        )}
      </div>
      <ProblemBox problem={subnet.problem ?? leases.problem} />
      {s && (
        <Tabs
          label="Parts of the subnet"
          tabs={[
            { key: "addresses", label: "Addresses", panel: () => <Addresses s={s} leases={leases.data?.items ?? []} /> },
            { key: "leases", label: leases.data ? `Leases (${leases.data.items.length})` : "Leases", panel: () => <Leases leases={leases.data?.items ?? []} reload={leases.reload} /> },
            {
              key: "record",
              label: operator.value ? "Edit" : "Record",
              panel: () =>
                operator.value ? (
                  <RecordEditor path="/subnets" record={s} onCancel={() => setQuery({ tab: undefined })} onSaved={() => (say(`Subnet ${name} was changed.`), subnet.reload(), setQuery({ tab: undefined }))} />
                ) : (
                  <pre class="card">{JSON.stringify(s.spec, null, 2)}</pre>
                ),
            },
          ]}
        />
      )}
      {deleting && (
        <Confirm title={`Delete the subnet ${name}?`} word={name} verb="Delete" onClose={() => setDeleting(false)} onConfirm={() => call("DELETE", `/subnets/${seg(name)}`).then(() => (say(`Subnet ${name} is gone.`), go("/networks")))}>
          <p>DHCP answers nobody there any more. Machines that have an address keep it until their lease ends.</p>
        </Confirm>
      )}
    </>
  );
}

const side = 18;

function Addresses({ s, leases }: { s: Subnet; leases: Lease[] }): JSX.Element {
  const all = rows.value;
  const { cells, counts, each } = useMemo(() => picture(knownOf(s, leases)), [s, leases, all]);
  const machineAt = useMemo(() => new Map(all.map((r) => [r.address ?? "", r.name])), [all]);
  const leaseAt = useMemo(() => new Map(leases.map((l) => [l.address, l])), [leases]);
  const [at, setAt] = useState<number>();
  const wide = cells.length > 256 ? 64 : 32;
  const shown = at === undefined ? undefined : cells[at];
  return (
    <div class="stack">
      <ul class="legend" aria-label="Addresses by use">
        {uses
          .filter(([u]) => counts[u] > 0)
          .map(([u, means]) => (
            <li key={u}>
              <span class={`swatch use-${u}`} aria-hidden="true" /> {counts[u].toLocaleString("en")} <span class="dim">{means}</span>
            </li>
          ))}
      </ul>
      <div
        class="scroll card"
        role="group"
        tabIndex={0}
        aria-label={`The ${cells.length} ${each > 1 ? `blocks of ${each} addresses` : "addresses"}; arrow keys move between them`}
        onKeyDown={(e) => {
          const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: wide, ArrowUp: -wide }[e.key];
          if (!step) return;
          e.preventDefault();
          setAt(Math.max(0, Math.min(cells.length - 1, (at ?? -step) + step)));
        }}
      >
        <svg class="space" width={wide * side} height={Math.ceil(cells.length / wide) * side} aria-hidden="true">
          {cells.map((c, i) => (
            <rect key={c.from} class={`use-${c.use}${i === at ? " at" : ""}`} x={(i % wide) * side + 1} y={Math.floor(i / wide) * side + 1} width={side - 2} height={side - 2} rx="2" onMouseEnter={() => setAt(i)}>
              <title>{label(c)}</title>
            </rect>
          ))}
        </svg>
      </div>
      <p role="status" class="card">
        {shown ? <Told c={shown} machine={machineAt.get(text(shown.from))} lease={leaseAt.get(text(shown.from))} /> : <span class="dim">Point at an address to see whose it is.</span>}
      </p>
    </div>
  );
}

const label = (c: Cell): string =>
  (c.from === c.to ? text(c.from) : `${text(c.from)}-${text(c.to)}`) +
  ": " +
  Object.entries(c.counts)
    .map(([u, n]) => (c.from === c.to ? u : `${n} ${u}`))
    .join(", ");

function Told({ c, machine, lease }: { c: Cell; machine: string | undefined; lease: Lease | undefined }): JSX.Element {
  return (
    <>
      <code>{label(c)}</code>
      {c.from === c.to && machine && (
        <>
          {" "}
          <Link to={`/machines/${seg(machine)}`}>{machine}</Link>
        </>
      )}
      {c.from === c.to && lease && (
        <>
          {" "}
          {lease.mac} {lease.hostname ? `“${lease.hostname}”` : ""} {lease.state}
        </>
      )}
    </>
  );
}

function Ends({ at }: { at: string }): JSX.Element {
  return (
    <time dateTime={at} title={when(at)}>
      in {duration(Math.max(0, Math.floor((Date.parse(at) - now.value) / 1000) * 1000))}
    </time>
  );
}

const leaseTone: Record<LeaseState, Tone> = { active: "good", expired: "plain", released: "plain", quarantined: "warn" };

function Leases({ leases, reload }: { leases: Lease[]; reload: () => void }): JSX.Element {
  const want = (query.value.get("q") ?? "").toLowerCase();
  const shown = leases.filter((l) => `${l.address} ${l.mac} ${l.machine ?? ""} ${l.hostname ?? ""} ${l.state}`.toLowerCase().includes(want));
  const action = useAction();
  const page = Math.max(0, Number(query.value.get("page") ?? 0) || 0);
  const size = 200;
  const revoke = (l: Lease) =>
    action.run(async () => {
      await call("DELETE", `/leases/${seg(l.subnet)}/${seg(l.state === "quarantined" ? l.address : l.mac)}`);
      say(l.state === "quarantined" ? `${l.address} may be lent again.` : `The lease of ${l.address} was taken back.`);
      reload();
    });
  if (leases.length === 0) return <Empty title="No lease">Nobody has asked for an address here yet.</Empty>;
  return (
    <div class="stack">
      <input type="search" aria-label="Find leases" placeholder="address, MAC, machine, host name, state" value={query.value.get("q") ?? ""} onInput={(e) => setQuery({ q: e.currentTarget.value, page: undefined })} />
      <ProblemBox problem={action.problem} />
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Address</th>
              <th scope="col">State</th>
              <th scope="col">MAC</th>
              <th scope="col">Machine</th>
              <th scope="col">Calls itself</th>
              <th scope="col">Ends</th>
              {operator.value && <th scope="col">Do</th>}
            </tr>
          </thead>
          <tbody>
            {shown.slice(page * size, (page + 1) * size).map((l) => (
              <tr key={`${l.address} ${l.mac}`}>
                <th scope="row" class="mono">
                  {l.address}
                </th>
                <td>
                  <Badge tone={leaseTone[l.state]}>{l.state}</Badge> {l.reservation && <Badge>reserved</Badge>}
                </td>
                <td class="mono">{l.state === "quarantined" ? l.usedBy ?? l.declinedBy : l.mac}</td>
                <td>{l.machine && <Link to={`/machines/${seg(l.machine)}`}>{l.machine}</Link>}</td>
                <td>{l.hostname}</td>
                <td>{l.state === "active" || l.state === "quarantined" ? <Ends at={l.expires} /> : <Since at={l.expires} ago />}</td>
                {operator.value && (
                  <td>
                    {(l.state === "active" || l.state === "quarantined") && (
                      <Button kind="quiet" aria-label={`Take back ${l.address}`} onPress={() => revoke(l)}>
                        {l.state === "quarantined" ? "End quarantine" : "Take back"}
                      </Button>
                    )}
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="row">
        <span class="dim">{count(shown.length, "lease")}</span>
        {page > 0 && <Button onPress={() => setQuery({ page: page > 1 ? String(page - 1) : undefined })}>Earlier</Button>}
        {(page + 1) * size < shown.length && <Button onPress={() => setQuery({ page: String(page + 1) })}>More</Button>}
      </div>
    </div>
  );
}
