import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count } from "../format.ts";
import { row, type Row } from "../machines.ts";
import { go } from "../router.tsx";
import { Button } from "../ui/basic.tsx";
import { Menu } from "../ui/menu.tsx";
import { BulkDialog } from "./bulkdialog.tsx";
import { verbs, type Verb } from "./verbs.ts";

/** What can be done with the machines that are selected; shown are those that the filter finds. */
export function BulkBar({ selected, shown, onSelect }: { selected: ReadonlySet<string>; shown: Row[]; onSelect: (names: string[]) => void }): JSX.Element {
  const [doing, setDoing] = useState<{ verb: Verb; names: string[] }>();
  const names = [...selected].filter((n) => row(n));
  const seen = names.length > 0 ? shown.filter((r) => selected.has(r.name)).length : 0;
  const press = (verb: Verb, danger = false) => (
    <Button key={verb.label} kind={danger ? "danger" : "plain"} onPress={() => setDoing({ verb, names })}>
      {verb.label}
    </Button>
  );
  return (
    <div class="bulk" role="group" aria-label="With the selected machines">
      {names.length === 0 ? (
        <>
          <span class="dim">Nothing is selected.</span>
          {shown.length > 0 && (
            <Button kind="quiet" onPress={() => onSelect(shown.map((r) => r.name))}>
              Select all {shown.length.toLocaleString("en")}
            </Button>
          )}
        </>
      ) : (
        <>
          <span aria-live="polite">
            <b>{count(names.length, "machine")}</b> selected{seen < names.length && `, ${(names.length - seen).toLocaleString("en")} of them not shown`}
          </span>
          {seen < shown.length && (
            <Button kind="quiet" onPress={() => onSelect([...new Set([...names, ...shown.map((r) => r.name)])])}>
              All {shown.length.toLocaleString("en")} that match
            </Button>
          )}
          <Button kind="quiet" onPress={() => onSelect([])}>
            Select none
          </Button>
          {press(verbs.accept)}
          <Button onPress={() => go(`/provision?machines=${names.map(encodeURIComponent).join(",")}`)}>Provision…</Button>
          {press(verbs.release)}
          <Menu label="Power" once>
            {[verbs.on, verbs.off, verbs.cycle].map((v) => press(v))}
          </Menu>
          {press(verbs.hold)}
          {press(verbs.unhold)}
          <Menu label="More" once>
            {[verbs.label, verbs.maintenance, verbs.service, verbs.inspect, verbs.cancel].map((v) => press(v))}
            {press(verbs.retire)}
            {press(verbs.delete)}
          </Menu>
        </>
      )}
      {doing && <BulkDialog verb={doing.verb} names={doing.names} onClose={() => setDoing(undefined)} />}
    </div>
  );
}
