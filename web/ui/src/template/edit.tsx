// Writing a template: as YAML with completion on the left, what it would do on a machine on
// the right. It has the yaml and editor packages in it: load it when somebody edits.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { parseDocument } from "yaml";
import type { ActionKinds, Template } from "../api/types.ts";
import { RecordEditor, type Editable } from "../ui/record.tsx";
import { templateCompleter } from "./complete.ts";
import { Preview } from "./preview.tsx";
import { actionKinds } from "./read.ts";

const complete = templateCompleter(actionKinds);

/** A new template, or one that is there. */
interface EditProps {
  record: Editable;
  isNew?: boolean;
  about: ActionKinds | undefined;
  onSaved: (name: string) => void;
  onCancel: () => void;
}

/** The editor with the preview of what is written beside it. */
export function Edit({ record, isNew = false, about, onSaved, onCancel }: EditProps): JSX.Element {
  const [written, setWritten] = useState(record as unknown as Template);
  const [changed, setChanged] = useState(isNew);
  const take = (text: string) => {
    const t = readable(text);
    if (t) setWritten(t);
    setChanged(true);
  };
  return (
    <div class="beside">
      <section aria-label="YAML of the template">
        <RecordEditor path="/templates" record={record} isNew={isNew} complete={complete} onText={take} onSaved={onSaved} onCancel={onCancel} />
      </section>
      <section aria-label="Preview on a machine" class="card">
        <h2>Preview on a machine</h2>
        <Preview template={written} unsaved={changed} about={about} />
      </section>
    </div>
  );
}

/** What is written, as far as it can be shown as a template; undefined while it cannot. */
function readable(text: string): Template | undefined {
  const doc = parseDocument(text);
  if (doc.errors.length > 0) return undefined;
  try {
    const t = doc.toJS({ maxAliasCount: 100 }) as { metadata?: { name?: unknown }; spec?: { parameters?: unknown; actions?: unknown } } | null;
    const lists = Array.isArray(t?.spec?.actions) && (t.spec.parameters === undefined || (Array.isArray(t.spec.parameters) && t.spec.parameters.every((p: unknown) => typeof (p as { name?: unknown } | null)?.name === "string")));
    return lists ? (t as unknown as Template) : undefined;
  } catch {
    return undefined; // an alias without its anchor, or too many of them
  }
}
