// A real system on a virtual machine, as an operator does it, in one page that is never
// loaded again.
import assert from "node:assert/strict";
import test from "node:test";
import { act, api, open } from "./harness.mjs";

/** An install under emulation, in ms. */
const installTime = 14 * 60_000;

test("a machine is provisioned and reaches OS up in front of one's eyes", async (t) => {
  const page = await open(t, "operator", { path: "/machines/guest-1" });
  await page.evaluate(() => (globalThis.neverReloaded = true));
  await page.getByRole("heading", { name: "guest-1" }).waitFor();

  await api("operator", "POST", "/hardware/guest-1/provision", { image: "debian-12" });

  await page.getByText("provisioning").first().waitFor();
  await page.getByText("OS up").first().waitFor({ timeout: installTime });
  await page.getByText("provisioned", { exact: true }).first().waitFor();
  assert.equal(await page.evaluate(() => globalThis.neverReloaded), true, "the page was loaded again");
  await act("check");
});
