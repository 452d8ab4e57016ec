package netconfig

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ doc, wrong string }{
		{"version: 2\nethernets: {}\n", ""},
		{"network:\n  version: 2\n", ""},
		{"", "no mapping"},
		{"- a", "no mapping"},
		{"just words", "no mapping"},
		{"version: 1\nconfig: []\n", "version: 2"},
		{"version: [2]\n", "version: 2"},
		{"network: 3", "network is no mapping"},
		{"version: 2\n---\nversion: 2\n", "more than one document"},
		{"version: 2\nx: " + strings.Repeat("x", MaxBytes), "longer than is read"},
		// what the library would quote
		{"version: 2\npassword: tops3cret\npassword: tops3cret\n", "already defined"},
		{"version: 2\ntops3cret: 1\ntops3cret: 2\n", "already defined"},
		{"version: 2\nx: !!int tops3cret\n", "cannot decode"},
		{"version: 2\nx: *tops3cret\n", "unknown anchor"},
		{"version: 2\nx: &tops3cret [*tops3cret]\n", "contains itself"},
		{"version: 2\nx: \"tops3cret\n", "line"},
	} {
		_, err := Parse(tt.doc)
		if (err == nil) != (tt.wrong == "") || (err != nil && !strings.Contains(err.Error(), tt.wrong)) {
			t.Errorf("%.60q: %v, want %q", tt.doc, err, tt.wrong)
		}
		if err != nil && strings.Contains(err.Error(), "tops3cret") {
			t.Errorf("the error quotes the document: %v", err)
		}
	}
	for doc, good := range map[string]bool{"version: 1\nconfig: []\n": true, "version: 2\n": true, "version: 3\n": false, "[]": false} {
		if err := Check(doc); (err == nil) != good {
			t.Errorf("%q: %v", doc, err)
		}
	}
}

// FuzzParse: what is read has a version, and an error never has a line of the
// document in it.
func FuzzParse(f *testing.F) {
	f.Add("network:\n  version: 2\n  ethernets: {nic0: {dhcp4: true}}\n", "hunter2hunter2")
	f.Add("version: 2\nx: !!int ", "hunter2hunter2")
	f.Fuzz(func(t *testing.T, doc, secret string) {
		n, err := Parse(doc)
		if err == nil && Value(n, "version").Value != "2" {
			t.Fatalf("%q: another version", doc)
		}
		if len(secret) < 12 || strings.ContainsAny(secret, " \n:…") {
			return
		}
		if _, err := Parse("version: 2\nkey: !!float " + secret + "\n"); err != nil && strings.Contains(err.Error(), secret) {
			t.Fatalf("the error quotes the document: %v", err)
		}
	})
}
