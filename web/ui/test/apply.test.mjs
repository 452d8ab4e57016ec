// A rack is applied in one page and appears in another, which nobody loads again.
import assert from "node:assert/strict";
import test from "node:test";
import { api, eventually, open } from "./harness.mjs";

const names = Array.from({ length: 12 }, (_, i) => `zz-new-${String(i + 1).padStart(2, "0")}`);
const rack = names.map((n, i) => `kind: Hardware\nmetadata: {name: ${n}, labels: {batch: autumn}}\nspec:\n  rack: zz\n  position: "${i + 1}"\n  interfaces: [{mac: "02:00:00:0a:00:${String(i + 10)}"}]\n`).join("---\n");

test("a rack is pasted, looked at, applied, and seen by others at once", async (t) => {
  t.after(() => api("operator", "POST", "/bulk", { verb: "delete", selector: "batch=autumn", confirm: names.length }));
  const other = await open(t, "viewer", { path: "/machines?q=rack%3Azz" });
  const racks = await open(t, "viewer", { path: "/racks" });
  await other.getByText("Nothing", { exact: false }).or(other.getByText("0 of", { exact: false })).first().waitFor();

  const page = await open(t, "operator", { path: "/machines", mayFail: /status of 4(00|22)/ });
  await page.getByRole("button", { name: "Add machines" }).click();
  await page.getByRole("button", { name: "Paste YAML" }).click();
  const text = page.getByRole("textbox", { name: "Records as YAML" });

  await replace(page, text, rack.replace("rack: zz", "rak: zz"));
  await page.getByRole("button", { name: /^Look what would happen/ }).click();
  await page.getByRole("dialog").getByText("rak").first().waitFor();
  await page.getByRole("dialog").getByText("error").first().waitFor();

  await replace(page, text, rack);
  await page.getByRole("button", { name: /^Look what would happen/ }).click();
  await page.getByRole("dialog").getByText("created").first().waitFor();
  assert.equal((await api("viewer", "GET", "/hardware?selector=batch%3Dautumn")).items.length, 0, "looking at it changed something");
  await page.getByRole("button", { name: /^apply/i }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });

  for (const n of [names[0], names.at(-1)]) {
    await other.getByRole("link", { name: n }).waitFor();
    await racks.getByRole("link", { name: n }).first().waitFor();
  }
  await eventually("all are there", async () => (await other.getByRole("link", { name: /^zz-new-/ }).count()) === names.length);
});

/** Pastes a text over what is in an editor. */
async function replace(page, editor, text) {
  await page.evaluate((t) => navigator.clipboard.writeText(t), text);
  await editor.click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("ControlOrMeta+v");
}
