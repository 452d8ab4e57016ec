// The Markdown of the appliance's own pages, as far as they use it: paragraphs, lists,
// code, stress. Whatever else it holds is shown as it is written.
import type { ComponentChildren, JSX } from "preact";

/** Text in Markdown. */
export function Prose({ text }: { text: string }): JSX.Element {
  return <div class="prose">{text.split(/\n{2,}/).map((p, i) => block(p, i))}</div>;
}

function block(p: string, key: number): JSX.Element {
  if (p.startsWith("```") || p.startsWith("|")) return <pre key={key}>{p.replace(/^```\w*\n?|\n?```$/g, "")}</pre>;
  if (p.startsWith("- ")) {
    return (
      <ul key={key}>
        {p.split(/\n- /).map((l, i) => (
          <li key={i}>{inline(l.replace(/^- /, "").replace(/\n/g, " "))}</li>
        ))}
      </ul>
    );
  }
  return <p key={key}>{inline(p.replace(/\n/g, " "))}</p>;
}

function inline(text: string): ComponentChildren[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]*\))/).map((part, i) => {
    if (/^`.+`$/.test(part)) return <code key={i}>{part.slice(1, -1)}</code>;
    if (/^\*\*.+\*\*$/.test(part)) return <strong key={i}>{part.slice(2, -2)}</strong>;
    const link = /^\[([^\]]+)\]/.exec(part);
    return link ? link[1]!.replace(/`/g, "") : part;
  });
}
