// Runs the tests of pure logic that are beside their sources, src/**/*.test.ts, with
// node --test; `build test` calls it. Node.js before 22 reads no types, so they are
// bundled first.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ui = fileURLToPath(new URL("..", import.meta.url));
const tests = readdirSync(join(ui, "src"), { recursive: true }).filter((f) => /\.test\.tsx?$/.test(f));
if (tests.length === 0) {
  console.error("there is no test in src (name them NAME.test.ts)");
  process.exit(1);
}
// inside, so that what is not bundled is found in node_modules
const out = mkdtempSync(join(ui, "node_modules", ".unit-"));
try {
  await build({
    absWorkingDir: ui,
    entryPoints: tests.map((f) => join("src", f)),
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node18",
    jsx: "automatic",
    jsxImportSource: "preact",
    packages: "external",
    sourcemap: "inline",
    outdir: out,
    outExtension: { ".js": ".mjs" },
    logLevel: "warning",
  });
  const files = readdirSync(out, { recursive: true }).filter((f) => f.endsWith(".test.mjs"));
  const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files.map((f) => join(out, f))], { stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  rmSync(out, { recursive: true });
}
