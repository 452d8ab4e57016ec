// What an operator may ask of a machine now. The appliance decides when it is asked;
// this only spares people what it would refuse, and says why.
import type { Hardware, State } from "../api/types.ts";

/** Verb is something that is asked of one machine. */
export type Verb = "accept" | "provision" | "release" | "cancel" | "power" | "hold" | "unhold" | "maintain" | "maintained" | "inspect" | "retire" | "delete" | "allowPXE" | "allowWorkflow";

/** Offer is a verb that is shown; why says what forbids it now. */
export interface Offer {
  verb: Verb;
  label: string;
  why?: string;
}

const labels: Record<Verb, string> = {
  accept: "Accept",
  provision: "Provision…",
  release: "Release…",
  cancel: "Cancel workflow…",
  power: "Power…",
  hold: "Hold",
  unhold: "Take off hold",
  maintain: "Maintenance…",
  maintained: "End maintenance",
  inspect: "Inspect",
  retire: "Retire…",
  delete: "Delete…",
  allowPXE: "Allow netboot",
  allowWorkflow: "Allow workflows",
};

/** A verb in the words of its button. */
export const labelOf = (v: Verb): string => labels[v];

const idle: State[] = ["available", "provisioned", "failed"];

/** The verbs of a machine, the one that moves it on first; active is whether a workflow of it is not ended. */
export function offers(hw: Hardware, active: boolean): Offer[] {
  const s = hw.status ?? {};
  const state = s.state ?? "available";
  const name = s.workflow ?? "";
  const out: Offer[] = [];
  const add = (verb: Verb, why?: string) => out.push({ verb, label: labels[verb], ...(why ? { why } : {}) });
  if (state === "retired") return [{ verb: "delete", label: labels.delete }];
  if (state === "pending" || doubted(hw)) add("accept");
  if (s.hold) add("unhold");
  if (active) add("cancel");
  add("provision", refused(state, !!s.hold, active, name));
  if (out[out.length - 1]!.why === undefined && state === "provisioned") out[out.length - 1]!.label = "Reinstall…";
  if (["provisioned", "failed", "provisioning", "releasing"].includes(state) || s.claim || s.dirty?.length || s.reserved) add("release");
  add("power");
  if (idle.includes(state)) add("inspect", active ? `workflow ${name} runs` : undefined);
  if (!s.hold) add("hold");
  add(s.maintenance ? "maintained" : "maintain");
  add("retire");
  add("delete");
  return out;
}

/** Whether a human's word is asked for: quarantine, an identity in doubt, boots in vain. */
function doubted(hw: Hardware): boolean {
  const s = hw.status ?? {};
  return (s.failures ?? 0) > 0 || !!s.unhealthy || (s.conflicts ?? []).some((c) => !c.accepted) || (!!s.hold && (s.holdReason === "not-stopped" || s.holdReason === "boot-loop"));
}

function refused(state: State, hold: boolean, active: boolean, workflow: string): string | undefined {
  if (state === "pending") return "accept it first";
  if (hold) return "take it off hold first";
  if (active) return `workflow ${workflow} runs`;
  if (state === "provisioning" || state === "releasing") return `it is ${state}`;
  return undefined;
}

/** Step is what a command of the appliance's advice means here. */
type Step = { verb: Verb; power?: "on" | "off" | "cycle" | "status" } | { to: string; label: string } | { type: string };

/** What a command that the appliance says to type is on this page; one that the page has no button for is to be typed. */
export function step(command: string, name: string): Step {
  const m = /^rackstrap (\S+)(?: (\S+))?(?: (\S+))?/.exec(command.trim());
  if (!m) return { type: command };
  const [, noun, second = "", third = ""] = m;
  const page = `/machines/${encodeURIComponent(name)}`;
  switch (noun) {
    case "timeline":
      return { to: page, label: "Look at the timeline" };
    case "explain":
      return { to: `${page}?tab=why`, label: "Ask why" };
    case "validate":
      return { to: `${page}?tab=why`, label: "Look at the checklist" };
    case "provision":
      return { verb: "provision" };
    case "release":
      return second === name ? { verb: "release" } : { type: command };
    case "power":
      return third === "on" || third === "off" || third === "cycle" || third === "status" ? { verb: "power", power: third } : { verb: "power" };
    case "workflow":
      return second === "cancel" ? { verb: "cancel" } : { to: `${page}?tab=workflow`, label: "Look at the workflow" };
    case "subnet":
      return second === "get" ? { to: `/networks/${encodeURIComponent(third)}`, label: `Open subnet ${third}` } : { to: "/networks", label: "Look at the networks" };
    case "lease":
      return { to: "/networks", label: "Look at the leases" };
    case "image":
      return { to: "/images", label: "Look at the images" };
    case "template":
      return second === "get" ? { to: `/templates/${encodeURIComponent(third)}`, label: `Open template ${third}` } : { to: "/templates", label: "Look at the templates" };
    case "stranger":
      return { to: "/pending", label: "Look at who asked" };
    case "hardware":
      return hardware(command, second, name, page);
  }
  return { type: command };
}

function hardware(command: string, second: string, name: string, page: string): Step {
  switch (second) {
    case "accept":
    case "unhold":
    case "inspect":
    case "delete":
    case "retire":
      return { verb: second };
    case "maintenance":
      return { verb: command.includes("--off") ? "maintained" : "maintain" };
    case "get":
      return { to: `${page}?tab=edit`, label: "Look at the record" };
    case "list":
      return { to: "/pending", label: "Look at what waits" };
  }
  return { type: command.replace("NAME", name) };
}

/** The commands in a sentence of advice, in order. */
export function commands(text: string): string[] {
  return [...text.matchAll(/rackstrap [a-z-]+(?: (?:--)?[\w.:/=-]*[\w/-])*/g)].map(([c]) => c);
}
