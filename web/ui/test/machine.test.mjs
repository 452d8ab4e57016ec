// The page of one machine, as an operator uses it.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { act, api, eventually, fetchAPI, open } from "./harness.mjs";

let last = 0;
const made = [];

/** A machine that is only a record. */
async function record(name, spec = {}) {
  last++;
  made.push(name);
  const mac = `52:54:0d:7a:00:${String(last).padStart(2, "0")}`;
  return api("operator", "POST", "/hardware", { kind: "Hardware", metadata: { name }, spec: { interfaces: [{ mac }], ...spec } });
}

after(async () => {
  for (const name of made) await fetchAPI("operator", "DELETE", `/hardware/${name}?force=true`);
});

/** Says that the page was not loaded again. */
async function mark(page) {
  await page.evaluate(() => (window.notReloaded = true));
  return () => page.evaluate(() => window.notReloaded);
}

test("an install is watched from the first packet to OS up, without a reload", async (t) => {
  await act("add", { name: "watched", action: "1500ms" });
  const page = await open(t, "viewer", { path: "/machines/watched" });
  const same = await mark(page);
  await page.getByText("It was never seen to boot").waitFor();
  await api("operator", "POST", "/hardware/watched/provision", { image: "debian-12", disk: "smallest" });
  await page.getByText("provisioning", { exact: true }).waitFor();
  const picture = page.getByRole("table", { name: /so far|in all/ });
  for (const phase of ["boot script", "worker starts", "wipe", "write-image"]) await picture.getByRole("rowheader", { name: new RegExp(`^${phase}`) }).first().waitFor();
  await page.getByText(/^\d of \d: /).first().waitFor(); // the action that runs
  await page.getByRole("rowheader", { name: /OS up/ }).waitFor();
  await page.getByText("provisioned", { exact: true }).first().waitFor();
  await page.getByText("power on", { exact: true }).first().waitFor();
  assert.ok(await same(), "the page was loaded again");
  // the numbers are a table for those who see no picture
  const took = await picture.first().getByRole("row").nth(1).getByRole("cell").allInnerTexts();
  assert.match(took.join(" "), /\d (ms|s|min)/);
});

test("a Reason says what it means and what to do", async (t) => {
  const page = await open(t, "viewer", { path: "/machines/r3-u17" });
  await page.getByRole("button", { name: "action-failed" }).first().click();
  const dialog = page.getByRole("dialog", { name: "action-failed" });
  await dialog.getByText("Action failed.").waitFor();
  assert.ok((await dialog.innerText()).length > 80, "no word of the guide");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
});

test("a viewer reads everything and is offered nothing", async (t) => {
  const page = await open(t, "viewer", { path: "/machines/r4-u05?tab=why" });
  await page.getByText("is on hold").first().waitFor();
  for (const verb of [/^Hold$/, /Take off hold/, /Provision/, /Release/, /Power…/, /Delete/, /Retire/, /Accept/]) assert.equal(await page.getByRole("button", { name: verb }).count(), 0, String(verb));
  assert.equal(await page.getByRole("tab", { name: "Edit" }).count(), 0);
});

test("what stands in the way is mended where it is told", async (t) => {
  await record("blocked", { netboot: { allowPXE: false } });
  await api("operator", "POST", "/hardware/blocked/hold", { hold: true });
  const page = await open(t, "operator", { path: "/machines/blocked?tab=why" });
  await page.getByRole("region", { name: "Why" }).getByText("blocked is on hold").waitFor();
  await page.getByRole("button", { name: "Allow netboot" }).click();
  await page.getByRole("button", { name: "Allow netboot" }).waitFor({ state: "detached" });
  assert.equal((await api("viewer", "GET", "/hardware/blocked")).spec.netboot?.allowPXE, true);
  await page.getByRole("region", { name: "Why" }).getByRole("button", { name: "Take off hold" }).first().click();
  await page.getByText("on hold", { exact: true }).waitFor({ state: "detached" });
  const list = page.getByRole("region", { name: "Checklist" });
  await list.getByText("netboot and workflows are allowed").waitFor();
  await list.getByLabel("With the image").selectOption("debian-12");
  await list.getByText('image "debian-12" is ready').waitFor();
});

test("what the checklist lacks is mended there", async (t) => {
  await record("unchecked", { protect: true });
  await api("operator", "POST", "/hardware/unchecked/hold", { hold: true });
  const page = await open(t, "operator", { path: "/machines/unchecked?tab=why" });
  const list = page.getByRole("region", { name: "Checklist" });
  await list.getByText("not yet").waitFor();
  await list.getByRole("button", { name: "Take off hold" }).click();
  await list.getByRole("button", { name: "Take off hold" }).waitFor({ state: "detached" });
  await eventually("it is off hold", async () => !(await api("viewer", "GET", "/hardware/unchecked")).status.hold);
  await list.getByText(/spec\.protect/).first().waitFor();
  await list.getByRole("link", { name: "Edit the record" }).first().click();
  await page.waitForURL(/tab=edit/);
  await page.getByRole("button", { name: "Review" }).waitFor();
});

test("what would be refused is said before it is asked for", async (t) => {
  await record("kept");
  await api("operator", "POST", "/claims", { kind: "Claim", metadata: { name: "kept-claim" }, spec: { owner: "team/kept", hardware: "kept" } });
  const page = await open(t, "operator", { path: "/machines/kept" });
  await page.getByRole("button", { name: "Retire…" }).click();
  const dialog = page.getByRole("dialog", { name: "Retire kept" });
  await dialog.getByText("The appliance would refuse").waitFor();
  await dialog.getByText("team/kept").first().waitFor();
  await dialog.getByRole("checkbox", { name: /Retire it all the same/ }).check();
  await dialog.getByText(/Passed over: .*team\/kept has it/).waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await api("viewer", "GET", "/hardware/kept")).status.state, "available");
});

test("destruction says what is lost and wants the machine's name", async (t) => {
  await act("add", { name: "doomed", action: "50ms" });
  await api("operator", "POST", "/claims", { kind: "Claim", metadata: { name: "doomed-claim" }, spec: { owner: "team/doom", hardware: "doomed" } });
  await api("operator", "POST", "/hardware/doomed/provision", { image: "debian-12", disk: "smallest", claim: "doomed-claim" });
  await eventually("it is installed", async () => (await api("viewer", "GET", "/hardware/doomed")).status.state === "provisioned");
  const page = await open(t, "operator", { path: "/machines/doomed" });
  await page.getByRole("button", { name: "Release…" }).click();
  const dialog = page.getByRole("dialog", { name: "Release doomed" });
  await dialog.getByText("team/doom").waitFor();
  await dialog.getByText(/Everything on \d+ disks? is lost/).waitFor();
  await dialog.getByText(/serial SIM-doomed/).first().waitFor();
  await dialog.getByText(/The appliance says: provisioned → releasing/).waitFor();
  const go = dialog.getByRole("button", { name: "Release and wipe" });
  assert.ok(await go.isDisabled());
  await dialog.getByLabel("Type doomed to confirm").fill("doome");
  assert.ok(await go.isDisabled());
  await dialog.getByLabel("Type doomed to confirm").fill("doomed");
  await go.click();
  await dialog.waitFor({ state: "detached" });
  await page.getByText("available", { exact: true }).first().waitFor();
  await page.getByRole("tab", { name: "Facts" }).click();
  await page.getByText("wiped", { exact: true }).first().waitFor();
});

test("what is in a machine is shown to scale", async (t) => {
  const page = await open(t, "viewer", { path: "/machines/r2-u01?tab=facts" });
  const disks = page.getByRole("region", { name: "Disks" });
  await disks.getByRole("rowheader", { name: "/dev/nvme0n1" }).waitFor();
  const width = (path) => disks.getByRole("row").filter({ hasText: path }).locator("rect").first().evaluate((e) => e.getBoundingClientRect().width);
  const [small, large] = [await width("/dev/nvme0n1"), await width("/dev/sda")];
  assert.ok(large > small * 10 && large < small * 25, `${small} px and ${large} px for 480 GB and 8 TB`);
  await disks.getByRole("row").filter({ hasText: "/dev/nvme0n1" }).getByText("system").waitFor();
  await page.getByRole("region", { name: "Network" }).getByText("up, 25 Gbit/s").first().waitFor();
});

test("what is on a disk is drawn and listed, before and after an install", async (t) => {
  await act("add", { name: "layers", action: "50ms" });
  await api("operator", "POST", "/hardware/layers/inspect", {});
  const page = await open(t, "viewer", { path: "/machines/layers?tab=facts" });
  const on = page.getByRole("region", { name: "On the disks" });
  await on.getByText("no partition table").waitFor();
  await eventually("it is inspected", async () => (await api("viewer", "GET", "/hardware/layers")).status.state === "available");
  await api("operator", "POST", "/hardware/layers/provision", { image: "debian-12", disk: "smallest" });
  // the worker tells what it left before it restarts the machine
  const table = on.getByRole("region", { name: /^Partitions of/ });
  const root = table.getByRole("row", { name: /^sda2/ });
  await root.getByText("ext4").waitFor();
  await root.getByText("root").waitFor();
  await table.getByRole("row", { name: /^sda1/ }).getByText("EFI system").waitFor();
  await on.getByText(/GPT, 2 partitions/).waitFor();
  const width = (tone) => on.locator(`rect.on-${tone}`).first().evaluate((e) => e.getBoundingClientRect().width);
  assert.ok((await width("boot")) >= 3 && (await width("files")) > 20 * (await width("boot")), "not to scale, or not to be seen");
  await eventually("it is installed", async () => (await api("viewer", "GET", "/hardware/layers")).status.state === "provisioned");
  await on.getByText(/^As of .*The installed system may have changed it since/).waitFor();
  await page.setViewportSize({ width: 360, height: 800 });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "360 px are too few");
});

test("every attempt of a workflow is told with its error", async (t) => {
  const page = await open(t, "viewer", { path: "/machines/r3-u17?tab=workflow" });
  await page.getByText("the simulation's fault").first().waitFor();
  await eventually("all attempts are there", async () => (await page.getByRole("row").filter({ hasText: "the simulation's fault" }).count()) >= 3);
});
