// The list of events, and the tabs of the machine page for those who see or move differently.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { api, axe, eventually, fetchAPI, open, overflow } from "./harness.mjs";

let last = 0;
const made = [];

/** A machine that is only a record. */
async function record(name, spec = {}) {
  last++;
  made.push(name);
  const mac = `52:54:0d:7a:02:${String(last).padStart(2, "0")}`;
  return api("operator", "POST", "/hardware", { kind: "Hardware", metadata: { name }, spec: { interfaces: [{ mac }], ...spec } });
}

after(async () => {
  for (const name of made) await fetchAPI("operator", "DELETE", `/hardware/${name}?force=true`);
});

test("events come as they happen, are filtered, paused, and older ones are fetched", async (t) => {
  await record("busy");
  const page = await open(t, "operator", { path: "/events?machine=busy" });
  await page.getByRole("cell", { name: "record created" }).waitFor();
  const began = Date.now();
  await api("operator", "POST", "/hardware/busy/maintenance", { note: "first" });
  await page.getByRole("cell", { name: /first/ }).waitFor();
  t.diagnostic(`an event was on the page ${Date.now() - began} ms after it was asked for`);
  await page.getByRole("button", { name: "Pause" }).click();
  await api("operator", "POST", "/hardware/busy/maintenance", { off: true });
  await page.getByRole("button", { name: /Go on \(\d+ new\)/ }).waitFor();
  assert.equal(await page.getByRole("button", { name: "maintenance-ended" }).count(), 0);
  await page.getByRole("button", { name: /Go on/ }).click();
  await page.getByRole("button", { name: "maintenance-ended" }).waitFor();
  await page.getByLabel("Reason").fill("maintenance");
  await page.getByRole("button", { name: "maintenance-ended" }).waitFor({ state: "detached" });
  assert.match(page.url(), /reason=maintenance/);
  await page.getByLabel("Reason").fill("");
  await page.getByRole("searchbox").fill("nothing like it");
  await page.getByText("No event fits the filter").waitFor();

  const all = await open(t, "viewer", { path: "/events" });
  const status = all.getByText(/^[\d,]+ events/).first();
  await status.waitFor();
  const count = async () => Number((await status.innerText()).replace(/\D/g, ""));
  const before = await count();
  assert.ok(before >= 300, `${before} events at first`);
  await all.getByRole("button", { name: "Show older events" }).click();
  await eventually("older events", async () => (await count()) > before);
  assert.ok((await all.getByRole("row").count()) < 80, "all rows are drawn");
});

for (const theme of ["light", "dark"]) {
  test(`nothing bars anybody, ${theme}`, async (t) => {
    for (const path of ["/machines/r1-u01", "/machines/r2-u11?tab=why", "/machines/r1-u05?tab=facts", "/machines/r3-u17?tab=workflow", "/machines/r3-u17?tab=events", "/machines/r3-u17?tab=edit", "/events"]) {
      const page = await open(t, "operator", { path, theme, width: theme === "dark" ? 360 : 1280 });
      await page.waitForFunction(() => !document.querySelector("main .loading"));
      assert.deepEqual(await axe(page), [], path);
      assert.deepEqual(await overflow(page), [], `${path} is wider than its window`);
      await page.context().close();
    }
  });
}
