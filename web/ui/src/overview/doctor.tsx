import type { JSX } from "preact";
import type { CheckResult, DoctorCheckList } from "../api/types.ts";
import { call } from "../api/call.ts";
import { Badge, Button, ProblemBox, useLoad, type Tone } from "../ui/basic.tsx";

const tones: Record<CheckResult, [Tone, string]> = { ok: ["good", "✓ ok"], warn: ["warn", "! look"], fail: ["bad", "✗ wrong"] };

/** What netbooting needs, looked at by the appliance itself; it takes some seconds. */
export function Doctor(): JSX.Element {
  const load = useLoad((signal) => call<DoctorCheckList>("GET", "/doctor", { signal }), []);
  return (
    <div>
      {load.loading && (
        <p role="status">
          Looking at ports, interfaces, other DHCP servers and boot files…
          <progress class="bar" aria-label="looking" />
        </p>
      )}
      <ProblemBox problem={load.problem} />
      {load.data && !load.loading && (
        <ul class="plain">
          {load.data.items.map((d) => (
            <li key={d.name + d.detail}>
              <Badge tone={tones[d.result][0]}>{tones[d.result][1]}</Badge> <b>{d.name}</b> {d.detail}
              {d.fix && <p class="dim">→ {d.fix}</p>}
            </li>
          ))}
        </ul>
      )}
      {!load.loading && <Button onPress={load.reload}>Look again</Button>}
    </div>
  );
}
