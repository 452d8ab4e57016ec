// The overview: what is counted changes as it happens, what does not get on says what to do,
// and the plots can be read.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { api, eventually, fetchAPI, open } from "./harness.mjs";

after(() => fetchAPI("operator", "DELETE", "/hardware/counted?force=true"));

test("counts change as it happens, and lead to the machines that they count", async (t) => {
  const page = await open(t, "viewer", { path: "/" });
  await page.evaluate(() => (globalThis.neverReloaded = true));
  const tile = (label) => page.getByRole("list", { name: "Machines by state" }).getByRole("link", { name: new RegExp(`^[\\d,]+ ${label}$`) });
  const count = async (label) => Number((await tile(label).innerText()).replace(/\D/g, ""));
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  // machines of other tests may move meanwhile, so the appliance says how many there are
  const counted = (label, is) =>
    eventually(`"counted" is counted as ${label}`, async () => {
      const all = (await api("viewer", "GET", "/summaries?limit=2000")).items.filter(is);
      return all.some((r) => r.name === "counted") && (await count(label)) === all.length;
    });
  await api("operator", "POST", "/hardware", { kind: "Hardware", metadata: { name: "counted" }, spec: { interfaces: [{ mac: "52:54:0d:7a:03:01" }] } });
  await counted("available", (r) => r.state === "available");
  await api("operator", "POST", "/hardware/counted/maintenance", { note: "a fan" });
  await counted("in maintenance", (r) => r.maintenance);
  await api("operator", "POST", "/hardware/counted/hold", { hold: true });
  await counted("on hold", (r) => r.hold);
  await api("operator", "POST", "/hardware/counted/retire", { force: true });
  await counted("retired", (r) => r.state === "retired");
  assert.equal(await page.evaluate(() => globalThis.neverReloaded), true);
  await tile("retired").click();
  await page.getByRole("link", { name: "counted" }).waitFor();
  assert.equal(new URL(page.url()).searchParams.get("q"), "state:retired");
});

test("what moves is there with its bar, what does not get on with its fix", async (t) => {
  const page = await open(t, "viewer", { path: "/" });
  const moving = page.getByRole("region", { name: "Moving now" });
  await moving.getByRole("progressbar", { name: "progress of r2-u11" }).waitFor();
  await moving.getByText(/\/s · .* left$/).first().waitFor();
  const issues = page.getByRole("region", { name: "What does not get on" });
  const kinds = issues.getByRole("listitem");
  await kinds.first().waitFor();
  for (const kind of await kinds.all()) assert.match(await kind.innerText(), /\n→ \S/, "an issue without a fix");
  const order = await issues.getByText(/^(error|warning|info)$/).allInnerTexts();
  assert.deepEqual(order, [...order].sort((a, b) => ["error", "warning", "info"].indexOf(a) - ["error", "warning", "info"].indexOf(b)), "the worst is not first");
  await kinds.getByRole("link").first().click();
  await page.waitForURL(/\/machines\?q=issue/);
  await page.getByRole("row").nth(1).waitFor();
});

test("the plots have axes with units, and the same numbers are a table", async (t) => {
  const page = await open(t, "viewer", { path: "/" });
  const trend = page.getByRole("region", { name: "Installs of the last 30 days" });
  await trend.getByText(/^[1-9]\d* installs? succeeded, \d+ failed; .* were written to disks/).waitFor();
  const today = await page.evaluate(() => new Date().toISOString().slice(5, 10));
  for (const [title, unit] of [[/^How long they took/, /^(ms|s|min|h)$/], [/^Where the time went/, /^(ms|s|min|h)$/], [/^How many/, /^installs$/]]) {
    const texts = await trend.getByRole("img", { name: title }).locator("text").allTextContents();
    assert.ok(texts.some((x) => unit.test(x.trim())), `${title}: no unit among ${texts}`);
    assert.ok(texts.includes("0") && texts.filter((x) => /^\d+(\.\d+)?$/.test(x)).length >= 3, `${title}: no scale among ${texts}`);
    assert.ok(texts.includes(today), `${title}: no day among ${texts}`);
  }
  assert.ok((await trend.getByRole("list", { name: "Parts of an install" }).getByRole("listitem").count()) >= 3);
  await trend.getByText("As a table").click();
  const day = trend.getByRole("row").filter({ has: page.getByRole("rowheader", { name: /^\d{4}-\d\d-\d\d$/ }) }).first();
  await day.waitFor();
  assert.match((await day.getByRole("cell").allInnerTexts()).join(" | "), /^[1-9]\d* \| \d+ \| \d.* \| \d.* \| .*B \| .*B\/s \| \S/);
});
