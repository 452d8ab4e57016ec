import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ActionKinds, Template as Record, TemplateSummary, TemplateSummaryList } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { duration, parseDuration } from "../format.ts";
import { useLive } from "../live.ts";
import { go, Link, setQuery } from "../router.tsx";
import { operator } from "../session.ts";
import { Button, ProblemBox, say, useLoad } from "../ui/basic.tsx";
import { lazy } from "../ui/lazy.tsx";
import { Tabs, type Tab } from "../ui/tabs.tsx";
import { Preview } from "../template/preview.tsx";
import { aboutTemplates, actionKinds } from "../template/read.ts";
import { uses } from "../template/refs.ts";
import { Run, Start } from "../template/run.tsx";
import { Steps } from "../template/steps.tsx";
import { BuiltIn, Delete, Used } from "./templates.tsx";

const Edit = lazy(() => import("../template/edit.tsx").then((m) => m.Edit));

/** One template: what it does, what it would do on a machine, its record. */
export default function Template({ params }: { params: { [name: string]: string } }): JSX.Element {
  const name = params["name"]!;
  const live = useLive((signal) => Promise.all([call<Record>("GET", `/templates/${seg(name)}`, { signal }), call<TemplateSummaryList>("GET", "/template-summaries", { signal })]), aboutTemplates, [name]);
  const about = useLoad(() => actionKinds(), []);
  const [asked, setAsked] = useState<"run" | "delete">();
  const t = live.data?.[0];
  const summary = live.data?.[1].items.find((s) => s.name === name);
  return (
    <>
      <div class="head">
        <h1>
          <span class="crumb">
            <Link to="/templates">Templates</Link> /{" "}
          </span>
          {name}
        </h1>
        {summary && <BuiltIn of={summary} />}
        {t && operator.value && (
          <div class="right">
            <Button kind="primary" onPress={() => setAsked("run")}>
              Run on a machine…
            </Button>
            <Button onPress={() => go(`/templates?copy=${encodeURIComponent(name)}`)}>Copy</Button>
            <Button onPress={() => setAsked("delete")}>Delete…</Button>
          </div>
        )}
      </div>
      <ProblemBox problem={live.problem ?? about.problem} />
      {!t && !live.problem && <p class="loading">Loading…</p>}
      {t && <p class="words">{t.spec.description || <span class="dim">It has no description.</span>}</p>}
      {t && <Parts t={t} summary={summary} about={about.data} reload={live.reload} />}
      {t && asked === "run" && <Run template={t} about={about.data} onClose={() => setAsked(undefined)} />}
      {summary && asked === "delete" && <Delete t={summary} onClose={() => setAsked(undefined)} onDone={() => go("/templates")} />}
    </>
  );
}

function Parts({ t, summary, about, reload }: { t: Record; summary: TemplateSummary | undefined; about: ActionKinds | undefined; reload: () => void }): JSX.Element {
  const tabs: Tab[] = [{ key: "steps", label: "What it does", panel: () => <Written t={t} summary={summary} about={about} /> }];
  if (operator.value) {
    tabs.push(
      {
        key: "preview",
        label: "Preview on a machine",
        panel: () => (
          <div class="beside">
            <section class="card" aria-label="Preview">
              <Preview template={t} about={about} then={(w, r) => <Start template={t} wanted={w} rendered={r} />} />
            </section>
            <section aria-label="As it is written">
              <h2>As it is written</h2>
              <Steps actions={t.spec.actions} about={about} parameters={t.spec.parameters ?? []} label="Steps as written" />
            </section>
          </div>
        ),
      },
      { key: "edit", label: "Edit", panel: () => <Change t={t} summary={summary} about={about} reload={reload} /> },
    );
  }
  return <Tabs label="Parts of the template" tabs={tabs} />;
}

function Written({ t, summary, about }: { t: Record; summary: TemplateSummary | undefined; about: ActionKinds | undefined }): JSX.Element {
  const ms = parseDuration(t.spec.timeout ?? "");
  return (
    <div class="stack">
      <dl class="pairs">
        <dt>Time for all</dt>
        <dd>{ms > 0 ? `at most ${duration(ms)}` : "no limit"}</dd>
        {summary && (
          <>
            <dt>Used</dt>
            <dd>
              <Used t={summary} />
            </dd>
          </>
        )}
      </dl>
      <section>
        <h2>Steps</h2>
        <Steps actions={t.spec.actions} about={about} parameters={t.spec.parameters ?? []} label="Steps as written" />
      </section>
      <section>
        <h2>Parameters</h2>
        <ParameterTable t={t} />
      </section>
    </div>
  );
}

function ParameterTable({ t }: { t: Record }): JSX.Element {
  const parameters = t.spec.parameters ?? [];
  const used = uses(t);
  if (parameters.length === 0) return <p class="dim">None: it does the same wherever it runs, but for what it takes from the machine's record.</p>;
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Type</th>
            <th scope="col">Needed</th>
            <th scope="col">Default</th>
            <th scope="col">What it is</th>
            <th scope="col">Used in</th>
          </tr>
        </thead>
        <tbody>
          {parameters.map((p) => {
            const must = p.default === undefined || p.default === null;
            return (
              <tr key={p.name}>
                <th scope="row" class="mono">
                  {p.name}
                </th>
                <td>{p.type || "string"}</td>
                <td>{must ? "yes" : "no"}</td>
                <td>{must ? "" : p.default === "" ? <span class="dim">(empty)</span> : <code>{String(p.default)}</code>}</td>
                <td class="words">{p.description}</td>
                <td>{used.get(p.name)?.join(", ") ?? <span class="dim">no step</span>}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** The editor. A built-in one says first what a change of it means. */
function Change({ t, summary, about, reload }: { t: Record; summary: TemplateSummary | undefined; about: ActionKinds | undefined; reload: () => void }): JSX.Element {
  const [base] = useState(t); // what others do meanwhile is told when it is saved
  const [mine, setMine] = useState(false);
  const name = t.metadata.name;
  if (summary?.builtIn && !summary.edited && !mine) {
    return (
      <div class="notice">
        <p>
          <strong>{name} is built in.</strong> The appliance uses it by its name for what its buttons and commands do, and brings it up to date with each release as long as nobody changed it. Changed, it is yours: upgrades leave it alone.
        </p>
        <div class="row">
          <Button kind="primary" onPress={() => go(`/templates?copy=${encodeURIComponent(name)}`)}>
            Edit a copy
          </Button>
          <Button onPress={() => setMine(true)}>Edit it all the same</Button>
        </div>
      </div>
    );
  }
  const back = () => setQuery({ tab: undefined });
  return (
    <Edit
      record={base}
      about={about}
      onCancel={back}
      onSaved={() => {
        say(`Template ${name} was changed.`);
        reload();
        back();
      }}
    />
  );
}
