import assert from "node:assert/strict";
import { test } from "node:test";
import { masked } from "./mask.ts";

const hardware = (secret: string, userData: string) => `kind: Hardware
metadata:
  name: m1 # a remark
spec:
  power: {driver: webhook, url: "https://power/x", secret: ${secret}}
  userData: ${userData}
  rack: r9
`;

test("secrets that are new are hidden, and nothing else is changed", () => {
  const same = hardware("(redacted)", "(redacted)");
  assert.equal(masked(same), same);
  assert.equal(masked(hardware("hunter2hunter2", "(redacted)")), hardware("(new secret)", "(redacted)"));
  assert.equal(masked(hardware('"hunter2: \\" x"', '"#cloud-config\\n"')), hardware("(new secret)", "(new secret)"));
  assert.equal(masked(hardware('""', "")), hardware('""', ""));
  assert.equal(masked("metadata: {name: m1}\n"), "metadata: {name: m1}\n");
  assert.equal(masked(""), "");
});

test("user-data of several lines is hidden as a whole", () => {
  const block = "|\n    #cloud-config\n    password: hunter2\n";
  assert.equal(masked(hardware("(redacted)", block).replace("hunter2\n\n", "hunter2\n")), hardware("(redacted)", "(new secret)"));
});

test("a secret behind an alias is hidden where it stands", () => {
  const got = masked(`metadata: {name: m1}\nspec:\n  notes: &x hunter2\n  power: {secret: *x}\n`);
  assert.doesNotMatch(got, /hunter2/);
});

test("secret defaults of a template are hidden, others are not", () => {
  const t = (v: string) => `spec:\n  parameters:\n    - name: password\n      type: secret\n      default: ${v}\n    - {name: text, default: hello}\n    - name: none\n      type: secret\n`;
  assert.equal(masked(t("hunter2")), t("(new secret)"));
  assert.equal(masked(t("(redacted)")), t("(redacted)"));
});

test("what cannot be read is not shown", () => {
  assert.doesNotMatch(masked("spec: {power: {secret: hunter2}"), /hunter2/);
  assert.doesNotMatch(masked("spec: {power: {secret: hunter2, secret: hunter3}}"), /hunter/);
});
