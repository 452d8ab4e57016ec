import assert from "node:assert/strict";
import { test } from "node:test";
import { lines, plain } from "./plain.ts";

test("what a machine writes steers nothing", () => {
  assert.equal(plain("\u001b[31mred\u001b[0m \u001b]0;title\u0007x"), "red x");
  assert.equal(plain("a\u0000b\u0008\u009bc"), "a␀b␈�c");
  assert.equal(plain("a\r\nb\rc\td"), "a\nb\nc\td");
  assert.equal(plain("user\u202egnp.exe"), "user�gnp.exe", "the direction of writing stays");
  assert.equal(plain("<img src=x onerror=alert(1)> ü 日本"), "<img src=x onerror=alert(1)> ü 日本");
});

test("a line without end is cut, and says by how much", () => {
  const [l] = lines("x".repeat(5000));
  assert.match(l!, /… \(1,000 more characters\)$/);
  assert.equal(lines("a\nb").length, 2);
});

test("ten megabytes are read in a moment", () => {
  const text = "\u001b[1mline of a log with an escape\u001b[0m\n".repeat(250_000);
  const began = performance.now();
  assert.equal(lines(plain(text)).length, 250_001);
  assert.ok(performance.now() - began < 5000);
});
