// The frame around all pages: who is signed in, where one can go, whether the connection
// is there.
import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { effect, signal, untracked } from "@preact/signals";
import { link, lostAt } from "./api/stream.ts";
import { asProblem, askAgain } from "./api/call.ts";
import type { Problem, Role } from "./api/types.ts";
import { begin, end, pause, rows, rowsProblem } from "./machines.ts";
import { Link, match, path } from "./router.tsx";
import { away, can, look, me, signOut } from "./session.ts";
import { theme, type Theme } from "./theme.ts";
import { Badge, Button, Dialog, Empty, ProblemBox, Sayings, Since } from "./ui/basic.tsx";
import { Menu } from "./ui/menu.tsx";
import { SignIn, SignInAgain } from "./pages/signin.tsx";

type Params = Record<string, string>;
type Page = ComponentType<{ params: Params }>;

interface Place {
  pattern: string;
  /** In the navigation; nothing where it is not there. */
  nav?: string;
  key?: string;
  role?: Role;
  load: () => Promise<{ default: Page }>;
}

/** All pages. Each is fetched when it is shown first. */
const places: Place[] = [
  { pattern: "/", nav: "Overview", key: "o", load: () => import("./pages/overview.tsx") },
  { pattern: "/machines", nav: "Machines", key: "m", load: () => import("./pages/machines.tsx") },
  { pattern: "/machines/:name", load: () => import("./pages/machine.tsx") },
  { pattern: "/racks", nav: "Racks", key: "r", load: () => import("./pages/racks.tsx") },
  { pattern: "/pending", nav: "Pending", key: "p", load: () => import("./pages/pending.tsx") },
  { pattern: "/images", nav: "Images", key: "i", load: () => import("./pages/images.tsx") },
  { pattern: "/templates", nav: "Templates", key: "t", load: () => import("./pages/templates.tsx") },
  { pattern: "/templates/:name", load: () => import("./pages/template.tsx") },
  { pattern: "/networks", nav: "Networks", key: "n", load: () => import("./pages/networks.tsx") },
  { pattern: "/networks/:name", load: () => import("./pages/network.tsx") },
  { pattern: "/provision", role: "operator", load: () => import("./pages/provision.tsx") },
  { pattern: "/events", nav: "Events", key: "e", load: () => import("./pages/events.tsx") },
];

const loaded = new Map<string, Page>();

function Shown(): JSX.Element {
  const [turn, redraw] = useState(0);
  const [problem, setProblem] = useState<{ of: string; what: Problem }>();
  const at = path.value;
  let params: Params | undefined;
  const place = places.find((p) => (params = match(p.pattern === "/" ? "" : p.pattern, at === "/" ? "" : at)) !== undefined);
  const Page = place && loaded.get(place.pattern);
  useEffect(() => {
    if (!place || Page) return;
    let timer = 0;
    const again = () => redraw((n) => n + 1);
    place.load().then(
      (m) => {
        loaded.set(place.pattern, m.default);
        again();
      },
      (err: unknown) => {
        setProblem({ of: place.pattern, what: { ...asProblem(err), detail: "This page could not be fetched.", hint: "It is tried again. If it stays so, reload the page: after an upgrade of the appliance it has other files." } });
        timer = window.setTimeout(again, askAgain);
      },
    );
    return () => clearTimeout(timer);
  }, [place, Page, turn]);
  useEffect(() => {
    const name = params?.["name"] ?? place?.nav ?? "";
    document.title = name ? `${name} · Rackstrap` : "Rackstrap";
  }, [at]);
  if (!place) {
    return (
      <Empty title="There is no such page">
        <Link to="/">Overview</Link>
      </Empty>
    );
  }
  if (place.role && !can(place.role)) {
    return <Empty title={`This page is for an ${place.role}`}>{`You are signed in as ${me.value?.name} (${me.value?.role}).`}</Empty>;
  }
  if (!Page && problem?.of === place.pattern) return <ProblemBox problem={problem.what} />; // other pages are there
  return Page ? <Page params={params!} key={at} /> : <p class="loading">Loading…</p>;
}

function Connection(): JSX.Element {
  switch (link.value) {
    case "live":
      return (
        <Badge tone="good" title="What happens is shown as it happens">
          ● live
        </Badge>
      );
    case "lost":
      return (
        <>
          <span role="alert" class="hidden-text">
            There is no connection. The page shows what was last known and goes on by itself.
          </span>
          <Badge tone="bad" title="The page shows what was last known and goes on by itself">
            ○ no connection for <Since at={new Date(lostAt.value).toISOString()} />
          </Badge>
        </>
      );
    default:
      return <Badge>◌ connecting</Badge>;
  }
}

const helpShown = signal(false);

function Frame(): JSX.Element {
  const pending = rows.value.filter((r) => r.state === "pending").length;
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <Link to="/" class="brand">
          <img src="/favicon.svg" alt="" width="24" height="24" /> Rackstrap
        </Link>
        <nav aria-label="Main">
          {places
            .filter((p) => p.nav)
            .map((p) => (
              <Link key={p.pattern} to={p.pattern} aria-current={path.value === p.pattern || (p.pattern !== "/" && path.value.startsWith(`${p.pattern}/`)) ? "page" : undefined}>
                {p.nav}
                {p.pattern === "/pending" && pending > 0 && <span class="count">{pending}</span>}
              </Link>
            ))}
        </nav>
        <div class="right">
          <Connection />
          <Menu
            title="Account and appearance"
            label={
              <>
                {me.value!.name} <small>{me.value!.role}</small>
              </>
            }
          >
            <label>
              Appearance
              <select value={theme.value} onChange={(e) => (theme.value = e.currentTarget.value as Theme)}>
                <option value="auto">as the system</option>
                <option value="light">light</option>
                <option value="dark">dark</option>
              </select>
            </label>
            <Button kind="quiet" onPress={() => (helpShown.value = true)}>
              Keyboard <kbd>?</kbd>
            </Button>
            <a href="/docs">API</a>
            <Button onPress={signOut}>Sign out</Button>
          </Menu>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <ProblemBox problem={rowsProblem.value} />
        <Shown />
      </main>
      {helpShown.value && <Keys onClose={() => (helpShown.value = false)} />}
    </>
  );
}

function Keys({ onClose }: { onClose: () => void }): JSX.Element {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="keys">
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>search in the page's list</dd>
        {places
          .filter((p) => p.key)
          .map((p) => (
            <>
              <dt>
                <kbd>g</kbd> <kbd>{p.key}</kbd>
              </dt>
              <dd>{p.nav}</dd>
            </>
          ))}
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>this list</dd>
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>close what is open</dd>
      </dl>
    </Dialog>
  );
}

function useKeys(): void {
  useEffect(() => {
    let g = 0;
    const press = (e: KeyboardEvent) => {
      const on = e.composedPath()[0] as HTMLElement;
      if (e.ctrlKey || e.metaKey || e.altKey || on.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(on.tagName) || document.querySelector("dialog[open]")) return;
      if (Date.now() - g < 1500) {
        g = 0;
        const p = places.find((p) => p.key === e.key);
        if (p) {
          e.preventDefault();
          document.querySelector<HTMLAnchorElement>(`nav a[href="${p.pattern}"]`)?.click();
        }
      } else if (e.key === "g") g = Date.now();
      else if (e.key === "?") helpShown.value = true;
      else if (e.key === "/") {
        const s = document.querySelector<HTMLInputElement>("main input[type=search]");
        if (s) {
          e.preventDefault();
          s.focus();
          s.select();
        }
      }
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

/** Everything that is shown. */
export function App(): JSX.Element {
  const [problem, setProblem] = useState<Problem>();
  useKeys();
  useEffect(() => {
    let timer = 0;
    const first = () =>
      look().then(
        () => setProblem(undefined),
        (err: unknown) => {
          setProblem(asProblem(err));
          timer = window.setTimeout(first, 2000);
        },
      );
    void first();
    // the rows are there as long as somebody is signed in
    let was = "";
    const dispose = effect(() => {
      const is = !me.value ? "out" : away.value ? "away" : "in";
      if (is === was) return;
      was = is;
      untracked(is === "in" ? () => void begin() : is === "away" ? pause : end);
    });
    return () => {
      clearTimeout(timer);
      dispose();
    };
  }, []);
  return (
    <>
      {me.value === undefined ? <main>{problem ? <ProblemBox problem={problem} /> : <p class="loading">Connecting…</p>}</main> : me.value === null ? <SignIn /> : <Frame key={me.value.name} />}
      {me.value && away.value && <SignInAgain />}
      <Sayings />
    </>
  );
}
