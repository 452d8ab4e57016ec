import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Template, TemplateSummary, TemplateSummaryList } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { count } from "../format.ts";
import { useLive } from "../live.ts";
import { go, Link, query, setQuery } from "../router.tsx";
import { operator } from "../session.ts";
import { Badge, Button, Confirm, Empty, ProblemBox, say, Since, State, useLoad } from "../ui/basic.tsx";
import { lazy } from "../ui/lazy.tsx";
import { aboutTemplates, actionKinds } from "../template/read.ts";

const Edit = lazy(() => import("../template/edit.tsx").then((m) => m.Edit));

/** A template to begin from. */
const blank = {
  apiVersion: "rackstrap/v1",
  kind: "Template",
  metadata: { name: "my-template" },
  spec: { description: "", timeout: "30m", actions: [{ name: "restart", kind: "reboot" }] },
};

/** What workflows are made from. */
export default function Templates(): JSX.Element {
  const from = query.value.get("copy") ?? "";
  if (operator.value && (from || query.value.has("new"))) return <New from={from} />;
  return <List />;
}

/** What is said of a template that the appliance ships. */
export function BuiltIn({ of: t }: { of: TemplateSummary }): JSX.Element | null {
  if (!t.builtIn) return null;
  return t.edited ? (
    <Badge tone="warn" title="The appliance ships a template of this name; this one was changed, so upgrades leave it alone">
      built in, edited
    </Badge>
  ) : (
    <Badge title="The appliance ships it, and keeps it up to date">built in</Badge>
  );
}

function List(): JSX.Element {
  const list = useLive((signal) => call<TemplateSummaryList>("GET", "/template-summaries", { signal }).then((l) => l.items), aboutTemplates, []);
  const [deleting, setDeleting] = useState<TemplateSummary>();
  const want = (query.value.get("q") ?? "").toLowerCase();
  const shown = (list.data ?? []).filter((t) => `${t.name} ${t.description ?? ""} ${t.kinds.join(" ")}`.toLowerCase().includes(want));
  return (
    <>
      <div class="head">
        <h1>Templates</h1>
        {operator.value && (
          <div class="right">
            <Button kind="primary" onPress={() => setQuery({ new: "1" }, { push: true })}>
              New template
            </Button>
          </div>
        )}
      </div>
      <ProblemBox problem={list.problem} />
      {!list.data && !list.problem && <p class="loading">Loading…</p>}
      {list.data && list.data.length === 0 && (
        <Empty title="No template: nothing can be started on a machine">
          <p>The appliance makes the built-in ones again when it starts.</p>
        </Empty>
      )}
      {list.data && list.data.length > 0 && (
        <>
          <div class="tools">
            <input type="search" aria-label="Find templates" placeholder="name, description, kind of action" value={query.value.get("q") ?? ""} onInput={(e) => setQuery({ q: e.currentTarget.value })} />
            <span class="dim">{count(shown.length, "template")}</span>
          </div>
          <div class="scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">What it does</th>
                  <th scope="col">Parameters</th>
                  <th scope="col">Steps</th>
                  <th scope="col">Used</th>
                  {operator.value && <th scope="col">Do</th>}
                </tr>
              </thead>
              <tbody>
                {shown.map((t) => (
                  <Row key={t.name} t={t} onDelete={() => setDeleting(t)} />
                ))}
              </tbody>
            </table>
          </div>
          {shown.length === 0 && <Empty title="No template matches" />}
        </>
      )}
      {deleting && <Delete t={deleting} onClose={() => setDeleting(undefined)} onDone={() => setDeleting(undefined)} />}
    </>
  );
}

function Row({ t, onDelete }: { t: TemplateSummary; onDelete: () => void }): JSX.Element {
  return (
    <tr>
      <th scope="row">
        <Link to={`/templates/${seg(t.name)}`}>{t.name}</Link> <BuiltIn of={t} />
      </th>
      <td class="words">{t.description}</td>
      <td>
        {(t.parameters ?? []).map((p) => (
          <code key={p} class="keep" title="must be given">
            {p}*{" "}
          </code>
        ))}
        {t.optional && t.optional.length > 0 && <small class="keep" title={t.optional.join(", ")}>{`${t.parameters?.length ? "and " : ""}${t.optional.length} optional`}</small>}
        {!t.parameters?.length && !t.optional?.length && <small>none</small>}
      </td>
      <td>
        <span class="keep">{count(t.kinds.length, "step")}</span> <small>{t.kinds.join(" → ")}</small>
      </td>
      <td>
        <Used t={t} />
      </td>
      {operator.value && (
        <td>
          <span class="row nowrap">
            <Button kind="quiet" aria-label={`Copy ${t.name}`} onPress={() => setQuery({ copy: t.name }, { push: true })}>
              Copy
            </Button>
            <Button kind="quiet" aria-label={`Delete ${t.name}`} onPress={onDelete}>
              Delete…
            </Button>
          </span>
        </td>
      )}
    </tr>
  );
}

/** How often a template was used, and where last. */
export function Used({ t }: { t: TemplateSummary }): JSX.Element {
  return (
    <>
      {t.last ? (
        <>
          <span class="keep">{count(t.workflows, "workflow")}</span>{" "}
          <small class="keep">
            last <Since at={t.last.created} ago /> on <Link to={`/machines/${seg(t.last.hardware)}`}>{t.last.hardware}</Link>
          </small>{" "}
          <State of={t.last.state} />
        </>
      ) : (
        <small>never</small>
      )}
      {t.rules && t.rules.length > 0 && <small>{` · used by ${t.rules.length === 1 ? "rule" : "rules"} ${t.rules.join(", ")}`}</small>}
    </>
  );
}

/** Asks before a template goes. */
export function Delete({ t, onClose, onDone }: { t: TemplateSummary; onClose: () => void; onDone: () => void }): JSX.Element {
  return (
    <Confirm title={`Delete the template ${t.name}?`} word={t.name} verb="Delete" onClose={onClose} onConfirm={() => call("DELETE", `/templates/${seg(t.name)}`).then(() => (say(`Template ${t.name} is gone.`), onDone()))}>
      <p>Workflows that were made of it have their own steps and go on.</p>
      {t.builtIn && <div class="notice">The appliance needs it for provision, release or inspect, which fail without it. It makes it again, as it was shipped, when it starts the next time.</div>}
      {t.rules && t.rules.length > 0 && <div class="notice">{`Rules start workflows from it: ${t.rules.join(", ")}. The appliance refuses until they do no more.`}</div>}
    </Confirm>
  );
}

/** A new template, from nothing or as a copy. */
function New({ from }: { from: string }): JSX.Element {
  const origin = useLoad(async (signal) => (from ? await call<Template>("GET", `/templates/${seg(from)}`, { signal }) : undefined), [from]);
  const about = useLoad(() => actionKinds(), []);
  const back = () => go("/templates");
  const t = origin.data;
  const secret = (t?.spec.parameters ?? []).some((p) => p.type === "secret" && p.default);
  const record = from ? t && { apiVersion: blank.apiVersion, kind: blank.kind, metadata: { name: `${t.metadata.name}-copy` }, spec: t.spec } : blank;
  return (
    <>
      <div class="head">
        <h1>
          <span class="crumb">
            <Link to="/templates">Templates</Link> /{" "}
          </span>
          {from ? `a copy of ${from}` : "new"}
        </h1>
      </div>
      <ProblemBox problem={origin.problem ?? about.problem} />
      {secret && <div class="notice">A secret default is not copied: write its value where it reads (redacted), or leave the default out.</div>}
      {!record && !origin.problem && <p class="loading">Loading…</p>}
      {record && (
        <Edit
          record={record}
          isNew
          about={about.data}
          onCancel={back}
          onSaved={(name) => {
            say(`Template ${name} was created.`);
            go(`/templates/${seg(name)}`);
          }}
        />
      )}
    </>
  );
}
