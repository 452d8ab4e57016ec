import assert from "node:assert/strict";
import test from "node:test";
import { after, before, most, type Shown } from "./logtext.ts";

const bytes = (s: string) => Buffer.byteLength(s);
const whole = Array.from({ length: 20_000 }, (_, i) => `line ${i} größe 𝄞 ${"x".repeat(i % 40)}\n`).join("");

/** Whether a part is what the whole has there. */
function check(s: Shown): void {
  assert.equal(Buffer.from(whole).subarray(s.from, s.next).toString(), s.text);
  assert.ok(bytes(s.text) <= most * 2, `${bytes(s.text)} bytes are held`);
}

test("text that comes is kept at the end, and the oldest goes in whole lines", () => {
  let s: Shown = { from: 0, next: 0, text: "" };
  for (const piece of whole.match(/(?:.*\n){1,333}/g)!) {
    s = after(s, piece);
    check(s);
  }
  assert.equal(s.next, bytes(whole));
  assert.match(s.text, /^line /);
});

test("what is asked for before leaves the end out", () => {
  const cut = whole.length - 1000;
  let s: Shown = { from: bytes(whole.slice(0, cut)), next: bytes(whole), text: whole.slice(cut) };
  for (let at = cut; at > 0; ) {
    const from = Math.max(0, whole.lastIndexOf("\n", Math.max(0, at - 50_000)) + 1);
    s = before(s, whole.slice(from, at));
    check(s);
    at = from;
  }
  assert.equal(s.from, 0);
  assert.ok(s.next < bytes(whole));
  assert.match(s.text, /\n$/);
});

test("one line without end is cut as well, between characters", () => {
  const s = after({ from: 0, next: 0, text: "" }, "𝄞".repeat(most / 2));
  assert.ok(bytes(s.text) <= most * 2);
  assert.equal(s.text.replaceAll("𝄞", ""), "");
  assert.equal(s.next - s.from, bytes(s.text));
});
