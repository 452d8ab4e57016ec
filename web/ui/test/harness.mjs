// What the tests of the UI share: a real browser, signed in at a real appliance. The
// appliance and its rack are started by deploy/lab/e2e/web, which says in the environment
// where they are; with deploy/lab/cmd/ui running, one test file runs alone as
//   RACKSTRAP_UI_URL=https://127.0.0.1:… RACKSTRAP_UI_ADMIN=… node --test web/ui/test/NAME.test.mjs
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { appendFileSync } from "node:fs";
import https from "node:https";
import { base, launch, need, session, watch } from "./browser.mjs";

export { axe, base, overflow, session } from "./browser.mjs";

/** The secret of a role: admin, operator or viewer. */
export function token(role) {
  return need(`RACKSTRAP_UI_${role.toUpperCase()}`);
}

/** How long something that must happen may take, in ms: many tests share two cores. */
export const patience = 60_000;

let browser;

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser?.close();
});

/**
 * A page of a new browser session, as somebody with that role; "" is nobody. What goes wrong in
 * it (an exception, a console error, something that the CSP forbids, a dialog) fails the test that
 * asks for it, at its end. Options: path (where it begins), theme ("dark"), width, height, mayFail
 * (a pattern of console errors that the test provokes: Chromium logs each answer that is no
 * success), elsewhere (the page goes to other sites).
 */
export async function open(t, role, o = {}) {
  const context = await browser.newContext({
    // the certificate is the appliance's own; `sameCertificate` compares it once
    ignoreHTTPSErrors: true,
    colorScheme: o.theme ?? "light",
    reducedMotion: "reduce",
    viewport: { width: o.width ?? 1280, height: o.height ?? 800 },
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  const wrong = watch(page, o);
  t.after(async () => {
    if (t.passed === false) t.diagnostic(`${page.url()} shows:\n${await seen(page)}`);
    await context.close();
    none(wrong, "what went wrong in the page");
  });
  if (role) await session(context, token(role));
  await page.goto(base + (o.path ?? "/"));
  if (role) await page.getByRole("navigation", { name: "Main" }).waitFor();
  return page;
}

/** Fails with what was found, a line each, if anything was. */
export function none(found, what = "what must not be there") {
  if (found.length > 0) assert.fail(`${what}:\n  ${found.join("\n  ")}`);
}

/** What a person sees in a page, as text. */
function seen(page) {
  return page.locator("body").innerText({ timeout: 5000 }).then((text) => text.slice(0, 3000), String);
}

/** A request to the API with the token of a role; throws where it does not succeed. */
export async function api(role, method, path, body) {
  const r = await fetchAPI(role, method, path, body);
  if (r.status >= 300) throw new Error(`${method} ${path}: ${r.status} ${r.text}`);
  return r.text ? JSON.parse(r.text) : undefined;
}

/** The same, with whatever is answered. A string is sent as YAML. */
export function fetchAPI(role, method, path, body) {
  const data = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  const headers = { Authorization: `Bearer ${token(role)}` };
  if (data !== undefined) headers["Content-Type"] = typeof body === "string" ? "application/yaml" : "application/json";
  return new Promise((done, failed) => {
    const r = https.request(`${base}/api/v1${path}`, { method, headers, rejectUnauthorized: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (d) => (text += d));
      answer.on("end", () => done({ status: answer.statusCode, text }));
      answer.on("error", failed);
    });
    r.on("error", failed);
    r.end(data);
  });
}

/**
 * Asks the test's other half (deploy/lab/e2e/web) for something that people and machines do, not
 * programs: kill, start, power, stray, … It answers when it is done.
 */
export async function act(what, args = {}) {
  const r = await fetch(`${need("RACKSTRAP_UI_CONTROL")}/${what}?${new URLSearchParams(args)}`, { method: "POST" });
  const text = await r.text();
  assert.ok(r.ok, `${what}: ${text}`);
  return text ? JSON.parse(text) : undefined;
}

/** Waits until is() is truthy, and gives what it gave. It is asked again and again. */
export async function eventually(what, is, ms = patience) {
  const end = Date.now() + ms;
  let last;
  for (;;) {
    try {
      const v = await is();
      if (v) return v;
      last = undefined;
    } catch (err) {
      last = err;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${ms / 1000} s`, { cause: last });
    await new Promise((f) => setTimeout(f, 100));
  }
}

/**
 * Takes what the editor offers, by Enter. A list that opened less than 75 ms ago leaves
 * Enter to the text (interactionDelay of @codemirror/autocomplete): who types fast means
 * a new line.
 */
export async function takeOffer(page, name) {
  await page.getByRole("option", { name, selected: true }).waitFor();
  const seen = await page.evaluate(() => Date.now());
  await page.waitForFunction((seen) => Date.now() > seen + 75, seen);
  await page.keyboard.press("Enter");
}

/** Whether times are judged: on a machine that others use they mean nothing. */
export const judged = process.env.RACKSTRAP_BENCH === "1";

/** Writes a line into the table of figures, if one is wanted, and fails beyond the limit; time: only where times are judged. */
export function figure(what, measured, limit, unit, { time = false } = {}) {
  const line = `${what.padEnd(60)} ${`${Number(measured.toPrecision(3))} ${unit}`.padStart(12)}   wanted under ${limit} ${unit}\n`;
  process.stdout.write(line);
  if (process.env.RACKSTRAP_WEB_TABLE) appendFileSync(process.env.RACKSTRAP_WEB_TABLE, line);
  if (!time || judged) assert.ok(measured < limit, line);
}
