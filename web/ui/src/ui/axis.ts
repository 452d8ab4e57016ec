// Round numbers for the axes of charts.

/** Ticks from 0 to at least max, about n of them, at 1, 2 or 5 times a power of ten. */
export function ticks(max: number, n = 4): number[] {
  if (!(max > 0)) return [0, 1];
  const rough = max / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough)!;
  const out: number[] = [];
  for (let i = 0; i * step < max + step; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}

/** Times in milliseconds: the unit that fits, and ticks in it. */
export function timeTicks(maxMs: number): { unit: string; ms: number; at: number[] } {
  const [unit, ms] = maxMs < 120e3 ? (["s", 1e3] as const) : maxMs < 7200e3 ? (["min", 60e3] as const) : (["h", 3600e3] as const);
  return { unit, ms, at: ticks(maxMs / ms).map((t) => t * ms) };
}
