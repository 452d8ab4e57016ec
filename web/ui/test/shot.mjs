// Makes a picture of a page of the UI:
//   node web/ui/test/shot.mjs URL TOKEN PATH OUT.png [--dark] [--width 360] [--height 800] [--full]
//     [--press TEXT]... [--fill LABEL=TEXT]... [--wait TEXT] [--pause MS] [--axe]
// press clicks on the button, link or tab with that text, fill writes into the field with that
// label, in the order given; wait waits for a text. What went wrong in the page is printed.
import { parseArgs } from "node:util";

const { values, positionals, tokens } = parseArgs({
  allowPositionals: true,
  tokens: true,
  options: {
    dark: { type: "boolean", default: false },
    full: { type: "boolean", default: false },
    axe: { type: "boolean", default: false },
    width: { type: "string", default: "1280" },
    height: { type: "string", default: "800" },
    press: { type: "string", multiple: true },
    fill: { type: "string", multiple: true },
    wait: { type: "string" },
    pause: { type: "string", default: "300" },
  },
});
const [url, secret, path, out] = positionals;
if (!out) {
  console.error("usage: node web/ui/test/shot.mjs URL TOKEN PATH OUT.png [--dark] [--width 360]");
  process.exit(2);
}
process.env.RACKSTRAP_UI_URL = url;
const { axe, launch, overflow, session, watch } = await import("./browser.mjs");

const browser = await launch();
try {
  const context = await browser.newContext({
    ignoreHTTPSErrors: true,
    colorScheme: values.dark ? "dark" : "light",
    reducedMotion: "reduce",
    viewport: { width: Number(values.width), height: Number(values.height) },
  });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const wrong = watch(page);
  if (secret) await session(context, secret);
  await page.goto(url + path);
  if (secret) await page.getByRole("navigation", { name: "Main" }).waitFor();
  for (const { kind, name, value } of tokens) {
    if (kind !== "option") continue;
    if (name === "press") {
      const named = ["button", "link", "tab", "menuitem"].map((r) => page.getByRole(r, { name: value }));
      await named.reduce((a, b) => a.or(b)).or(page.locator("summary", { hasText: value })).first().click();
    }
    if (name === "fill") {
      const [label, ...text] = value.split("=");
      await page.getByLabel(label).first().fill(text.join("="));
    }
  }
  if (values.wait) await page.getByText(values.wait).first().waitFor();
  await page.locator(".loading").waitFor({ state: "detached" }).catch(() => wrong.push("it is loading for more than 20 s"));
  await page.waitForTimeout(Number(values.pause)); // a picture is for people: what moves shall have moved
  await page.screenshot({ path: out, fullPage: values.full });
  wrong.push(...(await overflow(page)));
  if (values.axe) wrong.push(...(await axe(page)));
  for (const w of wrong) console.log(w);
} finally {
  await browser.close();
}
