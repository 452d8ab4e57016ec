// Changing the record of a machine, and what becomes of the page when the record goes.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { api, eventually, fetchAPI, open, takeOffer } from "./harness.mjs";

let last = 0;
const made = [];

/** A machine that is only a record. */
async function record(name, spec = {}) {
  last++;
  made.push(name);
  const mac = `52:54:0d:7a:01:${String(last).padStart(2, "0")}`;
  return api("operator", "POST", "/hardware", { kind: "Hardware", metadata: { name }, spec: { interfaces: [{ mac }], ...spec } });
}

after(async () => {
  for (const name of made) await fetchAPI("operator", "DELETE", `/hardware/${name}?force=true`);
});

test("a record is changed by the form, after a look at the difference", async (t) => {
  await record("formed", { rack: "r9", power: { driver: "webhook", url: "https://power.example.org/x", secret: "0123456789abcdef0123" }, userData: "#cloud-config\n{}\n" });
  const page = await open(t, "operator", { path: "/machines/formed?tab=edit", mayFail: /status of 4\d\d/ });
  await page.getByLabel("Position").fill("17");
  await page.getByLabel("Labels").fill("site=hall-1\nrole=db");
  await page.getByLabel("MAC", { exact: true }).fill("52:54:0d:7a:zz:01");
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByRole("alert").getByText("spec.interfaces[0].mac", { exact: true }).waitFor();
  await page.getByLabel("MAC", { exact: true }).fill("52:54:0d:7a:00:77");
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByRole("button", { name: "Apply" }).waitFor();
  await page.getByText("role: db").waitFor();
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("site=hall-1").waitFor();
  const now = await api("viewer", "GET", "/hardware/formed");
  assert.deepEqual([now.spec.position, now.spec.rack, now.spec.interfaces[0].mac, now.metadata.labels.role], ["17", "r9", "52:54:0d:7a:00:77", "db"]);
  assert.deepEqual([now.spec.power.secret, now.spec.userData], ["(redacted)", "(redacted)"], "secrets are kept, and not shown");
});

test("two who edit one record as YAML: mine goes on over theirs only when I say so", async (t) => {
  await record("contested-yaml");
  const page = await open(t, "operator", { path: "/machines/contested-yaml?tab=edit", mayFail: /status of 4\d\d/ });
  await page.getByRole("button", { name: "YAML" }).click();
  const editor = page.getByRole("textbox", { name: "YAML of contested-yaml" });
  await editor.click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("  rack: mine");
  await page.getByText("The appliance would take it").waitFor();
  await api("operator", "PATCH", "/hardware/contested-yaml", { spec: { rack: "theirs", position: "7" } });
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByText("Somebody else changed contested-yaml meanwhile").waitFor();
  await page.getByText("rack: theirs").waitFor();
  await page.getByRole("button", { name: "Go on with mine" }).click();
  await editor.getByText("rack: mine").waitFor(); // nothing that was written is lost
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByText('position: "7"').waitFor(); // the difference says what of theirs goes
  await page.getByRole("button", { name: "Apply" }).click();
  await eventually("mine is there", async () => (await api("viewer", "GET", "/hardware/contested-yaml")).spec.rack === "mine");
});

test("a secret that is typed is not shown in the review", async (t) => {
  await record("hushed", { power: { driver: "webhook", url: "https://power.example.org/x", secret: "0123456789abcdef0123" } });
  const page = await open(t, "operator", { path: "/machines/hushed?tab=edit" });
  await page.getByLabel("Secret").fill("correct-horse-battery");
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByText("(new secret)").first().waitFor();
  assert.equal(await page.getByText("correct-horse-battery").count(), 0);
  const rev = (await api("viewer", "GET", "/hardware/hushed")).metadata.revision;
  await page.getByRole("button", { name: "Apply" }).click();
  await eventually("it is changed", async () => (await api("viewer", "GET", "/hardware/hushed")).metadata.revision !== rev);
});

test("a dialog stays when what it is about goes, and so does what is written", async (t) => {
  await record("fading");
  const page = await open(t, "operator", { path: "/machines/fading", mayFail: /status of 404/ });
  await page.getByRole("button", { name: "Maintenance…" }).click();
  const dialog = page.getByRole("dialog", { name: "Work on fading" });
  await dialog.getByLabel(/^What is being done/).fill("new fan");
  await api("admin", "POST", "/hardware/fading/hold", { hold: true });
  await dialog.getByText("it is on hold").waitFor();
  await api("admin", "DELETE", "/hardware/fading");
  await dialog.getByText("its record was deleted").waitFor();
  await page.getByText("The record of fading was deleted").waitFor();
  assert.equal(await dialog.getByLabel(/^What is being done/).inputValue(), "new fan");
  assert.ok(await dialog.getByRole("button", { name: "Begin maintenance" }).isDisabled());

  await record("faded");
  const other = await open(t, "operator", { path: "/machines/faded?tab=edit", mayFail: /status of 404/ });
  await other.getByLabel("Position").fill("mine");
  await api("admin", "DELETE", "/hardware/faded");
  await other.getByText("The record of faded was deleted").waitFor();
  assert.equal(await other.getByLabel("Position").inputValue(), "mine");
});

test("two who edit one record do not overwrite each other", async (t) => {
  await record("contested");
  const page = await open(t, "operator", { path: "/machines/contested?tab=edit", mayFail: /status of 4\d\d/ });
  await page.getByLabel("Position").fill("mine");
  await api("operator", "PATCH", "/hardware/contested", { spec: { rack: "theirs" } });
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByText("Somebody else changed contested meanwhile").waitFor();
  await page.getByText("rack: theirs").waitFor();
  await page.getByRole("button", { name: "Take theirs" }).click();
  await page.getByLabel("Rack").waitFor();
  assert.equal(await page.getByLabel("Rack").inputValue(), "theirs");
  await page.getByLabel("Position").fill("mine too");
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByRole("button", { name: "Apply" }).click();
  await eventually("both changes", async () => {
    const s = (await api("viewer", "GET", "/hardware/contested")).spec;
    return s.rack === "theirs" && s.position === "mine too";
  });
});

test("YAML is completed from the appliance's own schema", async (t) => {
  await record("written");
  // half a word is no field: the appliance says so to who pauses there
  const page = await open(t, "operator", { path: "/machines/written?tab=edit", mayFail: /status of 422/ });
  await page.getByRole("button", { name: "YAML" }).click();
  const editor = page.getByRole("textbox", { name: "YAML of written" });
  await editor.click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("  netb");
  await takeOffer(page, /netboot/);
  await page.keyboard.type("secu");
  await takeOffer(page, /secureBoot/);
  await page.keyboard.press("Control+Space");
  await page.getByRole("option", { name: "auto" }).waitFor();
});

test("a machine that is not there, and one that goes away while somebody looks", async (t) => {
  const page = await open(t, "operator", { path: "/machines/r1-u", mayFail: /status of 404/ });
  await page.getByText("There is no machine r1-u").waitFor();
  await page.getByRole("link", { name: "r1-u01" }).waitFor();
  await record("leaving");
  const other = await open(t, "operator", { path: "/machines/leaving", mayFail: /status of 404/ });
  await other.getByRole("heading", { name: "leaving" }).waitFor();
  await api("operator", "DELETE", "/hardware/leaving");
  await other.getByText("The record of leaving was deleted").waitFor();
  assert.equal(await other.getByRole("button", { name: "Power…" }).count(), 0);
});

test("what people and machines write is text", async (t) => {
  const evil = `<img src=x onerror="window.hit=1">`;
  await record("hostile", { notes: evil, rack: evil.slice(0, 60), assetTag: "<b>tag</b>" });
  await api("operator", "POST", "/hardware/hostile/maintenance", { note: evil });
  for (const tab of ["", "?tab=why", "?tab=facts", "?tab=events", "?tab=edit"]) {
    const page = await open(t, "operator", { path: `/machines/hostile${tab}` });
    await page.getByText("<b>tag</b>").first().waitFor();
    await page.waitForFunction(() => !document.querySelector("main .loading"));
    assert.equal(await page.evaluate(() => window.hit ?? document.querySelectorAll("main img").length), 0, tab);
    await page.context().close();
  }
});
