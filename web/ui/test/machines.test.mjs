// The machines and the racks, as a person works with them. The records here stand behind no
// machine, so that nothing happens to them but what the test does.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test, { before } from "node:test";
import { api, eventually, fetchAPI, open } from "./harness.mjs";

const rack = "mx";
const record = (i, more = "") => `---
kind: Hardware
metadata: {name: mx-${i}, labels: {suite: machines, tier: ${i % 2 ? "odd" : "even"}}}
spec:
  rack: ${rack}
  position: "${i}"
  assetTag: "=1+${i}"
  interfaces: [{mac: "02:00:ff:00:00:${String(i).padStart(2, "0")}"}]
${more}`;

before(async () => {
  const all = [1, 2, 3, 4, 5, 6, 7, 8].map((i) => record(i)).join("") + "---\nkind: Hardware\nmetadata: {name: mx-apart, labels: {suite: machines}}\nspec: {interfaces: [{mac: '02:00:ff:00:00:99'}]}\n";
  await api("operator", "POST", "/apply", all);
});

const at = (query) => `/machines?q=${encodeURIComponent(query)}`;
const filter = (page) => page.getByRole("combobox", { name: "Filter" });
const line = (page, name) => page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });
const shown = (page) => page.getByRole("row").getByRole("link").allInnerTexts();
/** Waits until just these machines are in the table. */
const shows = (page, want) => eventually(`the table shows ${want}`, async () => (await shown(page)).join(" ") === want);
const query = (page, key) => new URL(page.url()).searchParams.get(key);

test("the filter finds, offers and says what is wrong", async (t) => {
  const page = await open(t, "viewer", { path: "/machines" });
  const box = filter(page);
  await box.fill(`rack:${rack} label.tier=odd`);
  await shows(page, "mx-1 mx-3 mx-5 mx-7");
  await eventually("the URL has the filter", () => query(page, "q") === `rack:${rack} label.tier=odd`);
  await page.reload();
  await shows(page, "mx-1 mx-3 mx-5 mx-7");
  // the keyboard takes an offer
  await box.fill(`rack:${rack} label.tier:`);
  await page.getByRole("option", { name: /even/ }).waitFor();
  await box.press("e");
  await box.press("v");
  await box.press("ArrowDown");
  await box.press("Enter");
  await shows(page, "mx-2 mx-4 mx-6 mx-8");
  // a mistake is said in words at its place; what is right goes on
  await box.fill(`rack:${rack} name:mx-1 colour:red`);
  await page.getByText("colour is not known").waitFor();
  await shows(page, "mx-1");
  await box.fill("name:nobody-has-this");
  await page.getByRole("button", { name: "Clear the filter" }).click();
  await eventually("all are there again", async () => (await shown(page)).length > 10);
});

test("the states count and choose, groups fold, columns and order are in the URL", async (t) => {
  const page = await open(t, "viewer", { path: at(`rack:${rack}`) });
  await shows(page, "mx-1 mx-2 mx-3 mx-4 mx-5 mx-6 mx-7 mx-8");
  await page.getByRole("group", { name: "States" }).getByRole("button", { name: /^available/ }).click();
  await eventually("the chip is in the filter", () => query(page, "q")?.includes("state:available"));
  await page.getByRole("columnheader", { name: "Name" }).getByRole("button").click();
  await shows(page, "mx-8 mx-7 mx-6 mx-5 mx-4 mx-3 mx-2 mx-1");
  assert.equal(query(page, "sort"), "-name");
  assert.equal(await page.getByRole("columnheader", { name: "Name" }).getAttribute("aria-sort"), "descending");
  await page.getByLabel("Group by").selectOption("label.tier");
  const head = page.getByRole("row", { name: /even 4/ });
  await head.click();
  await shows(page, "mx-7 mx-5 mx-3 mx-1");
  assert.equal(await head.getAttribute("aria-expanded"), "false");
  await page.locator("summary", { hasText: "Columns" }).click();
  await page.getByRole("checkbox", { name: "Asset tag" }).check();
  await page.getByRole("columnheader", { name: "Asset tag" }).waitFor();
  assert.ok(query(page, "cols").endsWith(",asset"));
});

test("groups by state and rack count their machines, and the URL shows the same on a second page", async (t) => {
  const page = await open(t, "viewer", { path: at(`rack:r3,${rack}`) });
  await eventually("both racks are there", async () => (await shown(page)).includes("r3-u01") && (await shown(page)).includes("mx-1"));
  const heads = (page) => page.getByRole("row").filter({ hasNot: page.getByRole("link") }).filter({ hasNot: page.getByRole("columnheader") }).allInnerTexts();
  const words = async (page) => (await heads(page)).map((h) => h.replaceAll(/\s+/g, " ").trim());
  await page.getByLabel("Group by").selectOption("state");
  await eventually("states are groups", async () => (await words(page)).some((h) => /available \d+/.test(h)) && (await words(page)).some((h) => /failed 2/.test(h)));
  await page.getByLabel("Group by").selectOption("rack");
  await eventually("racks are groups", async () => (await words(page)).some((h) => /\bmx 8/.test(h)) && (await words(page)).some((h) => /\br3 10/.test(h)));
  await page.locator("summary", { hasText: "Columns" }).click();
  const columns = page.getByRole("list", { name: "Columns" });
  await columns.getByRole("checkbox", { name: "Asset tag" }).check();
  await columns.getByRole("button", { name: /^Asset tag before/ }).click(); // one further to the left
  await columns.getByRole("checkbox", { name: "Power", exact: true }).uncheck();
  await page.getByRole("columnheader", { name: "Power", exact: true }).waitFor({ state: "detached" });
  await page.keyboard.press("Escape");
  await page.getByRole("columnheader", { name: "Asset tag" }).getByRole("button").click();
  await eventually("the order is in the URL", () => query(page, "sort"));

  const all = async (page) => JSON.stringify([await page.getByRole("columnheader").allInnerTexts(), await words(page), await shown(page)]);
  const other = await open(t, "viewer", { path: page.url().slice(page.url().indexOf("/machines")) });
  await eventually("the second page shows the same", async () => (await all(other)) === (await all(page)) && (await shown(other)).includes("mx-1"));
  assert.equal(await other.getByLabel("Group by").inputValue(), "rack");
  // the way back is the browser's
  await page.getByLabel("Group by").selectOption("");
  await eventually("no groups", async () => (await words(page)).length === 0);
});

test("a view has a name, and its link shows the same to others", async (t) => {
  const page = await open(t, "viewer", { path: "/machines" });
  await filter(page).fill(`rack:${rack} name:mx-3`);
  await page.getByRole("button", { name: "Save this view" }).click();
  await page.getByRole("dialog").getByRole("textbox", { name: "Name" }).fill("My three");
  await page.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
  const views = page.getByRole("navigation", { name: "Views" });
  await views.getByRole("link", { name: "All", exact: true }).click();
  await eventually("all are there", async () => (await shown(page)).length > 1);
  await views.getByRole("link", { name: "My three" }).click();
  await shows(page, "mx-3");
  const other = await open(t, "operator", { path: new URL(page.url()).search ? `/machines${new URL(page.url()).search}` : "" });
  await shows(other, "mx-3");
  await page.reload();
  await views.getByRole("button", { name: "Forget this view" }).click();
  await views.getByRole("link", { name: "My three" }).waitFor({ state: "detached" });
});

test("by the keyboard: move, select, open", async (t) => {
  const page = await open(t, "operator", { path: at(`rack:${rack}`) });
  await shows(page, "mx-1 mx-2 mx-3 mx-4 mx-5 mx-6 mx-7 mx-8");
  const grid = page.getByRole("grid", { name: "Machines" });
  assert.equal(await grid.getAttribute("aria-rowcount"), "9");
  await grid.focus();
  await grid.press("ArrowDown");
  await grid.press(" ");
  await grid.press("Shift+ArrowDown");
  await page.getByText("2 machines selected").waitFor();
  assert.equal(await line(page, "mx-3").getAttribute("aria-selected"), "true");
  await grid.press("End");
  await grid.press("Enter");
  await page.waitForURL("**/machines/mx-8");
});

test("many at once: a preview, refusals, and what came of it", async (t) => {
  const page = await open(t, "operator", { path: at(`rack:${rack} name:mx-5,mx-6`), mayFail: /status of 404/ });
  await shows(page, "mx-5 mx-6");
  await page.getByRole("checkbox", { name: /^Select all/ }).click();
  await page.getByRole("button", { name: "Hold", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("available → available, on hold").first().waitFor();
  // one goes between the preview and the press: the other is done all the same
  await api("operator", "DELETE", "/hardware/mx-6");
  await dialog.getByRole("button", { name: "Hold 2 machines" }).click();
  await dialog.getByText("1 machine done, 1 not.").waitFor();
  await dialog.getByRole("cell", { name: "failed" }).waitFor();
  await dialog.getByRole("button", { name: /^Look again/ }).click();
  await dialog.getByText("1 refused").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await line(page, "mx-5").getByText("on hold").waitFor();
  assert.equal((await api("viewer", "GET", "/hardware/mx-5")).status.hold, true);
});

test("destruction wants its word", async (t) => {
  const page = await open(t, "operator", { path: at(`rack:${rack} name:mx-7,mx-8`) });
  await shows(page, "mx-7 mx-8");
  await page.getByRole("checkbox", { name: /^Select all/ }).click();
  await page.locator("summary", { hasText: "More" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  const dialog = page.getByRole("dialog");
  const go = dialog.getByRole("button", { name: "Delete 2 machines" });
  await go.waitFor();
  assert.equal(await go.isDisabled(), true);
  await dialog.getByLabel("Type 2 to confirm").fill("3");
  assert.equal(await go.isDisabled(), true);
  await dialog.getByLabel("Type 2 to confirm").fill("2");
  await go.click();
  await dialog.getByText("2 machines done.").waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await page.getByText("No machine matches the filter").waitFor();
  assert.equal((await fetchAPI("viewer", "GET", "/hardware/mx-7")).status, 404);
});

test("one that refuses is told before and after, and the others are done", async (t) => {
  const names = ["mx-k1", "mx-k2", "mx-k3"];
  await api("operator", "POST", "/apply", names.map((n, i) => `---\nkind: Hardware\nmetadata: {name: ${n}}\nspec: {interfaces: [{mac: "02:00:ff:00:02:0${i}"}]}\n`).join(""));
  t.after(() => Promise.all(names.map((n) => fetchAPI("operator", "DELETE", `/hardware/${n}?force=true`))));
  await api("operator", "POST", "/claims", { kind: "Claim", metadata: { name: "mx-claim" }, spec: { owner: "team/mx", hardware: "mx-k1" } });
  const page = await open(t, "operator", { path: at(`name:${names}`), mayFail: /status of 4(04|09|22)/ });
  await shows(page, names.join(" "));
  await page.getByRole("checkbox", { name: /^Select all/ }).click();
  await page.locator("summary", { hasText: "More" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("2 machines will be acted on, 1 refused.").waitFor();
  const told = (name) => dialog.getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) });
  await told("mx-k1").getByText("refused").waitFor();
  await told("mx-k1").getByText(/team\/mx/).waitFor();
  await told("mx-k2").getByText("will be deleted").waitFor();
  const go = dialog.getByRole("button", { name: "Delete 2 machines" });
  await dialog.getByLabel("Type 2 to confirm").fill("3");
  assert.ok(await go.isDisabled());
  await dialog.getByLabel("Type 2 to confirm").fill("2");
  // one more refuses between the preview and the press
  await api("operator", "POST", "/claims", { kind: "Claim", metadata: { name: "mx-claim-2" }, spec: { owner: "team/late", hardware: "mx-k2" } });
  await go.click();
  await dialog.getByText("1 machine done, 1 not.").waitFor();
  await told("mx-k2").getByText("failed").waitFor();
  await told("mx-k2").getByText(/team\/late/).waitFor();
  await told("mx-k3").getByText("deleted").waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await shows(page, "mx-k1 mx-k2");
});

test("labels of many", async (t) => {
  const page = await open(t, "operator", { path: at(`rack:${rack} name:mx-1,mx-2`) });
  await shows(page, "mx-1 mx-2");
  await page.getByRole("checkbox", { name: /^Select all/ }).click();
  await page.locator("summary", { hasText: "More" }).click();
  await page.getByRole("button", { name: "Labels" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Set").fill("shelf=upper");
  await dialog.getByText("metadata.labels.shelf: nothing → upper").first().waitFor();
  await dialog.getByRole("button", { name: "Labels 2 machines" }).click();
  await dialog.getByText("2 machines done.").waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await filter(page).fill("label.shelf:upper");
  await shows(page, "mx-1 mx-2");
});

test("an event draws its own row and no other", async (t) => {
  const page = await open(t, "viewer", { path: at(`rack:${rack} name:mx-1,mx-2,mx-3,mx-4`) });
  await shows(page, "mx-1 mx-2 mx-3 mx-4");
  await page.evaluate(() => {
    globalThis.touched = new Set();
    new MutationObserver((all) => {
      for (const m of all) {
        const e = m.target.nodeType === 1 ? m.target : m.target.parentElement;
        if (!e?.closest("time")) globalThis.touched.add(e?.closest("tr")?.querySelector("a")?.textContent ?? (e?.outerHTML ?? m.type));
      }
    }).observe(document.querySelector("[role=grid]"), { subtree: true, childList: true, attributes: true, characterData: true });
  });
  await api("operator", "POST", "/hardware/mx-4/hold", { hold: true });
  await line(page, "mx-4").getByText("on hold").waitFor();
  assert.deepEqual(await page.evaluate(() => [...globalThis.touched]), ["mx-4"]);
});

test("a machine is added by the form, and many as YAML", async (t) => {
  const page = await open(t, "operator", { path: at("label.suite:added"), mayFail: /status of (422|409)/ });
  await page.getByRole("button", { name: "Add machines" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("mx-new");
  await dialog.getByLabel("MAC").fill("01:00:5e:00:00:01");
  await dialog.getByLabel("Labels").fill("suite=added");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await dialog.getByText("is a group address").waitFor();
  assert.equal(await dialog.getByLabel("MAC").getAttribute("aria-invalid"), "true");
  await dialog.getByLabel("MAC").fill("02:00:ff:00:01:01");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await shows(page, "mx-new");
  await page.getByRole("button", { name: "Add machines" }).first().click();
  await dialog.getByRole("button", { name: "Paste YAML" }).click();
  const editor = dialog.getByRole("textbox", { name: "Records as YAML" });
  const doc = (name, mac) => `kind: Hardware\nmetadata: {name: ${name}, labels: {suite: added}}\nspec: {interfaces: [{mac: ${mac}}]}\n`;
  const write = async (text) => {
    await page.evaluate((t) => navigator.clipboard.writeText(t), text);
    await editor.press("Control+a");
    await editor.press("Control+v");
  };
  await write(`${doc("mx-y1", "02:00:ff:00:01:02")}---\n${doc("mx-y2", "nonsense")}`);
  await dialog.getByRole("button", { name: "Look what would happen" }).click();
  await dialog.getByRole("row", { name: /Hardware mx-y2 error/ }).waitFor();
  await dialog.getByRole("row", { name: /^1 Hardware mx-y1 created/ }).waitFor();
  assert.equal(await dialog.getByRole("button", { name: "Apply" }).isDisabled(), true);
  await write(`${doc("mx-y1", "02:00:ff:00:01:02")}---\n${doc("mx-y2", "02:00:ff:00:01:03")}`);
  await dialog.getByRole("button", { name: "Look what would happen" }).click();
  await dialog.getByRole("button", { name: "Apply 2 documents" }).click();
  await shows(page, "mx-new mx-y1 mx-y2");
});

test("an export has what is shown, and calculates nothing", async (t) => {
  const page = await open(t, "viewer", { path: `${at(`rack:${rack} name:mx-1,mx-2`)}&cols=name,asset` });
  await shows(page, "mx-1 mx-2");
  await page.locator("summary", { hasText: "Export" }).click();
  const file = page.waitForEvent("download");
  await page.getByRole("button", { name: /^CSV/ }).click();
  assert.equal(await readFile(await (await file).path(), "utf8"), "name,asset\r\nmx-1,'=1+1\r\nmx-2,'=1+2\r\n");
  await filter(page).fill("label.suite=machines state:available");
  await page.locator("summary", { hasText: "Export" }).click();
  await page.getByRole("button", { name: "Copy as command" }).click();
  await page.getByText("Copied: rackstrap").waitFor(); // before that the clipboard has what was there
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "rackstrap hardware list --selector suite=machines --state available -o wide");
});

test("the racks: units, what has none, the filter, a machine", async (t) => {
  const page = await open(t, "viewer", { path: "/racks" });
  await filter(page).fill("label.suite=machines");
  const box = page.getByRole("region", { name: `Rack ${rack}` });
  await box.getByRole("link", { name: /^mx-1, available/ }).waitFor();
  // 42 is at the top: a higher unit is above a lower one
  const top = async (name) => (await box.getByRole("link", { name: new RegExp(`^${name},`) }).boundingBox()).y;
  assert.ok((await top("mx-3")) < (await top("mx-2")));
  await page.getByRole("region", { name: "Not placed" }).getByRole("link", { name: /^mx-apart,/ }).waitFor();
  await filter(page).fill("name:mx-2");
  await page.getByText("1 of").waitFor();
  await box.getByRole("link", { name: /^mx-2,/ }).click();
  await page.waitForURL("**/machines/mx-2");
});

test("a viewer selects nothing", async (t) => {
  const page = await open(t, "viewer", { path: at(`rack:${rack}`) });
  await eventually("rows are there", async () => (await shown(page)).length > 0);
  assert.equal(await page.getByRole("checkbox", { name: /Select/ }).count(), 0);
  assert.equal(await page.getByRole("group", { name: "With the selected machines" }).count(), 0);
});
