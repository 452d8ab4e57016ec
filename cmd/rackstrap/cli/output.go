package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/document"
)

// column is one column of a table.
type column[T any] struct {
	head  string
	wide  bool // shown with -o wide only
	value func(T) string
}

// table prints rows with their columns aligned, nothing but the head where there
// are none.
func table[T any](w io.Writer, columns []column[T], rows []T, wide bool) error {
	var lines [][]string
	var head []string
	for _, c := range columns {
		if !c.wide || wide {
			head = append(head, c.head)
		}
	}
	lines = append(lines, head)
	for _, r := range rows {
		var line []string
		for _, c := range columns {
			if !c.wide || wide {
				line = append(line, orDash(oneLine(c.value(r))))
			}
		}
		lines = append(lines, line)
	}
	return aligned(w, "", lines)
}

// aligned prints cells in columns, two spaces apart.
func aligned(w io.Writer, indent string, lines [][]string) error {
	var width []int
	for _, l := range lines {
		for i, c := range l {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, l := range lines {
		var line strings.Builder
		line.WriteString(indent)
		for i, c := range l {
			line.WriteString(c)
			line.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// printRecords prints records as the flag -o says; list keeps JSON a list even for one.
func printRecords[T any](a *app, k api.Kind, columns []column[T], rows []T, list bool) error {
	switch a.output {
	case "json", "yaml":
	default:
		return table(a.Out, columns, rows, a.output == "wide")
	}
	raws := make([]json.RawMessage, len(rows))
	for i, r := range rows {
		var err error
		if raws[i], err = api.Marshal(k, r); err != nil {
			return err
		}
	}
	if a.output == "yaml" {
		return printYAML(a.Out, raws)
	}
	if !list && len(raws) == 1 {
		return printJSON(a.Out, raws[0])
	}
	return printJSON(a.Out, api.List[json.RawMessage]{APIVersion: api.Version, Kind: string(k) + "List", Items: raws})
}

// printYAML prints a stream of documents.
func printYAML(w io.Writer, raws []json.RawMessage) error {
	for i, raw := range raws {
		text, err := document.EncodeYAML(raw)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

func printJSON(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, b.String())
	return err
}

// printValue prints what is no record; false where a table is wanted.
func (a *app) printValue(v any) (bool, error) {
	switch a.output {
	case "json":
		return true, printJSON(a.Out, v)
	case "yaml":
		raw, err := json.Marshal(v)
		if err != nil {
			return true, err
		}
		return true, printYAML(a.Out, []json.RawMessage{raw})
	}
	return false, nil
}
