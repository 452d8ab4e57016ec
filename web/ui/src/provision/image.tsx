import type { JSX } from "preact";
import type { ApiImage, DiskFact, Hardware, Parameter, Template, TemplateList } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { bytes, count } from "../format.ts";
import { moves, stateOf, usable, useImages } from "../images.ts";
import { row } from "../machines.ts";
import { Link } from "../router.tsx";
import { Badge, Empty, Field, ProblemBox, Since, useLoad } from "../ui/basic.tsx";
import { Choice, Radios, Text, Tick } from "../ui/inputs.tsx";
import { asked, builtIn, type Draft } from "./draft.ts";
import { draft, put } from "./state.ts";
import { Scroll } from "../ui/scroll.tsx";

/** The templates of the appliance. */
export function useTemplates(): Template[] | undefined {
  return useLoad((signal) => call<TemplateList>("GET", "/templates", { signal }), []).data?.items;
}

/** The template that a draft installs by. */
export const templateOf = (d: Draft, all: Template[] | undefined): Template | undefined => all?.find((t) => t.metadata.name === (d.template || builtIn[d.format]));

/** What is written, onto which disk, by which template. */
export function Image({ templates }: { templates: Template[] | undefined }): JSX.Element {
  const d = draft.value;
  return (
    <div class="beside">
      <section class="card" aria-labelledby="which">
        <h3 id="which">Image</h3>
        <Radios
          label="Where it comes from"
          value={d.from}
          onValue={(from) => put({ from: from as Draft["from"] })}
          of={[
            { value: "catalogue", text: "The catalogue" },
            { value: "query", text: "The catalogue, by what is in it", help: "The one image that has it, for each machine's CPU." },
            { value: "url", text: "A URL", help: "Each machine fetches it by itself." },
          ]}
        />
        {d.from === "catalogue" && <Catalogue />}
        {d.from === "query" && (
          <div class="columns">
            <Text label="Operating system" value={d.os} onValue={(os) => put({ os })} placeholder="debian" />
            <Text label="Its version" value={d.osVersion} onValue={(osVersion) => put({ osVersion })} placeholder="12" />
            <Text label="Kubernetes version" value={d.kubernetesVersion} onValue={(kubernetesVersion) => put({ kubernetesVersion })} placeholder="1.33.2" />
          </div>
        )}
        {d.from === "url" && (
          <>
            <Text label="URL" type="url" value={d.url} onValue={(url) => put({ url })} placeholder="https://…/disk.raw.zst" help="http or https; raw, gz, xz, zst or bz2. For qcow2, and for many machines, add it to the catalogue." />
            <Text label="Checksum" value={d.checksum} onValue={(checksum) => put({ checksum })} placeholder="sha256:…, or the URL of SHA256SUMS" help="Without one, nobody compares what comes." />
          </>
        )}
      </section>
      <section class="card" aria-labelledby="disk">
        <h3 id="disk">Disk</h3>
        <Disk />
        <TemplateChoice templates={templates} />
      </section>
    </div>
  );
}

function Catalogue(): JSX.Element {
  const { images, problem } = useImages();
  const d = draft.value;
  const archs = new Set(d.machines.map((n) => row(n)?.arch ?? "amd64"));
  if (problem) return <ProblemBox problem={problem} />;
  if (!images) return <p class="loading">Loading…</p>;
  if (images.length === 0) {
    return (
      <Empty title="There is no image yet">
        <Link class="button primary" to="/images">
          Add an image
        </Link>
        <p>What you have chosen here stays meanwhile.</p>
      </Empty>
    );
  }
  return (
    <Scroll label="Images to choose from" class="picker">
      <table>
        <thead>
          <tr>
            <th scope="col">
              <span class="hidden-text">Choose</span>
            </th>
            <th scope="col">Name</th>
            <th scope="col">System</th>
            <th scope="col">CPU</th>
            <th scope="col" class="num">
              On the disk
            </th>
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          {images.map((i) => (
            <tr key={i.metadata.name}>
              <td>
                <input type="radio" name="image" id={`image-${i.metadata.name}`} checked={d.image === i.metadata.name} onChange={() => put({ image: i.metadata.name })} />
              </td>
              <th scope="row">
                <label for={`image-${i.metadata.name}`}>{i.metadata.name}</label>
              </th>
              <td>
                {[i.spec.os, i.spec.osVersion].filter(Boolean).join(" ")}
                {i.spec.kubernetesVersion && <div class="dim">Kubernetes {i.spec.kubernetesVersion}</div>}
              </td>
              <td>
                {i.spec.arch || "amd64"}
                {!archs.has(i.spec.arch || "amd64") && <div class="wrong">not that of the machines</div>}
              </td>
              <td class="num">{i.status?.diskBytes ? bytes(i.status.diskBytes) : ""}</td>
              <td>
                <ImageBadge i={i} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function ImageBadge({ i }: { i: ApiImage }): JSX.Element {
  const s = stateOf(i);
  if (usable(i)) return <Badge tone="good">{moves(i) ? "ready, a newer one comes" : s}</Badge>;
  return (
    <>
      <Badge tone={s === "failed" ? "bad" : "busy"}>{s}</Badge>
      {i.progress?.total ? <small> {Math.floor((100 * i.progress.done) / i.progress.total)} %</small> : null}
      {i.status?.message && <div class="dim">{i.status.message}</div>}
    </>
  );
}

/** Which disk: by name for one machine whose facts are known, else by size. */
function Disk(): JSX.Element {
  const d = draft.value;
  const one = d.machines.length === 1 ? d.machines[0]! : "";
  const load = useLoad(async (signal) => (one ? call<Hardware>("GET", `/hardware/${seg(one)}`, { signal }) : undefined), [one]);
  const facts = one ? load.data?.facts : undefined;
  const disks = facts?.disks ?? [];
  const fixed = disks.filter((x) => !x.removable && !x.readOnly && x.bytes > 0);
  const named = fixed.map((x) => ({ value: nameOf(x, fixed), text: <DiskText disk={x} /> }));
  const own = !["", "smallest", "largest", ...named.map((n) => n.value)].includes(d.disk);
  return (
    <>
      <Radios
        label="What is on it is lost"
        value={own ? "own" : d.disk}
        onValue={(v) => put({ disk: v === "own" ? "/dev/" : v })}
        of={[
          { value: "", text: "The only one", help: "A machine with several is refused." },
          { value: "smallest", text: "The smallest" },
          { value: "largest", text: "The largest" },
          ...named,
          { value: "own", text: "One by its path or serial number" },
        ]}
      />
      {own && <Text label="Path or serial number" value={d.disk} onValue={(disk) => put({ disk })} placeholder="/dev/nvme0n1 or serial=S3Z8NX0M" />}
      {one && load.data && !facts && <p class="dim">Nothing is known of its disks: its worker was never there.</p>}
      {facts?.collected && (
        <p class="dim">
          Its disks as they were <Since at={facts.collected} ago />.
        </p>
      )}
      {d.machines.length > 1 && <p class="dim">The review says for each of the {count(d.machines.length, "machine")} which disk that is.</p>}
    </>
  );
}

/** How a disk is named so that it is the same after a restart. */
function nameOf(x: DiskFact, all: DiskFact[]): string {
  return x.serial && all.filter((o) => o.serial === x.serial).length === 1 ? `serial=${x.serial}` : x.path;
}

/** A disk in words. */
export function DiskText({ disk: x }: { disk: DiskFact }): JSX.Element {
  return (
    <>
      <code>{x.path}</code> {bytes(x.bytes)} <span class="dim">{[x.model, x.transport, x.serial && `serial ${x.serial}`].filter(Boolean).join(", ")}</span>
    </>
  );
}

function TemplateChoice({ templates }: { templates: Template[] | undefined }): JSX.Element {
  const d = draft.value;
  const builtIns = Object.values(builtIn);
  // what has no image to write is no install
  const others = (templates ?? []).filter((t) => !builtIns.includes(t.metadata.name) && t.spec.parameters?.some((p) => p.name === "image"));
  const t = templateOf(d, templates);
  return (
    <>
      <Choice label="Template" value={d.template} onValue={(template) => put({ template })} of={[["", `the built-in one (${builtIn[d.format]})`], ...others.map((o): [string, string] => [o.metadata.name, o.metadata.name])]} help={t?.spec.description} />
      {asked(t).map((p) => (
        <Param key={p.name} p={p} />
      ))}
    </>
  );
}

/** The value of a parameter, as its type wants it. */
function Param({ p }: { p: Parameter }): JSX.Element {
  const value = draft.value.params[p.name] ?? "";
  const set = (v: string) => put({ params: { ...draft.value.params, [p.name]: v } });
  const fallback = p.default === undefined ? "" : p.type === "secret" ? "the template has one" : String(p.default);
  switch (p.type) {
    case "bool":
      return <Tick label={p.name} help={p.description} checked={value === "" ? p.default === true : value === "true"} onValue={(v) => set(String(v))} />;
    case "secret":
      return (
        <Field label={p.name} help={p.description}>
          {(f) => <input {...f} type="password" autocomplete="off" value={value} placeholder={fallback} onInput={(e) => set(e.currentTarget.value)} />}
        </Field>
      );
    default:
      return <Text label={p.name} help={p.description} type={p.type === "int" ? "number" : "text"} value={value} onValue={set} placeholder={fallback} required={p.default === undefined} />;
  }
}
