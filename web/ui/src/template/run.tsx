// Making a workflow of a template.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ActionKinds, RenderedTemplate, Template, WorkflowWorkflow } from "../api/types.ts";
import { call, seg } from "../api/call.ts";
import { count } from "../format.ts";
import { Changed, useMeanwhile } from "../machine/meanwhile.tsx";
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

/** The button that starts it where it can be started, and what is asked before. */
export function Start({ template, wanted, rendered }: { template: Template; wanted: Wanted; rendered: RenderedTemplate | undefined }): JSX.Element | null {
  // what was looked at when it was pressed: it is asked about until it is answered, whatever becomes of the machine
  const [sure, setSure] = useState<{ wanted: Wanted; r: RenderedTemplate }>();
  return (
    <>
      {rendered && (
        <div class="row">
          <Button kind={rendered.writesDisk ? "danger" : "primary"} onPress={() => setSure({ wanted, r: rendered })}>
            Run it on {wanted.hardware}…
          </Button>
        </div>
      )}
      {sure && <Sure template={template} {...sure} onClose={() => setSure(undefined)} />}
    </>
  );
}

function Sure({ template, wanted, r, onClose }: { template: Template; wanted: Wanted; r: RenderedTemplate; onClose: () => void }): JSX.Element {
  const name = template.metadata.name;
  const meanwhile = useMeanwhile(wanted.hardware);
  const start = async () => {
    const made = await call<WorkflowWorkflow>("POST", "/workflows", { body: { metadata: {}, spec: { template: name, ...wanted } } });
    say(`Workflow ${made.metadata.name} begins when ${wanted.hardware} netboots`);
    go(`/machines/${seg(wanted.hardware)}`);
  };
  return (
    <Confirm title={`Run ${name} on ${wanted.hardware}?`} word={r.writesDisk ? wanted.hardware : ""} verb="Run it" over={meanwhile.gone} onClose={onClose} onConfirm={start}>
      <Changed name={wanted.hardware} of={meanwhile}>
        <p class="hint">{meanwhile.gone ? "Close this and choose a machine again." : "The appliance refuses where it cannot be run any more; close this to see what speaks against it."}</p>
      </Changed>
      <p>
        {`${count(r.actions.length, "step")}: ${r.actions.map((a) => a.name).join(", ")}.`} The machine is restarted into the worker, which does them one by one.
      </p>
      {r.destroys && <p class="wrong">What is on the disks that it overwrites is lost.</p>}
      {r.writesDisk && !r.destroys && <p class="wrong">It changes what is on a disk.</p>}
    </Confirm>
  );
}
