// The table of machines. Only the rows that can be seen are in the page, and an event
// draws only its own row.
import { Component, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Row } from "../machines.ts";
import type { Act, Column } from "./columns.tsx";
import type { Group } from "./order.ts";
import { pixels, useWindow } from "./window.ts";

/** The head of a group among the rows. */
export class Head {
  readonly group: Group;
  readonly open: boolean;
  constructor(group: Group, open: boolean) {
    this.group = group;
    this.open = open;
  }
}

/** A line of the table. */
export type Line = Row | Head;

const isHead = (l: Line | undefined): l is Head => l instanceof Head;

/** What a table shows and whom it tells. */
interface TableProps {
  lines: Line[];
  /** Whether there are heads among the lines. */
  grouped: boolean;
  columns: Column[];
  /** A column's key, with a dash before it when it goes backwards. */
  sort: string;
  onSort: (sort: string) => void;
  /** Nothing can be selected where it is missing. */
  selected: ReadonlySet<string> | undefined;
  onSelect: (names: string[], on: boolean) => void;
  onOpen: (r: Row) => void;
  onGroup: (value: string) => void;
  act: Act;
}

/** The table of machines: arrows, PageUp, PageDown, Home and End move, Space selects, Enter opens. */
export function Table(p: TableProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const grid = useRef<HTMLTableElement>(null);
  const [height] = useState(() => pixels(2.3));
  const [active, setActive] = useState(-1);
  const anchor = useRef(-1);
  const { first, end, page } = useWindow(box, p.lines.length, height);
  const at = Math.min(active, p.lines.length - 1);
  const lines = p.lines;
  useRoom(box);

  const show = (i: number) => {
    const el = box.current!;
    const top = i * height;
    const room = el.clientHeight - height; // the head covers the first row
    if (top < el.scrollTop) el.scrollTop = top;
    else if (top + height > el.scrollTop + room) el.scrollTop = top + height - room;
  };
  const move = (to: number, extend: boolean) => {
    const i = Math.max(0, Math.min(lines.length - 1, to));
    if (extend) range(i);
    else anchor.current = i;
    setActive(i);
    show(i);
    grid.current!.focus({ preventScroll: true });
  };
  const range = (to: number) => {
    if (anchor.current < 0) anchor.current = Math.max(0, at);
    const [a, b] = anchor.current < to ? [anchor.current, to] : [to, anchor.current];
    p.onSelect(namesOf(lines.slice(a, b + 1)), true);
  };
  const select = (i: number) => {
    const names = namesOf(lines.slice(i, i + 1));
    p.onSelect(names, !names.every((n) => p.selected?.has(n)));
  };
  const key = (e: KeyboardEvent) => {
    const line = lines[at];
    const own = e.target === grid.current;
    if (e.ctrlKey || e.metaKey) {
      if (e.key !== "a" || !own || !p.selected) return;
      p.onSelect(namesOf(lines), true);
    } else if (e.key === "ArrowDown") move(at + 1, e.shiftKey);
    else if (e.key === "ArrowUp") move(at - 1, e.shiftKey);
    else if (e.key === "PageDown") move(at + page - 1, e.shiftKey);
    else if (e.key === "PageUp") move(at - page + 1, e.shiftKey);
    else if (e.key === "Home") move(0, e.shiftKey);
    else if (e.key === "End") move(lines.length - 1, e.shiftKey);
    else if (!own || !line) return;
    else if (e.key === " " && p.selected) select(at);
    else if (e.key === "Enter") isHead(line) ? p.onGroup(line.group.value) : p.onOpen(line);
    else if (isHead(line) && ((e.key === "ArrowRight" && !line.open) || (e.key === "ArrowLeft" && line.open))) p.onGroup(line.group.value);
    else return;
    e.preventDefault();
  };
  const press = (e: MouseEvent, i: number) => {
    setActive(i);
    const control = (e.target as HTMLElement).closest("a, button");
    if (control) return;
    const line = lines[i];
    if (isHead(line)) return p.onGroup(line.group.value);
    const pick = (e.target as HTMLElement).closest(".pick");
    if (e.shiftKey && p.selected) {
      e.preventDefault();
      range(i);
    } else {
      anchor.current = i;
      if (pick) select(i);
    }
  };
  // the listeners of rows stay the same, so that rows are not drawn for them
  const last = useRef(press);
  last.current = press;
  const [onPress] = useState(() => (e: MouseEvent, i: number) => last.current(e, i));

  const all = namesOf(lines);
  const ticked = p.selected ? all.filter((n) => p.selected!.has(n)).length : 0;
  return (
    <div class="scroll list" ref={box}>
      <table
        ref={grid}
        role={p.grouped ? "treegrid" : "grid"}
        aria-label="Machines"
        aria-rowcount={lines.length + 1}
        aria-colcount={p.columns.length + (p.selected ? 1 : 0)}
        aria-multiselectable={p.selected ? true : undefined}
        aria-activedescendant={at >= first && at < end ? `line-${at}` : undefined}
        tabIndex={0}
        onKeyDown={key}
        onFocus={() => {
          if (active < 0 && lines.length > 0) setActive(0);
        }}
        style={{ minWidth: `${p.columns.reduce((n, c) => n + c.width, p.selected ? 2.2 : 0)}rem` }}
      >
        <colgroup>
          {p.selected && <col style={{ width: "2.2rem" }} />}
          {p.columns.map((c) => (
            <col key={c.key} style={{ width: `${c.width}rem` }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1} style={{ height: `${height}px` }}>
            {p.selected && (
              <th scope="col" class="pick">
                <input
                  type="checkbox"
                  aria-label={`Select all ${all.length} that are shown`}
                  checked={ticked > 0 && ticked === all.length}
                  ref={(el) => {
                    if (el) el.indeterminate = ticked > 0 && ticked < all.length;
                  }}
                  onClick={() => p.onSelect(all, ticked < all.length)}
                />
              </th>
            )}
            {p.columns.map((c) => (
              <ColumnHead key={c.key} column={c} sort={p.sort} onSort={p.onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Space rows={first} height={height} />
          {lines.slice(first, end).map((line, n) => {
            const i = first + n;
            return isHead(line) ? (
              <GroupLine key={`group ${line.group.value}`} head={line} index={i} active={i === at} span={p.columns.length + (p.selected ? 1 : 0)} height={height} onPress={onPress} />
            ) : (
              <MachineLine
                key={line.name}
                row={line}
                index={i}
                active={i === at}
                selected={p.selected?.has(line.name)}
                selectable={!!p.selected}
                level={p.grouped ? 2 : 0}
                columns={p.columns}
                height={height}
                act={p.act}
                onPress={onPress}
              />
            );
          })}
          <Space rows={lines.length - end} height={height} />
        </tbody>
      </table>
    </div>
  );
}

const namesOf = (lines: Line[]): string[] => lines.flatMap((l) => (isHead(l) ? (l.open ? [] : l.group.rows.map((r) => r.name)) : [l.name]));

/** Gives a box the height that is left below it in the window. */
function useRoom(box: { current: HTMLElement | null }): void {
  useEffect(() => {
    const el = box.current!;
    const fit = () => {
      const top = el.getBoundingClientRect().top + window.scrollY;
      el.style.maxHeight = `max(24rem, calc(100vh - ${Math.ceil(top)}px - 1rem))`;
    };
    fit();
    const above = new ResizeObserver(fit);
    for (let s = el.previousElementSibling; s; s = s.previousElementSibling) above.observe(s);
    window.addEventListener("resize", fit);
    return () => {
      above.disconnect();
      window.removeEventListener("resize", fit);
    };
  }, []);
}

const Space = ({ rows, height }: { rows: number; height: number }): JSX.Element | null =>
  rows > 0 ? (
    <tr aria-hidden="true" class="space">
      <td style={{ height: `${rows * height}px` }} />
    </tr>
  ) : null;

function ColumnHead({ column: c, sort, onSort }: { column: Column; sort: string; onSort: (s: string) => void }): JSX.Element {
  const up = sort === c.key || (sort === "" && c.key === "name");
  const down = sort === `-${c.key}`;
  return (
    <th scope="col" class={`${c.num ? "num" : ""} ${c.key === "name" ? "first" : ""}`} aria-sort={up ? "ascending" : down ? "descending" : "none"}>
      <button type="button" class="sort" onClick={() => onSort(up ? `-${c.key}` : c.key)} title={c.head}>
        {c.head}
        {(up || down) && <span aria-hidden="true">{up ? " ▲" : " ▼"}</span>}
      </button>
    </th>
  );
}

/** A component that is drawn again only when something that it was given is another. */
abstract class Still<P extends object> extends Component<P> {
  override shouldComponentUpdate(next: Readonly<P>): boolean {
    return (Object.keys(next) as (keyof P)[]).some((k) => next[k] !== this.props[k]);
  }
}

interface LineProps {
  index: number;
  active: boolean;
  height: number;
  onPress: (e: MouseEvent, i: number) => void;
}

class GroupLine extends Still<LineProps & { head: Head; span: number }> {
  override render(p: LineProps & { head: Head; span: number }): JSX.Element {
    const { value, rows } = p.head.group;
    return (
      <tr id={`line-${p.index}`} class={`group ${p.active ? "active" : ""}`} aria-rowindex={p.index + 2} aria-level={1} aria-expanded={p.head.open} style={{ height: `${p.height}px` }} onClick={(e) => p.onPress(e, p.index)}>
        <td colSpan={p.span}>
          <span class="sticky">
            <span aria-hidden="true">{p.head.open ? "▾" : "▸"}</span> {value || "none"} <span class="dim">{rows.length.toLocaleString("en")}</span>
          </span>
        </td>
      </tr>
    );
  }
}

type MachineLineProps = LineProps & { row: Row; selected: boolean | undefined; selectable: boolean; level: number; columns: Column[]; act: Act };

class MachineLine extends Still<MachineLineProps> {
  override render(p: MachineLineProps): JSX.Element {
    const tab = p.active ? 0 : -1;
    return (
      <tr
        id={`line-${p.index}`}
        class={`${p.active ? "active" : ""} ${p.selected ? "selected" : ""}`}
        aria-rowindex={p.index + 2}
        aria-level={p.level || undefined}
        aria-selected={p.selectable ? !!p.selected : undefined}
        style={{ height: `${p.height}px` }}
        onClick={(e) => p.onPress(e, p.index)}
      >
        {p.selectable && (
          <td class="pick">
            <input type="checkbox" aria-label={`Select ${p.row.name}`} checked={!!p.selected} tabIndex={-1} />
          </td>
        )}
        {p.columns.map((c) => (
          <td key={c.key} class={`${c.num ? "num" : ""} ${c.key === "name" ? "first" : ""}`} title={titled(c, p.row)}>
            {c.cell(p.row, p.act, tab)}
          </td>
        ))}
      </tr>
    );
  }
}

/** What a cell's text is in full, where it may be cut off. */
function titled(c: Column, r: Row): string | undefined {
  if (c.num || c.key === "issue" || c.key === "since" || c.key === "progress") return undefined;
  const text = c.text(r);
  return typeof text === "string" && text.length > c.width * 1.4 ? text : undefined;
}
