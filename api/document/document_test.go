package document

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func one(t *testing.T, text string) *Node {
	t.Helper()
	read := YAML
	if strings.HasPrefix(text, "{") {
		read = JSON
	}
	docs, err := read([]byte(text), DefaultLimits())
	if err != nil || len(docs) != 1 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	return docs[0]
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, want string }{
		{"unknown field", "spec:\n  intrefaces: []\n", `spec.intrefaces: is not known here (did you mean interfaces?) (line 2)`},
		{"unknown and far", "spec:\n  zzzzzzzzz: 1\n", `spec.zzzzzzzzz: is not known here (one of arch, assetTag, hostname`},
		{"mac", "spec: {interfaces: [{mac: 52:54}]}", `spec.interfaces[0].mac: "52:54" is not a MAC address`},
		{"prefix", "spec: {interfaces: [{addresses: [10.0.0.5]}]}", `spec.interfaces[0].addresses[0]: "10.0.0.5" is not an address with a prefix length`},
		{"text for a list", "spec: {interfaces: none}", `spec.interfaces: is "none", wanted a list`},
		{"yes is text", "spec: {protect: yes}", `spec.protect: is "yes", wanted true or false`},
		{"map for text", "spec: {hostname: {a: b}}", `spec.hostname: is a map, wanted text`},
		{"number for text in json", `{"spec":{"hostname":7}}`, `spec.hostname: is "7", wanted text`},
		{"number for a mac in json", `{"spec":{"interfaces":[{"mac":7}]}}`, `spec.interfaces[0].mac: is "7", wanted text`},
		{"list at the top", "- a\n", `document: is a list, wanted a map`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			errs := Decode(one(t, tc.text), new(hardware.Hardware))
			if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), tc.want) {
				t.Errorf("got %v, want %s", errs, tc.want)
			}
		})
	}
}

// Valid text is taken as it is: U+FFFD itself, and YAML in UTF-16.
func TestText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"a":"\ufffd"}`, "a: \ufffd\n", "\xff\xfea\x00:\x00 \x00\xfd\xff\n\x00"} {
		if n := one(t, text).Get("a"); n == nil || n.Value != "\ufffd" {
			t.Errorf("%q: %+v", text, n)
		}
	}
}

func TestDecodeKindness(t *testing.T) {
	t.Parallel()
	var h hardware.Hardware
	errs := Decode(one(t, "metadata: {name: 007, labels: {rack: 7, hot: true}}\nspec:\n  hostname: ~\n  interfaces: [{mac: 525400123456, dhcp: False}]\n"), &h)
	no := false
	want := hardware.Hardware{
		Meta: hardware.Meta{Name: "007", Labels: map[string]string{"rack": "7", "hot": "true"}},
		Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{0x52, 0x54, 0, 0x12, 0x34, 0x56}, DHCP: &no}}},
	}
	if len(errs) > 0 || !reflect.DeepEqual(h, want) {
		t.Errorf("got %+v, %v", h, errs)
	}
	var tm workflow.Template
	errs = Decode(one(t, `
spec:
  timeout: 90
  x-common: null
  actions:
    - &w {name: a, kind: file.write, timeout: 2m, retries: 3, with: {mode: 0644, uid: 7, path: "7"}}
    - <<: *w
      name: b
`), &tm)
	if len(errs) != 1 || errs[0].Field != "spec.x-common" || tm.Spec.Timeout != hardware.Duration(90e9) {
		t.Errorf("got %v, %+v", errs, tm)
	}
	a, b := tm.Spec.Actions[0], tm.Spec.Actions[1]
	if b.Name != "b" || b.Kind != a.Kind || *b.Retries != 3 || !reflect.DeepEqual(a.With, map[string]any{"mode": "0644", "uid": int64(7), "path": "7"}) {
		t.Errorf("got %+v %+v", a, b)
	}
}

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	limits := Limits{Depth: 4, Nodes: 20, Aliased: 6, Text: 200, Documents: 3}
	for _, tc := range []struct{ name, text, want string }{
		{"deep", "[[[[[[]]]]]]", "nested more than 4"},
		{"deep json", `{"a":{"a":{"a":{"a":{"a":1}}}}}`, "nested more than 4"},
		{"many", "[" + strings.Repeat("a,", 30) + "]", "more than 20 lines and values"},
		{"many json", `{"a":[` + strings.Repeat("1,", 30) + "1]}", "more than 20 values"},
		{"text", "a: " + strings.Repeat("x", 300), "more than 200 bytes"},
		{"aliased text", "a: &a " + strings.Repeat("x", 60) + "\nb: [*a, *a, *a, *a]", "more than 200 bytes"},
		{"bomb", "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b]", "more than 6 values"},
		{"documents", strings.Repeat("---\na: b\n", 4), "more than 3 documents"},
		{"loop", "a: &a\n  b: *a\n", ""},
		{"twice", "a: 1\na: 2\n", `line 2: key "a" is there twice (first in line 1)`},
		{"tag", "a: !!python/object x", "is not known"},
		{"binary", "a: !!binary aGk=", "is not known"},
		{"key", "? [a]\n: b\n", "a key must be text"},
		{"merge of text", "<<: a\nb: c\n", "<< takes maps only"},
		{"cut short", `{"a":`, "ends in the middle"},
		{"gzip in json", "{\"a\":\n\"\x1f\x8b\x08\"}", "line 2: is not UTF-8 text (write binary data as base64"},
		{"latin-1", "a: b\nc: caf\xe9\n", "line 2: is not UTF-8 text (write binary data as base64"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			read := YAML
			if strings.HasPrefix(tc.text, "{") {
				read = JSON
			}
			_, err := read([]byte(tc.text), limits)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// seeds are whole records and their mutilations.
func seeds() []string {
	return []string{
		"apiVersion: rackstrap/v1\nkind: Hardware\nmetadata: {name: m1}\nspec:\n  interfaces:\n    - mac: 52:54:00:00:00:01\n      addresses: [10.0.0.5/24]\n  userData: |\n    #cloud-config\n    a: b\n",
		"kind: Template\nspec:\n  timeout: 1h\n  actions:\n    - &a {name: x, kind: reboot, with: {n: 1.5, m: 0644}}\n    - <<: *a\n---\n# two\na: 'it''s'\nb: \"\\u00e9\\n\"\nc: >-\n  folded\n  text\n",
		`{"spec":{"interfaces":[{"mac":"52:54:00:00:00:01","dhcp":true}],"notes":null},"metadata":{"labels":{"a":"b"}}}`,
		"a: &a [*a]\n", "? a\n: b\n", "%YAML 1.2\n---\na\n...\n", "- - - a\n", "{a: b, c}", "\xef\xbb\xbfa: b", "a:\tb", "[[[[", "&a *a", "!!str 1: 2",
	}
}

// What is read is written and read again as the same; nothing panics, and the
// limits hold.
func FuzzYAML(f *testing.F) {
	if len(seeds()) == 0 {
		f.Fatal("no seeds")
	}
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := Limits{Depth: 32, Nodes: 10_000, Aliased: 1000, Text: 1 << 20, Documents: 100}
		docs, err := YAML(data, limits)
		if err != nil {
			if docs != nil {
				t.Fatal("documents beside an error")
			}
			return
		}
		for _, n := range docs {
			for _, target := range []any{new(hardware.Hardware), new(hardware.Subnet), new(workflow.Template), new(workflow.Image), new(workflow.Workflow)} {
				if errs := Decode(n, target); len(errs) > maxErrors {
					t.Fatalf("%d errors", len(errs))
				}
			}
			roundTrip(t, n)
		}
	})
}

func roundTrip(t *testing.T, n *Node) {
	t.Helper()
	raw, err := json.Marshal(n.Any())
	if err != nil {
		t.Fatal(err)
	}
	text, err := EncodeYAML(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	again, err := YAML(text, Limits{Depth: 64, Nodes: 1 << 20, Text: 1 << 24, Documents: 2})
	if err != nil || len(again) > 1 {
		t.Fatalf("%s\nwritten as\n%s\n%d documents, %v", raw, text, len(again), err)
	}
	var back any
	if len(again) == 1 {
		back = again[0].Any()
	}
	raw2, err := json.Marshal(back)
	if err != nil || !bytes.Equal(raw, raw2) {
		t.Fatalf("%s\nwritten as\n%s\nread as %s, %v", raw, text, raw2, err)
	}
}

// JSON says what encoding/json says, where both accept it.
func FuzzJSON(f *testing.F) {
	for _, s := range append(seeds(), `[1e3,-0.5,"\u00e9"]`, `{"a":{"a":1}} [2]`) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := JSON(data, Limits{Depth: 32, Nodes: 10_000, Aliased: 1000, Text: 1 << 20, Documents: 100})
		if err != nil || len(docs) != 1 || docs[0].Type != Map {
			return
		}
		var want any
		if json.Unmarshal(data, &want) != nil {
			return
		}
		a, errA := json.Marshal(docs[0].Any())
		var got any
		if errA != nil || json.Unmarshal(a, &got) != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %s, want %v (%v)", a, want, errA)
		}
	})
}
