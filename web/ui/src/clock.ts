import { signal } from "@preact/signals";

/** The time now in milliseconds, once a second; what shows "for 3 min" reads it. */
export const now = signal(Date.now());

window.setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);
document.addEventListener("visibilitychange", () => (now.value = Date.now()));
