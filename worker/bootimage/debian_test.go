package bootimage

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseControl(t *testing.T) {
	t.Parallel()
	got, err := ParseControl("Package: a\nDepends: b,\n c (= 1)\n# comment\n\n\nPACKAGE: d\nDescription:\n\tlong\n")
	want := []Stanza{
		{"package": "a", "depends": "b,\nc (= 1)"},
		{"package": "d", "description": "\nlong"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	for text, want := range map[string]string{" x\n": "line 1:", "A: b\nword\n": "line 2:"} {
		if _, err := ParseControl(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestLicence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Format: x\n\nFiles: debian/*\nLicense: MIT\n\nFiles: *\nCopyright: someone\nLicense: GPL-2+\n Text of it.\n": "GPL-2+",
		"Files: *\nLicense: GPL-2\n\nodd\n":  "GPL-2",
		"This package was debianised by X.":  "",
		"Files: debian/*\nLicense: GPL-2+\n": "",
	} {
		if got := Licence(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestKernelPackage(t *testing.T) {
	t.Parallel()
	for depends, want := range map[string]string{
		"linux-image-6.1.0-1-amd64 (= 6.1.1-1)":      "linux-image-6.1.0-1-amd64 6.1.0-1-amd64",
		"foo, linux-image-6.1.0-1-amd64, linux-base": "linux-image-6.1.0-1-amd64 6.1.0-1-amd64",
		"foo": "",
		"linux-image-6.1-amd64, linux-image-6.12-amd64": "",
	} {
		pkg, kernel, err := KernelPackage(Stanza{"package": "meta", "depends": depends})
		if got := strings.TrimSpace(pkg + " " + kernel); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, error %v, want %q", depends, got, err, want)
		}
	}
}
