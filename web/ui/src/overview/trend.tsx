// How installs went, day by day: how long they took, where the time went, how fast disks
// were written. The charts are SVG; the same numbers are in a table.
import type { JSX } from "preact";
import type { InstallDay, Overview } from "../api/types.ts";
import { call } from "../api/call.ts";
import { bytes, count, duration, parseDuration, rate } from "../format.ts";
import { useLive } from "../live.ts";
import { timeTicks } from "../ui/axis.ts";
import { ProblemBox } from "../ui/basic.tsx";

const days = 30;

const told = new Set(["workflow-succeeded", "workflow-failed", "workflow-timeout", "os-up"]);

/** The trend of the last 30 days; nothing where nothing was installed yet. */
export function Trend(): JSX.Element | null {
  const load = useLive(
    (signal) => call<Overview>("GET", "/overview", { query: { days }, signal }),
    (e) => told.has(e.reason),
    [],
    (o) => (o.partial ? 2000 : o.now.writing > 0 ? 5000 : 0), // how fast it goes now is no event
  );
  const o = load.data;
  if (!o && load.problem) return <ProblemBox problem={load.problem} />;
  if (!o || o.days.length === 0) return null;
  const past = calendar(o.days, days);
  return (
    <section class="card" aria-labelledby="trend">
      <h2 id="trend">Installs of the last {days} days</h2>
      <ProblemBox problem={load.problem} />
      {o.partial && <p class="dim">The installs of the past are still being counted.</p>}
      <p>
        {count(sum(past, (d) => d.succeeded), "install")} succeeded, {sum(past, (d) => d.failed).toLocaleString("en")} failed; {bytes(sum(past, (d) => d.bytes))} were written to disks
        {o.now.writing > 0 && o.now.bytesPerSecond > 0 && `, ${rate(o.now.bytesPerSecond)} now on ${count(o.now.writing, "machine")}`}.
      </p>
      <div class="charts">
        <Took of={past} />
        <Split of={past} />
        <Numbers of={past} />
      </div>
      <details>
        <summary>As a table</summary>
        <Figures of={o.days} />
      </details>
    </section>
  );
}

const sum = (of: InstallDay[], f: (d: InstallDay) => number): number => of.reduce((n, d) => n + f(d), 0);

/** Every one of the last n days, also those without an install. Days are UTC's. */
function calendar(known: InstallDay[], n: number): InstallDay[] {
  const by = new Map(known.map((d) => [d.day, d]));
  const today = Date.parse(new Date().toISOString().slice(0, 10));
  return Array.from({ length: n }, (_, i) => {
    const day = new Date(today - (n - 1 - i) * 86400e3).toISOString().slice(0, 10);
    return by.get(day) ?? { day, succeeded: 0, failed: 0, bytes: 0, bytesPerSecond: 0 };
  });
}

const wide = 420;
const high = 150;
const box = { left: 46, right: 8, top: 14, bottom: 20 };
const across = (i: number, n: number): number => box.left + ((i + 0.5) * (wide - box.left - box.right)) / n;
const slot = (n: number): number => (wide - box.left - box.right) / n;
const up = (v: number, max: number): number => high - box.bottom - (v / max) * (high - box.top - box.bottom);

function Chart({ title, unit, at, label, of, children }: { title: string; unit: string; at: number[]; label: (v: number) => string; of: InstallDay[]; children: JSX.Element | JSX.Element[] }): JSX.Element {
  const max = at[at.length - 1]!;
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${wide} ${high}`} role="img" aria-label={`${title}; the numbers are in the table below`}>
        <text x={2} y={9}>
          {unit}
        </text>
        {at.map((v) => (
          <g key={v}>
            <line x1={box.left} x2={wide - box.right} y1={up(v, max)} y2={up(v, max)} />
            <text x={box.left - 5} y={up(v, max) + 4} class="to-left">
              {label(v)}
            </text>
          </g>
        ))}
        {of.map(
          (d, i) =>
            (of.length - 1 - i) % 7 === 0 && (
              <text key={d.day} x={across(i, of.length)} y={high - 5} class="middle">
                {d.day.slice(5)}
              </text>
            ),
        )}
        {children}
      </svg>
    </figure>
  );
}

const ms = (d: string | undefined): number => (d ? parseDuration(d) : 0);

function Took({ of }: { of: InstallDay[] }): JSX.Element {
  const scale = timeTicks(Math.max(...of.map((d) => ms(d.p95)), 1000));
  const max = scale.at[scale.at.length - 1]!;
  const step = slot(of.length);
  return (
    <Chart title="How long they took: half of them at most ●, 95 of 100 at most ▬" unit={scale.unit} at={scale.at} label={(v) => String(v / scale.ms)} of={of}>
      {of.flatMap((d, i) =>
        d.succeeded > 0
          ? [
              <g key={d.day}>
                <title>{`${d.day}: half within ${duration(ms(d.p50))}, 95 of 100 within ${duration(ms(d.p95))}`}</title>
                <line class="reach" x1={across(i, of.length)} x2={across(i, of.length)} y1={up(ms(d.p50), max)} y2={up(ms(d.p95), max)} />
                <rect class="p95" x={across(i, of.length) - step * 0.35} width={step * 0.7} y={up(ms(d.p95), max) - 1.5} height={3} />
                <circle class="p50" cx={across(i, of.length)} cy={up(ms(d.p50), max)} r={Math.min(4, step / 2.5)} />
              </g>,
            ]
          : [],
      )}
    </Chart>
  );
}

/** How many colours style.css has for parts. */
const colours = 10;

/** The parts of all days, in the order in which they first come. */
const partsOf = (of: InstallDay[]): string[] => [...new Set(of.flatMap((d) => (d.parts ?? []).map((p) => p.name)))];

function Split({ of }: { of: InstallDay[] }): JSX.Element {
  const names = partsOf(of);
  const whole = (d: InstallDay) => (d.parts ?? []).reduce((n, p) => n + ms(p.mean), 0);
  const scale = timeTicks(Math.max(...of.map(whole), 1000));
  const max = scale.at[scale.at.length - 1]!;
  const step = slot(of.length);
  return (
    <div>
      <Chart title="Where the time went, on average" unit={scale.unit} at={scale.at} label={(v) => String(v / scale.ms)} of={of}>
        {of.map((d, i) => {
          let below = 0;
          return (
            <g key={d.day}>
              {(d.parts ?? []).map((p) => {
                const from = below;
                below += ms(p.mean);
                return (
                  <rect key={p.name} class={`part-${names.indexOf(p.name) % colours}`} x={across(i, of.length) - step * 0.4} width={step * 0.8} y={up(below, max)} height={Math.max(0, up(from, max) - up(below, max))}>
                    <title>{`${d.day}, ${p.name}: ${duration(ms(p.mean))}`}</title>
                  </rect>
                );
              })}
            </g>
          );
        })}
      </Chart>
      <ul class="legend" aria-label="Parts of an install">
        {names.map((n, i) => (
          <li key={n}>
            <span class={`swatch part-${i % colours}`} aria-hidden="true" /> {n}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Numbers({ of }: { of: InstallDay[] }): JSX.Element {
  const most = Math.max(...of.map((d) => d.succeeded + d.failed), 1);
  const step = slot(of.length);
  const at = [0, Math.ceil(most / 2), Math.ceil(most / 2) * 2];
  const max = at[2]!;
  return (
    <Chart title="How many: succeeded, and on top failed ▨" unit="installs" at={at} label={String} of={of}>
      {of.map((d, i) => (
        <g key={d.day}>
          <title>{`${d.day}: ${d.succeeded} succeeded, ${d.failed} failed, written at ${rate(d.bytesPerSecond)}`}</title>
          <rect class="fine" x={across(i, of.length) - step * 0.4} width={step * 0.8} y={up(d.succeeded, max)} height={up(0, max) - up(d.succeeded, max)} />
          <rect class="broken" x={across(i, of.length) - step * 0.4} width={step * 0.8} y={up(d.succeeded + d.failed, max)} height={up(d.succeeded, max) - up(d.succeeded + d.failed, max)} />
        </g>
      ))}
    </Chart>
  );
}

function Figures({ of }: { of: InstallDay[] }): JSX.Element {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Day (UTC)</th>
            {["Succeeded", "Failed", "Half within", "95 of 100 within", "Written", "Speed of a disk"].map((h) => (
              <th key={h} scope="col" class="num">
                {h}
              </th>
            ))}
            <th scope="col">Where the time went</th>
          </tr>
        </thead>
        <tbody>
          {[...of].reverse().map((d) => (
            <tr key={d.day}>
              <th scope="row">{d.day}</th>
              <td class="num">{d.succeeded}</td>
              <td class="num">{d.failed}</td>
              <td class="num">{d.p50 && duration(ms(d.p50))}</td>
              <td class="num">{d.p95 && duration(ms(d.p95))}</td>
              <td class="num">{bytes(d.bytes)}</td>
              <td class="num">{d.bytesPerSecond > 0 && rate(d.bytesPerSecond)}</td>
              <td>{(d.parts ?? []).map((p) => `${p.name} ${duration(ms(p.mean))}`).join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
