import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiImage } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { bytes, count } from "../format.ts";
import { guess, type Guess } from "../imagename.ts";
import { moves, stateOf, useImages, usersOf, type Users } from "../images.ts";
import { go, Link, query, setQuery } from "../router.tsx";
import { operator } from "../session.ts";
import { moved } from "../speed.ts";
import { again, dismiss, upload, uploads, type Upload } from "../uploads.ts";
import { Badge, Bar, Button, Confirm, Copy, Dialog, Empty, ProblemBox, say, Since, useAction, type Tone } from "../ui/basic.tsx";
import { Choice, Lines, Text, Tick } from "../ui/inputs.tsx";
import { Scroll } from "../ui/scroll.tsx";

const tones: Record<string, Tone> = { waiting: "warn", fetching: "busy", converting: "busy", ready: "good", failed: "bad", direct: "plain" };

/** What is open above the list. */
type Open = { kind: "url" } | { kind: "files"; files: File[]; name?: string | undefined } | { kind: "edit" | "delete"; image: ApiImage };

/** The catalogue of operating system images. */
export default function Images(): JSX.Element {
  const { images, problem, reload, rateOf } = useImages();
  const [open, setOpen] = useState<Open>();
  const [over, setOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const replaced = useRef<string | undefined>(undefined);
  useDrop(operator.value, setOver, (files) => setOpen({ kind: "files", files }));
  const wanted = (query.value.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const shown = (images ?? []).filter((i) => wanted.every((w) => textOf(i).includes(w)));
  const named = query.value.get("image");
  const last = useRef<ApiImage | undefined>(undefined);
  // one that is deleted while somebody looks at it stays as it was last known
  const detail = (last.current = images?.find((i) => i.metadata.name === named) ?? (last.current?.metadata.name === named ? last.current : undefined));
  const gone = (i: ApiImage) => !!images && !images.some((o) => o.metadata.uid === i.metadata.uid);
  const choose = (name?: string) => {
    replaced.current = name;
    picker.current?.click();
  };
  const close = () => setOpen(undefined);
  return (
    <>
      <div class="head">
        <h1>Images</h1>
        {images && images.length > 0 && <span class="dim">{count(images.length, "image")}</span>}
        {operator.value && (
          <div class="right">
            <Button kind="primary" onPress={() => setOpen({ kind: "url" })}>
              Add from a URL
            </Button>
            <Button onPress={() => choose()}>Upload a file</Button>
            <input
              ref={picker}
              type="file"
              class="hidden-text"
              tabIndex={-1}
              aria-label="File of an image"
              onChange={(e) => {
                const files = [...(e.currentTarget.files ?? [])];
                e.currentTarget.value = "";
                if (files.length > 0) setOpen({ kind: "files", files, name: replaced.current });
              }}
            />
          </div>
        )}
      </div>
      <ProblemBox problem={problem} />
      {uploads.value.map((u) => (
        <Uploading key={u.id} u={u} />
      ))}
      {images?.length === 0 && (
        <Empty title="No images yet: there is nothing to install">
          <p>An image is a whole disk: a cloud image of your distribution, for example. Raw or qcow2, plain or compressed.</p>
          {operator.value ? (
            <p>Add one from a URL, upload a file, or drop it onto this page.</p>
          ) : (
            <p>An operator adds one here, or with <code>rackstrap image add NAME URL</code>.</p>
          )}
        </Empty>
      )}
      {images && images.length > 0 && (
        <>
          <div class="tools">
            <input type="search" aria-label="Search images" placeholder="name, system, version, arm64, failed…" value={query.value.get("q") ?? ""} onInput={(e) => setQuery({ q: e.currentTarget.value })} />
          </div>
          {shown.length === 0 ? <Empty title="No image is like that" /> : <List images={shown} rateOf={rateOf} />}
          {operator.value && <p class="dim">A file that is dropped onto this page is uploaded.</p>}
        </>
      )}
      {over && (
        <div class="dropzone" aria-hidden="true">
          Drop the file to add it as an image
        </div>
      )}
      {detail && !open && <Detail image={detail} gone={gone(detail)} rate={rateOf(detail)} onClose={() => setQuery({ image: undefined })} onOpen={setOpen} onUpload={() => choose(detail.metadata.name)} />}
      {open?.kind === "url" && <Add images={images ?? []} onClose={close} onDone={reload} />}
      {open?.kind === "files" && (
        <Add
          key={open.files[0]!.name}
          images={images ?? []}
          file={open.files[0]!}
          name={open.name}
          more={open.files.length - 1}
          onClose={close}
          onDone={() => (open.files.length > 1 ? setOpen({ kind: "files", files: open.files.slice(1) }) : undefined)}
        />
      )}
      {open?.kind === "edit" && <Edit image={open.image} gone={gone(open.image)} onClose={close} onDone={reload} />}
      {open?.kind === "delete" && (
        <Delete
          image={open.image}
          gone={gone(open.image)}
          onClose={close}
          onDone={() => {
            close();
            setQuery({ image: undefined });
            reload();
          }}
        />
      )}
    </>
  );
}

const textOf = (i: ApiImage): string => [i.metadata.name, i.spec.os, i.spec.osVersion, i.spec.kubernetesVersion, i.spec.arch || "amd64", i.spec.description, stateOf(i), i.spec.url].join(" ").toLowerCase();

/** Takes files that are dropped anywhere on the page. */
function useDrop(on: boolean, over: (is: boolean) => void, take: (files: File[]) => void): void {
  const taker = useRef(take);
  taker.current = take;
  useEffect(() => {
    if (!on) return;
    let depth = 0;
    const files = (e: DragEvent) => !!e.dataTransfer?.types.includes("Files");
    const has = (e: DragEvent) => files(e) && !document.querySelector("dialog[open]");
    const enter = (e: DragEvent) => {
      if (!has(e)) return;
      depth++;
      over(true);
    };
    const leave = (e: DragEvent) => {
      if (has(e) && --depth <= 0) over(false);
    };
    // a file that nobody takes would be opened by the browser, in place of the page and of what is typed in its dialog
    const hover = (e: DragEvent) => {
      if (!files(e)) return;
      e.preventDefault();
      if (!has(e)) e.dataTransfer!.dropEffect = "none";
    };
    const drop = (e: DragEvent) => {
      depth = 0;
      over(false);
      if (files(e)) e.preventDefault();
      if (!has(e)) return;
      const dropped = [...(e.dataTransfer?.items ?? [])].flatMap((i) => (i.webkitGetAsEntry()?.isDirectory ? [] : (i.getAsFile() ?? [])));
      if (dropped.length > 0) taker.current(dropped);
      else say("A folder is no image: drop its file.", "warn");
    };
    const all: [string, (e: DragEvent) => void][] = [
      ["dragenter", enter],
      ["dragleave", leave],
      ["dragover", hover],
      ["drop", drop],
    ];
    for (const [name, f] of all) document.addEventListener(name, f as EventListener);
    return () => {
      for (const [name, f] of all) document.removeEventListener(name, f as EventListener);
    };
  }, [on]);
}

function List({ images, rateOf }: { images: ApiImage[]; rateOf: (i: ApiImage) => number }): JSX.Element {
  return (
    <Scroll label="List of images">
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">State</th>
            <th scope="col">System</th>
            <th scope="col">Kubernetes</th>
            <th scope="col">CPU</th>
            <th scope="col" class="num">
              On the wire
            </th>
            <th scope="col" class="num">
              On the disk
            </th>
            <th scope="col">Used by</th>
            <th scope="col">From</th>
          </tr>
        </thead>
        <tbody>
          {images.map((i) => (
            <tr key={i.metadata.name}>
              <th scope="row">
                <Link to={opened(i)}>{i.metadata.name}</Link>
              </th>
              <td class="state-of-image">
                <ImageState image={i} rate={rateOf(i)} />
              </td>
              <td>{[i.spec.os, i.spec.osVersion].filter(Boolean).join(" ")}</td>
              <td>{i.spec.kubernetesVersion}</td>
              <td>{i.spec.arch || "amd64"}</td>
              <td class="num">{sizeOf(i)}</td>
              <td class="num">{i.status?.diskBytes ? bytes(i.status.diskBytes) : ""}</td>
              <td>
                <UsedBy users={usersOf.value.get(i.metadata.name)} />
              </td>
              <td class="source">{i.spec.url ? (i.spec.direct ? "each machine fetches it" : hostOf(i.spec.url)) : "upload"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : url);

/** The page with an image opened. */
function opened(i: ApiImage): string {
  const q = new URLSearchParams(query.value);
  q.set("image", i.metadata.name);
  return `/images?${q}`;
}

function sizeOf(i: ApiImage): string {
  const n = i.status?.renditions?.[0]?.bytes ?? i.status?.source?.bytes ?? i.spec.bytes ?? 0;
  return n > 0 ? bytes(n) : "";
}

function UsedBy({ users }: { users: Users | undefined }): JSX.Element | null {
  if (!users) return <span class="dim">nobody</span>;
  return (
    <>
      {users.installing.length > 0 && <div>{count(users.installing.length, "machine")} getting it</div>}
      {users.installed.length > 0 && <div>{count(users.installed.length, "machine")}</div>}
    </>
  );
}

/** How far the appliance is with an image, and why not. */
function ImageState({ image, rate }: { image: ApiImage; rate: number }): JSX.Element {
  const state = stateOf(image);
  const p = image.progress;
  const old = moves(image) && (image.status?.renditions?.length ?? 0) > 0;
  return (
    <>
      <Badge tone={tones[state] ?? "plain"}>{state}</Badge>
      {old && <div class="dim">the one before is installed until this is ready</div>}
      {p && moves(image) && (
        <div class="below">
          <Bar done={p.done} of={p.total ?? 0} label={`${state} ${image.metadata.name}`} />
          <small class="num">{moved({ done: p.done, total: p.total, rate })}</small>
          {p.message && <div class="wrong">{p.message}</div>}
        </div>
      )}
      {state === "failed" && <div class="wrong">{image.status?.message}</div>}
      {state === "waiting" && image.status?.message && <div class="dim">{image.status.message}</div>}
    </>
  );
}

/** A file on its way to the appliance. */
function Uploading({ u }: { u: Upload }): JSX.Element {
  return (
    <section class="card uploading" aria-label={`Upload of ${u.name}`}>
      <div class="row">
        <strong>{u.name}</strong>
        <span class="dim">{u.file.name}</span>
        {u.state === "failed" && <Badge tone="bad">failed</Badge>}
      </div>
      {u.state === "sending" && (
        <>
          <Bar done={u.sent} of={u.file.size} label={`Uploading ${u.name}`} />
          <div class="row">
            <small class="num">{`${Math.floor((100 * u.sent) / Math.max(1, u.file.size))} % · ${moved({ done: u.sent, total: u.file.size, rate: u.rate })}`}</small>
            <Button onPress={() => dismiss(u.id)} aria-label={`Cancel the upload of ${u.name}`}>
              Cancel
            </Button>
          </div>
        </>
      )}
      {u.state === "checking" && (
        <>
          <Bar done={0} of={0} label={`Checking ${u.name}`} />
          <small>{bytes(u.file.size)} are sent; the appliance writes them to its disk and compares them.</small>
        </>
      )}
      {u.state === "away" && (
        <div class="row">
          <span role="status">The session has ended. It is sent again by itself when you have signed in.</span>
          <Button onPress={() => dismiss(u.id)} aria-label={`Cancel the upload of ${u.name}`}>
            Cancel
          </Button>
        </div>
      )}
      {u.state === "failed" && (
        <>
          <ProblemBox problem={u.problem} />
          <div class="row">
            <Button kind="primary" onPress={() => again(u.id)}>
              Send it again
            </Button>
            <Button onPress={() => dismiss(u.id)}>Put away</Button>
          </div>
        </>
      )}
    </section>
  );
}

/** The image of a dialog is deleted while it is open. */
const Gone = ({ name, children }: { name: string; children: ComponentChildren }): JSX.Element => (
  <div class="notice" role="alert">
    <strong>{`The image ${name} was deleted meanwhile.`}</strong>
    <p class="hint">{children}</p>
  </div>
);

function Detail({ image: i, gone, rate, onClose, onOpen, onUpload }: { image: ApiImage; gone: boolean; rate: number; onClose: () => void; onOpen: (o: Open) => void; onUpload: () => void }): JSX.Element {
  const action = useAction();
  const name = i.metadata.name;
  const st = i.status;
  const users = usersOf.value.get(name);
  return (
    <Dialog title={name} wide onClose={onClose}>
      {gone && <Gone name={name}>This is what was last known of it.{i.spec.url && " It can be added again from its URL."}</Gone>}
      {i.spec.description && <p>{i.spec.description}</p>}
      <dl class="pairs">
        <Pair name="State">
          <ImageState image={i} rate={rate} />
        </Pair>
        <Pair name="System">{[i.spec.os, i.spec.osVersion].filter(Boolean).join(" ")}</Pair>
        <Pair name="Kubernetes">{i.spec.kubernetesVersion}</Pair>
        <Pair name="CPU">{i.spec.arch || "amd64"}</Pair>
        <Pair name="URL">{i.spec.url && <Copy text={i.spec.url} />}</Pair>
        <Pair name="Checksum">{i.spec.checksum ? <Copy text={i.spec.checksum} /> : <span class="dim">none was given: nobody compared what came</span>}</Pair>
        <Pair name="Compared with">{st?.checksum && st.checksum !== i.spec.checksum && <Copy text={st.checksum} />}</Pair>
        <Pair name="Fetched">{st?.fetched && <Since at={st.fetched} ago />}</Pair>
        <Pair name="On the disk">{st?.diskBytes && bytes(st.diskBytes)}</Pair>
        <Pair name="Source">
          {st?.source?.digest && (
            <>
              {st.source.format}, {bytes(st.source.bytes)} <Copy text={`sha256:${st.source.digest}`} />
            </>
          )}
        </Pair>
        {st?.renditions?.map((r) => (
          <Pair key={r.digest} name="Served as">
            {r.format}, {bytes(r.bytes)} <Copy text={`sha256:${r.digest}`} />
          </Pair>
        ))}
        <Pair name="Used by">
          <UsedBy users={users} />
          <Names of={[...(users?.installing ?? []), ...(users?.installed ?? [])]} />
        </Pair>
      </dl>
      <ProblemBox problem={action.problem} />
      {operator.value && !gone && (
        <footer>
          <Button kind="danger" onPress={() => onOpen({ kind: "delete", image: i })}>
            Delete
          </Button>
          <Button onPress={() => onOpen({ kind: "edit", image: i })}>Edit</Button>
          {i.spec.url && !i.spec.direct ? (
            <Button onPress={() => action.run(() => call("POST", `/images/${seg(name)}/fetch`).then(() => say(`${name} is fetched again.`)))}>Fetch again</Button>
          ) : (
            !i.spec.direct && <Button onPress={onUpload}>Upload another file</Button>
          )}
          <Button kind="primary" onPress={() => go(`/provision?image=${seg(name)}`)}>
            Install it
          </Button>
        </footer>
      )}
    </Dialog>
  );
}

const Pair = ({ name, children }: { name: string; children: ComponentChildren }): JSX.Element | null =>
  children ? (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  ) : null;

function Names({ of }: { of: string[] }): JSX.Element {
  const most = 20;
  return (
    <div class="row">
      {of.slice(0, most).map((n) => (
        <Link key={n} to={`/machines/${seg(n)}`}>
          {n}
        </Link>
      ))}
      {of.length > most && <span class="dim">and {of.length - most} more</span>}
    </div>
  );
}

function Delete({ image, gone, onClose, onDone }: { image: ApiImage; gone: boolean; onClose: () => void; onDone: () => void }): JSX.Element {
  const name = image.metadata.name;
  const users = usersOf.value.get(name);
  return (
    <Confirm
      title={`Delete ${name}?`}
      word={name}
      verb="Delete"
      over={gone}
      onClose={onClose}
      onConfirm={async () => {
        await call("DELETE", `/images/${seg(name)}`);
        say(`${name} is deleted.`);
        onDone();
      }}
    >
      {gone && <Gone name={name}>There is nothing left to do: close this.</Gone>}
      <p>The record and the files of this image go{sizeOf(image) ? ` (${sizeOf(image)})` : ""}. Machines that have it keep their system.</p>
      {users && users.installed.length > 0 && <p>{count(users.installed.length, "machine")} cannot be installed anew with it then.</p>}
      {users && users.installing.length > 0 && <p class="notice">{count(users.installing.length, "machine")} is being installed with it: the appliance refuses until that has ended.</p>}
    </Confirm>
  );
}

const archs: [string, string][] = [
  ["", "amd64 (where nothing is said)"],
  ["amd64", "amd64"],
  ["arm64", "arm64"],
];
const formats: [string, string][] = [
  ["", "found by content"],
  ["raw", "raw: written as it is"],
  ["qcow2", "qcow2"],
  ["gz", "gz"],
  ["xz", "xz"],
  ["zst", "zst"],
  ["bz2", "bz2"],
];

/** What is said of an image besides where it comes from. */
interface About {
  os: string;
  osVersion: string;
  kubernetesVersion: string;
  arch: string;
  format: string;
  description: string;
}

function AboutFields({ value, onValue, format = true }: { value: About; onValue: (v: About) => void; format?: boolean }): JSX.Element {
  const put = (k: keyof About) => (v: string) => onValue({ ...value, [k]: v });
  return (
    <>
      <div class="columns">
        <Text label="Operating system" value={value.os} onValue={put("os")} placeholder="debian" />
        <Text label="Its version" value={value.osVersion} onValue={put("osVersion")} placeholder="12" />
        <Text label="Kubernetes version" value={value.kubernetesVersion} onValue={put("kubernetesVersion")} placeholder="only where it is in the image" />
        <Choice label="CPU" value={value.arch} onValue={put("arch")} of={archs} />
        {format && <Choice label="Format" value={value.format} onValue={put("format")} of={formats} />}
      </div>
      <Text label="Description" value={value.description} onValue={put("description")} />
    </>
  );
}

/** Adds an image, of a URL or of a file. */
function Add({ images, file, name: given, more = 0, onClose, onDone }: { images: ApiImage[]; file?: File; name?: string | undefined; more?: number; onClose: () => void; onDone: () => void }): JSX.Element {
  const first = guess(file?.name ?? "");
  const old = images.find((i) => i.metadata.name === given);
  const [url, setURL] = useState("");
  const [name, setName] = useState(given ?? first.name);
  const [named, setNamed] = useState(!!given);
  const [checksum, setChecksum] = useState("");
  const [direct, setDirect] = useState(false);
  const [ca, setCA] = useState("");
  const [about, setAbout] = useState<About>(old ? aboutOf(old) : { ...without(first), format: "", description: "" });
  const [told, setTold] = useState(!!old);
  const action = useAction();
  const exists = images.find((i) => i.metadata.name === name);
  const see = (u: string) => {
    setURL(u);
    const g = guess(u);
    if (!named) setName(g.name);
    if (!told) setAbout({ ...about, ...without(g) });
  };
  const submit = async () => {
    if (file) {
      const fields = Object.fromEntries(Object.entries({ ...about, checksum: checksum.trim() }).filter(([, v]) => v !== ""));
      upload(name, file, fields);
    } else {
      const spec = { url: url.trim(), ...clean({ ...about, checksum: checksum.trim(), ca: ca.trim() }), ...(direct ? { direct } : {}) };
      const body = { apiVersion: "rackstrap/v1", kind: "Image", metadata: { name }, spec };
      if (exists) await call("PUT", `/images/${seg(name)}`, { body, ifMatch: exists.metadata.revision });
      else await call("POST", "/images", { body });
      say(direct ? `${name} can be installed.` : `${name} is fetched.`);
    }
    onClose();
    onDone();
  };
  return (
    <Dialog title={file ? "Upload an image" : "Add an image from a URL"} onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (!action.busy) void action.run(submit);
        }}
      >
        {file ? (
          <p>
            <code>{file.name}</code>, {bytes(file.size)}
            {more > 0 && <span class="dim">; {count(more, "more file")} after it</span>}
          </p>
        ) : (
          <Text label="URL" type="url" required autoFocus value={url} onValue={see} placeholder="https://cloud.debian.org/…/debian-12-generic-amd64.qcow2" help="The appliance fetches it once, over http or https, and goes on where a transfer breaks." />
        )}
        <Text
          label="Name"
          required
          autoFocus={!!file}
          value={name}
          onValue={(v) => {
            setNamed(true);
            setName(v);
          }}
          help="Lower-case letters, digits and dashes; installs name the image so."
        />
        {exists && <p class="notice">There is an image {name}: this replaces it. Until the new one is ready the old one is installed.</p>}
        <Text
          label="Checksum"
          value={checksum}
          onValue={setChecksum}
          placeholder={file ? "sha256:…" : "sha256:…, or the URL of SHA256SUMS"}
          help={file ? "Optional. With it, a file that was altered or cut short on the way is refused." : "sha256:… or sha512:…, or the URL of a list such as SHA256SUMS. Without one, nobody compares what comes."}
        />
        <AboutFields
          value={about}
          onValue={(v) => {
            setTold(true);
            setAbout(v);
          }}
        />
        {!file && (
          <details>
            <summary>More</summary>
            <Tick label="Direct: keep nothing" checked={direct} onValue={setDirect} help="Each machine fetches the URL by itself. Not for qcow2, and the checksum must be a value." />
            <Lines label="Certificates to trust (PEM)" value={ca} onValue={setCA} placeholder="-----BEGIN CERTIFICATE-----" help="For https with a CA of your own." />
          </details>
        )}
        <ProblemBox problem={action.problem} />
        <footer>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={action.busy || name.trim() === "" || (!file && url.trim() === "")} aria-busy={action.busy}>
            {file ? "Upload" : exists ? "Replace" : "Add"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** What a guess says besides the name. */
const without = ({ os, osVersion, kubernetesVersion, arch }: Guess): Omit<Guess, "name"> => ({ os, osVersion, kubernetesVersion, arch });

const clean = (o: Record<string, string>): Record<string, string> => Object.fromEntries(Object.entries(o).filter(([, v]) => v !== ""));

const aboutOf = ({ spec: s }: ApiImage): About => ({ os: s.os ?? "", osVersion: s.osVersion ?? "", kubernetesVersion: s.kubernetesVersion ?? "", arch: s.arch ?? "", format: s.format ?? "", description: s.description ?? "" });

/** Changes what is said of an image. */
function Edit({ image, gone, onClose, onDone }: { image: ApiImage; gone: boolean; onClose: () => void; onDone: () => void }): JSX.Element {
  const [about, setAbout] = useState(aboutOf(image));
  const action = useAction();
  const submit = async () => {
    const { format: _, ...rest } = about;
    const spec = Object.fromEntries(Object.entries(rest).map(([k, v]) => [k, v.trim() === "" ? null : v.trim()]));
    await call("PATCH", `/images/${seg(image.metadata.name)}`, { body: { spec }, ifMatch: image.metadata.revision });
    say(`${image.metadata.name} is changed.`);
    onClose();
    onDone();
  };
  return (
    <Dialog title={`Edit ${image.metadata.name}`} onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (!action.busy) void action.run(submit);
        }}
      >
        {gone && <Gone name={image.metadata.name}>Nothing can be saved to it. What you typed can be copied from here.</Gone>}
        <AboutFields value={about} onValue={setAbout} format={false} />
        <ProblemBox problem={action.problem} />
        <footer>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={action.busy || gone} aria-busy={action.busy}>
            Save
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
