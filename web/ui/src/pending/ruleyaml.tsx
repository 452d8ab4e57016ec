import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { parseDocument } from "yaml";
import type { Problem, Rule } from "../api/types.ts";
import { Editor } from "../ui/editor.tsx";
import { diagnostics, written } from "../ui/record.tsx";

/** A rule as YAML. onRule is called with each text that is a record; onBroken says why one is not. */
export function RuleYAML({ rule, problem, onRule, onBroken }: { rule: Rule; problem: Problem | undefined; onRule: (r: Rule) => void; onBroken: (why: string) => void }): JSX.Element {
  const [text, setText] = useState(() => written(rule));
  const take = (t: string) => {
    setText(t);
    const doc = parseDocument(t);
    const r = doc.errors.length === 0 ? (doc.toJS() as Rule | null) : null;
    const whole = !!r && typeof r === "object" && typeof r.metadata === "object" && typeof r.metadata?.name === "string" && typeof r.spec === "object" && r.spec !== null && typeof (r.spec.match ?? {}) === "object";
    onBroken(whole ? "" : (doc.errors[0]?.message ?? "A rule has metadata.name and spec."));
    if (whole) onRule({ ...r, spec: { ...r.spec, match: r.spec.match ?? {} } });
  };
  return <Editor value={text} onChange={take} label="YAML of the rule" check={(t) => diagnostics(t, problem)} />;
}
