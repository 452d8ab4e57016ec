import { computed } from "@preact/signals";
import { Component, type ComponentChildren, type JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { seg } from "../api/call.ts";
import { complete, rows, type Row } from "../machines.ts";
import { Link } from "../router.tsx";
import { Button, Empty, toneOf } from "../ui/basic.tsx";
import { besides, machines, Moving } from "../list/columns.tsx";
import { FilterBox, useFilter } from "../list/filterbox.tsx";
import { states } from "../list/keys.ts";
import { folded, height, linesOf, racksOf, type Rack } from "../list/places.ts";
import { pixels } from "../list/window.ts";

// the heights in rem of a unit, of a machine in a list, and of what is around them
const unitHigh = 1.65;
const around = 3.2;

// so many machines without a place are one box: a box is drawn when it is seen
const boxful = 120;

/** The machines where they stand. */
export default function Racks(): JSX.Element {
  const f = useFilter();
  const { found, drawn } = useMemo(() => {
    const found = computed(() => rows.value.filter(f.test.value));
    return { found, drawn: computed(() => racksOf(found.value)) };
  }, []);
  const { racks, unplaced } = drawn.value;
  const total = rows.value.length;
  const boxes: Row[][] = [];
  for (let i = 0; i < unplaced.length; i += boxful) boxes.push(unplaced.slice(i, i + boxful));
  return (
    <div class="racks">
      <div class="head">
        <h1>Racks</h1>
        <span class="dim" role="status">
          {racks.length.toLocaleString("en")} {racks.length === 1 ? "rack" : "racks"}, {found.value.length === total ? machines(total) : `${found.value.length.toLocaleString("en")} of ${machines(total)}`}
        </span>
      </div>
      <FilterBox of={f} />
      <Legend />
      {total === 0 && complete.value ? (
        <Empty title="There is no machine yet">
          <Link to="/">The first three steps</Link>
        </Empty>
      ) : found.value.length === 0 && complete.value ? (
        <Empty title="No machine matches the filter">
          <Button onPress={() => f.set("")}>Clear the filter</Button>
        </Empty>
      ) : (
        <>
          <div class="floor">
            {racks.map((r) => (
              <Seen key={r.name} high={around + (linesOf(r).reduce((n, l) => n + height(l), 0) + r.others.length) * unitHigh} label={`Rack ${r.name}`}>
                <RackBox of={r} />
              </Seen>
            ))}
          </div>
          {unplaced.length > 0 && (
            <section class="unplaced" aria-label="Not placed">
              <h2>
                Not placed <small>{machines(unplaced.length)}: their records say no rack</small>
              </h2>
              {boxes.map((b, i) => (
                <Seen key={i} high={(Math.ceil(b.length / 4) + 1) * unitHigh} label="">
                  <div class="slots">
                    {b.map((r) => (
                      <Tile key={r.name} of={r} />
                    ))}
                  </div>
                </Seen>
              ))}
            </section>
          )}
        </>
      )}
    </div>
  );
}

const signs: Record<string, string> = { pending: "?", available: "–", provisioning: "↓", provisioned: "✓", releasing: "↺", failed: "✕", retired: "∅" };

function Legend(): JSX.Element {
  return (
    <ul class="legend" aria-label="What the signs mean">
      {states.map((s) => (
        <li key={s}>
          <span class={`sign ${toneOf(s)}`}>{signs[s]}</span> {s}
        </li>
      ))}
      <li>● on</li>
      <li>○ off</li>
      <li>! issue</li>
      <li>‖ held, or in maintenance</li>
    </ul>
  );
}

/** Draws what is in it only while it is near to what is seen; before that it has about the same height. */
function Seen({ high, label, children }: { high: number; label: string; children: ComponentChildren }): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const look = new IntersectionObserver((e) => setSeen(e.at(-1)!.isIntersecting), { rootMargin: "600px" });
    look.observe(ref.current!);
    return () => look.disconnect();
  }, []);
  return (
    <div ref={ref} class="seen" style={seen ? {} : { minHeight: `${high}rem` }}>
      {seen ? children : label && <h2>{label}</h2>}
    </div>
  );
}

function RackBox({ of: r }: { of: Rack }): JSX.Element {
  const [unit] = useState(() => pixels(unitHigh));
  return (
    <section class="rack" aria-label={`Rack ${r.name}`}>
      <h2>
        <Link to={`/machines?${new URLSearchParams({ q: `rack:${/[\s",*\\]/.test(r.name) ? JSON.stringify(r.name) : r.name}` }).toString()}`}>{r.name}</Link> <small>{machines(r.size)}</small>
      </h2>
      {r.units > 0 && (
        <ol class="units">
          {linesOf(r).map((l) =>
            "place" in l ? (
              <li key={l.place.unit} style={{ minHeight: `${height(l) * unit}px` }} class="place">
                <span class="unit">{l.place.high > 1 ? `${l.place.unit + l.place.high - 1}–${l.place.unit}` : l.place.unit}</span>
                {l.place.rows.map((m) => (
                  <Tile key={m.name} of={m} />
                ))}
              </li>
            ) : (
              <li key={`empty ${l.to}`} style={{ height: `${height(l) * unit}px`, backgroundSize: `100% ${unit}px` }} class="gap">
                {folded(l) ? (
                  <small>
                    {l.to}–{l.from} empty
                  </small>
                ) : (
                  <span class="hidden-text">{l.to === l.from ? l.to : `${l.to}–${l.from}`} empty</span>
                )}
              </li>
            ),
          )}
        </ol>
      )}
      {r.others.length > 0 && (
        <ul class="others" aria-label={`In rack ${r.name}, at no unit`}>
          {r.others.map((m) => (
            <li key={m.name}>
              <span class="unit">{m.position}</span>
              <Tile of={m} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** What a tile says, in one sentence. */
function sentence(r: Row): string {
  return [r.name, r.state, ...besides(r), `power ${r.power || "unknown"}`, r.issue && `${r.issue.severity}: ${r.issue.detail}`, r.owner && `owner ${r.owner}`, r.image && `image ${r.image}`].filter((w) => w).join(", ");
}

/** A machine in a rack. It is drawn again only when its row is another. */
class Tile extends Component<{ of: Row }> {
  override shouldComponentUpdate(next: Readonly<{ of: Row }>): boolean {
    return next.of !== this.props.of;
  }
  override render({ of: r }: { of: Row }): JSX.Element {
    const text = sentence(r);
    return (
      <span class={`slot ${toneOf(r.state)}`}>
        <Link to={`/machines/${seg(r.name)}`} title={text} aria-label={text}>
          <span class={`sign ${toneOf(r.state)}`} aria-hidden="true">
            {signs[r.state] ?? r.state}
          </span>
          <span class="what">{r.name}</span>
          <span class="dim" aria-hidden="true">
            {r.hold || r.maintenance ? "‖ " : ""}
            {r.issue && r.issue.severity !== "info" && <b class="wrong">! </b>}
            {r.power === "on" ? "●" : r.power === "off" ? "○" : ""}
          </span>
        </Link>
        <Moving of={r} short />
      </span>
    );
  }
}
