// Changing a machine's record: as a form or as YAML, with a look at what would change
// before it does.
import type { JSX } from "preact";
import type { Hardware } from "../api/types.ts";
import { go } from "../router.tsx";
import { say } from "../ui/basic.tsx";
import { RecordEditor } from "../ui/record.tsx";
import { completer } from "../ui/schema.ts";
import { HardwareForm } from "./form.tsx";

const complete = completer("Hardware");

/** The editor of a machine's record. It has the yaml and editor packages in it: load it when somebody edits. */
export function Edit({ hw }: { hw: Hardware }): JSX.Element {
  const name = hw.metadata.name;
  const back = () => go(`/machines/${encodeURIComponent(name)}`);
  return (
    <RecordEditor
      path="/hardware"
      record={hw}
      form={HardwareForm}
      complete={complete}
      onCancel={back}
      onSaved={() => {
        say(`The record of ${name} was changed`);
        back();
      }}
    />
  );
}
