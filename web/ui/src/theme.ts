import { effect, signal } from "@preact/signals";

/** Theme is light, dark, or what the system says. */
export type Theme = "auto" | "light" | "dark";

function stored(): Theme {
  try {
    const t = localStorage.getItem("theme");
    return t === "light" || t === "dark" ? t : "auto";
  } catch {
    return "auto"; // storage may be forbidden
  }
}

/** The theme that was chosen. */
export const theme = signal<Theme>(stored());

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  try {
    if (theme.value === "auto") localStorage.removeItem("theme");
    else localStorage.setItem("theme", theme.value);
  } catch {
    // then it lasts as long as the page
  }
});
