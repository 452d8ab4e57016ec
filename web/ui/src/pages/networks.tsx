import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Lease, LeaseList, Reason, Subnet, SubnetList } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { count } from "../format.ts";
import { changes, useLive, type Live } from "../live.ts";
import { go, Link } from "../router.tsx";
import { operator } from "../session.ts";
import { number, span, type Known } from "../addresses.ts";
import { rows } from "../machines.ts";
import { Badge, Button, Dialog, Empty, ProblemBox } from "../ui/basic.tsx";
import { lazy } from "../ui/lazy.tsx";

const RecordEditor = lazy(() => import("../ui/record.tsx").then((m) => m.RecordEditor));

const leaseReasons = new Set<Reason>(["acked", "released", "declined", "lease-revoked", "address-in-use", "pool-empty", "restored-from-backup"]);

/** Leases of a subnet, or of all. */
export const useLeases = (subnet?: string): Live<LeaseList> =>
  useLive(
    (signal) => call<LeaseList>("GET", "/leases", { query: { subnet }, signal }),
    (e) => leaseReasons.has(e.reason),
    [subnet],
    () => 15_000, // a renewal is no event
  );

/** Whether an event says that a subnet may have changed. */
export const aboutSubnets = changes("subnets");

/** What is known of the addresses of a subnet. */
export function knownOf(s: Subnet, leases: Lease[]): Known {
  const [first, last] = span(s.spec.prefix);
  const mine = leases.filter((l) => l.subnet === s.metadata.name);
  return {
    prefix: s.spec.prefix,
    gateway: s.spec.gateway,
    advertise: s.spec.advertise,
    ranges: s.spec.pool?.ranges ?? [],
    excluded: s.spec.pool?.exclude ?? [],
    leased: mine.filter((l) => l.state === "active" && !l.reservation).map((l) => l.address),
    quarantined: mine.filter((l) => l.state === "quarantined").map((l) => l.address),
    reserved: rows.value.map((r) => r.address ?? "").filter((a) => number(a) >= first && number(a) <= last),
  };
}

/** A new subnet to begin from. */
const fresh = {
  apiVersion: "rackstrap/v1",
  kind: "Subnet",
  metadata: { name: "rack-1" },
  spec: { prefix: "10.0.0.0/24", gateway: "10.0.0.1", dns: ["10.0.0.1"], mode: "pool", pool: { ranges: ["10.0.0.100-10.0.0.199"] } },
};

/** Subnets and leases. */
export default function Networks(): JSX.Element {
  const subnets = useLive((signal) => call<SubnetList>("GET", "/subnets", { query: { sort: "prefix" }, signal }), aboutSubnets, []);
  const leases = useLeases();
  const [adding, setAdding] = useState(false);
  return (
    <>
      <div class="head">
        <h1>Networks</h1>
        {operator.value && (
          <div class="right">
            <Button kind="primary" onPress={() => setAdding(true)}>
              Add a subnet
            </Button>
          </div>
        )}
      </div>
      <ProblemBox problem={subnets.problem ?? leases.problem} />
      {subnets.data?.items.length === 0 && (
        <Empty title="No subnet yet: DHCP answers nobody">
          <p>A subnet says which addresses machines get, and that this appliance answers there.</p>
        </Empty>
      )}
      {subnets.data && subnets.data.items.length > 0 && (
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Prefix</th>
                <th scope="col">Mode</th>
                <th scope="col">Pool</th>
                <th scope="col">Leases</th>
                <th scope="col">Gateway</th>
                <th scope="col">Discovery</th>
              </tr>
            </thead>
            <tbody>
              {subnets.data.items.map((s) => (
                <SubnetRow key={s.metadata.name} s={s} leases={leases.data?.items ?? []} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {adding && (
        <Dialog title="Add a subnet" wide onClose={() => setAdding(false)}>
          <RecordEditor path="/subnets" record={fresh} isNew onCancel={() => setAdding(false)} onSaved={(name) => go(`/networks/${seg(name)}`)} />
        </Dialog>
      )}
    </>
  );
}

function SubnetRow({ s, leases }: { s: Subnet; leases: Lease[] }): JSX.Element {
  const mine = leases.filter((l) => l.subnet === s.metadata.name && l.state === "active");
  const quarantined = leases.filter((l) => l.subnet === s.metadata.name && l.state === "quarantined").length;
  return (
    <tr>
      <th scope="row">
        <Link to={`/networks/${seg(s.metadata.name)}`}>{s.metadata.name}</Link>
      </th>
      <td class="mono">{s.spec.prefix}</td>
      <td>
        <Badge tone={s.spec.mode === "off" ? "warn" : "plain"}>{s.spec.mode || "reservation"}</Badge>
      </td>
      <td class="mono">{(s.spec.pool?.ranges ?? []).join(", ")}</td>
      <td>
        {count(mine.length, "active lease")} {quarantined > 0 && <Badge tone="warn">{quarantined} in quarantine</Badge>}
      </td>
      <td class="mono">{s.spec.gateway}</td>
      <td>{s.spec.discovery ? "on" : "off"}</td>
    </tr>
  );
}
