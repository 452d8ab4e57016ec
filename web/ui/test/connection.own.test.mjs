// The daemon dies and comes back while a page is open.
import assert from "node:assert/strict";
import test from "node:test";
import { act, api, open } from "./harness.mjs";

const lost = /ERR_(CONNECTION|EMPTY|SOCKET|INCOMPLETE|HTTP2|NETWORK)|status of 5\d\d|dynamically imported/;

test("a page outlives the daemon, says so, and misses nothing", async (t) => {
  const page = await open(t, "operator", { path: "/machines", mayFail: lost });
  await page.evaluate(() => (globalThis.neverReloaded = true));
  await page.getByText("r1-u01").first().waitFor();
  await page.getByText("live", { exact: false }).first().waitFor();

  await act("kill");
  await page.getByRole("alert").filter({ hasText: "no connection" }).waitFor();
  assert.ok(await page.getByText("r1-u01").first().isVisible(), "what was last known stays");

  await act("start");
  // done before the page is connected again, as far as anybody can tell
  await api("operator", "POST", "/apply", "kind: Hardware\nmetadata: {name: a-late-one}\nspec: {interfaces: [{mac: '02:00:00:00:aa:01'}]}\n");
  await page.getByText("● live").waitFor();
  await page.getByText("a-late-one").first().waitFor();

  for (let i = 0; i < 3; i++) {
    await act("kill");
    await act("start");
  }
  await api("operator", "DELETE", "/hardware/a-late-one");
  await page.getByText("● live").waitFor();
  await page.getByText("a-late-one").first().waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => globalThis.neverReloaded), true);
});

test("what is done while there is no connection fails where it was done", async (t) => {
  const page = await open(t, "", { mayFail: lost });
  await page.getByLabel("Token").waitFor();
  await act("kill");
  await page.getByLabel("Token").fill("rst_x");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").filter({ hasText: "does not answer" }).waitFor();
  await act("start");
});

test("an upload that breaks off is sent again; what could not be read is read when the appliance is back", async (t) => {
  const page = await open(t, "operator", { path: "/images", mayFail: lost });
  const listed = (name) => page.getByRole("row", { name: new RegExp(`^${name} `) });
  await listed("debian-12").waitFor();
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Network.enable");
  const speed = (uploadThroughput) => cdp.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput });
  await speed(256 << 10); // half a minute, in which it breaks
  const disk = Buffer.alloc(8 << 20);
  disk[510] = 0x55;
  disk[511] = 0xaa;
  await page.getByLabel("File of an image").setInputFiles({ name: "broken.raw", mimeType: "application/octet-stream", buffer: disk });
  await page.getByRole("dialog").getByLabel("Name").fill("broken-1");
  await page.getByRole("dialog").getByRole("button", { name: "Upload" }).click();
  const up = page.getByRole("region", { name: "Upload of broken-1" });
  await up.getByText(/ left$/).waitFor();
  await act("kill");
  await up.getByRole("alert").getByText("The connection was lost").waitFor();
  await page.getByRole("link", { name: "Networks" }).click();
  await page.getByRole("alert").getByText("This page could not be fetched").waitFor();
  await page.getByRole("link", { name: "Images" }).click(); // which is there
  await page.getByRole("alert").getByText("The appliance does not answer").waitFor();
  await act("start");
  await listed("debian-12").waitFor(); // by itself, as it says
  await speed(-1);
  await up.getByRole("button", { name: "Send it again" }).click();
  await listed("broken-1").getByText("ready").waitFor();
  await page.getByRole("link", { name: "Networks" }).click();
  await page.getByRole("link", { name: "lan", exact: true }).waitFor();
});
