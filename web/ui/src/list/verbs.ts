// What can be done with many machines at once.
import type { Applied } from "../api/types.ts";

/** A question that a verb asks. */
type Question = "note" | "reason" | "force" | "labels" | "nextBoot";

/** A verb on many machines. */
export interface Verb {
  /** On the button. */
  label: string;
  verb: string;
  options?: Record<string, unknown>;
  asks: Question[];
  /** What force does, where it is asked. */
  force?: string;
  /** What is lost, in a sentence, when it is done with these; then a confirmation must be typed. */
  destroys?: (of: Applied[], forced: boolean) => string | undefined;
}

const runs = (of: Applied[]): Applied[] => of.filter((a) => a.state === "provisioned");
const off = (what: string) => (of: Applied[]) => (runs(of).length > 0 ? `${runs(of).length} of them ${runs(of).length === 1 ? "is" : "are"} provisioned: ${what}.` : undefined);

/** The verbs, by the name that the page has for them. */
export const verbs = {
  accept: { label: "Accept", verb: "accept", asks: ["note"] },
  release: {
    label: "Release",
    verb: "release",
    asks: ["reason", "force"],
    force: "Give them up without a wipe: they go on hold as failed",
    destroys: (of, forced) => (of.length === 0 ? undefined : forced ? "Their owners lose them. Nothing is wiped: what is on their disks stays there." : "Their disks are wiped: what is on them is lost for ever."),
  },
  on: { label: "Power on", verb: "power", options: { action: "on" }, asks: ["nextBoot"] },
  off: { label: "Power off", verb: "power", options: { action: "off" }, asks: [], destroys: off("their systems are cut off at once, without a shutdown") },
  cycle: { label: "Power cycle", verb: "power", options: { action: "cycle" }, asks: ["nextBoot"], destroys: off("their systems are cut off at once, and start again") },
  hold: { label: "Hold", verb: "hold", asks: [] },
  unhold: { label: "End hold", verb: "unhold", asks: [] },
  maintenance: { label: "Maintenance", verb: "maintenance", asks: ["note"] },
  service: { label: "End maintenance", verb: "maintenance", options: { off: true }, asks: ["note"] },
  label: { label: "Labels", verb: "label", asks: ["labels"] },
  inspect: { label: "Inspect", verb: "inspect", asks: [] },
  cancel: { label: "Cancel workflow", verb: "cancel", asks: ["reason"] },
  retire: {
    label: "Retire",
    verb: "retire",
    asks: ["note", "force"],
    force: "Also machines that have an owner or data on them",
    destroys: (of) => (of.length > 0 ? "A retired machine is used no more; it does not come back." : undefined),
  },
  delete: {
    label: "Delete",
    verb: "delete",
    asks: ["force"],
    force: "Also machines in use",
    destroys: (of) => (of.length > 0 ? "Their records are deleted, with their labels, addresses and history." : undefined),
  },
} satisfies Record<string, Verb>;
