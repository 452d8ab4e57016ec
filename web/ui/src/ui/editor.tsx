// The YAML editor. It is large, so pages load it only when somebody edits:
//   const { Editor } = await import("../ui/editor.tsx")
// It lives in a shadow root: there its styles are constructed sheets, which the content
// security policy allows, while style elements in the page are forbidden.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { autocompletion, closeBrackets, completionKeymap, type CompletionSource } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, linter, type Diagnostic } from "@codemirror/lint";
import { MergeView } from "@codemirror/merge";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Annotation, Compartment, EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-key)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--code-value)" },
  { tag: tags.comment, color: "var(--faint)", fontStyle: "italic" },
  { tag: tags.meta, color: "var(--faint)" },
]);

const look = EditorView.theme({
  "&": { backgroundColor: "var(--field)", color: "var(--text)", fontSize: "0.875rem", height: "100%" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--faint)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selected)" },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--good-soft)" },
  ".cm-deletedChunk, .cm-deletedLine": { backgroundColor: "var(--bad-soft)" },
});

const common: Extension[] = [lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(), highlightActiveLine(), highlightSelectionMatches(), yaml(), syntaxHighlighting(colours), look, EditorView.lineWrapping, EditorState.tabSize.of(2)];

/** Marks a change that came with the value, which nobody is told of. */
const fromOutside = Annotation.define<boolean>();

/** What is edited and who hears of it. */
interface EditorProps {
  value: string;
  onChange?: ((text: string) => void) | undefined;
  /** What it is, for screen readers. */
  label: string;
  readOnly?: boolean;
  /** Says what is wrong in a text; called when typing pauses. */
  check?: (text: string, view: EditorView) => Diagnostic[] | Promise<Diagnostic[]>;
  /** Offers what may be written at a place. */
  complete?: CompletionSource;
  /** Ctrl-S. */
  onSave?: (() => void) | undefined;
}

/** A YAML editor as high as its box. Tab indents; Escape, then Tab, leaves it. */
export function Editor(p: EditorProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  // What was told of and has not come back as the value: who types is faster than what is drawn.
  const told = useRef<string[]>([]);
  const props = useRef(p);
  props.current = p;
  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    const readOnly = new Compartment();
    const v = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: props.current.value,
        extensions: [
          ...common,
          keymap.of([{ key: "Mod-s", preventDefault: true, run: () => (props.current.onSave?.(), true) }, ...completionKeymap, ...defaultKeymap, ...historyKeymap, ...searchKeymap, indentWithTab]),
          readOnly.of(EditorState.readOnly.of(!!p.readOnly)),
          EditorView.contentAttributes.of({ "aria-label": p.label }),
          EditorView.updateListener.of((u) => {
            if (!u.docChanged || u.transactions.some((t) => t.annotation(fromOutside))) return;
            const text = u.state.doc.toString();
            told.current.push(text);
            props.current.onChange?.(text);
          }),
          lintGutter(),
          linter((v) => props.current.check?.(v.state.doc.toString(), v) ?? [], { delay: 400 }),
          autocompletion(p.complete ? { override: [(c) => props.current.complete?.(c) ?? null] } : {}),
        ],
      }),
    });
    view.current = v;
    return () => v.destroy();
  }, [p.readOnly, p.label]);
  useEffect(() => {
    const v = view.current;
    if (!v) return;
    if (v.state.doc.toString() === p.value) {
      told.current = [];
      return;
    }
    const i = told.current.indexOf(p.value);
    if (i >= 0) told.current.splice(0, i + 1);
    else v.dispatch({ changes: { from: 0, to: v.state.doc.length, insert: p.value }, annotations: fromOutside.of(true) });
  }, [p.value]);
  return <div class="editor" ref={host} />;
}

/** Two texts side by side with what differs marked. */
export function Diff({ before, after, label }: { before: string; after: string; label: string }): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    const extensions = [...common, EditorState.readOnly.of(true), EditorView.contentAttributes.of({ "aria-label": label })];
    const m = new MergeView({ root, parent: root, a: { doc: before, extensions }, b: { doc: after, extensions }, collapseUnchanged: { margin: 3, minSize: 6 } });
    return () => m.destroy();
  }, [before, after, label]);
  return <div class="editor diff" ref={host} />;
}
