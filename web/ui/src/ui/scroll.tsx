import type { ComponentChildren, JSX } from "preact";

/** A part that scrolls by itself, also by the keyboard where nothing in it has the focus. */
export function Scroll({ label, class: more = "", children }: { label: string; class?: string; children: ComponentChildren }): JSX.Element {
  return (
    <div class={`scroll ${more}`} role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
