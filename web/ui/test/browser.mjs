// A real browser at a real appliance: what the tests and the pictures share.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

/** Where the appliance is. */
export const base = need("RACKSTRAP_UI_URL");

/** A variable of the environment that must be there. */
export function need(name) {
  const v = process.env[name];
  if (!v) throw new Error(`${name} is not set (run: make test-web)`);
  return v;
}

/** Starts the Chromium of the system; nothing is downloaded. */
export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    // a namespace of its own is nothing that root, or a container, can give it
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--force-color-profile=srgb", "--hide-scrollbars"],
    handleSIGINT: false,
  });
}

/** Notes in the answer what goes wrong in a page. elsewhere: it goes to other sites, too. */
export function watch(page, { mayFail, elsewhere = false } = {}) {
  const wrong = [];
  const add = (what) => {
    // the page learns by this answer that nobody is signed in
    if (/status of 401 .*\/api\/v1\/whoami\)$/.test(what) || mayFail?.test(what)) return;
    wrong.push(what);
  };
  page.on("pageerror", (e) => add(`exception: ${e.stack ?? e}`));
  page.on("console", (m) => {
    if (m.type() === "error") add(`console: ${m.text()} (${m.location().url})`);
  });
  page.on("dialog", (d) => {
    add(`dialog: ${d.message()}`);
    void d.dismiss();
  });
  page.on("request", (r) => {
    // air-gapped: whatever is fetched is the appliance's
    if (!elsewhere && !r.url().startsWith(base) && !/^(data|blob):/.test(r.url())) add(`a request to ${r.url()}`);
  });
  return wrong;
}

/** Signs a browser session in by the API, as the sign-in page does. */
export async function session(context, secret) {
  const r = await context.request.post(`${base}/api/v1/session`, { data: { token: secret }, headers: { Origin: base } });
  assert.ok(r.ok(), `sign in: ${r.status()} ${await r.text()}`);
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The serious and critical findings of axe-core in a page as it is now, as lines; rules: of these only. */
export async function axe(page, rules) {
  // the page's CSP lets no script in, and that is so; the debugger's own world is not bound by it
  await page.evaluate(axeSource);
  const result = await page.evaluate((only) => globalThis.axe.run(document, { resultTypes: ["violations"], ...(only && { runOnly: only }) }), rules);
  return result.violations
    .filter((v) => v.impact === "serious" || v.impact === "critical")
    .flatMap((v) => v.nodes.map((n) => `${v.impact}: ${v.id}: ${n.target.join(" ")}: ${n.failureSummary.replaceAll(/\s+/g, " ")}`));
}

/** Why a page is wider than its window: the innermost elements that stick out of it. None is right. */
export function overflow(page) {
  return page.evaluate(() => {
    const root = document.documentElement;
    if (root.scrollWidth <= root.clientWidth) return [];
    // what is positioned is clipped by what it is positioned in, not by all that it is in
    const around = (e) => (getComputedStyle(e).position === "absolute" ? e.offsetParent : e.parentElement);
    const clipped = (e) => {
      for (let a = around(e); a && a !== document.body; a = around(a)) if (getComputedStyle(a).overflowX !== "visible") return true;
      return false;
    };
    const out = [...document.body.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1 && !clipped(e));
    const inner = out.filter((e) => !out.some((o) => o !== e && e.contains(o)));
    return [`${root.scrollWidth - root.clientWidth} px wider than the window`, ...inner.slice(0, 5).map((e) => e.outerHTML.slice(0, 200))];
  });
}
