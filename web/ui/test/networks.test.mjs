// Subnets and leases: the picture of the addresses as they are now, and a record that two
// people change.
import assert from "node:assert/strict";
import { test } from "node:test";
import { act, api, axe, eventually, fetchAPI, open, overflow } from "./harness.mjs";

/** Pastes a text over what is in an editor. */
async function write(page, editor, text) {
  await page.evaluate((t) => navigator.clipboard.writeText(t), text);
  await editor.press("ControlOrMeta+a");
  await editor.press("ControlOrMeta+v");
}

/** The number of addresses of a use, as the legend of the picture says it; 0 where it has none. */
async function of(page, use) {
  const [line] = await page.getByRole("list", { name: "Addresses by use" }).getByRole("listitem").filter({ hasText: use }).allInnerTexts();
  return Number((line ?? "0").replace(/\D/g, ""));
}

test("a lease is in the list, in the picture and in the table as soon as it is lent", async (t) => {
  const list = await open(t, "viewer", { path: "/networks" });
  const row = list.getByRole("row").filter({ has: list.getByRole("link", { name: "lan", exact: true }) });
  await row.getByText(/^[1-9]\d* active leases/).waitFor();
  const page = await open(t, "operator", { path: "/networks/lan" });
  await page.getByText("in the pool, and free").waitFor();

  const { mac } = await act("add", { name: "net-lease", unknown: "yes" });
  await act("power", { machine: "net-lease", action: "on" });
  await eventually("the list and the picture have it", async () => {
    const leases = (await api("viewer", "GET", "/leases?subnet=lan")).items.filter((l) => l.state === "active");
    const lent = leases.filter((l) => !l.reservation);
    if (!lent.some((l) => l.mac === mac)) return false;
    return (await of(page, "lent by DHCP")) === lent.length && parseInt(await row.getByText(/active lease/).innerText(), 10) === leases.length;
  });
  await page.getByRole("tab", { name: /^Leases/ }).click();
  await page.getByLabel("Find leases").fill(mac);
  const lease = page.getByRole("row").filter({ hasText: mac });
  await lease.getByText("active", { exact: true }).waitFor();
  const address = (await lease.getByRole("rowheader").innerText()).trim();
  assert.match(address, /^10\.77\.250\.\d+$/);
  await lease.getByText(/^in \d/).waitFor(); // when it ends

  // and gone from both when it is taken back
  await act("power", { machine: "net-lease", action: "off" });
  await lease.getByRole("button", { name: `Take back ${address}` }).click();
  await page.getByText(`The lease of ${address} was taken back.`).waitFor();
  await lease.getByText("active", { exact: true }).waitFor({ state: "detached" });
});

test("a subnet is edited: the picture is the new one; two who edit do not overwrite each other", async (t) => {
  t.after(() => fetchAPI("operator", "DELETE", "/subnets/ui-net"));
  const list = await open(t, "viewer", { path: "/networks" });
  await list.getByRole("link", { name: "storage" }).waitFor();
  const record = (spec) => `apiVersion: rackstrap/v1\nkind: Subnet\nmetadata:\n  name: ui-net\nspec:\n  prefix: 10.91.0.0/28\n${spec}`;
  await api("operator", "POST", "/subnets", record("  mode: reservation\n"));
  const listed = list.getByRole("row").filter({ has: list.getByRole("link", { name: "ui-net" }) });
  await listed.getByText("reservation").waitFor(); // nobody loaded the page again

  // at its end the page hears that the subnet is gone
  const page = await open(t, "operator", { path: "/networks/ui-net", mayFail: /status of 4(04|09|12|22)/ });
  await page.getByText("not ours to give").waitFor();
  assert.equal(await of(page, "not ours to give"), 14);
  await page.getByRole("tab", { name: "Edit" }).click();
  const editor = page.getByRole("textbox", { name: "YAML of ui-net" });
  const mine = record("  mode: pool\n  pool:\n    ranges: [10.91.0.4-10.91.0.7]\n");
  await write(page, editor, mine.replace("0.7]", "1.7]"));
  await page.getByText(/Line \d+:/).first().waitFor(); // what the appliance says of it
  await write(page, editor, mine);
  await page.getByText("The appliance would take it").waitFor();

  // meanwhile
  await api("operator", "PATCH", "/subnets/ui-net", { spec: { mtu: 1400 } });
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByText("Somebody else changed ui-net meanwhile.").waitFor();
  await page.getByText("mtu: 1400").waitFor();
  await page.getByRole("button", { name: "Take theirs, and edit again" }).click();
  await editor.getByText("mtu: 1400").waitFor();
  await write(page, editor, `${mine}  mtu: 1400\n`);
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("4 in the pool, and free").waitFor();
  const { spec } = await api("viewer", "GET", "/subnets/ui-net");
  assert.deepEqual([spec.mode, spec.mtu], ["pool", 1400]);
  await listed.getByText("10.91.0.4-10.91.0.7").waitFor();

  // what is typed stays while somebody else changes the record
  await page.getByRole("tab", { name: "Edit" }).click();
  await write(page, editor, `${mine}  mtu: 1500\n`);
  await api("operator", "PATCH", "/subnets/ui-net", { spec: { gateway: "10.91.0.1" } });
  await listed.getByText("10.91.0.1", { exact: true }).waitFor();
  await editor.getByText("mtu: 1500").waitFor();
  await page.getByRole("tab", { name: "Addresses" }).click();
  await page.getByText("1 the gateway").waitFor();
});

test("a phone shows a network", async (t) => {
  const page = await open(t, "viewer", { path: "/networks/lan", width: 360, theme: "dark" });
  await page.getByText("in the pool, and free").waitFor();
  assert.deepEqual(await overflow(page), []);
  assert.deepEqual(await axe(page), []);
  assert.equal(await page.getByRole("button", { name: /Delete|Take back/ }).count(), 0);
});
