// A real system on a virtual machine, as an operator does it, in one page that is never
// loaded again.
import assert from "node:assert/strict";
import test from "node:test";
import { act, eventually, open } from "./harness.mjs";

/** An install under emulation, in ms. */
const installTime = 14 * 60_000;

test("a machine is provisioned and reaches OS up in front of one's eyes", async (t) => {
  const page = await open(t, "operator", { path: "/provision?machines=guest-1&image=debian-12" });
  await page.evaluate(() => (globalThis.neverReloaded = true));
  const next = page.getByRole("button", { name: /^Next/ });
  await page.getByText("All of them can be installed.").waitFor();
  await next.click();
  await page.getByRole("heading", { name: "Image and disk" }).waitFor();
  assert.ok(await page.getByRole("radio", { name: "debian-12" }).isChecked());
  await next.click();
  await next.click();
  await page.getByText("1 machine ready").waitFor();
  await page.getByRole("button", { name: /^Install 1 machine/ }).click();
  const ask = page.getByRole("dialog");
  const word = ask.getByLabel(/^Type .* to confirm/);
  const [, typed] = (await ask.getByText(/^Type .* to confirm/).innerText()).match(/^Type (.*) to confirm/);
  await word.fill(typed);
  await ask.getByRole("button", { name: "Install" }).click();
  await page.getByRole("heading", { name: /^Installing/ }).waitFor();

  // and there one looks on: the waterfall grows to its end
  await page.getByRole("link", { name: "guest-1" }).first().click();
  await page.getByText("provisioning", { exact: true }).first().waitFor();
  for (const step of ["firmware", "DHCP", "kernel", "image"]) await page.getByRole("rowheader", { name: new RegExp(step, "i") }).first().waitFor({ timeout: installTime });
  await page.getByRole("rowheader", { name: "OS up" }).first().waitFor({ timeout: installTime });
  await eventually("the page says provisioned", () => page.getByText("provisioned", { exact: true }).first().isVisible());
  assert.equal(await page.evaluate(() => globalThis.neverReloaded), true, "the page was loaded again");
  await act("check");
});
