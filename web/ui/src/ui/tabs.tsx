import type { ComponentChildren, JSX } from "preact";
import { useId, useRef } from "preact/hooks";
import { query, setQuery } from "../router.tsx";

/** One tab; its panel is made when it is shown. */
export interface Tab {
  key: string;
  label: ComponentChildren;
  panel: () => ComponentChildren;
}

/** Tabs whose choice is in the URL; arrow keys move between them. */
export function Tabs({ tabs, param = "tab", label }: { tabs: Tab[]; param?: string; label: string }): JSX.Element {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const shown = tabs.find((t) => t.key === query.value.get(param)) ?? tabs[0]!;
  const choose = (i: number) => {
    const t = tabs[(i + tabs.length) % tabs.length]!;
    setQuery({ [param]: t === tabs[0] ? undefined : t.key });
    (list.current?.querySelectorAll("button")[tabs.indexOf(t)] as HTMLElement | undefined)?.focus();
  };
  return (
    <div class="tabs">
      <div
        role="tablist"
        aria-label={label}
        ref={list}
        onKeyDown={(e) => {
          const i = tabs.indexOf(shown);
          if (e.key === "ArrowRight") choose(i + 1);
          else if (e.key === "ArrowLeft") choose(i - 1);
          else if (e.key === "Home") choose(0);
          else if (e.key === "End") choose(tabs.length - 1);
          else return;
          e.preventDefault();
        }}
      >
        {tabs.map((t, i) => (
          <button key={t.key} type="button" role="tab" id={`${id}-${t.key}`} aria-selected={t === shown} aria-controls={`${id}-panel`} tabIndex={t === shown ? 0 : -1} onClick={() => choose(i)}>
            {t.label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${shown.key}`} tabIndex={0} key={shown.key}>
        {shown.panel()}
      </div>
    </div>
  );
}
