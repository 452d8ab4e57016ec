import type { JSX } from "preact";
import type { DiskFact, Hardware, Layout, WorkflowWorkflow } from "../api/types.ts";
import { bytes, count, when } from "../format.ts";
import { Scroll } from "../ui/scroll.tsx";
import { layoutWords, partitionName, stretches, unused, writtenSince, type Tone } from "./layout.ts";

/** Up to how many disks are shown with their partitions listed. */
const few = 3;

/** What was on each disk when the worker looked, to scale and as a table; nothing where no worker did. */
export function Layouts({ hw, workflows }: { hw: Hardware; workflows: WorkflowWorkflow[] }): JSX.Element | null {
  const disks = (hw.facts?.disks ?? []).filter((d) => d.layout);
  if (disks.length === 0) return null;
  const at = hw.facts?.collected;
  const later = writtenSince(workflows, at);
  return (
    <section class="card layouts" aria-label="On the disks">
      <h2>What is on {disks.length === 1 ? "it" : "them"}</h2>
      <p class={later ? "notice" : "dim"}>
        As of {at ? when(at) : "an unknown time"}.{" "}
        {later ? `Workflow ${later} wrote to the disks after that, and no worker has told what it left.` : hw.status?.installed ? "The installed system may have changed it since." : ""}
      </p>
      {disks.map((d) => (
        <OneDisk key={d.path} d={d} l={d.layout!} open={disks.length <= few} />
      ))}
    </section>
  );
}

const tones: Record<Tone, string> = { boot: "boot", files: "file system", swap: "swap", member: "part of something larger, or encrypted", other: "not recognised", free: "not in a partition" };

function OneDisk({ d, l, open }: { d: DiskFact; l: Layout; open: boolean }): JSX.Element {
  const all = stretches(d.bytes, l);
  const parts = l.partitions ?? [];
  const free = unused(all);
  const said = [bytes(d.bytes), layoutWords(l), parts.length + (l.more ?? 0) > 0 && count(parts.length + (l.more ?? 0), "partition"), (l.table === "gpt" || l.table === "dos") && free > 0 && `${bytes(free)} free`].filter(Boolean).join(", ");
  const head = (
    <>
      <code>{d.path}</code> {said}
    </>
  );
  const bar = all.length > 0 && (
    <svg class="layout" width="100%" height="26" aria-hidden="true">
      {all.map((s) => (
        <g key={s.from}>
          <rect class={`on-${s.tone}`} x={`${s.from}%`} width={`${s.width}%`} y="1" height="24">
            <title>{s.part ? `${partitionName(d.path, s.part.number)}, ${bytes(s.size)}, ${s.part.content || s.part.type || tones.other}` : `${bytes(s.size)} free`}</title>
          </rect>
          {s.width > 5 && (
            <text x={`${s.from + s.width / 2}%`} y="17">
              {s.part ? s.part.number : "free"}
            </text>
          )}
        </g>
      ))}
    </svg>
  );
  if (parts.length === 0) {
    return (
      <div class="one-disk">
        <div>{head}</div>
        {bar}
      </div>
    );
  }
  return (
    <details class="one-disk" open={open}>
      <summary>{head}</summary>
      {bar}
      <Scroll label={`Partitions of ${d.path}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Partition</th>
              <th scope="col" class="num">
                Size
              </th>
              <th scope="col">Holds</th>
              <th scope="col">Label</th>
              <th scope="col">For</th>
              <th scope="col">Name</th>
            </tr>
          </thead>
          <tbody>
            {parts.map((p) => {
              const tone = all.find((s) => s.part === p)?.tone;
              return (
                <tr key={`${p.number} ${p.start}`}>
                  <th scope="row">
                    {tone && <span class={`swatch on-${tone}`} aria-hidden="true" />} <code>{partitionName(d.path, p.number)}</code>
                  </th>
                  <td class="num" title={`from byte ${p.start.toLocaleString("en")}`}>
                    {bytes(p.bytes)}
                  </td>
                  <td>{p.content || <span class="dim">{p.type === "extended" ? "other partitions" : "not recognised"}</span>}</td>
                  <td>{p.label}</td>
                  <td>{p.type}</td>
                  <td>{p.name}</td>
                </tr>
              );
            })}
            {free > 0 && (
              <tr>
                <th scope="row">
                  <span class="swatch on-free" aria-hidden="true" /> free
                </th>
                <td class="num">{bytes(free)}</td>
                <td colSpan={4} class="dim">
                  {tones.free}
                </td>
              </tr>
            )}
          </tbody>
        </table>
      </Scroll>
      {!!l.more && <p class="dim">and {count(l.more, "more partition")}</p>}
    </details>
  );
}
