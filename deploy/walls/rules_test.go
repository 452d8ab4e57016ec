// Package walls_test holds the walls between the packages: who may import whom,
// and what no package does. Nothing here is built into a program.
package walls_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

const module = "github.com/rackstrap/rackstrap"

// row says what of ours the packages under a path may import, in code that is not
// a test. The longest path that fits a package is its row; a package without a row
// breaks the wall. Entries ending in /... mean the package and all below it. A
// package may also import those it is below, unless its row is alone.
type row struct {
	path  string
	may   []string
	alone bool
}

// table is the layout table of the design.
func table() []row {
	product := []string{"api/...", "dhcp/...", "hardware/...", "ipxe/...", "store/...", "tftp/...", "web/...", "worker/...", "workflow/...", "cmd/..."}
	return []row{
		{path: "hardware", alone: true},
		{path: "hardware/bmc", may: []string{"hardware"}},
		{path: "workflow", may: []string{"hardware"}},
		{path: "store", may: []string{"hardware", "workflow"}},
		{path: "store/image", may: []string{"hardware", "workflow", "store/image/codec"}},
		// Decoding runs in the worker too, which must not carry the store.
		{path: "store/image/codec", alone: true},
		{path: "store/image/qcow2", alone: true},
		{path: "store/image/fetch", alone: true},
		{path: "store/image/catalogue", may: []string{"hardware", "workflow", "store/image/codec", "store/image/fetch", "store/image/qcow2"}},
		{path: "dhcp", may: []string{"hardware"}},
		{path: "tftp"},
		{path: "ipxe", may: []string{"hardware"}},

		// api itself has the wire types that server and client share; api/document reads
		// records from YAML and JSON for both, and for the configuration file.
		{path: "api", may: []string{"hardware", "workflow"}, alone: true},
		{path: "api/document", may: []string{"hardware", "workflow"}},
		{path: "api/rest", may: []string{"api/document", "api/rest/...", "hardware", "workflow"}},
		{path: "api/client", may: []string{"api/document", "hardware", "workflow"}},
		// Generated, and part of the worker: nothing but messages.
		{path: "api/workerpb", alone: true},
		{path: "api/workergrpc", may: []string{"api/workerpb", "hardware", "workflow"}},
		{path: "api/metadata", may: []string{"hardware"}, alone: true},
		{path: "api/tinkerbell", may: []string{"api/document", "hardware", "workflow"}},
		// A module of its own. The client's methods speak in the types of the other three.
		{path: "api/capi", may: []string{"api/capi/...", "api/client", "api", "hardware", "workflow"}},
		// What the suites share: it runs the real parts, and is in no program.
		{path: "api/capi/suite", may: []string{"api/capi/...", "api/client", "api", "hardware", "workflow", "deploy/lab/..."}},
		{path: "web", may: []string{"api", "web/..."}},

		// Its subpackages know each other: the session runs actions, probes and init.
		{path: "worker", may: []string{"worker/...", "hardware", "workflow", "api/workerpb", "store/image/codec"}},

		// The daemon shows some pages of the documentation.
		{path: "cmd", may: append([]string{"deploy/docs"}, product...)},
		// The command line has no way in but the public API.
		{path: "cmd/rackstrap/cli", may: []string{"api", "api/client", "api/document", "hardware", "workflow"}, alone: true},
		{path: "deploy", may: append([]string{"deploy/..."}, product...)},
	}
}

// fits reports whether path is what pattern says.
func fits(pattern, path string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return below(tree, path)
	}
	return pattern == path
}

// below reports whether path is tree or in it.
func below(tree, path string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }

func rowOf(rows []row, path string) (row, bool) {
	var best row
	found := false
	for _, r := range rows {
		if below(r.path, path) && (!found || len(r.path) > len(best.path)) {
			best, found = r, true
		}
	}
	return best, found
}

// broken lists the imports that the rows do not allow. imports has, by import path,
// what each package imports, ours and others'.
func broken(rows []row, imports map[string][]string) []string {
	var out []string
	for pkg, list := range imports {
		path := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
		r, ok := rowOf(rows, path)
		if !ok {
			out = append(out, fmt.Sprintf("%s has no row in the table (say what it may import)", path))
			continue
		}
		for _, imp := range list {
			to, ours := strings.CutPrefix(imp, module+"/")
			if !ours || (!r.alone && strings.HasPrefix(path, to+"/")) || slices.ContainsFunc(r.may, func(p string) bool { return fits(p, to) }) {
				continue
			}
			out = append(out, fmt.Sprintf("%s imports %s", path, to))
		}
	}
	sort.Strings(out)
	return out
}

// strangers lists imports of others' packages that have no place here: Kubernetes
// belongs to the module api/capi, one YAML library is enough, and the records do
// no input or output.
func strangers(imports map[string][]string) []string {
	var out []string
	for pkg, list := range imports {
		path := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
		for _, imp := range list {
			kubernetes := kubernetes(imp) && !below("api/capi", path)
			yaml := strings.Contains(imp, "yaml") && !strings.HasPrefix(imp, module) && imp != "go.yaml.in/yaml/v3" && !below("api/capi", path)
			io := below("hardware", path) && !below("hardware/bmc", path) && slices.Contains([]string{"os", "os/exec", "net", "net/http", "syscall"}, imp)
			if kubernetes || yaml || io || imp == "C" {
				out = append(out, fmt.Sprintf("%s imports %s", path, imp))
			}
		}
	}
	sort.Strings(out)
	return out
}

func kubernetes(path string) bool { return below("k8s.io", path) || below("sigs.k8s.io", path) }
