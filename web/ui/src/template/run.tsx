// Making a workflow of a template.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ActionKinds, RenderedTemplate, Template, WorkflowWorkflow } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { count } from "../format.ts";
import { go } from "../router.tsx";
import { Button, Confirm, Dialog, say } from "../ui/basic.tsx";
import { Preview, type Wanted } from "./preview.tsx";

/** Choose a machine, look at what would happen, start it. What writes disks wants the machine's name typed. */
export function Run({ template, about, onClose }: { template: Template; about: ActionKinds | undefined; onClose: () => void }): JSX.Element {
  return (
    <Dialog title={`Run ${template.metadata.name} on a machine`} wide onClose={onClose}>
      <Preview template={template} about={about} then={(w, r) => <Start template={template} wanted={w} rendered={r} />} />
    </Dialog>
  );
}

/** The button that starts it, and what is asked before. */
export function Start({ template, wanted, rendered: r }: { template: Template; wanted: Wanted; rendered: RenderedTemplate }): JSX.Element {
  const [sure, setSure] = useState(false);
  const name = template.metadata.name;
  const start = async () => {
    const made = await call<WorkflowWorkflow>("POST", "/workflows", { body: { metadata: {}, spec: { template: name, ...wanted } } });
    say(`Workflow ${made.metadata.name} begins when ${wanted.hardware} netboots`);
    go(`/machines/${seg(wanted.hardware)}`);
  };
  return (
    <div class="row">
      <Button kind={r.writesDisk ? "danger" : "primary"} onPress={() => setSure(true)}>
        Run it on {wanted.hardware}…
      </Button>
      {sure && (
        <Confirm title={`Run ${name} on ${wanted.hardware}?`} word={r.writesDisk ? wanted.hardware : ""} verb="Run it" onClose={() => setSure(false)} onConfirm={start}>
          <p>
            {`${count(r.actions.length, "step")}: ${r.actions.map((a) => a.name).join(", ")}.`} The machine is restarted into the worker, which does them one by one.
          </p>
          {r.destroys && <p class="wrong">What is on the disks that it overwrites is lost.</p>}
          {r.writesDisk && !r.destroys && <p class="wrong">It changes what is on a disk.</p>}
        </Confirm>
      )}
    </div>
  );
}
