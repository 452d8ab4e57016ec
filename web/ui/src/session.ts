import { batch, computed, signal } from "@preact/signals";
import type { Role, WhoAmI } from "./api/types.ts";
import { call, Failure, onSignedOut } from "./api/call.ts";

/** Who is signed in; null is nobody, undefined is not known yet. */
export const me = signal<WhoAmI | null | undefined>(undefined);

/** Whether the session has ended by itself. Who was signed in is still me, so that the page and what was typed into it stay; whoever signs in as the same goes on. */
export const away = signal(false);

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
    const who = await call<WhoAmI>("GET", "/whoami");
    if (me.value && me.value.name !== who.name) me.value = null; // another: nothing of the one before stays
    batch(() => {
      me.value = who;
      away.value = false;
    });
  } catch (err) {
    if (err instanceof Failure && err.status === 401) me.value = null;
    else throw err;
  }
}

/** Signs in with a token, which is kept nowhere in the page. Throws a Failure. */
export async function signIn(token: string): Promise<void> {
  await call<WhoAmI>("POST", "/session", { body: { token } });
  await look();
}

/** Signs out: the cookie is worth nothing afterwards. Throws a Failure where it could not be taken back, since it is still worth something then. */
export async function signOut(): Promise<void> {
  try {
    await call("DELETE", "/session");
  } catch (err) {
    if (!(err instanceof Failure) || err.status !== 401) throw err;
  }
  leave();
}

/** Forgets who was signed in, and what was typed. */
export function leave(): void {
  me.value = null;
  away.value = false;
}

onSignedOut(() => {
  if (me.value) away.value = true;
  else me.value = null;
});
