// The wizard, as somebody who installs machines goes through it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { act, api, axe, eventually, fetchAPI, open, overflow } from "./harness.mjs";

const choose = (page, name) => page.getByRole("checkbox", { name: `Choose ${name}`, exact: true });
const next = (page) => page.getByRole("button", { name: /^Next/ }).click();

/** A machine of this test's own, which is free and whose facts are known. */
async function machine(name, o = {}) {
  await act("add", { name, ...o });
  await api("operator", "POST", `/hardware/${name}/inspect`, {});
  await eventually(`${name} is inspected`, async () => {
    const h = await api("viewer", "GET", `/hardware/${name}`);
    return h.facts && h.status.state === "available" && (await api("viewer", "GET", `/workflows/${h.status.workflow}`)).status.state === "succeeded";
  });
}

test("two machines are installed until their systems are up", async (t) => {
  await Promise.all([machine("wiz-a"), machine("wiz-b")]);
  const page = await open(t, "operator", { path: "/provision" });
  const steps = page.getByRole("navigation", { name: "Steps" });
  await assert.doesNotReject(steps.getByRole("button", { name: /^1 Machines/ }).waitFor());
  assert.equal(await steps.getByRole("button", { name: /^1 Machines/ }).getAttribute("aria-current"), "step");
  assert.ok(await steps.getByRole("button", { name: /Review/ }).isDisabled(), "nothing is reviewed before it is said");

  await page.getByRole("combobox", { name: "Filter" }).fill("name:wiz-*");
  await choose(page, "wiz-a").check();
  await choose(page, "wiz-b").check();
  await page.getByText("All of them can be installed.").waitFor();
  await next(page);
  await page.getByRole("heading", { name: "Image and disk" }).waitFor();
  await page.waitForFunction(() => document.activeElement.textContent === "Image and disk"); // the focus goes with the step

  await page.getByRole("radio", { name: "debian-12" }).check();
  await page.getByRole("radio", { name: "The smallest" }).check();
  await next(page);
  await page.getByRole("radio", { name: /^Mine/ }).check();
  await page.getByLabel("SSH keys").fill("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5x ops");
  await page.getByRole("button", { name: "Write it", exact: true }).click();
  await page.getByLabel("User-data", { exact: true }).getByText("ssh_authorized_keys").waitFor();

  // back and forward by the browser: nothing is lost, and nothing of it is in the URL
  await page.goBack();
  assert.ok(await page.getByRole("radio", { name: "debian-12" }).isChecked());
  await page.goForward();
  await page.getByLabel("User-data", { exact: true }).getByText("AAAAC3NzaC1lZDI1NTE5AAAAIJ5x").waitFor();
  assert.doesNotMatch(page.url(), /ssh/);
  assert.deepEqual(await page.evaluate(() => [JSON.stringify(localStorage), JSON.stringify(sessionStorage)].map((s) => s.includes("AAAAC3"))), [false, false]);

  await next(page);
  await page.getByText("2 machines ready").waitFor();
  const one = page.getByRole("listitem", { name: "wiz-a" });
  await one.getByText(/^Erases/).waitFor();
  await one.getByText("never wiped it").waitFor();
  assert.equal(await one.getByText("(redacted)").count(), 1, "user-data is not shown");
  assert.deepEqual(await axe(page), []);

  await page.getByRole("button", { name: /^Install 2 machines/ }).click();
  const ask = page.getByRole("dialog", { name: "Install 2 machines?" });
  const yes = ask.getByRole("button", { name: "Install" });
  assert.ok(await yes.isDisabled(), "what may hold data is not erased without the word");
  await ask.getByLabel("Type erase 2 machines to confirm").fill("erase 2 machines");
  await yes.click();
  await page.getByRole("heading", { name: "Installing 2 machines" }).waitFor();
  await page.getByText("2 of 2 machines up").waitFor();
  assert.deepEqual(await axe(page), []);
  const h = await api("viewer", "GET", "/hardware/wiz-a");
  assert.equal(h.status.state, "provisioned");

  // and a system that is there is destroyed only where that is said, twice
  await page.getByRole("button", { name: "Install others" }).click();
  await page.getByRole("button", { name: /^Installed/ }).click();
  await choose(page, "wiz-a").check();
  await page.getByText("1 machine cannot be installed.").waitFor();
  await page.getByText("it is provisioned, and an install would destroy its disk").waitFor();
  assert.ok(await page.getByRole("button", { name: /^Next/ }).isDisabled());
  await page.getByRole("checkbox", { name: /^Install it anew/ }).check();
  await page.getByText("All of them can be installed.").waitFor();
  await next(page);
  await page.getByRole("radio", { name: "debian-12" }).check();
  await page.getByRole("radio", { name: "The smallest" }).check();
  await next(page);
  await next(page);
  await page.getByText("holds the system that workflow").waitFor();
  await page.getByRole("button", { name: /^Install 1 machine/ }).click();
  await page.getByText("has a system, which is destroyed").waitFor();
  await page.getByLabel("Type wiz-a to confirm").fill("wiz-b");
  assert.ok(await page.getByRole("dialog").getByRole("button", { name: "Install" }).isDisabled());
});

test("what is refused is told with its reason, and the others go on", async (t) => {
  await Promise.all([machine("wiz-c"), machine("wiz-d", { fail: "image.write" })]);
  await api("operator", "PATCH", "/hardware/wiz-c", "spec: {arch: arm64}");
  t.after(() => api("operator", "PATCH", "/hardware/wiz-c", "spec: {arch: amd64}"));
  const page = await open(t, "operator", { path: "/provision?machines=wiz-c,wiz-d,wiz-none&image=ubuntu-2404", mayFail: /status of (404|422)/ });
  await page.getByText("there is no such machine").waitFor();
  await page.getByText("the record says arm64, and the machine is amd64").waitFor();
  assert.ok(!page.url().includes("machines="), "the URL is not the wizard's memory");
  await page.getByRole("button", { name: "Leave out wiz-none" }).click();
  // mended elsewhere: the page hears of it
  await api("operator", "PATCH", "/hardware/wiz-c", "spec: {arch: amd64, protect: true}");
  await page.getByText("spec.protect is true").waitFor();
  await api("operator", "PATCH", "/hardware/wiz-c", "spec: {protect: false}");
  await page.getByText("All of them can be installed.").waitFor();
  await next(page);
  assert.ok(await page.getByRole("radio", { name: "ubuntu-2404" }).isChecked());
  await page.getByRole("radio", { name: "One by its path or serial number" }).check();
  await page.getByLabel("Path or serial number", { exact: true }).fill("/dev/nope");
  await next(page);
  await next(page);
  await page.getByText("2 will not succeed").waitFor();
  await page.getByText('"/dev/nope" is none of its disks').first().waitFor();
  assert.equal(await page.getByRole("button", { name: /^Install 0 machines/ }).isDisabled(), true);
  await page.getByRole("button", { name: /^2 Image/ }).click();
  await page.getByRole("radio", { name: "The smallest" }).check();
  await page.getByRole("button", { name: /^4 Review/ }).click();
  await page.getByText("2 machines ready").waitFor();
  await page.getByRole("button", { name: /^Install 2 machines/ }).click();
  await page.getByLabel(/^Type/).fill("erase 2 machines");
  // somebody else is faster with one of them
  await api("operator", "POST", "/hardware/wiz-c/hold", {});
  await page.getByRole("dialog").getByRole("button", { name: "Install" }).click();
  const c = page.getByRole("row", { name: /wiz-c/ });
  await c.getByText("not started").waitFor();
  await c.getByText(/is on hold/).first().waitFor();
  await page.getByRole("row", { name: /wiz-d/ }).getByText("failed", { exact: true }).waitFor();
  await api("operator", "POST", "/hardware/wiz-c/hold", { hold: false });
  await c.getByRole("button", { name: "Try again" }).click();
  await c.getByText("OS up").waitFor();
  await page.getByText("1 of 2 machines up, 1 failed or ended").waitFor();
});

/** An install that asks for values of every type. */
const recipe = `apiVersion: rackstrap/v1
kind: Template
metadata: {name: wiz-recipe}
spec:
  description: An install with a motto.
  parameters:
    - name: image
      description: what is written
    - name: disk
      default: ""
    - name: network
      type: secret
      default: ""
    - name: motto
      description: what the note says
    - name: copies
      type: int
      default: 2
    - name: loud
      type: bool
      default: false
    - name: pass
      type: secret
  actions:
    - name: wipe
      kind: disk.wipe
      with: {disk: "\${disk}"}
    - name: write-image
      kind: image.write
      with: {disk: "\${disk}", image: "\${image}"}
    - name: network
      kind: network.config
      with: {disk: "\${disk}", config: "\${network}"}
    - name: note
      kind: file.write
      with: {path: /etc/motto, content: "\${motto} \${copies} \${loud} \${pass}"}
    - name: restart
      kind: reboot
`;

test("a template's values and each machine's address are kept from step to step; one machine is taken meanwhile", async (t) => {
  t.after(() => fetchAPI("operator", "DELETE", "/templates/wiz-recipe"));
  await Promise.all([api("operator", "POST", "/templates", recipe), machine("wiz-small", { disks: "100" }), machine("wiz-large", { disks: "480 4000" })]);
  const page = await open(t, "operator", { path: "/provision?machines=wiz-small,wiz-large&image=debian-12", mayFail: /status of 4(00|09|22)/ });
  await page.getByText("All of them can be installed.").waitFor();
  await next(page);
  await page.getByRole("radio", { name: "The largest" }).check();
  await page.getByLabel("Template").selectOption("wiz-recipe");
  await page.getByText("An install with a motto.").waitFor();
  const motto = page.getByLabel("motto");
  const pass = page.getByLabel("pass");
  await motto.fill("quiet please");
  await page.getByLabel("copies").fill("3");
  await page.getByRole("checkbox", { name: "loud" }).check();
  await pass.fill("hunter3");
  assert.equal(await pass.getAttribute("type"), "password");
  await next(page);
  await page.getByRole("radio", { name: "Addresses for this install" }).check();
  await page.getByLabel("Address of wiz-small").fill("10.77.240.1/16");
  await page.getByLabel("Address of wiz-large").fill("10.77.240.2/99");
  await page.getByLabel("Gateway").fill("10.77.0.1");
  await next(page);
  // what is wrong with one is said of that one
  const small = page.getByRole("listitem", { name: "wiz-small" });
  const large = page.getByRole("listitem", { name: "wiz-large" });
  await large.getByText("refused", { exact: true }).waitFor();
  await large.getByRole("alert").getByText(/static|10\.77\.240\.2\/99/).first().waitFor();
  await small.getByText("ready", { exact: true }).waitFor();

  // there and back: nothing is lost
  await page.getByRole("button", { name: "Back: User-data and network" }).click();
  assert.equal(await page.getByLabel("Address of wiz-small").inputValue(), "10.77.240.1/16");
  await page.getByLabel("Address of wiz-large").fill("10.77.240.2/16");
  await page.getByRole("button", { name: "Back: Image and disk" }).click();
  assert.deepEqual([await motto.inputValue(), await page.getByLabel("copies").inputValue(), await page.getByRole("checkbox", { name: "loud" }).isChecked(), await pass.inputValue()], ["quiet please", "3", true, "hunter3"]);
  await page.getByRole("button", { name: "Back: Machines" }).click();
  await page.getByRole("heading", { name: "Chosen: 2 machines" }).waitFor();
  await page.getByRole("button", { name: /^4 Review/ }).click();
  await page.getByText("2 machines ready.").waitFor();
  await small.getByText(/\b100(\.0)? GB/).first().waitFor();
  await large.getByText(/\b4(\.0+)? TB/).first().waitFor(); // the largest of its two
  await large.getByText("/etc/motto").waitFor();
  assert.doesNotMatch(await page.locator("main").innerText(), /hunter3/);
  assert.doesNotMatch(page.url(), /hunter3|quiet/);

  // somebody else takes one while this page shows it as ready
  await api("operator", "POST", "/claims", { kind: "Claim", metadata: { name: "wiz-taken" }, spec: { owner: "team/other", hardware: "wiz-large" } });
  await large.getByRole("alert").getByText(/team\/other/).first().waitFor();
  await page.getByText("1 machine ready, 1 refused.").waitFor();
  await page.getByText("1 machine is left out.").waitFor();
  await page.getByRole("button", { name: /^Install 1 machine/ }).click();
  await page.getByLabel("Type wiz-small to confirm").fill("wiz-small");
  await page.getByRole("dialog").getByRole("button", { name: "Install" }).click();
  await page.getByRole("heading", { name: "Installing 1 machine" }).waitFor();
  await page.getByRole("row", { name: /wiz-small/ }).getByText(/installed, its system starts|is being installed|waits for its netboot/).waitFor();
  const [flow] = (await api("viewer", "GET", "/workflows?hardware=wiz-small")).items.filter((w) => w.spec.template === "wiz-recipe");
  assert.deepEqual(flow.spec.params, { copies: 3, disk: "largest", image: "debian-12", loud: true, motto: "quiet please", network: "(redacted)", pass: "(redacted)" });
  assert.equal((await api("viewer", "GET", "/hardware/wiz-large")).status.state, "available");
});

test("Talos gets its machine config from a file, Ignition its own format, and neither is asked to phone home", async (t) => {
  await machine("wiz-talos");
  const page = await open(t, "operator", { path: "/provision?machines=wiz-talos&image=debian-12", mayFail: /status of 422/ });
  await page.getByText("All of them can be installed.").waitFor();
  await next(page);
  await page.getByRole("radio", { name: "The only one" }).check();
  await next(page);
  await page.getByRole("checkbox", { name: "When the system phones home" }).check();
  await page.getByLabel("Format").selectOption("talos");
  assert.ok(await page.getByRole("checkbox", { name: "When the system phones home" }).isDisabled());
  await next(page);
  const one = page.getByRole("listitem", { name: "wiz-talos" });
  await one.getByRole("alert").getByText(/talosctl gen config/).first().waitFor();
  await page.getByRole("button", { name: /^3 User-data/ }).click();
  await page.getByRole("radio", { name: /^Mine/ }).check();
  const text = page.getByLabel("User-data", { exact: true });
  const file = page.getByLabel("File of user-data");
  await file.setInputFiles({ name: "disk.img", mimeType: "application/octet-stream", buffer: Buffer.alloc(300 << 10) });
  await page.getByRole("alert").getByText(/user-data may have/).waitFor();
  await file.setInputFiles({ name: "worker.yaml", mimeType: "text/yaml", buffer: Buffer.from("version: v1alpha1\nmachine:\n  type: worker\n  token: hunter4\n") });
  await text.getByText("type: worker").waitFor();
  await page.getByText("5 lines").waitFor();
  await next(page);
  await page.getByText("1 machine ready.").waitFor();
  await page.getByText(/template install-talos/).waitFor();
  await one.getByText("seed.partition").waitFor();
  assert.doesNotMatch(await page.locator("main").innerText(), /hunter4/);

  await page.getByRole("button", { name: /^3 User-data/ }).click();
  await page.getByLabel("Format").selectOption("ignition");
  await text.getByText("type: worker").waitFor(); // what was written is not thrown away
  await page.getByText("Begin with one that lets SSH keys in").click();
  await page.getByLabel("SSH keys").fill("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5x ops");
  await page.getByRole("button", { name: "Write it over what is there" }).click();
  await text.getByText('"sshAuthorizedKeys"').waitFor();
  await next(page);
  await page.getByText("1 machine ready.").waitFor();
  await page.getByText(/template install-ignition/).waitFor();
  await page.getByRole("button", { name: /^Install 1 machine/ }).click();
  await page.getByLabel("Type wiz-talos to confirm").fill("wiz-talos");
  await page.getByRole("dialog").getByRole("button", { name: "Install" }).click();
  await page.getByRole("heading", { name: "Installing 1 machine" }).waitFor();
  const flow = await eventually("the workflow is there", async () => (await api("viewer", "GET", "/workflows?hardware=wiz-talos")).items.find((w) => w.spec.template === "install-ignition"));
  assert.deepEqual(flow.spec.params, { image: "debian-12", userData: "(redacted)" });
  assert.ok(!flow.spec.waitForPhoneHome);
});

test("a viewer has no wizard, and a phone has room for it", async (t) => {
  const viewer = await open(t, "viewer", { path: "/provision" });
  await viewer.getByText("This page is for an operator").waitFor();
  const page = await open(t, "operator", { path: "/provision", width: 360, theme: "dark" });
  await page.getByRole("heading", { name: "Machines", exact: true }).waitFor();
  assert.deepEqual(await overflow(page), []);
  assert.deepEqual(await axe(page), []);
});

test("signing out forgets what was said", async (t) => {
  // a row that is being read at that moment is refused
  const page = await open(t, "operator", { path: "/provision?image=debian-12", mayFail: /status of 401/ });
  await page.getByRole("button", { name: /^All/ }).click();
  await page.getByRole("region", { name: "Machines to choose from" }).getByRole("checkbox").nth(1).check();
  await page.getByRole("heading", { name: "Chosen: 1 machine" }).waitFor();
  await page.getByText("stage-operator").click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token").fill(process.env.RACKSTRAP_UI_OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Chosen: 0 machines" }).waitFor();
});
