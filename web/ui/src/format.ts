// How numbers and times read. Units are always there.

const decimal = ["B", "kB", "MB", "GB", "TB", "PB"];
const binary = ["B", "KiB", "MiB", "GiB", "TiB"];

function scaled(n: number, step: number, units: string[]): string {
  let i = 0;
  // what would be rounded to 1000 is 1 of the next unit
  while (Math.round(n) >= (i === 0 ? step : Math.min(step, 1000)) && i < units.length - 1) {
    n /= step;
    i++;
  }
  return `${i === 0 || n >= 100 ? n.toFixed(0) : n.toFixed(1).replace(/\.0$/, "")} ${units[i]}`;
}

/** A size of a disk or a file, in powers of ten. */
export const bytes = (n: number): string => scaled(n, 1000, decimal);

/** A size of memory, in powers of two. */
export const memory = (n: number): string => scaled(n, 1024, binary);

/** A speed. */
export const rate = (perSecond: number): string => `${bytes(perSecond)}/s`;

/** A length of time in milliseconds, in its two largest units: 3 d 4 h, 12 min 5 s, 0.8 s. */
export function duration(ms: number): string {
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1).replace(/\.0$/, "")} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  const units: [number, string][] = [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const i = units.findIndex(([u]) => s >= u);
  const [big, bigName] = units[i]!;
  const [small, smallName] = units[i + 1]!;
  const rest = Math.floor((s % big) / small);
  return `${Math.floor(s / big)} ${bigName}${rest ? ` ${rest} ${smallName}` : ""}`;
}

/** A Go duration like 1m30.5s in milliseconds. */
export function parseDuration(text: string): number {
  const unit: Record<string, number> = { h: 3600e3, m: 60e3, s: 1e3, ms: 1, us: 1e-3, µs: 1e-3, ns: 1e-6 };
  let total = 0;
  for (const [, n, u] of text.matchAll(/([\d.]+)(ms|us|µs|ns|h|m|s)/g)) total += Number(n) * unit[u!]!;
  return text.startsWith("-") ? -total : total;
}

/** A point in time, to the second, in the reader's own zone. */
export function when(iso: string | undefined): string {
  if (!iso) return "";
  const d = new Date(iso);
  const p = (n: number) => String(n).padStart(2, "0");
  return `${d.getFullYear()}-${p(d.getMonth() + 1)}-${p(d.getDate())} ${p(d.getHours())}:${p(d.getMinutes())}:${p(d.getSeconds())}`;
}

/** A number of things: 1 machine, 2 machines. */
export const count = (n: number, one: string, many = `${one}s`): string => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
