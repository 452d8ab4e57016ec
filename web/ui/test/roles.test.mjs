// Who may not act cannot, in the page or around it.
import assert from "node:assert/strict";
import http from "node:http";
import test from "node:test";
import { api, base, none, open } from "./harness.mjs";
import { loaded, pages, visit } from "./pages.mjs";

// words, and no Reason like power-done
const verbs = /(?<![-\w])(accept|add|apply|cancel|claim|clear|create|delete|edit|forget|hold|inspect|maintenance|new|on|off|power|provision|reinstall|reject|release|remove|replace|retire|retry|revoke|save|start|stop|upload|wipe)(?![-\w])/i;

test("a viewer sees no verb on any page", async (t) => {
  const page = await open(t, "viewer");
  for (const p of pages) {
    await t.test(p.name, async () => {
      await visit(page, p.path);
      // the head of a column sorts, also that of the power
      const named = await page.locator("main button:not(th button), main [role=menuitem], main input[type=file], main input[type=submit]").evaluateAll((all) => all.filter((e) => e.checkVisibility()).map((e) => (e.getAttribute("aria-label") ?? e.textContent).trim()));
      none(named.filter((n) => verbs.test(n)), "verbs");
      assert.equal(await page.locator("a[href^='/provision']").count(), 0);
    });
  }
});

test("an operator does see verbs: the list above is not out of date", async (t) => {
  const page = await open(t, "operator", { path: "/machines/r3-u01" });
  await loaded(page);
  const named = await page.locator("main button, main a.button, main summary").allInnerTexts();
  assert.ok(named.some((n) => verbs.test(n)), `no verb among: ${named.join(", ")}`);
});

/** Requests that a viewer's page could make, if it were another page. */
const forbidden = [
  ["POST", "/hardware/r1-u01/hold", { hold: true }],
  ["POST", "/hardware/r1-u01/release", {}],
  ["POST", "/hardware/r1-u01/power", { action: "off" }],
  ["POST", "/hardware/r3-u01/provision", { image: "debian-12" }],
  ["PATCH", "/hardware/r1-u01", { metadata: { labels: { a: "b" } } }],
  ["DELETE", "/hardware/r1-u01", undefined],
  ["DELETE", "/images/debian-12", undefined],
  ["POST", "/bulk", { verb: "hold", all: true, confirm: 1 }],
  ["POST", "/apply", { kind: "Subnet", metadata: { name: "x" }, spec: { prefix: "10.1.0.0/24" } }],
  ["POST", "/tokens", { metadata: { name: "x" }, spec: { role: "admin" } }],
  ["POST", "/backup", {}],
];

test("the cookie of a viewer does nothing else by hand", async (t) => {
  const page = await open(t, "viewer", { mayFail: /status of 403/ });
  const answers = await page.evaluate(
    (all) =>
      Promise.all(
        all.map(async ([method, path, body]) => {
          const r = await fetch(`/api/v1${path}`, { method, headers: { "Content-Type": method === "PATCH" ? "application/merge-patch+json" : "application/json" }, body: body && JSON.stringify(body) });
          return `${method} ${path} ${r.status}`;
        }),
      ),
    forbidden,
  );
  assert.deepEqual(answers, forbidden.map(([method, path]) => `${method} ${path} 403`));
});

test("a page of somebody else cannot act with the cookie", async (t) => {
  // another site in the browser's eyes, and one that is only another port
  for (const host of ["localhost", "127.0.0.1"]) {
    const page = await open(t, "operator", { elsewhere: true, mayFail: /status of 40[13]|CORS|ERR_FAILED|cross-origin/i });
    const evil = http.createServer((_, w) => {
      w.setHeader("Content-Type", "text/html");
      w.end(`<form method="post" enctype="text/plain" action="${base}/api/v1/hardware/r1-u01/hold"><input name='{"hold":true,"x":"' value='"}'><button>Win a prize</button></form>`);
    });
    evil.unref(); // a hook that fails leaves it open
    await new Promise((f) => evil.listen(0, "127.0.0.1", f));
    t.after(() => evil.close());
    const there = `http://${host}:${evil.address().port}/`;
    await page.goto(there);
    const answers = await page.evaluate(async (to) => {
      const tries = [
        { method: "POST", body: '{"hold":true}', credentials: "include", mode: "no-cors" },
        { method: "POST", body: '{"hold":true}', credentials: "include", mode: "cors", headers: { "Content-Type": "application/json" } },
        { method: "GET", credentials: "include", mode: "cors" },
      ];
      return Promise.all(tries.map((o) => fetch(to, o).then((r) => r.type + r.status, (e) => e.name)));
    }, `${base}/api/v1/hardware/r1-u01/hold`);
    assert.deepEqual(answers.slice(1), ["TypeError", "TypeError"], "another origin read an answer");
    const sent = page.waitForResponse((r) => r.url().endsWith("/hold") && r.request().isNavigationRequest());
    await page.getByRole("button", { name: "Win a prize" }).click();
    const status = (await sent).status();
    assert.ok(status === 401 || status === 403, `the form was answered ${status}`);
  }
  assert.equal((await api("viewer", "GET", "/hardware/r1-u01")).status.hold, undefined);
});
