import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Stranger, StrangerList, SubnetList } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { useLive } from "../live.ts";
import { go, Link } from "../router.tsx";
import { operator } from "../session.ts";
import { Badge, Button, Dialog, ProblemBox, say, Since, useAction, useLoad } from "../ui/basic.tsx";
import { fromPairs, Pairs, Text } from "../ui/inputs.tsx";
import { Scroll } from "../ui/scroll.tsx";

/** Who asks for an address and has no record. They are remembered in memory and are no events, so they are asked for. */
export function Strangers(): JSX.Element {
  const [adding, setAdding] = useState<Stranger>();
  const load = useLive(
    (signal) => call<StrangerList>("GET", "/strangers", { signal }),
    () => false,
    [],
    () => 3000,
  );
  const all = load.data?.items;
  return (
    <section aria-labelledby="strangers" class="section">
      <h2 id="strangers">
        Strangers <small>who ask for an address and have no record</small>
      </h2>
      <ProblemBox problem={load.problem} />
      {all?.length === 0 && <p class="dim">Nobody without a record has asked for an address since the appliance started. Is the machine on, with the network first in its boot order, and in the same network?</p>}
      {all && all.length > 0 && (
        <Scroll label="List of strangers">
          <table>
            <thead>
              <tr>
                <th scope="col">MAC</th>
                <th scope="col">What it says it is</th>
                <th scope="col">Firmware</th>
                <th scope="col">Heard on</th>
                <th scope="col">First and last</th>
                <th scope="col" class="num">
                  Packets
                </th>
                <th scope="col">What becomes of it</th>
                {operator.value && <th scope="col">Decide</th>}
              </tr>
            </thead>
            <tbody>
              {all.map((s) => (
                <tr key={s.mac}>
                  <th scope="row" class="mono">
                    {s.mac}
                  </th>
                  <td>{[s.vendorClass, s.hostname].filter(Boolean).join(", ") || <span class="dim">nothing</span>}</td>
                  <td>{s.firmware}</td>
                  <td>
                    {s.interface}
                    {s.relay && <div class="dim">through the relay {s.relay}</div>}
                    {s.address && <div class="mono">{s.address}</div>}
                    {s.subnet && (
                      <div>
                        <Link to={`/networks/${seg(s.subnet)}`}>{s.subnet}</Link>
                      </div>
                    )}
                  </td>
                  <td>
                    <Since at={s.first} ago />, <Since at={s.last} ago />
                  </td>
                  <td class="num">{s.count}</td>
                  <td>
                    {s.phase && <Badge tone="busy">{s.phase}</Badge>} {s.detail}
                    {s.do && <div class="hint">{s.do}</div>}
                  </td>
                  {operator.value && (
                    <td>
                      <Button aria-label={`Make a record of ${s.mac}`} onPress={() => setAdding(s)}>
                        Make a record…
                      </Button>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {adding && <Register s={adding} onClose={() => setAdding(undefined)} />}
    </section>
  );
}

/** Registers a stranger: a person vouches for it, so it is available at once. */
function Register({ s, onClose }: { s: Stranger; onClose: () => void }): JSX.Element {
  const subnets = useLoad((signal) => call<SubnetList>("GET", "/subnets", { signal }), []);
  const [name, setName] = useState(named(s));
  const [address, setAddress] = useState<string>();
  const [rack, setRack] = useState("");
  const [labels, setLabels] = useState<[string, string][]>([]);
  const action = useAction();
  // the address that it has now may be kept; its length is that of its subnet
  const prefix = subnets.data?.items.find((n) => n.metadata.name === s.subnet)?.spec.prefix;
  const offered = s.address && prefix ? `${s.address}/${prefix.split("/")[1]}` : "";
  const text = address ?? offered;
  const submit = async () => {
    const marks = fromPairs(labels);
    const body = {
      apiVersion: "rackstrap/v1",
      kind: "Hardware",
      metadata: { name: name.trim(), ...(Object.keys(marks).length > 0 ? { labels: marks } : {}) },
      spec: { interfaces: [{ mac: s.mac, ...(text.trim() ? { addresses: [text.trim()] } : {}) }], ...(rack.trim() ? { rack: rack.trim() } : {}) },
    };
    await call("POST", "/hardware", { body });
    say(`${name} has a record now.`);
    onClose();
    go(`/machines/${seg(name.trim())}`);
  };
  return (
    <Dialog title={`A record for ${s.mac}`} onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (!action.busy) void action.run(submit);
        }}
      >
        <p>You vouch for it: it is available at once, and boots what its record says.</p>
        <Text label="Name" value={name} onValue={setName} required autoFocus help="Lower-case letters, digits and dashes." />
        <Text label="Address" value={text} onValue={setAddress} placeholder="10.0.0.5/24" help="Reserved for it, with the prefix length of its network. Empty: one of the subnet's pool." />
        <Text label="Rack" value={rack} onValue={setRack} />
        <Pairs label="Labels" value={labels} onValue={setLabels} add="Add a label" />
        <ProblemBox problem={action.problem} />
        <footer>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={action.busy || name.trim() === ""} aria-busy={action.busy}>
            Create
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** A name to begin with: its own where it says one that is a name, else of its MAC. */
function named(s: Stranger): string {
  const said = (s.hostname ?? "").toLowerCase().split(".")[0]!;
  return /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(said) ? said : `m-${s.mac.replace(/:/g, "")}`;
}
