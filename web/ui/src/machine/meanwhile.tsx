// What happened to a machine while a dialog about it was open: the dialog stays with what
// was typed, and says so.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Event } from "../api/types.ts";
import { listen } from "../api/stream.ts";
import { when } from "../format.ts";
import { complete, row, type Row } from "../machines.ts";
import { became, decisive } from "./became.ts";

/** What is known since a dialog was opened. */
interface Meanwhile {
  /** What differs, in words. */
  changes: string[];
  /** Its record is there no more, or is another one of that name. */
  gone: boolean;
  /** Who did what, the latest last. */
  told: Event[];
}

/** How many events are told of at most. */
const most = 4;

/** Watches the machine of a dialog from when it is opened. */
export function useMeanwhile(name: string): Meanwhile {
  const first = useRef<Row | undefined>(undefined);
  const [told, setTold] = useState<Event[]>([]);
  const is = row(name);
  first.current ??= is;
  useEffect(
    () =>
      listen({
        event: (e) => {
          if (e.machine === name && decisive.has(e.reason)) setTold((was) => [...was.filter((o) => o.id !== e.id), e].slice(-most));
        },
      }),
    [name],
  );
  const was = first.current;
  // while everything is read anew, who is not there yet is not gone
  const changes = was && (is || complete.value) ? became(was, is) : [];
  return { changes, gone: changes.length > 0 && is?.uid !== was?.uid, told };
}

/** Says what happened meanwhile; nothing where nothing did. Children say what can be done now. */
export function Changed({ name, of, children }: { name: string; of: Meanwhile; children?: ComponentChildren }): JSX.Element | null {
  if (of.changes.length === 0) return null;
  return (
    <div class="notice" role="alert">
      <strong>{`${name} changed while this was open: ${of.changes.join("; ")}.`}</strong>
      {of.told.length > 0 && (
        <ul class="plain">
          {of.told.map((e) => (
            <li key={e.id}>
              <time dateTime={e.last}>{when(e.last).slice(11)}</time> {e.text}
              {e.by && ` (by ${e.by})`}
            </li>
          ))}
        </ul>
      )}
      {children}
    </div>
  );
}
