import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { api, base, fetchAPI, open, token } from "./harness.mjs";

test("a wrong token is refused where it was typed", async (t) => {
  const page = await open(t, "", { mayFail: /status of 401 .*\/session\)/ });
  await page.getByLabel("Token").fill("rst_nobody");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").innerText(), /token/i);
  assert.equal(await page.getByLabel("Token").inputValue(), "rst_nobody", "what was typed stays, to be corrected");
  assert.equal(await page.getByRole("navigation").count(), 0);
});

test("the right token opens the page that was asked for, and is kept nowhere in it", async (t) => {
  const page = await open(t, "", { path: "/machines?q=role%3Ddb" });
  await page.getByLabel("Token").fill(token("operator"));
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  assert.equal(new URL(page.url()).pathname, "/machines");
  await page.getByText("operator").first().waitFor();
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, document.documentElement.outerHTML, location.href]));
  assert.ok(!kept.includes(token("operator").slice(4, 20)), "the token is in the page or its storage");
  const [cookie, ...others] = await page.context().cookies();
  assert.deepEqual(others, []);
  assert.equal(cookie.httpOnly, true);
  assert.equal(cookie.secure, true);
  assert.equal(cookie.sameSite, "Strict");
  assert.ok(!cookie.value.includes(token("operator").slice(4, 20)), "the cookie has the token");

  await page.reload();
  await page.getByRole("navigation", { name: "Main" }).waitFor(); // still signed in

  await page.locator("summary", { hasText: "operator" }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token").waitFor();
  const again = await page.request.get(`${base}/api/v1/whoami`, { headers: { Cookie: `${cookie.name}=${cookie.value}` } });
  assert.equal(again.status(), 401, "a cookie that was signed out is worth nothing");
});

test("a token that is revoked ends its session, and the page says so", async (t) => {
  const made = JSON.parse((await fetchAPI("admin", "POST", "/tokens", { metadata: { name: "for-a-moment" }, spec: { role: "viewer" } })).text);
  const page = await open(t, "", { mayFail: /status of 401/ });
  await page.getByLabel("Token").fill(made.secret);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  assert.equal((await fetchAPI("admin", "DELETE", "/tokens/for-a-moment")).status, 204);
  const [machine] = (await api("admin", "GET", "/summaries?limit=1")).items;
  t.after(() => api("admin", "PATCH", `/hardware/${machine.name}`, { metadata: { labels: { moment: null } } }));
  await api("admin", "PATCH", `/hardware/${machine.name}`, { metadata: { labels: { moment: "1" } } }); // the page reads the row, and hears that it may not
  await page.getByLabel("Token").waitFor();
  await page.getByRole("heading", { name: "The session has ended" }).waitFor();
});

test("what was typed when a session ended is there for who signs in again, and for nobody else", async (t) => {
  const make = async () => JSON.parse((await fetchAPI("admin", "POST", "/tokens", { metadata: { name: "at-night" }, spec: { role: "viewer" } })).text).secret;
  const revoke = () => api("admin", "DELETE", "/tokens/at-night");
  const [machine] = (await api("admin", "GET", "/summaries?limit=1")).items;
  const label = (night) => api("admin", "PATCH", `/hardware/${machine.name}`, { metadata: { labels: { night } } });
  t.after(() => label(null));
  const page = await open(t, "", { path: "/machines?q=state%3Afailed", mayFail: /status of 401/ });
  const name = page.getByRole("textbox", { name: "Name" });
  const ended = page.getByRole("dialog", { name: "The session has ended" });
  const signIn = async (secret) => {
    await page.getByLabel("Token").fill(secret);
    await page.getByRole("button", { name: "Sign in" }).click();
  };
  await signIn(await make());
  await page.getByRole("button", { name: "Save this view" }).click();
  await name.fill("half a na");
  await revoke();
  await label("1"); // the page reads the row, and hears that it may not
  await ended.waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await ended.waitFor();
  await signIn(await make());
  await ended.waitFor({ state: "hidden" });
  assert.equal(await name.inputValue(), "half a na");
  await page.getByText("● live").waitFor();

  await revoke();
  await label("2");
  await ended.waitFor();
  await signIn(token("operator"));
  await ended.waitFor({ state: "hidden" });
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  assert.equal(await page.getByRole("dialog").count(), 0, "what the one before typed is gone");
  await page.getByText("● live").waitFor();
});

test("signing out in one tab ends the others too, which say so and go on when the same signs in", async (t) => {
  const page = await open(t, "operator", { path: "/machines", mayFail: /status of 401|ERR_(INCOMPLETE|HTTP2|CONNECTION|ABORTED)/ });
  const other = await page.context().newPage(); // with the same cookie
  await other.goto(`${base}/machines/r1-u01`);
  await other.getByText("● live").waitFor();
  await page.bringToFront();
  await page.locator("summary", { hasText: "operator" }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token").waitFor();
  await other.bringToFront();
  const ended = other.getByRole("dialog", { name: "The session has ended" });
  await ended.waitFor(); // nobody touched it
  assert.equal((await other.context().cookies()).filter((c) => c.value !== "").length, 0);
  await other.getByLabel("Token").fill(token("operator"));
  await ended.getByRole("button", { name: "Sign in" }).click();
  await ended.waitFor({ state: "hidden" });
  await other.getByText("● live").waitFor();
  assert.equal(new URL(other.url()).pathname, "/machines/r1-u01");
  await page.bringToFront();
  await page.reload();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
});

test("the certificate is the one whose fingerprint people compare", async (t) => {
  const page = await open(t, "");
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Network.enable");
  await page.reload();
  const { tableNames } = await cdp.send("Network.getCertificate", { origin: base });
  const seen = createHash("sha256").update(Buffer.from(tableNames[0], "base64")).digest("hex");
  assert.equal(seen, process.env.RACKSTRAP_UI_FINGERPRINT.replaceAll(":", "").toLowerCase());
});
