import { computed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { query, go, Link, setQuery } from "../router.tsx";
import { seg } from "../api/call.ts";
import { count } from "../format.ts";
import { complete, rows, rowsProblem, type Row } from "../machines.ts";
import { operator } from "../session.ts";
import { Button, Copy, Dialog, Empty, Field, say, toneOf } from "../ui/basic.tsx";
import { download } from "../ui/download.ts";
import { lazy } from "../ui/lazy.tsx";
import { Menu } from "../ui/menu.tsx";
import { BulkBar } from "../list/bulkbar.tsx";
import { columns, columnsOf, few, machines, usual, type Act, type Column } from "../list/columns.tsx";
import { command } from "../list/command.ts";
import { csv } from "../list/export.ts";
import { chosen, compile, toggle } from "../list/filter.ts";
import { FilterBox, useFilter, type Filtering } from "../list/filterbox.tsx";
import { IssueDialog } from "../list/issue.tsx";
import { labelsOf, states } from "../list/keys.ts";
import { counts, groups, sorter } from "../list/order.ts";
import { Head, Table, type Line } from "../list/table.tsx";
import { builtIn, forgetView, keepView, saved, viewOf } from "../list/views.ts";

const Add = lazy(() => import("../list/add.tsx").then((m) => m.Add));

/** What rows can be grouped by, besides labels. */
const groupings = ["state", "rack", "owner", "image", "issue", "power", "vendor", "product", "arch"];

/** The lines of the page: all rows in order, those that the filter finds, and these in groups. */
function lists(f: Filtering, closed: { value: ReadonlySet<string> }) {
  const sort = computed(() => query.value.get("sort") ?? "");
  const group = computed(() => query.value.get("group") ?? "");
  const order = computed(() => {
    const by = sort.value.replace(/^-/, "");
    return sorter(columnsOf([by]).find((c) => c.key === by)?.sort ?? (() => undefined), sort.value.startsWith("-"));
  });
  const sorted = computed(() => order.value(rows.value));
  const found = computed(() => sorted.value.filter(f.test.value));
  // the chips count what the filter would find without its states
  const facets = computed(() => {
    const others = f.filter.value.terms.filter((t) => t.key !== "state" || t.not || t.op !== ":");
    return counts(others.length === f.filter.value.terms.length ? found.value : rows.value.filter(compile(others, f.clock.value)), "state");
  });
  const lines = computed<Line[]>(() => {
    if (!group.value) return found.value;
    return groups(found.value, group.value).flatMap<Line>((g) => {
      const open = !closed.value.has(g.value);
      return open ? [new Head(g, true), ...g.rows] : [new Head(g, false)];
    });
  });
  return { sort, group, found, facets, lines };
}

/** The columns that the URL asks for, or the usual ones. */
function shownColumns(cols: string): Column[] {
  if (cols) return columnsOf(cols.split(","));
  return columnsOf(window.innerWidth < 700 ? few : usual);
}

/** All machines. */
export default function Machines(): JSX.Element {
  const f = useFilter();
  const closed = useSignal<ReadonlySet<string>>(new Set());
  const selected = useSignal<ReadonlySet<string>>(new Set());
  const [issue, setIssue] = useState<Row>();
  const [adding, setAdding] = useState(false);
  const { sort, group, found, facets, lines } = useMemo(() => lists(f, closed), []);
  const cols = query.value.get("cols") ?? "";
  const shown = useMemo(() => shownColumns(cols), [cols]);
  const act = useMemo<Act>(() => ({ issue: setIssue }), []);
  const total = rows.value.length;

  const select = (names: string[], on: boolean) => {
    const next = new Set(selected.value);
    for (const n of names) on ? next.add(n) : next.delete(n);
    selected.value = next;
  };
  const fold = (value: string) => {
    const next = new Set(closed.value);
    if (!next.delete(value)) next.add(value);
    closed.value = next;
  };
  return (
    <div class="machines">
      <div class="head">
        <h1>Machines</h1>
        <span class="dim" role="status">
          {found.value.length === total ? machines(total) : `${found.value.length.toLocaleString("en")} of ${machines(total)}`}
          {!complete.value && !rowsProblem.value && ", more are being read"}
        </span>
        <div class="right">
          <ColumnMenu shown={shown} />
          <GroupBy group={group.value} />
          <ExportMenu columns={shown} rows={() => found.peek()} filter={f} />
          {operator.value && (
            <Button kind="primary" onPress={() => setAdding(true)}>
              Add machines
            </Button>
          )}
        </div>
      </div>
      <Views filter={f} />
      <FilterBox of={f} />
      <Chips filter={f} facets={facets.value} />
      {operator.value && <BulkBar selected={selected.value} shown={found.value} onSelect={(names) => (selected.value = new Set(names))} />}
      {total === 0 && complete.value ? (
        <Empty title="There is no machine yet">
          <p>
            Power one on and it appears under <Link to="/pending">Pending</Link>, or add it here. <Link to="/">The first three steps</Link>
          </p>
          {operator.value && <Button onPress={() => setAdding(true)}>Add machines</Button>}
        </Empty>
      ) : (
        <Table
          lines={lines.value}
          grouped={group.value !== ""}
          columns={shown}
          sort={sort.value}
          onSort={(s) => setQuery({ sort: s === "name" ? "" : s })}
          selected={operator.value ? selected.value : undefined}
          onSelect={select}
          onOpen={(r) => go(`/machines/${seg(r.name)}`)}
          onGroup={fold}
          act={act}
        />
      )}
      {total > 0 && found.value.length === 0 && complete.value && (
        <Empty title="No machine matches the filter">
          <Button onPress={() => f.set("")}>Clear the filter</Button>
        </Empty>
      )}
      {issue && <IssueDialog of={issue} onClose={() => setIssue(undefined)} />}
      {adding && <Add onClose={() => setAdding(false)} />}
    </div>
  );
}

/** How many machines are in which state; a press shows only these. */
function Chips({ filter: f, facets }: { filter: Filtering; facets: Map<string, number> }): JSX.Element {
  const on = chosen(f.filter.value, "state");
  return (
    <div class="chips" role="group" aria-label="States">
      {states
        .filter((s) => facets.has(s) || on.includes(s))
        .map((s) => (
          <button key={s} type="button" class={`badge ${toneOf(s)} pressed`} aria-pressed={on.includes(s)} onClick={() => f.set(toggle(f.text.peek(), "state", s))}>
            {s} <b>{(facets.get(s) ?? 0).toLocaleString("en")}</b>
          </button>
        ))}
    </div>
  );
}

/** The views by name, and a way to keep this one. */
function Views({ filter: f }: { filter: Filtering }): JSX.Element {
  const [naming, setNaming] = useState(false);
  const here = viewOf(query.value);
  const mine = saved.value.find((v) => v.query === here);
  const known = mine ?? builtIn.find((v) => v.query === here);
  return (
    <nav class="views" aria-label="Views">
      {[...builtIn, ...saved.value].map((v) => (
        <Link key={v.name} to={v.query ? `/machines?${v.query}` : "/machines"} aria-current={v === known ? "page" : undefined}>
          {v.name}
        </Link>
      ))}
      {!known && (
        <Button kind="quiet" onPress={() => setNaming(true)}>
          Save this view
        </Button>
      )}
      {mine && (
        <Button kind="quiet" onPress={() => (forgetView(mine.name), say(`The view ${mine.name} is forgotten.`))}>
          Forget this view
        </Button>
      )}
      {naming && <NameView query={here} text={f.text.value} onClose={() => setNaming(false)} />}
    </nav>
  );
}

function NameView({ query: q, text, onClose }: { query: string; text: string; onClose: () => void }): JSX.Element {
  const [name, setName] = useState("");
  const taken = builtIn.some((v) => v.name.toLowerCase() === name.trim().toLowerCase());
  const link = `${location.origin}/machines?${q}`;
  return (
    <Dialog title="Save this view" onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (!name.trim() || taken) return;
          keepView({ name: name.trim().slice(0, 60), query: q });
          onClose();
        }}
      >
        <p>
          Filter, columns, order and groups get a name in this browser{text && (
            <>
              : <code>{text}</code>
            </>
          )}
        </p>
        <Field label="Name" error={taken ? "There is a view of that name for everybody." : undefined}>
          {(p) => <input {...p} autoFocus maxLength={60} value={name} onInput={(e) => setName(e.currentTarget.value)} />}
        </Field>
        <p>
          Others see the same with this link: <Copy text={link} />
        </p>
        <footer>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={!name.trim() || taken}>
            Save
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function GroupBy({ group }: { group: string }): JSX.Element {
  const labels = labelsOf(rows.value).map(([k]) => `label.${k}`);
  const all = [...groupings, ...labels];
  if (group && !all.includes(group)) all.push(group);
  return (
    <label>
      Group by{" "}
      <select value={group} onChange={(e) => setQuery({ group: e.currentTarget.value })}>
        <option value="">nothing</option>
        {all.map((g) => (
          <option key={g} value={g}>
            {g}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Which columns are shown, and in which order. */
function ColumnMenu({ shown }: { shown: Column[] }): JSX.Element {
  const keys = shown.map((c) => c.key);
  const show = (next: string[]) => setQuery({ cols: next.join(",") });
  const swap = (i: number, j: number) => {
    const next = [...keys];
    [next[i], next[j]] = [next[j]!, next[i]!];
    show(next);
  };
  const labels = labelsOf(rows.value)
    .slice(0, 50)
    .map(([k]) => `label:${k}`);
  const rest = [...columns.map((c) => c.key), ...labels].filter((k) => !keys.includes(k));
  const head = (k: string) => columns.find((c) => c.key === k)?.head ?? `label ${k.slice(6)}`;
  return (
    <Menu label="Columns">
      <ul class="choose" aria-label="Columns">
        {keys.map((k, i) => (
          <li key={k}>
            <label>
              <input type="checkbox" checked disabled={k === "name"} onChange={() => show(keys.filter((o) => o !== k))} /> {head(k)}
            </label>
            <button type="button" class="button quiet" aria-label={`${head(k)} before ${i > 0 ? head(keys[i - 1]!) : ""}`} disabled={i === 0} onClick={() => swap(i, i - 1)}>
              ↑
            </button>
            <button type="button" class="button quiet" aria-label={`${head(k)} after ${i < keys.length - 1 ? head(keys[i + 1]!) : ""}`} disabled={i === keys.length - 1} onClick={() => swap(i, i + 1)}>
              ↓
            </button>
          </li>
        ))}
        {rest.map((k) => (
          <li key={k}>
            <label>
              <input type="checkbox" checked={false} onChange={() => show([...keys, k])} /> {head(k)}
            </label>
          </li>
        ))}
      </ul>
      <Button onPress={() => setQuery({ cols: undefined })}>The usual columns</Button>
    </Menu>
  );
}

/** What is shown as a file, and the command that lists it. */
function ExportMenu({ columns: shown, rows: of, filter: f }: { columns: Column[]; rows: () => Row[]; filter: Filtering }): JSX.Element {
  const line = command(f.filter.value);
  return (
    <Menu label="Export" once>
      <Button onPress={() => download("machines.csv", "text/csv;charset=utf-8", csv(of(), shown))}>CSV, the columns shown</Button>
      <Button onPress={() => download("machines.json", "application/json", JSON.stringify(of(), null, 2))}>JSON, everything</Button>
      {line ? (
        <Button
          title={line}
          onPress={async () => {
            await navigator.clipboard.writeText(line);
            say(`Copied: ${line}`);
          }}
        >
          Copy as command
        </Button>
      ) : (
        <small>The command line cannot say this filter: it finds by state and labels.</small>
      )}
      <small>{count(of().length, "machine")}</small>
    </Menu>
  );
}
