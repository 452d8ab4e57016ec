package walls_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// listed is a package as `go list` tells it.
type listed struct {
	ImportPath, Dir                            string
	Imports, GoFiles, CgoFiles, IgnoredGoFiles []string
}

// list runs `go list` in the root module, and in the one of the Cluster API.
func list(t *testing.T) []listed {
	t.Helper()
	var out []listed
	for _, dir := range modules() {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Imports,GoFiles,CgoFiles,IgnoredGoFiles", "./...")
		cmd.Dir = dir
		var said bytes.Buffer
		cmd.Stderr = &said
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v: %s", dir, err, said.String())
		}
		for dec := json.NewDecoder(bytes.NewReader(text)); ; {
			var p listed
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			out = append(out, p)
		}
	}
	for _, want := range []string{"hardware", "cmd/rackstrap", "cmd/rackstrap-worker", "api/capi/v1beta1", "api/capi/cmd/rackstrap-capi"} {
		if !slices.ContainsFunc(out, func(p listed) bool { return p.ImportPath == module+"/"+want }) {
			t.Fatalf("go list did not find %s among %d packages", want, len(out))
		}
	}
	return out
}

func modules() []string { return []string{root, filepath.Join(root, "api/capi")} }

func TestWalls(t *testing.T) {
	t.Parallel()
	imports := map[string][]string{}
	for _, p := range list(t) {
		imports[p.ImportPath] = p.Imports
	}
	for _, b := range append(broken(table(), imports), strangers(imports)...) {
		t.Errorf("%s: the layout does not allow it", b)
	}
}

// TestFiles reads what `go list` does not tell: cgo, also in files that this build
// leaves out, and functions that run by themselves at start.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles) {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			for _, wrong := range wrongIn(f) {
				t.Errorf("%s/%s: %s", p.ImportPath, name, wrong)
			}
		}
	}
}

// wrongIn lists what no file of ours has. Generated ones are not judged for init:
// protoc-gen-go's register their messages in it.
func wrongIn(f *ast.File) []string {
	var out []string
	for _, imp := range f.Imports {
		if path, err := strconv.Unquote(imp.Path.Value); err != nil || path == "C" {
			out = append(out, "uses cgo (the one binary is static)")
		}
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" && !ast.IsGenerated(f) {
			out = append(out, "has func init (call it from where it is needed)")
		}
	}
	return out
}

func TestNoKubernetesInTheModule(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(data)) {
		if kubernetes(word) {
			t.Errorf("go.mod: %s (it belongs to the module api/capi)", word)
		}
	}
}

// Nothing of Kubernetes is built into the appliance or the worker, be it by way of
// something else.
func TestNoKubernetesInThePrograms(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/...")
	cmd.Dir = root
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(string(text))
	if !slices.Contains(modules, module) || !slices.Contains(modules, "go.etcd.io/bbolt") {
		t.Fatalf("go list tells nothing: %v", modules)
	}
	for _, m := range slices.Compact(slices.Sorted(slices.Values(modules))) {
		if kubernetes(m) {
			t.Errorf("a program has %s in it (it belongs to the module api/capi)", m)
		}
	}
}

// TestBroken proves that the walls hold something back.
func TestBroken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		from, to, want string
	}{
		"records alone":             {"hardware", "workflow", "hardware imports workflow"},
		"workflow and records":      {"workflow", "hardware", ""},
		"workflow and store":        {"workflow", "store", "workflow imports store"},
		"dhcp and boot programs":    {"dhcp", "ipxe", "dhcp imports ipxe"},
		"tftp alone":                {"tftp", "hardware", "tftp imports hardware"},
		"a subpackage's parent":     {"store/bolt", "store", ""},
		"a subpackage's row":        {"store/bolt", "hardware", ""},
		"the other way":             {"store", "store/bolt", "store imports store/bolt"},
		"codec alone, its parent":   {"store/image/codec", "store/image", "store/image/codec imports store/image"},
		"messages alone":            {"api/workerpb", "hardware", "api/workerpb imports hardware"},
		"messages' parent":          {"api/workerpb", "api", "api/workerpb imports api"},
		"server and store":          {"api/rest", "store", "api/rest imports store"},
		"client and server":         {"api/client", "api/rest", "api/client imports api/rest"},
		"server and wire types":     {"api/rest", "api", ""},
		"worker and store":          {"worker", "store", "worker imports store"},
		"worker and codec":          {"worker/action", "store/image/codec", ""},
		"worker inside":             {"worker", "worker/pid1/netup", ""},
		"command line around it":    {"cmd/rackstrap/cli", "store", "cmd/rackstrap/cli imports store"},
		"the program wires":         {"cmd/rackstrap", "store/bolt", ""},
		"the program and the lab":   {"cmd/rackstrap", "deploy/lab", "cmd/rackstrap imports deploy/lab"},
		"the lab":                   {"deploy/lab/rig", "api/client", ""},
		"a program is no library":   {"store", "cmd/rackstrap", "store imports cmd/rackstrap"},
		"a name that begins alike":  {"storehouse", "hardware", "storehouse has no row in the table (say what it may import)"},
		"no row":                    {"util", "hardware", "util has no row in the table (say what it may import)"},
		"Cluster API and its types": {"api/capi/controller", "api/capi/types", ""},
		"Cluster API and store":     {"api/capi/controller", "store", "api/capi/controller imports store"},
	} {
		got := broken(table(), map[string][]string{module + "/" + tc.from: {"fmt", "example.org/other", module + "/" + tc.to}})
		if strings.Join(got, "; ") != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestStrangers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		from, to string
		bad      bool
	}{
		"Kubernetes":                {"api/client", "k8s.io/api/core/v1", true},
		"its helpers":               {"store", "sigs.k8s.io/yaml", true},
		"where it belongs":          {"api/capi/controller", "k8s.io/api/core/v1", false},
		"another YAML":              {"api/metadata", "github.com/goccy/go-yaml", true},
		"the YAML":                  {"api/metadata", "go.yaml.in/yaml/v3", false},
		"records and files":         {"hardware", "os", true},
		"records and addresses":     {"hardware", "net/netip", false},
		"power control and network": {"hardware/bmc", "net/http", false},
		"cgo":                       {"store/bolt", "C", true},
	} {
		if got := strangers(map[string][]string{module + "/" + tc.from: {tc.to}}); (len(got) > 0) != tc.bad {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWrongInFile(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]int{
		"package a\nfunc init() {}": 1,
		"package a\nimport \"C\"":   1,
		"package a\ntype t int\nfunc (t) init() {}\nfunc f() { init := 1; _ = init }": 0,
		"// Code generated by x. DO NOT EDIT.\n\npackage a\nfunc init() {}":           0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "a.go", src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got := wrongIn(f); len(got) != want {
			t.Errorf("%q: %q", src, got)
		}
	}
}
