package module

import (
	"path"
	"strings"
	"testing"
)

var globs = []struct {
	pattern, text string
	want          bool
}{
	{"pci:v00008086d*sv*sd*bc01sc06i01*", "pci:v00008086d00002922sv00001AF4sd00001100bc01sc06i01", true},
	{"pci:v00008086d*sv*sd*bc01sc06i01*", "pci:v00008086d00002922sv00001AF4sd00001100bc02sc00i00", false},
	{"virtio:d00000001v*", "virtio:d00000001v00001AF4", true},
	{"acpi*:PNP0C0F:*", "acpi:PNP0C0F:", true},
	{"acpi*:PNP0C0F:*", "acpi:PNP0C0E:", false},
	{"usb:v0BDAp8152d*dc*dsc*dp*ic[fF]Fisc*", "usb:v0BDAp8152d3000dc00dsc00dp00icFFisc00", true},
	{"usb:v*d[1-3]*", "usb:vXd2", true},
	{"usb:v*d[!1-3]*", "usb:vXd2", false},
	{"a?c", "abc", true},
	{"a?c", "ac", false},
	{"[]a]", "]", true},
	{"[a", "[a", true},
	{"*", "", true},
	{"", "", true},
	{"", "x", false},
	{"a*b*c", "aXbYbZc", true},
	{"a*b*c", "aXbYbZ", false},
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, g := range globs {
		if got := match(g.pattern, g.text); got != g.want {
			t.Errorf("match(%q, %q) = %v", g.pattern, g.text, got)
		}
	}
}

// FuzzMatch: for patterns that path.Match takes and that have no set, both agree.
func FuzzMatch(f *testing.F) {
	for _, g := range globs {
		f.Add(g.pattern, g.text)
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		got := match(pattern, text)
		if !strings.ContainsAny(pattern, "*?[") && got != (pattern == text) {
			t.Errorf("match(%q, %q) = %v without anything special", pattern, text, got)
		}
		if strings.ContainsAny(pattern, `[\/`) || strings.ContainsAny(text, "/") || !ascii(pattern+text) {
			return
		}
		if want, err := path.Match(pattern, text); err == nil && got != want {
			t.Errorf("match(%q, %q) = %v, path.Match says %v", pattern, text, got, want)
		}
	})
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
