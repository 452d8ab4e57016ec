// Makes the pictures of the main pages that the documentation shows, in both themes:
//   node web/ui/test/screenshots.mjs DIRECTORY
// on the rack of deploy/lab/cmd/ui, which `make screenshots` starts for it.
import { execFileSync } from "node:child_process";
import { mkdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { base, launch, need, session, watch } from "./browser.mjs";
import { loaded } from "./pages.mjs";

const [dir] = process.argv.slice(2);
if (!dir) {
  console.error("usage: node web/ui/test/screenshots.mjs DIRECTORY");
  process.exit(2);
}

/** What all pictures may have together, in bytes: they are in the repository. */
const most = 1_500_000;

const pictures = [
  { name: "overview", path: "/" },
  { name: "machines", path: "/machines" },
  { name: "machine", path: "/machines/r1-u01" },
  { name: "racks", path: "/racks" },
  { name: "network", path: "/networks/lan" },
  { name: "provision", path: "/provision?machines=r3-u01,r3-u03" },
];

mkdirSync(dir, { recursive: true });
const browser = await launch();
let total = 0;
try {
  for (const theme of ["light", "dark"]) {
    const context = await browser.newContext({ ignoreHTTPSErrors: true, colorScheme: theme, reducedMotion: "reduce", viewport: { width: 1280, height: 800 } });
    const page = await context.newPage();
    const wrong = watch(page);
    await session(context, need("RACKSTRAP_UI_OPERATOR"));
    for (const p of pictures) {
      await page.goto(base + p.path);
      await page.getByRole("navigation", { name: "Main" }).waitFor();
      await settled(page);
      const file = join(dir, `${p.name}-${theme}.png`);
      await page.screenshot({ path: file });
      total += smaller(file);
    }
    if (wrong.length > 0) throw new Error(wrong.join("\n"));
  }
} finally {
  await browser.close();
}
console.log(`${dir}: ${2 * pictures.length} pictures, ${(total / 1000).toFixed(0)} kB`);
if (total > most) throw new Error(`the pictures have ${total} bytes, the limit is ${most}`);

/** Waits until the rack has done what it was asked for, and the page shows it. */
async function settled(page) {
  await page.waitForFunction(async () => {
    const { items } = await (await fetch("/api/v1/hardware?state=provisioned")).json();
    return items.length >= 15;
  }, undefined, { timeout: 120_000, polling: 1000 });
  await loaded(page);
  await page.waitForTimeout(1500); // a picture is for people: bars have their speed, what came late is there
}

/** Takes the colours that nobody sees out of a picture; its size. */
function smaller(file) {
  execFileSync("pngquant", ["--quality=70-100", "--speed=1", "--strip", "--force", "--output", `${file}.new`, file]);
  renameSync(`${file}.new`, file);
  return statSync(file).size;
}
