import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Problem, Rule, RuleMatch, RulesTested, RuledMachine, Subnet, SubnetList, Template, TemplateList } from "../api/types.ts";
import { asProblem, call, seg } from "../api/call.ts";
import { count } from "../format.ts";
import { Link } from "../router.tsx";
import { operator } from "../session.ts";
import { Badge, Button, Confirm, Dialog, Empty, ProblemBox, say, State, useAction, useLoad } from "../ui/basic.tsx";
import { Choice, fromPairs, Pairs, Radios, Text, Tick } from "../ui/inputs.tsx";
import { lazy } from "../ui/lazy.tsx";
import { VerdictText } from "./table.tsx";
import type { Waiting } from "./waiting.ts";
import { Scroll } from "../ui/scroll.tsx";

const YAML = lazy(() => import("./ruleyaml.tsx").then((m) => m.RuleYAML));

const fresh: Rule = { apiVersion: "rackstrap/v1", kind: "Rule", metadata: { name: "" }, spec: { priority: 0, match: {}, labels: {} } };

/** The rules, in the order in which they apply, and what they would do now. */
export function Rules({ rules, waiting, onChange }: { rules: Rule[]; waiting: Waiting[]; onChange: () => void }): JSX.Element {
  const [open, setOpen] = useState<{ kind: "edit" | "new" | "delete"; rule: Rule }>();
  const order = [...rules].sort((a, b) => (b.spec.priority ?? 0) - (a.spec.priority ?? 0) || a.metadata.name.localeCompare(b.metadata.name));
  const hits = (name: string) => waiting.filter((w) => w.ruled?.verdict.rules?.includes(name)).length;
  const close = () => setOpen(undefined);
  return (
    <>
      <div class="head">
        <p class="dim">All rules that match apply, the greatest priority first; the first that sets something wins. They apply when a machine that waits reports itself.</p>
        {operator.value && (
          <div class="right">
            <Button kind="primary" onPress={() => setOpen({ kind: "new", rule: fresh })}>
              Add a rule
            </Button>
          </div>
        )}
      </div>
      {order.length === 0 ? (
        <Empty title="No rules: each machine that is found waits for a person">
          <p>A rule labels, accepts or installs machines by what is in them.</p>
        </Empty>
      ) : (
        <Scroll label="List of rules">
          <table>
            <thead>
              <tr>
                <th scope="col" class="num">
                  Priority
                </th>
                <th scope="col">Name</th>
                <th scope="col">Matches</th>
                <th scope="col">Does</th>
                <th scope="col">Waiting now</th>
                {operator.value && <th scope="col">Change</th>}
              </tr>
            </thead>
            <tbody>
              {order.map((r) => (
                <tr key={r.metadata.name}>
                  <td class="num">{r.spec.priority ?? 0}</td>
                  <th scope="row">{r.metadata.name}</th>
                  <td>
                    <ul class="plain">
                      {matchLines(r.spec.match).map((l) => (
                        <li key={l}>{l}</li>
                      ))}
                    </ul>
                  </td>
                  <td>
                    <Does rule={r} />
                  </td>
                  <td>{count(hits(r.metadata.name), "machine")}</td>
                  {operator.value && (
                    <td>
                      <div class="row nowrap">
                        <Button aria-label={`Edit ${r.metadata.name}`} onPress={() => setOpen({ kind: "edit", rule: r })}>
                          Edit
                        </Button>
                        <Button aria-label={`Delete ${r.metadata.name}`} onPress={() => setOpen({ kind: "delete", rule: r })}>
                          Delete
                        </Button>
                      </div>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {open?.kind === "delete" && (
        <Confirm
          title={`Delete the rule ${open.rule.metadata.name}?`}
          word=""
          verb="Delete"
          over={!rules.some((r) => r.metadata.uid === open.rule.metadata.uid)}
          onClose={close}
          onConfirm={async () => {
            await call("DELETE", `/rules/${seg(open.rule.metadata.name)}`);
            say(`The rule ${open.rule.metadata.name} is deleted.`);
            close();
            onChange();
          }}
        >
          {!rules.some((r) => r.metadata.uid === open.rule.metadata.uid) && <div class="notice" role="alert">Somebody else deleted it meanwhile: close this.</div>}
          <p>Machines keep the labels that it gave, and stay accepted.</p>
        </Confirm>
      )}
      {open && open.kind !== "delete" && (
        <RuleEditor
          rule={open.rule}
          now={rules.find((r) => r.metadata.name === open.rule.metadata.name)}
          isNew={open.kind === "new"}
          onClose={close}
          onSaved={() => {
            close();
            onChange();
          }}
        />
      )}
    </>
  );
}

/** What a rule asks for, a line each. */
function matchLines(m: RuleMatch): string[] {
  const r = m.requirements ?? {};
  return [
    m.all ? "every machine" : "",
    m.subnet ? `booted in ${m.subnet}` : "",
    m.selector ? `labels ${m.selector}` : "",
    r.cpus ? `${r.cpus} CPUs or more` : "",
    r.memory ? `${r.memory} memory or more` : "",
    r.arch ? `CPU ${r.arch}` : "",
    ...(r.disks ?? []).map((d) => `${d.count ?? 1} disk${(d.count ?? 1) > 1 ? "s" : ""}${d.transport ? ` ${d.transport}` : ""}${d.size ? ` of ${d.size} or more` : ""}`),
    ...(r.nics ?? []).map((n) => `NICs: ${Object.entries(n).map(([k, v]) => `${k} ${String(v)}`).join(", ")}`),
    ...Object.entries(m.facts ?? {}).map(([k, v]) => (v === "" ? `${k} not known` : `${k} like ${v}`)),
  ].filter(Boolean);
}

function Does({ rule }: { rule: Rule }): JSX.Element {
  const s = rule.spec;
  return (
    <>
      <div class="row">
        {Object.entries(s.labels ?? {}).map(([k, v]) => (
          <Badge key={k}>
            {k}={v}
          </Badge>
        ))}
      </div>
      {s.accept && <Badge tone="good">accepts</Badge>}{" "}
      {s.provision && (
        <Badge tone="warn">
          installs {s.provision.template}
          {typeof s.provision.params?.["image"] === "string" ? `: ${s.provision.params["image"]}` : ""}
        </Badge>
      )}
    </>
  );
}

/** Edits a rule as a form or as YAML; what it would make of machines is beside it, as it is written. */
function RuleEditor({ rule: was, now, isNew, onClose, onSaved }: { rule: Rule; /** as it is there at the moment */ now: Rule | undefined; isNew: boolean; onClose: () => void; onSaved: () => void }): JSX.Element {
  const [rule, setRule] = useState<Rule>({ apiVersion: "rackstrap/v1", kind: "Rule", metadata: { name: was.metadata.name, ...(was.metadata.labels ? { labels: was.metadata.labels } : {}) }, spec: was.spec });
  const [how, setHow] = useState("form");
  const [broken, setBroken] = useState("");
  const [scope, setScope] = useState("pending");
  const [tested, setTested] = useState<RulesTested>();
  const [revision, setRevision] = useState(was.metadata.revision);
  const [saving, setSaving] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const action = useAction();
  const text = JSON.stringify(rule);
  useEffect(() => {
    const abort = new AbortController();
    const timer = window.setTimeout(() => {
      const named = rule.metadata.name ? rule : { ...rule, metadata: { ...rule.metadata, name: "unnamed" } };
      call<RulesTested>("POST", "/rules/test", { body: { rule: named }, signal: abort.signal }).then(
        (t) => {
          setTested(t);
          setProblem(undefined);
        },
        (err: unknown) => {
          if (!abort.signal.aborted) setProblem(asProblem(err));
        },
      );
    }, 300);
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [text]);
  const save = async () => {
    const name = rule.metadata.name.trim();
    setSaving(true);
    try {
      if (isNew || !now) await call("POST", "/rules", { body: rule });
      else await call("PUT", `/rules/${seg(was.metadata.name)}`, { body: rule, ifMatch: revision });
    } catch (err) {
      setSaving(false);
      throw err;
    }
    say(`The rule ${name} is saved.`);
    onSaved();
  };
  const shown = (tested?.machines ?? []).filter((m) => scope === "all" || m.state === "pending");
  return (
    <Dialog title={isNew ? "Add a rule" : `Edit the rule ${was.metadata.name}`} wide onClose={onClose}>
      <div class="beside">
        <div>
          <Radios
            label="Edit it as"
            value={how}
            onValue={setHow}
            of={[
              { value: "form", text: "a form", disabled: broken !== "" },
              { value: "yaml", text: "YAML" },
            ]}
          />
          {how === "form" ? <RuleForm rule={rule} isNew={isNew} onRule={setRule} /> : <YAML rule={rule} problem={problem} onRule={setRule} onBroken={setBroken} />}
        </div>
        <section aria-labelledby="would" class="would">
          <h3 id="would">What the rules would do with it</h3>
          <ProblemBox problem={problem} />
          {!problem && (
            <>
              <Choice
                label="Machines"
                value={scope}
                onValue={setScope}
                of={[
                  ["pending", "that wait now"],
                  ["all", "all of which facts are known"],
                ]}
              />
              <Tested machines={shown} name={rule.metadata.name || "unnamed"} left={tested?.left ?? 0} />
            </>
          )}
        </section>
      </div>
      {!isNew && !saving && !now && (
        <div class="notice" role="alert">
          <strong>Somebody else deleted this rule meanwhile.</strong> Save makes it again, as it is here.
        </div>
      )}
      {!isNew && !saving && now && now.metadata.revision !== revision && (
        <div class="notice" role="alert">
          <strong>Somebody else changed this rule meanwhile.</strong> It matches {matchLines(now.spec.match).join(", ") || "nothing"} now, and <Does rule={now} />
          <Button onPress={() => setRevision(now.metadata.revision)}>Go on with mine</Button>
        </div>
      )}
      <ProblemBox problem={action.problem} />
      <footer>
        <Button onPress={onClose}>Cancel</Button>
        <Button kind="primary" disabled={broken !== "" || rule.metadata.name.trim() === ""} onPress={() => action.run(save)}>
          Save
        </Button>
      </footer>
    </Dialog>
  );
}

/** The machines that the rule matches first, each with all that the rules do; then why the others are not matched. */
function Tested({ machines, name, left }: { machines: RuledMachine[]; name: string; left: number }): JSX.Element {
  const hit = machines.filter((m) => m.verdict.rules?.includes(name));
  const miss = machines.filter((m) => !m.verdict.rules?.includes(name));
  const most = 100;
  return (
    <>
      <p role="status">
        It matches {hit.length} of {count(machines.length, "machine")}.{left > 0 && ` ${left} more were not looked at.`}
      </p>
      <Scroll label="What would happen to each machine" class="tested">
        <ul class="plain">
          {hit.slice(0, most).map((m) => (
            <li key={m.hardware}>
              <strong>{m.hardware}</strong> <State of={m.state} />
              <VerdictText ruled={m} />
            </li>
          ))}
          {miss.slice(0, most).map((m) => (
            <li key={m.hardware} class="dim">
              {m.hardware}: {m.verdict.against?.[name] ?? "does not match"}
            </li>
          ))}
        </ul>
      </Scroll>
    </>
  );
}

// the names of facts that people ask for most; the appliance refuses those that it does not know
const facts = ["vendor", "product", "serial", "assetTag", "arch", "bios", "bmcAddress", "bmcFirmware", "boardSerial", "chassisSerial", "cpuModel", "diskModel", "diskSerial", "diskTransport", "firmware", "kernel", "mac", "nicDriver", "secureBoot", "uuid", "worker"];

function RuleForm({ rule, isNew, onRule }: { rule: Rule; isNew: boolean; onRule: (r: Rule) => void }): JSX.Element {
  const load = useLoad(
    async (signal) => {
      const [subnets, templates] = await Promise.all([call<SubnetList>("GET", "/subnets", { signal }), call<TemplateList>("GET", "/templates", { signal })]);
      return { subnets: subnets.items, templates: templates.items };
    },
    [],
  );
  const s = rule.spec;
  const m = s.match;
  // lines that have no name yet are the form's only
  const [pattern, setPattern] = useState<[string, string][]>(Object.entries(m.facts ?? {}));
  const [labels, setLabels] = useState<[string, string][]>(Object.entries(s.labels ?? {}));
  const spec = (change: Partial<Rule["spec"]>) => onRule({ ...rule, spec: { ...s, ...change } });
  const match = (change: Partial<RuleMatch>) => spec({ match: bare({ ...m, ...change }) });
  const needs = (k: "cpus" | "memory", v: string) => {
    const requirements = bare({ ...m.requirements, [k]: v === "" ? undefined : k === "cpus" ? Number(v) : v });
    match({ requirements: Object.keys(requirements).length > 0 ? requirements : undefined } as Partial<RuleMatch>);
  };
  return (
    <>
      <ProblemBox problem={load.problem} />
      <div class="columns">
        {isNew ? <Text label="Name" value={rule.metadata.name} required autoFocus onValue={(name) => onRule({ ...rule, metadata: { ...rule.metadata, name } })} /> : null}
        <Text label="Priority" type="number" value={String(s.priority ?? 0)} onValue={(v) => spec({ priority: Math.trunc(Number(v)) || 0 })} help="The greatest applies first." />
      </div>
      <h3>It matches a machine that</h3>
      <Tick label="is any machine" checked={!!m.all} onValue={(all) => match({ all })} />
      <div class="columns">
        <Choice label="booted in" value={m.subnet ?? ""} onValue={(subnet) => match({ subnet })} of={[["", "any subnet"], ...(load.data?.subnets ?? []).map((n: Subnet): [string, string] => [n.metadata.name, n.metadata.name])]} />
        <Text label="has the labels" value={m.selector ?? ""} onValue={(selector) => match({ selector })} placeholder="disk=flash,!spare" />
        <Text label="has so many CPUs" type="number" value={m.requirements?.cpus ? String(m.requirements.cpus) : ""} onValue={(v) => needs("cpus", v)} />
        <Text label="has so much memory" value={m.requirements?.memory ?? ""} onValue={(v) => needs("memory", v)} placeholder="64Gi" />
      </div>
      <Pairs
        label="and says of itself"
        help="Patterns with * and ?, compared with the whole text, whatever the case."
        nameOf="Fact"
        names={facts}
        value={pattern}
        onValue={(v) => {
          setPattern(v);
          match({ facts: fromPairs(v) });
        }}
        add="Add a fact"
      />
      <h3>What it does</h3>
      <Pairs
        label="Labels"
        value={labels}
        onValue={(v) => {
          setLabels(v);
          spec({ labels: fromPairs(v) });
        }}
        add="Add a label"
      />
      <Tick label="accept the machine without a person" checked={!!s.accept} onValue={(accept) => spec({ accept })} help="Facts are what a machine says of itself: match a subnet that only your racks are in." />
      <Install templates={load.data?.templates ?? []} rule={rule} onRule={onRule} />
    </>
  );
}

/** The template that a rule starts, and its parameters. */
function Install({ templates, rule, onRule }: { templates: Template[]; rule: Rule; onRule: (r: Rule) => void }): JSX.Element {
  const p = rule.spec.provision;
  const [params, setParams] = useState<[string, string][]>(Object.entries(p?.params ?? {}).map(([k, v]) => [k, String(v)]));
  const known = templates.find((t) => t.metadata.name === p?.template)?.spec.parameters ?? [];
  const put = (template: string, pairs: [string, string][]) => {
    const { provision: _, ...spec } = rule.spec;
    const types = new Map((templates.find((t) => t.metadata.name === template)?.spec.parameters ?? []).map((k) => [k.name, k.type]));
    const values = Object.fromEntries(Object.entries(fromPairs(pairs)).map(([k, v]) => [k, types.get(k) === "int" ? Number(v) : types.get(k) === "bool" ? v === "true" : v]));
    onRule({ ...rule, spec: template ? { ...spec, provision: { template, params: values } } : spec });
  };
  return (
    <>
      <Choice
        label="Then start"
        value={p?.template ?? ""}
        onValue={(t) => {
          const needed = (templates.find((x) => x.metadata.name === t)?.spec.parameters ?? []).filter((k) => k.default === undefined).map((k): [string, string] => [k.name, ""]);
          const pairs = params.length > 0 ? params : needed;
          setParams(pairs);
          put(t, pairs);
        }}
        of={[["", "nothing"], ...templates.map((t): [string, string] => [t.metadata.name, t.metadata.name])]}
      />
      {p && (
        <>
          <p class="notice">What is on the disks of the machines that match is overwritten, without a person.</p>
          <Pairs
            label="Its parameters"
            nameOf="Parameter"
            names={known.map((k) => k.name)}
            value={params}
            onValue={(v) => {
              setParams(v);
              put(p.template, v);
            }}
            add="Add a parameter"
          />
          <p class="dim">
            <Link to={`/templates/${seg(p.template)}`}>What {p.template} does</Link>
          </p>
        </>
      )}
    </>
  );
}

/** Without what says nothing, so that the YAML has only what was chosen. */
function bare<T extends object>(o: T): T {
  return Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined && v !== "" && v !== false && !(typeof v === "object" && v !== null && !Array.isArray(v) && Object.keys(v).length === 0))) as T;
}
