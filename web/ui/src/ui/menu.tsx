import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A button that shows more below it; Escape, a press elsewhere and, with once, a press on what is in it close it. */
export function Menu({ label, children, once = false, title }: { label: ComponentChildren; children: ComponentChildren; once?: boolean; title?: string }): JSX.Element {
  const ref = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (e: Event) => {
      const d = ref.current;
      if (!d?.open) return;
      if (e instanceof KeyboardEvent) {
        if (e.key !== "Escape") return;
        if (d.contains(document.activeElement)) d.querySelector("summary")!.focus();
      } else if (e.composedPath().includes(d)) return;
      d.open = false;
    };
    document.addEventListener("pointerdown", close);
    document.addEventListener("keydown", close);
    return () => {
      document.removeEventListener("pointerdown", close);
      document.removeEventListener("keydown", close);
    };
  }, []);
  return (
    <details class="menu" ref={ref}>
      <summary title={title}>{label}</summary>
      <div
        onClick={(e) => {
          if (once && (e.target as HTMLElement).closest("button, a")) ref.current!.open = false;
        }}
      >
        {children}
      </div>
    </details>
  );
}
