package lab

import (
	"strings"
	"testing"
)

func TestEscapes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "a\r\nb\n", "a\nb\n"},
		{"colours", "\x1b[1;31mred\x1b[0m", "red"},
		{"cursor movement is a line end", "a\x1b[05;01Hb\x1b[H", "a\nb\n"},
		{"no empty first line", "\x1b[2J\x1b[1;1Ha", "a"},
		{"lone carriage return", "10%\r20%\r\n", "10%\n20%\n"},
		{"title", "\x1b]0;x\x07a\x1b]0;y\x1b\\b", "ab"},
		{"control characters", "a\x00\x07\x7fb", "ab"},
	} {
		for size := 1; size <= len(tt.in); size++ {
			var e escapes
			var got strings.Builder
			for rest := []byte(tt.in); len(rest) > 0; {
				n := min(size, len(rest))
				got.WriteString(e.strip(rest[:n]))
				rest = rest[n:]
			}
			if got.String() != tt.want {
				t.Errorf("%s in pieces of %d: %q, want %q", tt.name, size, got.String(), tt.want)
			}
		}
	}
}

func TestReadStateRefusesForeignNamespaces(t *testing.T) {
	t.Parallel()
	for _, ns := range []string{"prod", "rs-../../etc", ""} {
		dir := t.TempDir()
		if err := writeState(dir, State{Namespace: "rs-a-1", Namespaces: []string{ns}}); err != nil {
			t.Fatal(err)
		}
		if err := Clean(t.Context(), dir); err == nil {
			t.Errorf("Clean accepted a state with the namespace %q", ns)
		}
	}
}
