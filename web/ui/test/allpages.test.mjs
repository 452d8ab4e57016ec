// What holds for every page: no finding of axe-core, no sideways scrolling on a phone, and,
// as in every test, no exception and nothing that the CSP forbids.
import assert from "node:assert/strict";
import test from "node:test";
import { axe, eventually, fetchAPI, none, open, overflow } from "./harness.mjs";
import { pages, visit } from "./pages.mjs";

test("the rack is as these tests want it", async () => {
  for (const [name, state] of [["r1-u01", "provisioned"], ["r3-u17", "failed"], ["r2-u11", "provisioning"]]) {
    await eventually(`${name} is ${state}`, async () => JSON.parse((await fetchAPI("viewer", "GET", `/hardware/${name}`)).text).status.state === state);
  }
  await eventually("machines were found", async () => JSON.parse((await fetchAPI("viewer", "GET", "/hardware?state=pending")).text).items.length > 0);
});

test("axe-core finds nothing serious in either theme", async (t) => {
  const page = await open(t, "operator");
  for (const p of pages) {
    await t.test(p.name, async () => {
      await page.emulateMedia({ colorScheme: "light" });
      await visit(page, p.path);
      none(await axe(page));
      await page.emulateMedia({ colorScheme: "dark" });
      none(await axe(page, ["color-contrast"]), "dark"); // nothing else depends on it
    });
  }
});

test("the sign-in page has nothing serious", async (t) => {
  for (const theme of ["light", "dark"]) {
    const page = await open(t, "", { theme });
    await page.getByLabel("Token").waitFor();
    none(await axe(page));
    await page.setViewportSize({ width: 360, height: 740 });
    none(await overflow(page));
  }
});

test("a phone shows every page without sideways scrolling", async (t) => {
  const page = await open(t, "operator", { width: 360, height: 740 });
  for (const p of pages) {
    await t.test(p.name, async () => {
      await visit(page, p.path);
      none(await overflow(page));
    });
  }
});

test("every page works for a viewer", async (t) => {
  const page = await open(t, "viewer");
  for (const p of pages.filter((p) => !p.role)) {
    await t.test(p.name, async () => {
      await visit(page, p.path);
      assert.equal(await page.locator("main .problem").count(), 0, await page.locator("main").innerText());
    });
  }
});
