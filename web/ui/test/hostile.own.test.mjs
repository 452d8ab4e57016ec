// What machines and people write is text on every page, whatever it looks like.
import assert from "node:assert/strict";
import test from "node:test";
import { act, api, eventually, fetchAPI, none, open, overflow } from "./harness.mjs";
import { pages, visit } from "./pages.mjs";

const script = `<script>alert("spec")</script>`;
const image = `"><img src=x onerror=alert(1)>`;

/** Creates what is hostile; the names of the machines. */
async function prepare() {
  await act("add", { name: "hostile-facts", hostile: "yes" });
  await api("operator", "POST", "/hardware/hostile-facts/provision", { image: "debian-12", disk: "smallest" });
  const { mac } = await act("add", { name: "hostile-stranger", hostile: "yes", unknown: "yes" });
  await act("power", { machine: "hostile-stranger", action: "on" });
  await act("stray", { mac: "00:1b:21:66:66:66", name: `${image}${script}` });
  await api("operator", "POST", "/hardware", {
    kind: "Hardware",
    metadata: { name: "hostile-spec", labels: { long: "w".repeat(128) } }, // the API takes no others
    spec: {
      interfaces: [{ mac: "02:00:00:66:66:66" }],
      rack: image,
      position: script,
      assetTag: "javascript:alert(1)",
      notes: `${script}\n${image}\n${"W".repeat(10_000)}\n[click](javascript:alert(1)) https://evil.example/`,
      kernelArgs: [`x=${"y".repeat(500)}`],
    },
  });
  await eventually("the stranger was found", async () => {
    const { items } = JSON.parse((await fetchAPI("viewer", "GET", "/hardware?state=pending")).text);
    return items.find((h) => h.spec.interfaces.some((n) => n.mac === mac) && h.facts);
  });
  await eventually("the install is done", async () => (await api("viewer", "GET", "/hardware/hostile-facts")).status.state === "provisioned");
}

/** What the page has that only the hostile texts could have made. */
function injected() {
  const found = [...document.querySelectorAll("script:not([src]), img[src='x'], iframe, object, embed, base, [onerror], [onmouseover], [onload], [onclick], a[href^='javascript:' i], a[href*='evil.example'], form[action^='http']")];
  return found.map((e) => e.outerHTML.slice(0, 200));
}

test("hostile text is shown as text on every page", async (t) => {
  await prepare();
  const pending = JSON.parse((await fetchAPI("viewer", "GET", "/hardware?state=pending")).text).items.find((h) => h.facts?.vendor?.includes("<script>"));
  assert.ok(pending, "no pending machine with hostile facts");
  const everywhere = [...pages, ...["hostile-facts", "hostile-spec", pending.metadata.name].map((name) => ({ name, path: `/machines/${name}` }))];
  for (const width of [1280, 360]) {
    const page = await open(t, "operator", { width });
    for (const p of everywhere) {
      await t.test(`${p.name}, ${width} px`, async () => {
        await visit(page, p.path);
        for (const tab of [undefined, ...(await tabs(page))]) {
          if (tab) await page.getByRole("tab", { name: tab }).click();
          none(await page.evaluate(injected), tab);
          none(await overflow(page));
        }
      });
    }
  }
});

/** The names of the tabs that a page has, without what they count; that of a machine has some. */
async function tabs(page) {
  if (/\/machines\//.test(page.url())) await page.getByRole("tab").first().waitFor();
  return (await page.getByRole("tab").allInnerTexts()).map((n) => n.split("\n")[0].replace(/ \(\d+\)$/, "").trim());
}

test("the text is there: it was not lost on the way", async (t) => {
  const page = await open(t, "viewer", { path: "/machines/hostile-facts" });
  await eventually("the vendor is shown", async () => {
    for (const tab of [undefined, ...(await tabs(page))]) {
      if (tab) await page.getByRole("tab", { name: tab }).click();
      if ((await page.locator("main").innerText()).includes(`<script>alert("fact")</script>`)) return true;
    }
    return false;
  });
});

test("log bytes are text, and control characters do nothing", async (t) => {
  const { items } = await api("viewer", "GET", "/workflows?hardware=hostile-facts");
  assert.ok(items.length > 0);
  const page = await open(t, "viewer", { path: "/machines/hostile-facts" });
  for (const tab of await tabs(page)) {
    await page.getByRole("tab", { name: tab }).click();
    for (const log of await page.locator("main").getByRole("button", { name: /\blog/i }).all()) await log.click();
    // workflows, and in them the logs of their attempts
    const closed = page.locator("main details:not([open]) > summary:visible");
    while ((await closed.count()) > 0) await closed.first().click();
    await eventually("all is read", async () => (await page.locator("main .loading").count()) === 0);
    const text = await page.locator("main").innerText();
    none(await page.evaluate(injected));
    assert.doesNotMatch(text, /[\x00-\x08\x0b-\x1f\x7f]/, `a control character on ${tab}`);
  }
  assert.match(await page.title(), /^hostile-facts/, "an escape sequence changed the title");
});
