// Finds what is exported from a file of src and imported by no other: it is made private, or
// deleted. `build check` runs it; the compiler says the same only of what is not exported.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const src = fileURLToPath(new URL("../src", import.meta.url));
const files = new Map(
  readdirSync(src, { recursive: true })
    .filter((f) => /\.tsx?$/.test(f) && !f.endsWith(".d.ts") && f !== join("api", "types.ts")) // those are the API's
    .map((f) => [f, ts.createSourceFile(f, readFileSync(join(src, f), "utf8"), ts.ScriptTarget.Latest, true)]),
);

const used = new Set();

/** Notes the names that a file takes from another one. */
function take(file, specifier, names) {
  if (!specifier?.text.startsWith(".")) return;
  const from = normalize(join(dirname(file), specifier.text));
  for (const n of names) used.add(`${from} ${n}`);
}

/** The names behind a dot in a piece of a file, such as m.Edit. */
function members(node) {
  const out = [];
  const look = (n) => {
    if (ts.isPropertyAccessExpression(n)) out.push(n.name.text);
    ts.forEachChild(n, look);
  };
  look(node);
  return out;
}

for (const [file, source] of files) {
  const look = (n) => {
    if (ts.isImportDeclaration(n)) {
      const b = n.importClause?.namedBindings;
      if (b) take(file, n.moduleSpecifier, ts.isNamedImports(b) ? b.elements.map((e) => (e.propertyName ?? e.name).text) : members(source));
    } else if (ts.isExportDeclaration(n) && n.exportClause && ts.isNamedExports(n.exportClause)) {
      take(file, n.moduleSpecifier, n.exportClause.elements.map((e) => (e.propertyName ?? e.name).text));
    } else if (ts.isCallExpression(n) && n.expression.kind === ts.SyntaxKind.ImportKeyword) {
      let statement = n;
      while (!ts.isSourceFile(statement.parent)) statement = statement.parent;
      take(file, n.arguments[0], members(statement));
    }
    ts.forEachChild(n, look);
  };
  look(source);
}

const unused = [];
for (const [file, source] of files) {
  for (const s of source.statements) {
    const kinds = ts.canHaveModifiers(s) ? (ts.getModifiers(s) ?? []).map((m) => m.kind) : [];
    if (!kinds.includes(ts.SyntaxKind.ExportKeyword) || kinds.includes(ts.SyntaxKind.DefaultKeyword)) continue;
    const names = ts.isVariableStatement(s) ? s.declarationList.declarations.map((d) => d.name.getText()) : [s.name.text];
    for (const n of names) {
      const at = `src/${file}:${source.getLineAndCharacterOfPosition(s.getStart()).line + 1}`;
      if (!used.has(`${file} ${n}`)) unused.push(`${at}: nobody imports ${n}: do not export it, or delete it`);
    }
  }
}
if (unused.length > 0) {
  console.error(unused.join("\n"));
  process.exit(1);
}
