// Images: by file, by URL, and gone again.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { act, api, axe, eventually, fetchAPI, open, overflow } from "./harness.mjs";

const row = (page, name) => page.getByRole("row", { name: new RegExp(`^${name} `) });

/** A file that is a disk image, of so many MiB that no compression makes small. */
async function disk(t, name, mib) {
  const dir = await mkdtemp(join(tmpdir(), "ui-image-"));
  t.after(() => rm(dir, { recursive: true }));
  const data = Buffer.alloc(mib << 20);
  let x = 12345;
  for (let i = 0; i < data.length; i += 4) data.writeUInt32LE((x = (Math.imul(x, 1664525) + 1013904223) >>> 0), i);
  data[510] = 0x55;
  data[511] = 0xaa;
  const path = join(dir, name);
  await writeFile(path, data);
  return { path, sum: `sha256:${createHash("sha256").update(data).digest("hex")}` };
}

/** Files that somebody drags, made in the page: names and their MiB. */
function dragged(page, files) {
  return page.evaluateHandle((files) => {
    const all = new DataTransfer();
    for (const [name, mib] of files) {
      const data = new Uint8Array(mib << 20);
      for (let i = 0; i < data.length; i += 65536) crypto.getRandomValues(data.subarray(i, i + 65536));
      data[510] = 0x55;
      data[511] = 0xaa;
      all.items.add(new File([data], name));
    }
    return all;
  }, files);
}

const gone = (t, name) => t.after(() => fetchAPI("operator", "DELETE", `/images/${name}`));

/** Makes the page's uploads slow, so that they can be seen. */
async function slow(page, bytesPerSecond) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Network.enable");
  const set = (n) => cdp.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: n });
  await set(bytesPerSecond);
  return () => set(-1);
}

test("a file is uploaded with progress, also while another page is shown, and is ready", async (t) => {
  const file = await disk(t, "Debian-13-generic-arm64.raw", 12);
  gone(t, "up-1");
  const page = await open(t, "operator", { path: "/images" });
  const fast = await slow(page, 2 << 20);
  await page.getByLabel("File of an image").setInputFiles(file.path);
  const form = page.getByRole("dialog", { name: "Upload an image" });
  assert.equal(await form.getByLabel("Name").inputValue(), "debian-13-generic-arm64");
  assert.equal(await form.getByLabel("Operating system").inputValue(), "debian");
  assert.equal(await form.getByLabel("Its version").inputValue(), "13");
  assert.equal(await form.getByLabel("CPU").inputValue(), "arm64");
  await form.getByLabel("Name").fill("up-1");
  await form.getByLabel("Checksum").fill(file.sum);
  assert.deepEqual(await axe(page), []);
  await form.getByRole("button", { name: "Upload" }).click();
  const up = page.getByRole("region", { name: "Upload of up-1" });
  await up.getByText(/MB\/s.* left/).waitFor();

  // leaving the site asks; another page of it does not stop the upload
  page.removeAllListeners("dialog"); // this one is wanted
  const leaving = new Promise((done) => page.once("dialog", (d) => void d.dismiss().then(() => done(d.type()))));
  await page.close({ runBeforeUnload: true });
  assert.equal(await leaving, "beforeunload");
  await page.getByRole("link", { name: "Networks" }).click();
  await page.getByRole("heading", { name: "Networks" }).waitFor();
  await fast();
  await page.getByText("The appliance looks at it now").waitFor();
  await page.getByRole("link", { name: "Images" }).click();
  await row(page, "up-1").getByText("ready").waitFor();
  const i = await api("viewer", "GET", "/images/up-1");
  assert.equal(i.spec.os, "debian");
  assert.equal(i.spec.arch, "arm64");
  assert.equal(i.status.source.digest ?? i.status.renditions[0].source.digest, file.sum.slice(7));
});

test("an upload is cancelled, and one that is altered is refused and can be sent again", async (t) => {
  const file = await disk(t, "other.raw", 6);
  const page = await open(t, "operator", { path: "/images", mayFail: /status of 4\d\d/ });
  const fast = await slow(page, 1 << 20);
  await page.getByLabel("File of an image").setInputFiles(file.path);
  await page.getByRole("dialog").getByLabel("Name").fill("up-2");
  await page.getByRole("dialog").getByRole("button", { name: "Upload" }).click();
  const up = page.getByRole("region", { name: "Upload of up-2" });
  await up.getByText(/ of 6\.3 MB/).waitFor();
  await page.getByRole("button", { name: "Cancel the upload of up-2" }).click();
  await up.waitFor({ state: "detached" });
  await eventually("nothing is kept", async () => (await fetchAPI("viewer", "GET", "/images/up-2")).status === 404);
  await fast();

  await page.getByLabel("File of an image").setInputFiles(file.path);
  await page.getByRole("dialog").getByLabel("Name").fill("up-2");
  await page.getByRole("dialog").getByLabel("Checksum").fill(`sha256:${"0".repeat(64)}`);
  await page.getByRole("dialog").getByRole("button", { name: "Upload" }).click();
  await up.getByText("failed").waitFor();
  await up.getByRole("alert").getByText(/sha256/).first().waitFor();
  await up.getByRole("button", { name: "Send it again" }).waitFor();
  await up.getByRole("button", { name: "Put away" }).click();
  await up.waitFor({ state: "detached" });
});

test("files are dropped onto the page: a form for each, and what does not match its checksum is refused", async (t) => {
  gone(t, "drop-2");
  const page = await open(t, "operator", { path: "/images", mayFail: /status of 4\d\d/ });
  await row(page, "debian-12").waitFor();
  const fast = await slow(page, 2 << 20);
  const dataTransfer = await dragged(page, [["fedora-41-aarch64.raw", 4], ["two.raw", 1]]);
  const main = page.locator("main");
  await main.dispatchEvent("dragenter", { dataTransfer });
  await page.getByText("Drop the file to add it as an image").waitFor();
  await main.dispatchEvent("dragover", { dataTransfer });
  await main.dispatchEvent("drop", { dataTransfer });
  await page.getByText("Drop the file to add it as an image").waitFor({ state: "detached" });
  const form = page.getByRole("dialog", { name: "Upload an image" });
  await form.getByText("1 more file after it").waitFor();
  await form.getByText("fedora-41-aarch64.raw").waitFor();
  assert.equal(await form.getByLabel("CPU").inputValue(), "arm64");

  // a further file that is let go over the form is not opened by the browser in place of the page
  const kept = await main.evaluate((e, dataTransfer) => ["dragover", "drop"].map((type) => !e.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }))), dataTransfer);
  assert.deepEqual(kept, [true, true], "the browser opens what is dropped, and what was typed is gone");

  await form.getByLabel("Name").fill("drop-1");
  await form.getByLabel("Checksum").fill(`sha256:${"1".repeat(64)}`);
  await form.getByRole("button", { name: "Upload" }).click();
  await form.getByText("two.raw").waitFor(); // its turn
  const first = page.getByRole("region", { name: "Upload of drop-1" });
  await first.getByRole("progressbar", { name: "Uploading drop-1" }).waitFor();
  await form.getByLabel("Name").fill("drop-2");
  await form.getByRole("button", { name: "Upload" }).click();
  await form.waitFor({ state: "detached" });
  await first.getByText(/^\d+ % · [\d.]+ .* of 4\.2 MB · .*\/s · .* left$/).waitFor();
  await fast();
  await first.getByRole("alert").getByText(/sha256/).first().waitFor();
  await row(page, "drop-2").getByText("ready").waitFor();
  assert.equal((await fetchAPI("viewer", "GET", "/images/drop-1")).status, 404, "what was refused is in the catalogue");
});

test("an image is fetched from a URL with progress, over a connection that breaks; what is altered is refused", async (t) => {
  gone(t, "fetched");
  const [site, other] = await Promise.all([act("site", { mib: 12, rate: 4 << 20, cut: 4 << 20 }), act("site", { mib: 1 })]);
  const page = await open(t, "operator", { path: "/images", mayFail: /status of 4\d\d/ });
  const add = page.getByRole("button", { name: "Add from a URL" });
  const form = page.getByRole("dialog", { name: "Add an image from a URL" });
  await add.click();
  await form.getByLabel("URL").fill("ftp://mirror.example.org/disk.raw");
  await form.getByLabel("Name").fill("fetched");
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await form.getByRole("alert").getByText(/http/).first().waitFor(); // where it was asked for
  await form.getByLabel("URL").fill(other.url);
  await form.getByLabel("Checksum").fill(site.sum);
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await form.waitFor({ state: "detached" });
  await row(page, "fetched").getByText("failed").waitFor();
  await row(page, "fetched").getByText(/sha256/).first().waitFor();

  await add.click();
  await form.getByLabel("URL").fill(site.url);
  await form.getByLabel("Name").fill("fetched");
  await form.getByText("There is an image fetched: this replaces it.").waitFor();
  await form.getByLabel("Checksum").fill(site.sum);
  await form.getByRole("button", { name: "Replace" }).click();
  await row(page, "fetched").getByRole("progressbar", { name: "fetching fetched" }).waitFor();
  await row(page, "fetched").getByText(/ of 12\.6 MB · .*\/s · .* left$/).waitFor();
  await row(page, "fetched").getByText("ready").waitFor();
  assert.equal((await api("viewer", "GET", "/images/fetched")).status.source.digest, site.sum.slice(7));
});

test("an upload that meets the end of the session goes on when the same person has signed in again", async (t) => {
  const make = async () => JSON.parse((await fetchAPI("admin", "POST", "/tokens", { metadata: { name: "uploader" }, spec: { role: "operator" } })).text).secret;
  t.after(() => fetchAPI("admin", "DELETE", "/tokens/uploader"));
  gone(t, "up-3");
  const file = await disk(t, "third.raw", 6);
  const page = await open(t, "", { path: "/images", mayFail: /status of 401|ERR_|net::/ });
  const signIn = async (secret) => {
    await page.getByLabel("Token").fill(secret);
    await page.getByRole("button", { name: "Sign in" }).click();
  };
  await signIn(await make());
  await page.getByLabel("File of an image").setInputFiles(file.path);
  await page.getByRole("dialog").getByLabel("Name").fill("up-3");
  await page.getByRole("dialog").getByLabel("Checksum").fill(file.sum);
  assert.equal((await fetchAPI("admin", "DELETE", "/tokens/uploader")).status, 204);
  await page.getByRole("dialog").getByRole("button", { name: "Upload" }).click();
  const ended = page.getByRole("dialog", { name: "The session has ended" });
  await ended.waitFor();
  await page.getByText("It is sent again by itself when you have signed in").waitFor();
  await signIn(await make());
  await ended.waitFor({ state: "hidden" });
  await row(page, "up-3").getByText("ready").waitFor();
});

test("an image that is deleted while somebody looks at it stays in sight, and says so", async (t) => {
  gone(t, "fading");
  await api("operator", "POST", "/images", { apiVersion: "rackstrap/v1", kind: "Image", metadata: { name: "fading" }, spec: { url: "http://10.77.0.1:7080/images/none.img", os: "debian" } });
  const page = await open(t, "operator", { path: "/images?image=fading" });
  await page.getByRole("dialog", { name: "fading" }).getByRole("button", { name: "Edit" }).click();
  const form = page.getByRole("dialog", { name: "Edit fading" });
  await form.getByLabel("Description").fill("half a sen");
  await api("admin", "DELETE", "/images/fading");
  await form.getByText("The image fading was deleted meanwhile.").waitFor();
  assert.equal(await form.getByLabel("Description").inputValue(), "half a sen");
  assert.ok(await form.getByRole("button", { name: "Save" }).isDisabled());
});

test("an image by URL fails with its reason, is fetched again, and is deleted by its name", async (t) => {
  gone(t, "by-url");
  const page = await open(t, "operator", { path: "/images", mayFail: /status of 4\d\d/ });
  await page.getByRole("button", { name: "Add from a URL" }).click();
  const form = page.getByRole("dialog", { name: "Add an image from a URL" });
  await form.getByLabel("URL").fill("http://10.77.0.1:7080/images/0000-ubuntu-24.04-amd64.img");
  assert.equal(await form.getByLabel("Operating system").inputValue(), "ubuntu");
  await form.getByLabel("Name").fill("By URL");
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await form.getByRole("alert").getByText(/lower-case letters/).first().waitFor();
  await form.getByLabel("Name").fill("by-url");
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await form.waitFor({ state: "detached" });
  await row(page, "by-url").getByText("failed").waitFor();
  await row(page, "by-url").getByText(/the server says 400/).waitFor();
  await page.getByRole("link", { name: "by-url" }).click();
  const detail = page.getByRole("dialog", { name: "by-url" });
  await detail.getByRole("button", { name: "Fetch again" }).click();
  await page.getByText("by-url is fetched again.").waitFor();
  await detail.getByText("failed").waitFor();
  await detail.getByRole("button", { name: "Delete" }).click();
  const sure = page.getByRole("dialog", { name: "Delete by-url?" });
  assert.ok(await sure.getByRole("button", { name: "Delete" }).isDisabled());
  await sure.getByLabel("Type by-url to confirm").fill("by-url");
  await sure.getByRole("button", { name: "Delete" }).click();
  await row(page, "by-url").waitFor({ state: "detached" });
});

test("an image that is being installed is not deleted, and the appliance says by whom", async (t) => {
  const page = await open(t, "operator", { path: "/images?image=debian-12", mayFail: /status of 409/ });
  const detail = page.getByRole("dialog", { name: "debian-12" });
  await detail.getByText(/machines? getting it/).waitFor();
  await detail.getByRole("button", { name: "Delete" }).click();
  const sure = page.getByRole("dialog", { name: "Delete debian-12?" });
  await sure.getByText("the appliance refuses until that has ended").waitFor();
  await sure.getByLabel(/^Type/).fill("debian-12");
  await sure.getByRole("button", { name: "Delete" }).click();
  await sure.getByRole("alert").getByText(/workflow .* on hardware/).first().waitFor();
});

test("a viewer sees images and no verb; a phone shows them", async (t) => {
  const page = await open(t, "viewer", { path: "/images", width: 360, theme: "dark" });
  await row(page, "debian-12").waitFor();
  assert.equal(await page.getByRole("button", { name: /Add|Upload/ }).count(), 0);
  assert.deepEqual(await overflow(page), []);
  await page.getByRole("link", { name: "debian-12" }).click();
  await page.getByRole("dialog").getByText("Served as").waitFor();
  assert.equal(await page.getByRole("dialog").getByRole("button", { name: /Delete|Edit|Fetch/ }).count(), 0);
  assert.deepEqual(await axe(page), []);
});
