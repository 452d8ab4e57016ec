// Everything by the keyboard: what can be pressed can be reached, is seen when it has the
// focus, and nothing keeps the focus.
import assert from "node:assert/strict";
import test from "node:test";
import { none, open } from "./harness.mjs";
import { pages, visit } from "./pages.mjs";

/** So many stops are looked at on a page: a list may have more, and nothing is wrong with that. */
const maxStops = 120;

test("every page can be walked through with Tab", async (t) => {
  const page = await open(t, "operator");
  for (const p of pages) {
    await t.test(p.name, async () => {
      await visit(page, p.path);
      // what moves is left out: it may come and go during the walk
      const wanted = await page.evaluate(() => {
        document.activeElement?.blur();
        globalThis.walked = new WeakSet();
        getSelection()?.removeAllRanges();
        const all = [...document.querySelectorAll("main a[href], main button, main input, main select, main textarea, main summary, main [tabindex='0']")];
        return all
          .filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled && e.tabIndex >= 0 && !e.closest(".cm-editor"))
          .filter((e) => !(e.type === "radio" && !e.checked && [...document.getElementsByName(e.name)].some((o) => o.checked)))
          .map((e, i) => (e.dataset.stop = String(i)));
      });
      await page.locator("a.skip").focus();
      const seen = new Set();
      let stops = 0;
      for (; stops < maxStops; stops++) {
        await page.keyboard.press("Tab");
        const at = await page.evaluate(stop);
        if (!at) break; // out of the page: nothing kept the focus
        if (at.again) break; // from the last to the first; a smaller circle misses something, below
        assert.ok(at.name, `what has the focus has no name: ${at.html}`);
        assert.ok(at.shown, `what has the focus is not seen: ${at.html}`);
        assert.ok(at.ring, `it is not seen that it has the focus: ${at.html}`);
        if (at.editor) await page.keyboard.press("Escape"); // the editor's way out, as its help says
        seen.add(at.stop);
      }
      if (stops === maxStops) return;
      const now = await page.evaluate(() => [...document.querySelectorAll("[data-stop]")].map((e) => e.dataset.stop));
      const missed = await page.evaluate((all) => all.map((s) => document.querySelector(`[data-stop="${s}"]`)?.outerHTML.slice(0, 200)).filter(Boolean), wanted.filter((s) => !seen.has(s) && now.includes(s)));
      none(missed, "not reached with Tab");
    });
  }
});

/** What has the focus, in the page; nothing: the focus is outside. */
function stop() {
  let e = document.activeElement;
  while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement; // the editor's
  if (!e || e === document.body) return undefined;
  globalThis.walked ??= new WeakSet();
  const again = globalThis.walked.has(e);
  globalThis.walked.add(e);
  const box = e.getBoundingClientRect();
  const s = getComputedStyle(e);
  const label = e.labels?.[0]?.textContent || (e.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ");
  return {
    again,
    stop: e.dataset.stop,
    editor: !!e.closest(".cm-editor"),
    name: (e.getAttribute("aria-label") || label || e.textContent || e.title || "").trim(),
    shown: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    ring: (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== "none" || !!e.closest(".cm-editor"),
    html: e.outerHTML.slice(0, 200),
  };
}

test("the first stop skips to the content", async (t) => {
  const page = await open(t, "viewer");
  await page.keyboard.press("Tab");
  assert.match(await page.evaluate(() => document.activeElement.textContent), /skip/i);
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
});

test("g and a letter go to a page, ? tells the keys, Escape closes", async (t) => {
  const page = await open(t, "viewer");
  await page.keyboard.press("g");
  await page.keyboard.press("m");
  await page.waitForURL(/\/machines$/);
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keyboard" });
  await keys.waitFor();
  await page.keyboard.press("Tab");
  assert.ok(await page.evaluate(() => !!document.activeElement.closest("dialog") || document.activeElement === document.body), "the focus left a modal dialog");
  await page.keyboard.press("Escape");
  await keys.waitFor({ state: "detached" });
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.type), "search");
});
