// The wizard, as somebody who installs machines goes through it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { act, api, axe, eventually, open, overflow } from "./harness.mjs";

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

  await page.getByRole("searchbox", { name: "Search machines" }).fill("wiz-");
  await choose(page, "wiz-a").check();
  await choose(page, "wiz-b").check();
  await page.getByText("All of them can be installed.").waitFor();
  await next(page);
  await page.getByRole("heading", { name: "Image and disk" }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Image and disk", "the focus goes with the step");

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
