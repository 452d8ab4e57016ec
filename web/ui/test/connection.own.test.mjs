// The daemon dies and comes back while a page is open.
import assert from "node:assert/strict";
import test from "node:test";
import { act, api, open } from "./harness.mjs";

const lost = /ERR_(CONNECTION|EMPTY|SOCKET|INCOMPLETE|HTTP2|NETWORK)|status of 5\d\d/;

test("a page outlives the daemon, says so, and misses nothing", async (t) => {
  const page = await open(t, "operator", { path: "/machines", mayFail: lost });
  await page.evaluate(() => (globalThis.neverReloaded = true));
  await page.getByText("r1-u01").first().waitFor();
  await page.getByText("live", { exact: false }).first().waitFor();

  await act("kill");
  await page.getByRole("alert").filter({ hasText: "no connection" }).waitFor();
  assert.ok(await page.getByText("r1-u01").first().isVisible(), "what was last known stays");

  await act("start");
  // done before the page is connected again, as far as anybody can tell
  await api("operator", "POST", "/apply", "kind: Hardware\nmetadata: {name: a-late-one}\nspec: {interfaces: [{mac: '02:00:00:00:aa:01'}]}\n");
  await page.getByText("● live").waitFor();
  await page.getByText("a-late-one").first().waitFor();

  for (let i = 0; i < 3; i++) {
    await act("kill");
    await act("start");
  }
  await api("operator", "DELETE", "/hardware/a-late-one");
  await page.getByText("● live").waitFor();
  await page.getByText("a-late-one").first().waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => globalThis.neverReloaded), true);
});

test("what is done while there is no connection fails where it was done", async (t) => {
  const page = await open(t, "", { mayFail: lost });
  await page.getByLabel("Token").waitFor();
  await act("kill");
  await page.getByLabel("Token").fill("rst_x");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").filter({ hasText: "does not answer" }).waitFor();
  await act("start");
});
