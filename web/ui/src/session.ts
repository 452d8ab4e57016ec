import { computed, signal } from "@preact/signals";
import type { Role, WhoAmI } from "./api/types.ts";
import { call, Failure, onSignedOut } from "./api/call.ts";

/** Who is signed in; null is nobody, undefined is not known yet. */
export const me = signal<WhoAmI | null | undefined>(undefined);

/** Why nobody is signed in any more, for the sign-in page. */
export const ended = signal("");

const order: Role[] = ["viewer", "operator", "admin"];

/** Whether the one who is signed in is at least that. */
export function can(role: Role): boolean {
  const mine = me.value?.role;
  return mine !== undefined && order.indexOf(mine) >= order.indexOf(role);
}

/** Whether verbs are shown at all. */
export const operator = computed(() => can("operator"));

/** Asks who is signed in. Throws a Failure where the appliance does not answer. */
export async function look(): Promise<void> {
  try {
    me.value = await call<WhoAmI>("GET", "/whoami");
  } catch (err) {
    if (err instanceof Failure && err.status === 401) me.value = null;
    else throw err;
  }
}

/** Signs in with a token, which is kept nowhere in the page. Throws a Failure. */
export async function signIn(token: string): Promise<void> {
  await call<WhoAmI>("POST", "/session", { body: { token } });
  ended.value = "";
  await look();
}

/** Signs out: the cookie is worth nothing afterwards. */
export async function signOut(): Promise<void> {
  try {
    await call("DELETE", "/session");
  } finally {
    me.value = null;
  }
}

onSignedOut(() => {
  if (me.value) ended.value = "The session has ended. Sign in again; the page goes on where it was.";
  me.value = null;
});
