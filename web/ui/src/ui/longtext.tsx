// Text that a machine wrote: as long as it likes, with any bytes in it. It is shown as
// text, its last lines first, and never run or drawn whole.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Button } from "./basic.tsx";
import { download } from "./download.ts";
import { lines, plain } from "../plain.ts";

/** How many lines are shown at once. */
const step = 1000;

/** Text of a machine; more than a few lines are in a box of their own, with the whole as a download. */
export function LongText({ text, file, label }: { text: string; file: string; label: string }): JSX.Element {
  const [shown, setShown] = useState(step);
  const clean = useMemo(() => plain(text), [text]);
  const all = useMemo(() => lines(clean), [clean]);
  if (all.length <= 3 && clean.length < 2000) return <span class="said">{clean}</span>;
  const from = Math.max(0, all.length - shown);
  return (
    <div class="stack">
      <div class="row">
        {from > 0 && <Button kind="quiet" onPress={() => setShown((n) => n + step)}>{`Show ${Math.min(step, from).toLocaleString("en")} lines before (${from.toLocaleString("en")} are left out)`}</Button>}
        <Button kind="quiet" onPress={() => download(file, "text/plain;charset=utf-8", text)}>
          Download
        </Button>
      </div>
      <pre class="said" tabIndex={0} role="region" aria-label={label}>
        {all.slice(from).join("\n")}
      </pre>
    </div>
  );
}
