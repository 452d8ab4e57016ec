// The first day: an appliance without any record says what to do, and shows the first
// packet that it hears.
import assert from "node:assert/strict";
import test from "node:test";
import { act, api, axe, eventually, none, open, figure, overflow } from "./harness.mjs";

test("three steps, and the first packet within a second of its being heard", async (t) => {
  const page = await open(t, "operator", { path: "/" });
  await page.getByRole("heading", { name: "Welcome: three steps to the first machine" }).waitFor();
  // what the appliance found wrong comes with what to type
  await page.getByText("there is no Subnet record").waitFor();
  await page.getByText("rackstrap apply -f").first().waitFor();
  await page.getByText(/things looked at and found well/).waitFor();
  await page.getByRole("link", { name: "add one by URL, or drop a file" }).waitFor();
  await page.getByText("Listening for DHCP…").waitFor();
  none(await axe(page));

  const heard = page.getByText("52:54:99:00:00:07").first();
  const told = heard.waitFor().then(() => Date.now());
  await act("stray", { mac: "52:54:99:00:00:07" });
  const sent = Date.now();
  figure("an unknown machine's packet is on the first page", Math.max(0, (await told) - sent), 1000, "ms", { time: true });
  await page.getByRole("link", { name: "Go on: accept it, or give it a record" }).click();
  await page.getByText("52:54:99:00:00:07").first().waitFor();
});

test("every list says what to do where it has nothing", async (t) => {
  const page = await open(t, "operator", { path: "/machines", width: 360, height: 740 });
  for (const [at, says] of [
    ["/networks", "No subnet yet: DHCP answers nobody"],
    ["/images", /image/i],
    ["/pending", /wait|pending/i],
    ["/racks", /machine/i],
  ]) {
    await page.goto(new URL(at, page.url()).href);
    await page.getByRole("main").getByText(says).first().waitFor();
    none(await overflow(page), at);
    none(await axe(page), at);
  }
});

test("a subnet is added, its addresses are drawn, and it is deleted again", async (t) => {
  const page = await open(t, "operator", { path: "/networks" });
  await page.getByRole("button", { name: "Add a subnet" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "YAML of rack-1" }).waitFor();
  await dialog.getByRole("button", { name: "Review" }).click();
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: /rack-1/ }).waitFor();
  const legend = page.getByRole("list", { name: "Addresses by use" });
  await legend.getByText("100 in the pool, and free").waitFor();
  const space = page.getByRole("group", { name: /256 addresses/ });
  await space.press("ArrowDown"); // onto the first
  await space.press("ArrowDown");
  await page.getByRole("main").getByRole("status").getByText("10.0.0.32").waitFor();
  none(await axe(page));

  await page.getByRole("tab", { name: /Leases/ }).click();
  await page.getByText("Nobody has asked for an address here yet.").waitFor();

  await page.getByRole("button", { name: "Delete…" }).click();
  const confirm = page.getByRole("dialog");
  assert.ok(await confirm.getByRole("button", { name: "Delete" }).isDisabled(), "deleted without its name");
  await confirm.getByLabel("Type rack-1 to confirm").fill("rack-1");
  await confirm.getByRole("button", { name: "Delete" }).click();
  await page.getByText("No subnet yet: DHCP answers nobody").waitFor();
});

test("the three steps to their end: a network, an image, and the first machine is there by itself", async (t) => {
  const page = await open(t, "operator", { path: "/" });
  await page.evaluate(() => (globalThis.neverReloaded = true));
  const step = (name) => page.getByRole("listitem").filter({ has: page.getByRole("heading", { name }) });
  const home = () => page.getByRole("link", { name: "Overview" }).click();
  await step("Is the network ready?").getByText("there is no Subnet record").waitFor();
  await page.getByRole("link", { name: "Networks" }).click();
  await page.getByRole("button", { name: "Add a subnet" }).click();
  const dialog = page.getByRole("dialog");
  const yaml = dialog.getByRole("textbox", { name: "YAML of rack-1" });
  const lan = "apiVersion: rackstrap/v1\nkind: Subnet\nmetadata:\n  name: lan\nspec:\n  prefix: 10.77.0.0/16\n  gateway: 10.77.0.1\n  mode: pool\n  discovery: true\n  pool:\n    ranges: [10.77.250.10-10.77.250.250]\n    allow: known\n    probe: false\n";
  await page.evaluate((t) => navigator.clipboard.writeText(t), lan);
  await yaml.press("ControlOrMeta+a");
  await yaml.press("ControlOrMeta+v");
  await dialog.getByRole("button", { name: "Review" }).click();
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: /lan/ }).waitFor();
  await home();
  await step("Is the network ready?").getByText(/looked at and found well/).waitFor();
  assert.equal(await page.getByText("there is no Subnet record").count(), 0);

  await step("Is there an image to install?").getByRole("link", { name: "add one by URL, or drop a file" }).click();
  await page.getByText("No images yet: there is nothing to install").waitFor();
  const disk = Buffer.alloc(1 << 20);
  disk[510] = 0x55;
  disk[511] = 0xaa;
  await page.getByLabel("File of an image").setInputFiles({ name: "debian-12-amd64.raw", mimeType: "application/octet-stream", buffer: disk });
  await page.getByRole("dialog").getByLabel("Name").fill("first-image");
  await page.getByRole("dialog").getByRole("button", { name: "Upload" }).click();
  await page.getByRole("row", { name: /^first-image / }).getByText("ready").waitFor();
  await home();
  await step("Is there an image to install?").getByText("first-image").waitFor();

  const { mac } = await act("add", { name: "first-machine", unknown: "yes" });
  await act("power", { machine: "first-machine", action: "on" });
  // the page becomes the overview when there is a machine to count
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByRole("link", { name: "1 pending", exact: true }).waitFor();
  const found = await eventually("it told its facts", async () => (await api("viewer", "GET", "/hardware?state=pending")).items.find((h) => h.facts && h.spec.interfaces.some((n) => n.mac === mac)));
  await page.getByRole("link", { name: /^Pending/ }).click();
  await page.getByRole("button", { name: `Accept ${found.metadata.name}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Accept", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await home();
  await page.getByRole("link", { name: "1 available", exact: true }).waitFor();
  assert.equal(await page.evaluate(() => globalThis.neverReloaded), true);
});
