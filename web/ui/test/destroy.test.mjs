// What destroys something asks for a word first, and does nothing without it.
import assert from "node:assert/strict";
import test from "node:test";
import { act, api, eventually, open } from "./harness.mjs";

const state = async (name) => (await api("viewer", "GET", `/hardware/${name}`)).status.state;

test("a release wipes disks only after the machine's name was typed", async (t) => {
  await act("add", { name: "doomed-1" });
  await api("operator", "POST", "/hardware/doomed-1/provision", { image: "debian-12" });
  await eventually("it is provisioned", async () => (await state("doomed-1")) === "provisioned");

  const page = await open(t, "operator", { path: "/machines/doomed-1" });
  await page.getByRole("button", { name: "Release…" }).click();
  const dialog = page.getByRole("dialog", { name: "Release doomed-1" });
  await dialog.getByText("/dev/sda").waitFor(); // it says what is lost
  const verb = dialog.getByRole("button", { name: "Release and wipe" });
  assert.ok(await verb.isDisabled(), "it can be done without a confirmation");
  const word = dialog.getByLabel("Type doomed-1 to confirm");
  for (const wrong of ["doomed", "doomed-2", "DOOMED-1", "yes"]) {
    await word.fill(wrong);
    assert.ok(await verb.isDisabled(), `${wrong} is taken for a confirmation`);
    await word.press("Enter"); // which sends a form whose button is disabled, in some browsers
  }
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal(await state("doomed-1"), "provisioned");

  await page.getByRole("button", { name: "Release…" }).click();
  await word.fill("doomed-1");
  await verb.click();
  await dialog.waitFor({ state: "detached" });
  await page.getByText("available", { exact: true }).first().waitFor();
});

test("machines are deleted only after their number was typed", async (t) => {
  for (const name of ["doomed-2", "doomed-3"]) await act("add", { name });
  const page = await open(t, "operator", { path: "/machines?q=doomed" });
  for (const name of ["doomed-2", "doomed-3"]) await page.getByRole("row", { name }).getByRole("checkbox").check();
  const bar = page.getByRole("group", { name: "With the selected machines" });
  const direct = bar.getByRole("button", { name: "Delete" });
  if (!(await direct.isVisible())) await bar.getByText("More").click();
  await page.getByRole("button", { name: "Delete" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("doomed-3").first().waitFor(); // the preview
  const verb = dialog.getByRole("button", { name: /^Delete 2 machines/ });
  await verb.waitFor();
  assert.ok(await verb.isDisabled());
  await dialog.getByLabel("Type 2 to confirm").fill("3");
  assert.ok(await verb.isDisabled());
  await dialog.getByLabel("Type 2 to confirm").fill("2");
  await verb.click();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await page.getByRole("link", { name: "doomed-2" }).waitFor({ state: "detached" });
  const { items } = await api("viewer", "GET", "/hardware?q=doomed-3");
  assert.deepEqual(items, []);
});
