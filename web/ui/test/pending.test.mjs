// Machines that were found, strangers, and the rules.
import assert from "node:assert/strict";
import { test } from "node:test";
import { act, api, axe, eventually, fetchAPI, open, overflow } from "./harness.mjs";

/** A machine without a record that has reported itself; its name in the appliance. */
async function found(name) {
  const { mac } = await act("add", { name, unknown: "yes" });
  await act("power", { machine: name, action: "on" });
  return eventually(`${name} is found`, async () => {
    const list = await api("viewer", "GET", "/hardware?state=pending&limit=1000");
    return list.items.find((h) => h.spec.interfaces.some((n) => n.mac === mac))?.metadata.name;
  });
}

const row = (page, name) => page.getByRole("row").filter({ has: page.getByRole("rowheader", { name: new RegExp(name) }) });

test("a machine that is found is there with its facts, and is accepted with name and labels", async (t) => {
  const page = await open(t, "operator", { path: "/pending", mayFail: /status of 422/ });
  await page.getByRole("tab", { name: /^Machines/ }).waitFor();
  const name = await found("pend-a");
  await row(page, name).waitFor(); // without a reload
  await page.getByRole("button", { name: `Facts of ${name}` }).click();
  await page.getByRole("heading", { name: "NICs" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: `Accept ${name}` }).click();
  const form = page.getByRole("dialog", { name: `Accept ${name}` });
  await form.getByLabel("Host name").fill("bad_name");
  await form.getByRole("button", { name: "Add a label" }).click();
  await form.getByLabel("Name 1").fill("role");
  await form.getByLabel("Value 1").fill("spare");
  await form.getByLabel("Rack").fill("r9");
  await form.getByRole("button", { name: "Accept", exact: true }).click();
  await form.getByRole("alert").getByText("spec.hostname").first().waitFor();
  await form.getByLabel("Host name").fill("node-9");
  await form.getByRole("button", { name: "Accept", exact: true }).click();
  await row(page, name).waitFor({ state: "detached" });
  const h = await api("viewer", "GET", `/hardware/${name}`);
  assert.equal(h.status.state, "available");
  assert.equal(h.spec.hostname, "node-9");
  assert.equal(h.spec.rack, "r9");
  assert.equal(h.metadata.labels.role, "spare");
});

test("Enter accepts; to install what is accepted leads to the wizard", async (t) => {
  const [one, two] = await Promise.all(["pend-x", "pend-y"].map(found));
  const page = await open(t, "operator", { path: "/pending" });
  await page.getByRole("button", { name: `Accept ${one}` }).click();
  const form = (name) => page.getByRole("dialog", { name: `Accept ${name}` });
  await form(one).getByLabel("Host name").fill("node-x");
  await form(one).getByLabel("Host name").press("Enter");
  await form(one).waitFor({ state: "detached" });
  await row(page, one).waitFor({ state: "detached" });
  assert.equal(new URL(page.url()).pathname, "/pending");
  await page.getByRole("button", { name: `Accept ${two}` }).click();
  await form(two).getByRole("button", { name: "Accept and install…" }).click();
  await page.waitForURL(/\/provision/);
  await page.getByRole("heading", { name: "Chosen: 1 machine" }).waitFor();
  await page.getByRole("button", { name: `Leave out ${two}` }).waitFor();
  for (const name of [one, two]) assert.notEqual((await api("viewer", "GET", `/hardware/${name}`)).status.state, "pending");
});

test("several are accepted at once, others are kept out or forgotten", async (t) => {
  const names = await Promise.all(["pend-b", "pend-c", "pend-d", "pend-e"].map(found));
  const page = await open(t, "operator", { path: "/pending" });
  for (const n of names.slice(0, 2)) await page.getByRole("checkbox", { name: `Choose ${n}` }).check();
  await page.getByText("2 machines chosen").waitFor();
  await page.getByRole("button", { name: "Accept the chosen…" }).click();
  const form = page.getByRole("dialog", { name: "Accept 2 machines" });
  await form.getByText("pending → available").first().waitFor(); // the preview
  await form.getByRole("button", { name: "Add a label" }).click();
  await form.getByLabel("Name 1").fill("batch");
  await form.getByLabel("Value 1").fill("7");
  await form.getByRole("button", { name: "Accept 2 machines" }).click();
  await form.waitFor({ state: "detached" });
  for (const n of names.slice(0, 2)) {
    const h = await api("viewer", "GET", `/hardware/${n}`);
    assert.equal(h.status.state, "available");
    assert.equal(h.metadata.labels.batch, "7");
  }
  const [, , out, forgotten] = names;
  await page.getByRole("button", { name: `Reject ${out}` }).click();
  await page.getByRole("radio", { name: "Keep it out" }).check();
  await page.getByRole("dialog").getByRole("button", { name: "Reject" }).click();
  await row(page, out).waitFor({ state: "detached" });
  assert.equal((await api("viewer", "GET", `/hardware/${out}`)).status.state, "retired");
  await page.getByRole("button", { name: `Reject ${forgotten}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Reject" }).click();
  await row(page, forgotten).waitFor({ state: "detached" });
});

test("a stranger shows up by itself and becomes a record", async (t) => {
  const page = await open(t, "operator", { path: "/pending" });
  await page.getByRole("heading", { name: /^Strangers/ }).waitFor();
  await act("stray", { mac: "00:1b:21:77:00:01", name: "nas-4" });
  const line = row(page, "00:1b:21:77:00:01");
  await line.getByText("nas-4").waitFor();
  await line.getByRole("button", { name: /^Make a record/ }).click();
  const form = page.getByRole("dialog", { name: "A record for 00:1b:21:77:00:01" });
  assert.equal(await form.getByLabel("Name").inputValue(), "nas-4");
  await form.getByLabel("Address").fill("10.77.9.4/16");
  await form.getByRole("button", { name: "Create" }).click();
  await page.waitForURL(/\/machines\/nas-4/);
  const h = await api("viewer", "GET", "/hardware/nas-4");
  assert.deepEqual(h.spec.interfaces, [{ mac: "00:1b:21:77:00:01", addresses: ["10.77.9.4/16"] }]);
});

test("a rule is written against the machines that wait, as a form and as YAML", async (t) => {
  const name = await found("pend-r");
  t.after(() => fetchAPI("operator", "DELETE", "/rules/ui-rule"));
  const page = await open(t, "operator", { path: "/pending?tab=rules", mayFail: /status of 4\d\d/ });
  await page.getByRole("button", { name: "Add a rule" }).click();
  const form = page.getByRole("dialog", { name: "Add a rule" });
  await form.getByRole("alert").first().waitFor(); // the appliance says what is missing
  await form.getByLabel("Name", { exact: true }).fill("ui-rule");
  await form.getByRole("button", { name: "Add a label" }).click();
  await form.getByLabel("Name 1").fill("ruled");
  await form.getByLabel("Value 1").fill("yes");
  await form.getByRole("button", { name: "Add a fact" }).click();
  await form.getByLabel("Fact 1").selectOption("arch");
  await form.getByLabel("Value 1").first().fill("arm64");
  await form.getByText(/It matches 0 of/).waitFor();
  await form.getByText(new RegExp(`${name}: arch is`)).waitFor();
  await form.getByLabel("Value 1").first().fill("amd*");
  await form.getByText(/It matches [1-9]/).waitFor();
  await form.getByText("ruled=yes").first().waitFor();
  assert.deepEqual(await axe(page), []);
  await form.getByRole("radio", { name: "YAML" }).check();
  await form.getByLabel("YAML of the rule").getByText("amd*").waitFor();
  await form.getByRole("radio", { name: "a form" }).check();
  assert.equal(await form.getByLabel("Value 1").first().inputValue(), "amd*");
  await form.getByRole("button", { name: "Save" }).click();
  await form.waitFor({ state: "detached" });
  const r = await api("viewer", "GET", "/rules/ui-rule");
  assert.deepEqual(r.spec.match, { facts: { arch: "amd*" } });
  assert.deepEqual(r.spec.labels, { ruled: "yes" });
  assert.ok(!r.spec.accept);

  // what it would do stands with each machine
  await page.getByRole("tab", { name: /^Machines/ }).click();
  await row(page, name).getByText("leaves it for a person").waitFor();
  await page.getByRole("tab", { name: /^Rules/ }).click();
  await page.getByRole("button", { name: "Delete ui-rule" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete ui-rule" }).waitFor({ state: "detached" });
});

test("a dialog whose machine is decided about meanwhile stays, says by whom, and keeps what was typed", async (t) => {
  const names = await Promise.all(["pend-f", "pend-g", "pend-h"].map(found));
  const [taken, forgotten, left] = names;
  const page = await open(t, "operator", { path: "/pending" });
  await page.getByRole("button", { name: `Accept ${taken}` }).click();
  const form = page.getByRole("dialog", { name: `Accept ${taken}` });
  await form.getByLabel("Host name").fill("db-17");
  await form.getByLabel("Rack").fill("r8");
  await api("admin", "POST", `/hardware/${taken}/accept`, {});
  const told = form.getByRole("alert");
  await told.getByText("it was pending and is available").waitFor();
  await told.getByText(/\(by stage-admin\)/).first().waitFor();
  await row(page, taken).waitFor({ state: "detached" }); // it waits no more
  assert.equal(await form.getByLabel("Host name").inputValue(), "db-17");
  assert.deepEqual(await axe(page), []);
  await form.getByRole("button", { name: "Keep what I typed" }).click();
  await form.waitFor({ state: "detached" });
  const h = await api("viewer", "GET", `/hardware/${taken}`);
  assert.deepEqual([h.spec.hostname, h.spec.rack, h.status.state], ["db-17", "r8", "available"]);

  await page.getByRole("button", { name: `Accept ${forgotten}` }).click();
  const gone = page.getByRole("dialog", { name: `Accept ${forgotten}` });
  await gone.getByLabel("Host name").fill("db-18");
  await api("admin", "DELETE", `/hardware/${forgotten}`);
  await gone.getByText("its record was deleted").waitFor();
  assert.equal(await gone.getByLabel("Host name").inputValue(), "db-18");
  assert.ok(await gone.getByRole("button", { name: "Keep what I typed" }).isDisabled());
  await gone.getByRole("button", { name: "Close" }).last().click();

  await page.getByRole("button", { name: `Reject ${left}` }).click();
  const reject = page.getByRole("dialog", { name: `Reject ${left}` });
  await api("admin", "POST", `/hardware/${left}/accept`, {});
  await reject.getByText("is available").waitFor();
  assert.ok(await reject.getByRole("button", { name: "Reject" }).isDisabled(), "nobody rejects what another has accepted");
});

test("machines that wait are found as in the list of machines, and by what only this page knows", async (t) => {
  const names = await Promise.all(["pend-i", "pend-j"].map(found));
  const h = await api("viewer", "GET", `/hardware/${names[0]}`);
  const page = await open(t, "operator", { path: "/pending" });
  const filter = page.getByRole("combobox", { name: "Filter" });
  await filter.fill(`name:${names[0]}`);
  await row(page, names[1]).waitFor({ state: "detached" });
  await row(page, names[0]).waitFor();
  await filter.fill(`-name:${names[0]} discovered<1h`);
  await row(page, names[0]).waitFor({ state: "detached" });
  await row(page, names[1]).waitFor();
  await filter.fill(h.facts.uuid);
  await row(page, names[0]).waitFor();
  await filter.fill("colour:red");
  await page.getByText("colour is not known").waitFor();
});

test("a viewer decides nothing, and a phone has room", async (t) => {
  const page = await open(t, "viewer", { path: "/pending", width: 360, theme: "dark" });
  await page.getByRole("heading", { name: /^Strangers/ }).waitFor();
  await page.getByRole("columnheader", { name: "Asked from" }).waitFor();
  assert.equal(await page.getByRole("button", { name: /Accept|Reject|record/ }).count(), 0);
  assert.deepEqual(await overflow(page), []);
  assert.deepEqual(await axe(page), []);
});
