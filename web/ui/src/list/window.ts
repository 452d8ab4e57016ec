// Which rows of a long list are drawn: those that can be seen, and some around them.
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** How many rows are drawn above and below those that can be seen. */
const spare = 12;

/** The part of a list that is drawn. */
interface Part {
  first: number;
  /** After the last. */
  end: number;
  /** How many rows can be seen at once. */
  page: number;
}

/** The part of count rows of a fixed height that is drawn in a box that scrolls. */
export function useWindow(box: RefObject<HTMLElement | null>, count: number, height: number): Part {
  const [at, setAt] = useState({ top: 0, seen: 800 });
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    // a step of several rows: within it nothing has to be drawn anew
    const look = () => {
      const top = Math.floor(el.scrollTop / height / 4) * 4;
      // a box that has not been fitted into the window yet is as high as all its rows
      const seen = Math.min(el.clientHeight, window.innerHeight);
      setAt((was) => (was.top === top && was.seen === seen ? was : { top, seen }));
    };
    look();
    el.addEventListener("scroll", look, { passive: true });
    const size = new ResizeObserver(look);
    size.observe(el);
    return () => {
      el.removeEventListener("scroll", look);
      size.disconnect();
    };
  }, [height]);
  const page = Math.max(1, Math.ceil(at.seen / height));
  const first = Math.max(0, Math.min(at.top, count - page) - spare);
  return { first, end: Math.min(count, first + page + 2 * spare + 4), page };
}

/** The height of a row that is so many rem, in whole pixels. */
export const pixels = (rem: number): number => Math.round(rem * parseFloat(getComputedStyle(document.documentElement).fontSize));
