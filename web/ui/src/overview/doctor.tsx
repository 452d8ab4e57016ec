import type { JSX } from "preact";
import type { CheckResult, DoctorCheck, DoctorCheckList } from "../api/types.ts";
import { call } from "../api/call.ts";
import { count } from "../format.ts";
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
      {load.data && !load.loading && <Findings of={load.data.items} />}
      {!load.loading && <Button onPress={load.reload}>Look again</Button>}
    </div>
  );
}

function Findings({ of }: { of: DoctorCheck[] }): JSX.Element {
  const fine = of.filter((d) => d.result === "ok");
  return (
    <>
      <ul class="plain lined">{of.filter((d) => d.result !== "ok").map(finding)}</ul>
      <details>
        <summary>
          <Badge tone="good">✓ ok</Badge> {count(fine.length, "thing")} looked at and found well
        </summary>
        <ul class="plain lined">{fine.map(finding)}</ul>
      </details>
    </>
  );
}

const finding = (d: DoctorCheck): JSX.Element => (
  <li key={d.name + d.detail}>
    <Badge tone={tones[d.result][0]}>{tones[d.result][1]}</Badge> <b>{d.name}</b> {d.detail}
    {d.fix && <p class="dim">→ {d.fix}</p>}
  </li>
);
