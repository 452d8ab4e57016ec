// What the pages of templates read from the API.
import { call } from "../api/call.ts";
import type { ActionKinds, Event } from "../api/types.ts";
import { changes } from "../live.ts";

let fetched: Promise<ActionKinds> | undefined;

/** What actions can do, fetched once: it changes with the appliance's version only. Throws a Failure. */
export function actionKinds(): Promise<ActionKinds> {
  fetched ??= call<ActionKinds>("GET", "/action-kinds").catch((err: unknown) => {
    fetched = undefined; // the next one asks again
    throw err;
  });
  return fetched;
}

const templatesChange = changes("templates|workflows|rules");

/** Whether an event may have changed a template, or what was made of one. */
export const aboutTemplates = (e: Event): boolean => e.reason === "workflow-created" || templatesChange(e);
