import type { JSX } from "preact";
import { seg } from "../api/call.ts";
import type { Row } from "../machines.ts";
import { Link } from "../router.tsx";
import { Badge, Copy, Dialog, Since, toneOf } from "../ui/basic.tsx";

/** The worst issue of a machine, and what helps. */
export function IssueDialog({ of: r, onClose }: { of: Row; onClose: () => void }): JSX.Element | null {
  const i = r.issue;
  if (!i) return null;
  const command = /`([^`]+)`|(rackstrap [^\n`;]+)/.exec(i.fix);
  return (
    <Dialog title={`${r.name}: ${i.kind}`} onClose={onClose}>
      <p>
        <Badge tone={toneOf(i.severity)}>{i.severity}</Badge> for <Since at={i.since} />
      </p>
      <p>{i.detail}</p>
      <h3>What helps</h3>
      <p>{i.fix}</p>
      {command && <Copy text={(command[1] ?? command[2])!.trim()} />}
      <footer>
        {(r.issues ?? 0) > 1 && <span class="dim">There are {r.issues! - 1} more.</span>}
        <Link class="button primary" to={`/machines/${seg(r.name)}`}>
          Open {r.name}
        </Link>
      </footer>
    </Dialog>
  );
}
