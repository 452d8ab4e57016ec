// A Reason, and what the appliance's guide says of it.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Reason as Word, ReasonText } from "../api/types.ts";
import { call } from "../api/call.ts";
import { Link } from "../router.tsx";
import { Dialog, ProblemBox, useLoad } from "./basic.tsx";
import { Prose } from "./prose.tsx";

let fetched: Promise<Map<string, ReasonText>> | undefined;

/** What every Reason means, fetched once. Throws a Failure. */
export function reasons(): Promise<Map<string, ReasonText>> {
  fetched ??= call<{ items: ReasonText[] }>("GET", "/reasons")
    .then((l) => new Map(l.items.map((r) => [r.reason, r])))
    .catch((err: unknown) => {
      fetched = undefined; // the next one asks again
      throw err;
    });
  return fetched;
}

/** A Reason's word; pressed, it says what it means and what to do. */
export function Reason({ of }: { of: Word }): JSX.Element {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="reason" title="What it means, and what to do" onClick={() => setOpen(true)}>
        {of}
      </button>
      {open && <Meaning of={of} onClose={() => setOpen(false)} />}
    </>
  );
}

function Meaning({ of, onClose }: { of: Word; onClose: () => void }): JSX.Element {
  const all = useLoad(reasons, []);
  const text = all.data?.get(of);
  return (
    <Dialog title={of} onClose={onClose}>
      <ProblemBox problem={all.problem} />
      {all.loading && <p class="loading">Loading…</p>}
      {text && (
        <div class="stack">
          <p>
            <strong>{text.sentence[0]!.toUpperCase() + text.sentence.slice(1)}.</strong>
          </p>
          {text.about && <Prose text={text.about} />}
        </div>
      )}
      <footer>
        <Link to={`/events?reason=${of}`}>Where else it happened</Link>
      </footer>
    </Dialog>
  );
}
