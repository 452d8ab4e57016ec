// Bundles src into ../dist: index.html and assets with a hash of their content in the
// name, each also compressed, so that the daemon only copies bytes.
import { build } from "esbuild";
import { mkdirSync, readFileSync, rmSync, readdirSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { join } from "node:path";

const out = new URL("../dist", import.meta.url).pathname;
mkdirSync(out, { recursive: true });
for (const f of readdirSync(out)) {
  if (f !== ".gitignore" && f !== "README.md") rmSync(join(out, f), { recursive: true });
}

const result = await build({
  entryPoints: { app: "src/main.tsx", style: "src/style.css" },
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["es2022", "chrome109", "firefox115", "safari16.4"],
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: true,
  legalComments: "none",
  sourcemap: false,
  metafile: true,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  loader: { ".svg": "file" },
  outdir: join(out, "assets"),
  publicPath: "/assets/",
  logLevel: "warning",
});

const outputs = Object.entries(result.metafile.outputs);
const nameOf = (entry) => {
  const found = outputs.find(([, o]) => o.entryPoint === entry);
  if (!found) throw new Error(`${entry} is in no output`);
  return found[0].split("/").pop();
};
const app = outputs.find(([, o]) => o.entryPoint === "src/main.tsx");
const first = app[1].imports.filter((i) => i.kind === "import-statement").map((i) => i.path.split("/").pop());
const preload = first.map((f) => `<link rel="modulepreload" href="/assets/${f}">`).join("\n");
const html = readFileSync("src/index.html", "utf8")
  .replace("STYLE", `/assets/${nameOf("src/style.css")}`)
  .replace("APP", `/assets/${nameOf("src/main.tsx")}`)
  .replace("<!-- preload -->", preload);
writeFileSync(join(out, "index.html"), html);
writeFileSync(join(out, "favicon.svg"), readFileSync("src/favicon.svg"));

let total = 0;
for (const f of [...readdirSync(join(out, "assets")).map((f) => `assets/${f}`), "index.html", "favicon.svg"]) {
  const raw = readFileSync(join(out, f));
  const gz = gzipSync(raw, { level: 9 });
  const br = brotliCompressSync(raw, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: raw.length } });
  if (gz.length < raw.length) writeFileSync(join(out, `${f}.gz`), gz);
  if (br.length < raw.length) writeFileSync(join(out, `${f}.br`), br);
  total += raw.length;
}
const size = (f) => gzipSync(readFileSync(join(out, "assets", f)), { level: 9 }).length;
const start = [nameOf("src/main.tsx"), nameOf("src/style.css"), ...first].reduce((n, f) => n + size(f), 0);
console.log(`web/dist: ${(total / 1e3).toFixed(0)} kB in ${outputs.length} files; to start ${(start / 1e3).toFixed(0)} kB compressed`);
