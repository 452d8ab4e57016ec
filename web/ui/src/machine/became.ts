// What became of a machine while somebody was about to decide about it.
import type { Reason } from "../api/types.ts";
import type { Row } from "../machines.ts";

/** The events that tell who decided, and what came of it; packets and steps do not. */
export const decisive: ReadonlySet<Reason> = new Set<Reason>([
  "accepted",
  "rule-applied",
  "rule-failed",
  "record-deleted",
  "record-dropped",
  "state-changed",
  "claimed",
  "claim-ended",
  "maintenance",
  "maintenance-ended",
  "release-asked",
  "released-unwiped",
  "quarantined",
  "retired-by-operator",
  "workflow-created",
  "workflow-succeeded",
  "workflow-failed",
  "workflow-timeout",
  "workflow-cancelled",
]);

/** What differs, in words, that matters to who decides about it; nothing where it is as it was. */
export function became(was: Row, is: Row | undefined): string[] {
  if (!is) return ["its record was deleted"];
  if (is.uid !== was.uid) return ["its record was deleted and made anew: it may be another machine"];
  const out: string[] = [];
  if (is.state !== was.state) out.push(`it was ${was.state} and is ${is.state}`);
  if (!!is.hold !== !!was.hold) out.push(is.hold ? "it is on hold" : "it is off hold");
  if (!!is.maintenance !== !!was.maintenance) out.push(is.maintenance ? "it is in maintenance" : "its maintenance is over");
  if (is.claim !== was.claim) out.push(is.claim ? `${is.owner ?? "somebody"} claimed it` : "its claim ended");
  if (is.active && is.workflow !== was.workflow) out.push(`workflow ${is.workflow} works on it`);
  else if (was.active && !is.active) out.push(`workflow ${was.workflow} ended`);
  return out;
}
