package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain runs main itself when the test starts its own program again.
func TestMain(m *testing.M) {
	if os.Getenv("RACKSTRAP_CAPI_MAIN") == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// run starts the program with a standard input, in a folder.
func run(t *testing.T, dir, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Dir, cmd.Stdin, cmd.Env = dir, strings.NewReader(stdin), append(os.Environ(), "RACKSTRAP_CAPI_MAIN=1")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return out.String(), said.String(), code
}

const (
	tinkerbell = `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: TinkerbellMachineTemplate
metadata: {name: workers, namespace: default}
spec: {template: {spec: {hardwareAffinity: {required: [{labelSelector: {matchLabels: {type: worker}}}]}}}}
`
	metal3 = `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Metal3Cluster
metadata: {name: web, namespace: default}
spec: {controlPlaneEndpoint: {host: 10.0.0.9, port: 6443}}
`
	// losing has a part that nothing of ours stands for.
	losing = `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: TinkerbellMachineTemplate
metadata: {name: odd, namespace: default}
spec: {template: {spec: {nobodyKnows: 1}}}
`
)

// Manifests come from the standard input, files and folders, and go where they are
// wanted; the notes never mix with them. What is refused ends with 1 and says what to do.
func TestConvert(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"old.yaml": tinkerbell, "losing.yaml": losing, "broken.yaml": "a: [\n", "variables.yaml": strings.Replace(metal3, "6443", "${PORT}", 1),
		"all/a.yml": metal3, "all/b.yaml": tinkerbell, "all/notes.txt": "not for kubectl", "all/more/c.yaml": "a: [\n", "none/notes.txt": "",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		args  string
		stdin string
		code  int
		out   []string // in this order; none: nothing is written
		said  string
	}{
		{args: "-f old.yaml", out: []string{"kind: RackstrapMachineTemplate", "type: worker"}},
		{args: "-f -", stdin: metal3, out: []string{"kind: RackstrapCluster", "host: 10.0.0.9", "name: rackstrap"}},
		{args: "-f - --secret mine", stdin: metal3, out: []string{"name: mine"}},
		{args: "-f all", out: []string{"kind: RackstrapCluster", "kind: RackstrapMachineTemplate"}},
		{args: "-f old.yaml -f - -o -", stdin: metal3, out: []string{"kind: RackstrapMachineTemplate", "kind: RackstrapCluster"}},
		{args: "-f losing.yaml", out: []string{"kind: RackstrapMachineTemplate"}, said: "losing.yaml: TinkerbellMachineTemplate default/odd"},
		{args: "-f losing.yaml --strict", code: 1, said: "leave --strict out"},
		{args: "", code: 1, said: "name them with -f FILE"},
		{args: "old.yaml", code: 1, said: "rackstrap-capi convert -f old.yaml"},
		{args: "-f none", code: 1, said: "none: has no .yaml, .yml or .json file"},
		{args: "-f missing.yaml", code: 1, said: "missing.yaml: no such file"},
		{args: "-f broken.yaml", code: 1, said: "broken.yaml: document 1: is not YAML"},
		{args: "-f -", stdin: "kind: Cluster\n", code: 1, said: "standard input: document 1: has no apiVersion"},
		{args: "-f variables.yaml", code: 1, said: "clusterctl generate cluster NAME"},
		{args: "-f old.yaml -o missing/new.yaml", code: 1, said: "missing/new.yaml"},
	} {
		out, said, code := run(t, dir, tc.stdin, append([]string{"convert"}, strings.Fields(tc.args)...)...)
		if code != tc.code || !strings.Contains(said, tc.said) || (len(tc.out) == 0) != (out == "") {
			t.Errorf("convert %s: exit code %d, want %d; it said %q, want %q; it wrote\n%s", tc.args, code, tc.code, said, tc.said, out)
		}
		rest := out
		for _, want := range tc.out {
			_, after, ok := strings.Cut(rest, want)
			if !ok {
				t.Errorf("convert %s: no %q where it belongs in\n%s", tc.args, want, out)
			}
			rest = after
		}
	}
}

// The output may be a file, which others do not read; nothing is written where a part
// would be lost and that was not wanted.
func TestConvertToAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, said, code := run(t, dir, losing, "convert", "-f", "-", "-o", "new.yaml", "--strict"); code != 1 {
		t.Errorf("exit code %d: %s", code, said)
	}
	path := filepath.Join(dir, "new.yaml")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("--strict wrote a file: %v", err)
	}
	if out, said, code := run(t, dir, tinkerbell, "convert", "-f", "-", "-o", "new.yaml"); code != 0 || out != "" {
		t.Errorf("exit code %d: %s%s", code, said, out)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "kind: RackstrapMachineTemplate") {
		t.Errorf("%v:\n%s", err, text)
	}
	if i, err := os.Stat(path); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", i.Mode(), err)
	}
}
