import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Stranger, StrangerList } from "../api/types.ts";
import { call } from "../api/call.ts";
import { listen } from "../api/stream.ts";
import { useImages } from "../images.ts";
import { Link } from "../router.tsx";
import { operator } from "../session.ts";
import { Badge, Copy, ProblemBox, Since } from "../ui/basic.tsx";
import { Doctor } from "./doctor.tsx";

/** What an empty appliance greets with: three steps to the first machine. */
export function FirstRun(): JSX.Element {
  return (
    <div class="stack narrow">
      <h1>Welcome: three steps to the first machine</h1>
      <ol class="steps first">
        <li class="card">
          <h2>Is the network ready?</h2>
          {operator.value ? (
            <Doctor />
          ) : (
            <p>
              On the appliance: <Copy text="rackstrap doctor" />
            </p>
          )}
        </li>
        <li class="card">
          <h2>Is there an image to install?</h2>
          <ImageStep />
        </li>
        <li class="card">
          <h2>Power on a machine</h2>
          <p>Let it boot from the network. Its first packet is shown here within a second.</p>
          <FirstPacket />
        </li>
      </ol>
      <p class="dim">
        Machines can be written down before they are switched on, too: <Link to="/machines">Machines</Link>.
      </p>
    </div>
  );
}

function ImageStep(): JSX.Element {
  const { images, problem } = useImages();
  if (problem) return <ProblemBox problem={problem} />;
  if (!images) return <p class="loading">Reading the images…</p>;
  if (images.length > 0) {
    return (
      <p>
        <Badge tone="good">✓ yes</Badge> {images.map((i) => i.metadata.name).join(", ")} · <Link to="/images">Images</Link>
      </p>
    );
  }
  return (
    <p>
      Not yet. A cloud image of Debian, Ubuntu, Fedora, Flatcar or Talos will do: <Link to="/images">add one by URL, or drop a file</Link>.
    </p>
  );
}

/** What is heard on the wire from machines that nobody knows; asked twice a second while the page is looked at, because strangers make no events. */
function FirstPacket(): JSX.Element {
  const [heard, setHeard] = useState<Stranger[]>();
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const ask = async () => {
      if (!document.hidden) {
        try {
          setHeard((await call<StrangerList>("GET", "/strangers", { signal: abort.signal })).items);
        } catch {
          // the frame shows that the connection is lost
        }
      }
      if (!abort.signal.aborted) timer = window.setTimeout(ask, 500);
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, []);
  const [others, setOthers] = useState<string>();
  useEffect(() => listen({ event: (e) => e.reason === "other-dhcp-server" && setOthers(e.text) }), []);
  return (
    <div>
      <p role="status" class="hidden-text">
        {heard && heard.length > 0 ? `Heard: ${heard.slice(0, 8).map((s) => s.mac).join(", ")}` : "Listening for DHCP"}
      </p>
      {others && <div class="notice">{others}</div>}
      {!heard || heard.length === 0 ? (
        <p class="dim waiting">Listening for DHCP…</p>
      ) : (
        <ul class="plain">
          {heard.slice(0, 8).map((s) => (
            <li key={`${s.mac} ${s.interface}`}>
              <Badge tone="good">heard</Badge> <code>{s.mac}</code> {s.firmware && <span>{s.firmware}</span>} on {s.interface}, <Since at={s.last} ago />
              <p>
                {s.detail} {s.do && <span class="dim">→ {s.do}</span>}
              </p>
            </li>
          ))}
        </ul>
      )}
      {heard && heard.length > 0 && <Link to="/pending">Go on: accept it, or give it a record</Link>}
    </div>
  );
}
