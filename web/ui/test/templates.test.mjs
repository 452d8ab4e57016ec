// Templates as people use them: find one, see what it does, write one with help, look at what
// it would do on a machine before it is saved, run it.
import assert from "node:assert/strict";
import test from "node:test";
import { api, eventually, fetchAPI, none, open, overflow, takeOffer } from "./harness.mjs";

/** Typing a wrong document is answered with 422, which Chromium logs. */
const wrongMeanwhile = /status of 422/;

const gone = (t, name) => t.after(() => fetchAPI("operator", "DELETE", `/templates/${name}`));

/** Puts a text into the editor in place of what is there. */
async function write(page, text) {
  const editor = page.getByRole("textbox", { name: /^YAML of/ });
  await editor.click();
  await page.keyboard.press("Control+a");
  await page.evaluate((t) => navigator.clipboard.writeText(t), text);
  await page.keyboard.press("Control+v");
}

const note = (name) => `apiVersion: rackstrap/v1
kind: Template
metadata:
  name: ${name}
spec:
  description: Writes a note.
  parameters:
    - name: text
      description: what the note says
    - name: password
      type: secret
  actions:
    - name: note
      kind: file.write
      timeout: 5m
      with:
        path: /etc/\${hardware.name}.note
        content: \${text} \${password}
    - name: restart
      kind: reboot
`;

test("the list says what each does, and where it was used", async (t) => {
  const page = await open(t, "viewer", { path: "/templates" });
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "install", exact: true }) });
  await row.getByText("built in", { exact: true }).waitFor();
  await row.getByText(/disk\.wipe → image\.write/).waitFor();
  await row.getByText(/\d workflows?/).waitFor();
  await page.getByLabel("Find templates").fill("ignition");
  await page.getByText("1 template", { exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: /Copy|Delete|New/ }).count(), 0);
  await page.getByRole("link", { name: "install-ignition" }).click();
  const steps = page.getByRole("list", { name: "Steps as written" });
  await steps.getByText("write-image").waitFor();
  await steps.getByText("no time limit, then up to 2 retries").waitFor();
  assert.match(await steps.getByText("${image}").getAttribute("title"), /must be given/);
  await page.getByRole("row", { name: /userData/ }).getByText("secret").waitFor();
  // what acts, and the preview that may touch secrets, is not a viewer's
  assert.deepEqual(await page.getByRole("tab").allInnerTexts(), ["What it does"]);
});

test("a template is written with help, told what is wrong at its line, looked at and created", async (t) => {
  gone(t, "notes-a");
  const page = await open(t, "operator", { path: "/templates", mayFail: wrongMeanwhile });
  await page.getByRole("button", { name: "New template" }).click();
  await write(page, note("notes-a").replace("      with:\n        path", "      with:\n        pahts: x\n        path"));
  // the appliance's own words, and the line
  await page.getByText(/Line 1[0-9]:/).waitFor();
  await page.getByText(/unknown field "pahts"/).first().waitFor();
  await write(page, note("notes-a").split("      with:")[0] + "      with:\n        ");
  await page.keyboard.press("Control+Space");
  const offered = page.getByRole("listbox");
  await offered.getByText("content").waitFor();
  assert.match(await offered.innerText(), /path/);
  assert.match(await offered.innerText(), /partition/);
  await page.keyboard.type("cont");
  await takeOffer(page, "content");
  await page.keyboard.type("${");
  await offered.getByText("hardware.address").waitFor();
  assert.match(await offered.innerText(), /password/);
  await page.keyboard.type("tex");
  await takeOffer(page, /^text/);
  await page.getByText(/content: \$\{text\}$/).first().waitFor();
  // whole, and looked at before it is saved
  await write(page, note("notes-a"));
  await page.getByText("The appliance would take it").waitFor();
  const preview = page.getByRole("region", { name: "Preview on a machine" });
  await preview.getByLabel("Machine").fill("r3-u01");
  await preview.getByLabel("text *").fill("hello");
  await preview.getByLabel("password *").fill("hunter2");
  assert.equal(await preview.getByLabel("password *").getAttribute("type"), "password");
  const steps = preview.getByRole("list", { name: "Steps on r3-u01" });
  await steps.getByText("/etc/r3-u01.note").waitFor();
  await steps.getByText("at most 5 min a try").waitFor();
  await preview.getByText("nothing speaks against it").waitFor();
  assert.doesNotMatch(await page.locator("main").innerText(), /hunter2/);
  assert.doesNotMatch(page.url(), /hunter2|hello/);
  assert.equal((await fetchAPI("viewer", "GET", "/templates/notes-a")).status, 404);
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "Templates / notes-a" }).waitFor();
  assert.equal((await api("viewer", "GET", "/templates/notes-a")).spec.actions.length, 2);
});

test("a change shows its difference first; somebody else's meanwhile is not written over", async (t) => {
  gone(t, "notes-b");
  await api("operator", "POST", "/templates", note("notes-b"));
  const page = await open(t, "operator", { path: "/templates/notes-b?tab=edit", mayFail: /status of 4(12|22)/ });
  await page.getByText("The appliance would take it").waitFor();
  await write(page, note("notes-b").replace("Writes a note.", "Writes two notes."));
  await api("operator", "PATCH", "/templates/notes-b", { spec: { timeout: "9m" } });
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByText("Somebody else changed notes-b meanwhile.").waitFor();
  await page.getByRole("button", { name: "Go on with mine" }).click();
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("Writes two notes.").waitFor();
  assert.equal((await api("viewer", "GET", "/templates/notes-b")).spec.description, "Writes two notes.");
});

test("a built-in one is copied before it is changed", async (t) => {
  gone(t, "install-copy");
  const page = await open(t, "operator", { path: "/templates/install?tab=edit" });
  await page.getByText("install is built in.").waitFor();
  await page.getByRole("button", { name: "Edit a copy" }).click();
  await page.getByRole("heading", { name: "Templates / a copy of install" }).waitFor();
  await page.getByText("The appliance would take it").waitFor();
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "Templates / install-copy" }).waitFor();
  await page.getByRole("button", { name: "Delete…" }).click();
  const dialog = page.getByRole("dialog");
  assert.equal(await dialog.getByRole("button", { name: "Delete", exact: true }).isDisabled(), true);
  await dialog.getByLabel("Type install-copy to confirm").fill("install-copy");
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("heading", { name: "Templates", exact: true }).waitFor();
  await page.getByRole("link", { name: "install", exact: true }).waitFor();
  assert.equal(await page.getByRole("link", { name: "install-copy" }).count(), 0);
});

test("what keeps a machine from it is said, with the steps all the same", async (t) => {
  const page = await open(t, "operator", { path: "/templates/install?tab=preview&machine=r1-u01", mayFail: wrongMeanwhile });
  const preview = page.getByRole("region", { name: "Preview", exact: true });
  await preview.getByText("is missing").waitFor();
  await preview.getByLabel("image *").fill("debian-12");
  await preview.getByText("The appliance would not start it now.").waitFor();
  await preview.getByText(/is provisioned and this would destroy its disk/).waitFor();
  await preview.getByRole("list", { name: "Steps on r1-u01" }).getByText("debian-12").waitFor();
  assert.equal(await page.getByRole("button", { name: /^Run it on/ }).count(), 0);
  await preview.getByLabel(/^Reinstall/).check();
  await preview.getByText(/this would destroy its disk/).waitFor({ state: "detached" });
  await preview.getByLabel("image *").fill("no-such-image");
  await preview.getByText(/no-such-image/).last().waitFor();
});

test("it is run on a machine after its name was typed", async (t) => {
  gone(t, "notes-c");
  await api("operator", "POST", "/templates", note("notes-c"));
  const page = await open(t, "operator", { path: "/templates/notes-c", mayFail: wrongMeanwhile });
  await page.getByRole("button", { name: "Run on a machine…" }).click();
  const dialog = page.getByRole("dialog", { name: "Run notes-c on a machine" });
  await dialog.getByLabel("Machine").fill("r3-u03");
  await dialog.getByLabel("text *").fill("hello");
  await dialog.getByLabel("password *").fill("hunter2");
  await dialog.getByRole("button", { name: "Run it on r3-u03…" }).click();
  const sure = page.getByRole("dialog", { name: "Run notes-c on r3-u03?" });
  assert.equal(await sure.getByRole("button", { name: "Run it" }).isDisabled(), true);
  await sure.getByLabel("Type r3-u03 to confirm").fill("r3-u03");
  await sure.getByRole("button", { name: "Run it" }).click();
  await page.getByRole("heading", { name: /r3-u03/ }).first().waitFor();
  const flow = await eventually("the workflow is there", async () => (await api("viewer", "GET", "/workflows?hardware=r3-u03&sort=-created")).items.find((w) => w.spec.template === "notes-c"));
  t.after(() => fetchAPI("operator", "POST", `/workflows/${flow.metadata.name}/cancel`, {}));
  assert.deepEqual(flow.spec.params, { text: "hello", password: "(redacted)" });
});

test("a phone shows the editor and the preview", async (t) => {
  const page = await open(t, "operator", { path: "/templates?copy=release&machine=r3-u05", width: 360, height: 740, theme: "dark" });
  await page.getByText("The appliance would take it").waitFor();
  await page.getByRole("list", { name: "Steps on r3-u05" }).waitFor();
  none(await overflow(page));
});
