// What attempts wrote: read in windows, followed while they run, and text whatever is in it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { act, api, axe, eventually, none, open, overflow } from "./harness.mjs";

/** A machine more, whose install has begun; its workflow. */
async function install(name, action) {
  await act("add", { name, action });
  const { workflow } = await api("operator", "POST", `/hardware/${name}/provision`, { image: "debian-12", disk: "smallest" });
  return workflow.metadata.name;
}

const log = (page, n = 1) => page.getByRole("region", { name: `Log of attempt ${n}` });

const opener = (page) => page.locator("summary").filter({ hasText: /^Log of attempt 1/ });

test("hostile bytes of a log are text, and a long log is a window", async (t) => {
  const workflow = await install("log-hostile", "50ms");
  await eventually("it is installed", async () => (await api("viewer", "GET", "/hardware/log-hostile")).status.state === "provisioned");
  await act("scrawl", { workflow, action: 0, attempt: 1, what: "hostile" });
  await act("scrawl", { workflow, action: 1, attempt: 1, what: "long" });
  for (const width of [1280, 360]) {
    const page = await open(t, "viewer", { path: "/machines/log-hostile?tab=workflow", width });
    await opener(page).nth(1).waitFor();
    assert.equal(await log(page).count(), 0, "a log is read before it is opened");
    await opener(page).nth(0).click();
    await log(page).waitFor();
    // the last 64 KiB are within the line of images; what came before it comes on demand
    for (let i = 0; i < 9 && !(await log(page).innerText()).includes("half a character"); i++) await page.getByRole("button", { name: /^Earlier/ }).click();
    await eventually("the beginning is shown", async () => (await log(page).innerText()).includes("attempt starts"));
    const text = await log(page).innerText();
    assert.match(text, /<img src=x onerror=alert/);
    assert.match(text, /half a character: \?\?/);
    assert.doesNotMatch(text, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ufffd]/, "a byte that is no text");
    none(await page.evaluate(() => [...document.querySelectorAll("img[src='x'], [onerror], main script")].map((e) => e.outerHTML.slice(0, 100))));
    assert.match(await page.title(), /log-hostile/);
    none(await overflow(page));
    await opener(page).nth(0).click();
    await log(page).waitFor({ state: "detached" });

    await opener(page).nth(1).click();
    await log(page).waitFor();
    const last = await log(page).innerText();
    assert.ok(last.length < 70_000, `${last.length} characters at first`);
    assert.match(last, /line \d{5} of many, größer € 𝄞/);
    for (let i = 0; i < 8; i++) {
      const first = (await log(page).innerText()).split("\n")[0];
      await page.getByRole("button", { name: /^Earlier/ }).click();
      await eventually("more is shown", async () => (await log(page).innerText()).split("\n")[0] !== first);
    }
    const up = await log(page).innerText();
    assert.ok(up.length < 300_000, `${up.length} characters are drawn`);
    const numbers = [...up.matchAll(/^line (\d+) of/gm)].map((m) => Number(m[1]));
    assert.ok(numbers.length > 1000 && numbers.every((n, i) => i === 0 || n === numbers[i - 1] + 1), "lines are missing where windows meet");
    await page.getByRole("button", { name: "To the end" }).click();
    await eventually("the end is shown", async () => (await log(page).innerText()).trimEnd().split("\n").at(-1) === last.trimEnd().split("\n").at(-1));
    if (width === 1280) none(await axe(page));
  }
});

test("the log of one that runs goes on, and stops to where somebody reads", async (t) => {
  const workflow = await install("log-runs", "40s");
  await eventually("it runs", async () => (await api("viewer", "GET", `/workflows/${workflow}`)).status.actions[0].attempts?.[0]?.logBytes > 0);
  for (let i = 0; i < 60; i++) await act("scrawl", { workflow, action: 0, attempt: 1, what: "line" });
  const page = await open(t, "viewer", { path: "/machines/log-runs?tab=workflow" });
  await opener(page).first().click();
  await page.getByText("Follows what comes").waitFor();
  const atWork = async () => ((await log(page).innerText()).match(/at work/g) ?? []).length;
  const before = await atWork();
  await eventually("more comes", async () => (await atWork()) > before + 1);
  const place = () => log(page).evaluate((e) => Math.round(e.scrollHeight - e.scrollTop - e.clientHeight));
  assert.ok((await place()) < 3, "the end is not in sight");
  await log(page).evaluate((e) => (e.scrollTop = 0));
  await page.getByRole("button", { name: "Follow" }).waitFor();
  const there = await log(page).innerText();
  await act("scrawl", { workflow, action: 0, attempt: 1, what: "line" });
  await new Promise((done) => setTimeout(done, 1500)); // what must not happen has no end to wait for
  assert.equal(await log(page).innerText(), there);
  assert.equal(await log(page).evaluate((e) => e.scrollTop), 0, "it was scrolled away from a reader");
  await page.getByRole("button", { name: "Follow" }).click();
  await page.getByText("Follows what comes").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download" }).click()]);
  assert.match(download.suggestedFilename(), /^.*-1\.log$/);
  await api("operator", "POST", `/workflows/${workflow}/cancel`, { reason: "the test is done" });
  await log(page).getByText("attempt ended").waitFor();
  await page.getByText("Follows what comes").waitFor({ state: "detached" });
});

test("where there is no log there is nothing to open", async (t) => {
  const workflow = await install("log-none", "50ms");
  await eventually("it is installed", async () => (await api("viewer", "GET", "/hardware/log-none")).status.state === "provisioned");
  const page = await open(t, "viewer", { path: "/machines/log-none?tab=workflow" });
  await opener(page).first().waitFor();
  const { status } = await api("viewer", "GET", `/workflows/${workflow}`);
  const written = status.actions.flatMap((a) => a.attempts ?? []).filter((a) => a.logBytes > 0).length;
  assert.equal(await page.locator("summary").filter({ hasText: /^Log of attempt/ }).count(), written);
});
