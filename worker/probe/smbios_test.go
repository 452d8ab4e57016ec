package probe

import (
	"slices"
	"strings"
	"testing"
)

// structure is one of SMBIOS with a formatted part of that size; the byte at 0x10 is 2.
func structure(kind byte, size int, texts ...string) []byte {
	b := make([]byte, size)
	b[0], b[1] = kind, byte(size)
	if size > 0x10 {
		b[0x10] = 2
	}
	b = append(b, strings.Join(texts, "\x00")...)
	return append(b, 0, 0)
}

func TestProcessor(t *testing.T) {
	t.Parallel()
	cpu := structure(4, 0x30, "CPU 0", "Ampere(R)  Altra(R) Processor", "serial")
	end := structure(127, 4)
	for name, tc := range map[string]struct {
		table []byte
		want  string
	}{
		"first of two":     {slices.Concat(structure(0, 0x18, "vendor"), structure(32, 0x14), cpu, structure(4, 0x30, "CPU 1", "other"), end), "Ampere(R) Altra(R) Processor"},
		"no processor":     {slices.Concat(structure(0, 0x18, "vendor"), end), ""},
		"behind the end":   {slices.Concat(end, cpu), ""},
		"too short":        {slices.Concat(structure(4, 0x10, "CPU 0", "x"), end), ""},
		"no such string":   {slices.Concat(structure(4, 0x30, "CPU 0"), end), ""},
		"cut off":          {cpu[:len(cpu)-1], ""},
		"size of nothing":  {[]byte{4, 0, 0, 0, 0, 0}, ""},
		"size beyond":      {[]byte{4, 200, 0, 0, 0, 0}, ""},
		"there is no file": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := processor(tc.table); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
