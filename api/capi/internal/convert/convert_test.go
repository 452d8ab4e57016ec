package convert

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expected output; the test fails all the same")

// Every manifest of testdata gives the same output and the same notes, each time.
func TestManifests(t *testing.T) {
	t.Parallel()
	files := inputs(t)
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			out, notes := run(t, name)
			if again, _ := run(t, name); !bytes.Equal(out, again) {
				t.Error("is converted otherwise the second time")
			}
			if again, _, err := Convert([]File{{Name: name, Data: out}}, Options{Secret: "rackstrap"}); err != nil || !bytes.Equal(out, again) {
				t.Errorf("what is converted is converted again: %v\n%s", err, again)
			}
			golden(t, strings.TrimSuffix(name, ".yaml")+".out", out)
			golden(t, strings.TrimSuffix(name, ".yaml")+".notes", notes)
		})
	}
}

func inputs(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("testdata: %v %v", files, err)
	}
	return files
}

func run(t testing.TB, name string) (out, notes []byte) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	out, list, err := Convert([]File{{Name: filepath.Base(name), Data: data}}, Options{Secret: "rackstrap"})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range list {
		notes = append(notes, n.String()+"\n"...)
	}
	return out, notes
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(name)
	if err == nil && bytes.Equal(got, want) {
		return
	}
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("%s differs (%v); -update rewrites it. Now it is:\n%s", name, err, got)
}

// What cannot be read is an error that names the file and the place.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"a.yaml: document 2: is not YAML":                  "# fine\n---\na: [\n",
		"a.yaml: document 1: is not an object":             "- a\n",
		"a.yaml: document 1: has no apiVersion or no kind": "kind: Cluster\n",
		"already set":                                          "apiVersion: v1\nkind: A\nkind: B\n",
		"items is not a list":                                  "apiVersion: v1\nkind: List\nitems: 3\n",
		"items[0] is not an object":                            "apiVersion: v1\nkind: List\nitems: [3]\n",
		"items[0] has no apiVersion or no kind":                "apiVersion: v1\nkind: List\nitems: [{}]\n",
		"MachineDeployment a: json: cannot unmarshal string":   "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineDeployment\nmetadata: {name: a}\nspec: {replicas: \"3\"}\n",
		"fill them in first: clusterctl generate cluster NAME": "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineDeployment\nmetadata: {name: a}\nspec: {replicas: ${N}}\n",
	} {
		_, _, err := Convert([]File{{Name: "a.yaml", Data: []byte(in)}}, Options{})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v, want %q", in, err, name)
		}
	}
}

// Fields of the wrong type, and fields that nobody knows, are named and left out.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	_, notes, err := Convert([]File{{Name: "a", Data: []byte(`
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Metal3MachineTemplate
metadata: {name: a}
spec:
  nodeReuse: maybe
  more: 1
  template:
    spec:
      hostSelector: [a]
      image: {url: http://x/y, checksum: abc, checksumType: sha256, format: vmdk, checksumtype: a}
      automatedCleaningMode: {}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: TinkerbellMachineTemplate
metadata: {name: a}
spec: {template: {spec: {hardwareAffinity: {preferred: [{weight: much}, 3], required: no}}}}
`)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"spec.nodeReuse: is neither", "spec.more: is not known", "hostSelector: is not an object", "image.checksum:", "image.format: vmdk", "image.checksumtype: is not known",
		"automatedCleaningMode: is not a text", "preferred[0].weight: is not a whole number", "preferred[0]: prefers nothing", "preferred[1]: is not an object", "required: is not a list",
	} {
		found := false
		for _, n := range Lost(notes) {
			found = found || strings.Contains(n.String(), want)
		}
		if !found {
			t.Errorf("no note %q", want)
		}
	}
}

// Whatever is given, converting ends with an error or with YAML that can be converted
// again.
func FuzzConvert(f *testing.F) {
	for _, name := range inputs(f) {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for doc := range bytes.SplitSeq(data, []byte("---\n")) {
			f.Add(doc)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, _, err := Convert([]File{{Name: "a", Data: data}}, Options{Secret: "s"})
		if err != nil {
			return
		}
		if _, _, err := Convert([]File{{Name: "b", Data: out}}, Options{Secret: "s"}); err != nil {
			t.Errorf("%v\n%s\nbecame\n%s", err, data, out)
		}
	})
}
