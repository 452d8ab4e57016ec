// The part of an attempt's log that a page holds: bounded, and moved over the whole.

/** How many bytes are read at once, and how many are held and drawn at most. */
export const step = 64 << 10;
export const most = 256 << 10;

/** Shown is a part of a log: its text, and where it begins and ends, in bytes of the log. */
export interface Shown {
  from: number;
  next: number;
  text: string;
}

const bytesOf = (text: string) => new TextEncoder().encode(text).length;

/** The part with text that comes after it; what is too much is left out before, in whole lines. */
export function after(s: Shown, text: string): Shown {
  const next = s.next + bytesOf(text);
  let all = s.text + text;
  let from = s.from;
  if (next - from > most) {
    const cut = lineFrom(all, all.length - most / 2);
    from += bytesOf(all.slice(0, cut));
    all = all.slice(cut);
  }
  return { from, next, text: all };
}

/** The part with text that comes before it; what is too much is left out after, in whole lines. */
export function before(s: Shown, text: string): Shown {
  const from = s.from - bytesOf(text);
  let all = text + s.text;
  let next = s.next;
  if (next - from > most) {
    const cut = lineFrom(all, most);
    next -= bytesOf(all.slice(cut));
    all = all.slice(0, cut);
  }
  return { from, next, text: all };
}

/** Where the line begins that comes after a place in a text; that place where none does, but never within a character. */
function lineFrom(text: string, at: number): number {
  const start = Math.max(0, Math.min(text.length, Math.floor(at)));
  const line = text.indexOf("\n", start);
  if (line >= 0 && line + 1 < text.length) return line + 1;
  return start > 0 && text.charCodeAt(start) >= 0xdc00 && text.charCodeAt(start) <= 0xdfff ? start - 1 : start;
}
