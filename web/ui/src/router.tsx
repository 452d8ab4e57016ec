import { computed, signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";

const place = signal(read());

function read(): { path: string; query: URLSearchParams } {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

window.addEventListener("popstate", () => (place.value = read()));

/** The path that is shown. */
export const path = computed(() => place.value.path);

/** The query of the URL that is shown; what a page lets people choose is kept there, so that a link shows the same. */
export const query = computed(() => place.value.query);

/** Shows another URL. */
export function go(to: string, o: { replace?: boolean } = {}): void {
  if (o.replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  const was = place.value.path;
  place.value = read();
  if (was !== place.value.path) {
    window.scrollTo(0, 0);
    document.getElementById("main")?.focus({ preventScroll: true });
  }
}

/** Changes parameters of the query; undefined or "" takes one out. */
export function setQuery(change: Record<string, string | undefined>, o: { push?: boolean } = {}): void {
  const q = new URLSearchParams(place.value.query);
  for (const [k, v] of Object.entries(change)) {
    if (v) q.set(k, v);
    else q.delete(k);
  }
  const text = q.toString();
  go(place.value.path + (text ? `?${text}` : ""), { replace: !o.push });
}

/** LinkProps of a link inside the app. */
interface LinkProps {
  to: string;
  children: ComponentChildren;
  class?: string | undefined;
  title?: string | undefined;
  tabIndex?: number;
  "aria-current"?: "page" | undefined;
  "aria-label"?: string | undefined;
}

/** A link inside the app. */
export function Link({ to, children, ...rest }: LinkProps): JSX.Element {
  return (
    <a
      href={to}
      {...rest}
      onClick={(e) => {
        if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
        e.preventDefault();
        go(to);
      }}
    >
      {children}
    </a>
  );
}

/** The parts of the path that match a pattern like /machines/:name; undefined where it does not match. */
export function match(pattern: string, at: string): Record<string, string> | undefined {
  const want = pattern.split("/");
  const have = at.replace(/\/+$/, "").split("/");
  if (want.length !== have.length) return undefined;
  const out: Record<string, string> = {};
  for (const [i, w] of want.entries()) {
    const h = have[i] ?? "";
    if (w.startsWith(":")) {
      try {
        out[w.slice(1)] = decodeURIComponent(h);
      } catch {
        return undefined;
      }
      if (!h) return undefined;
    } else if (w !== h) return undefined;
  }
  return out;
}
