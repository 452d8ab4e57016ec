// The first day: an appliance without any record says what to do, and shows the first
// packet that it hears.
import assert from "node:assert/strict";
import test from "node:test";
import { act, axe, none, open, figure, overflow } from "./harness.mjs";

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
