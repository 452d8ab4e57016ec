package capi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/deploy/lab/kube"
)

// others are projects whose kinds our examples are made of: the module that has their
// schemas, its checksum as the checksum database of Go has it, and the folder.
func others() map[string]struct{ module, sum, crds string } {
	return map[string]struct{ module, sum, crds string }{
		"operator": {"sigs.k8s.io/cluster-api-operator@v0.29.0", "h1:i8j3auZqWlbiTiMnHqzyFlppHAfzZuqYYlBLDD3cNe4=", "config/crd/bases"},
		"k3s":      {"github.com/k3s-io/cluster-api-k3s@v0.4.0", "h1:r+vCG5gBhaWD7Uh2QsGwRHDjVSKRItNe7k2nbGKkPa0=", "controlplane/config/crd/bases"},
		// the last version that can be fetched as a module; ours needs v0.22.0
		"rke2":           {"github.com/rancher/cluster-api-provider-rke2@v0.21.0", "h1:JJCanwgK5dZ5+PscR/bCZeuZQ6p//vOanUdKaK59y8Y=", "controlplane/config/crd/bases"},
		"rke2 bootstrap": {"github.com/rancher/cluster-api-provider-rke2@v0.21.0", "h1:JJCanwgK5dZ5+PscR/bCZeuZQ6p//vOanUdKaK59y8Y=", "bootstrap/config/crd/bases"},
		// that of the control plane cannot be fetched
		"talos bootstrap": {"github.com/siderolabs/cluster-api-bootstrap-provider-talos@v0.6.12", "h1:c4BNooloe7dVyE2lE08kkUkyggCU7oy5z++PCv78mfw=", "config/crd/bases"},
	}
}

// applyOthers installs the kinds of others, from their modules.
func applyOthers(t *testing.T, p *kube.Plane) {
	t.Helper()
	for name, x := range others() {
		cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", x.module)
		cmd.Dir = t.TempDir() // no module
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		out, err := cmd.Output()
		var got struct{ Dir, Sum, Error string }
		if jsonErr := json.Unmarshal(out, &got); jsonErr != nil || err != nil {
			t.Fatalf("%s: %v %v: %s", x.module, err, jsonErr, got.Error)
		}
		if got.Sum != x.sum {
			t.Fatalf("%s has the checksum %s, want %s", x.module, got.Sum, x.sum)
		}
		if err := p.ApplyCRDs(t.Context(), filepath.Join(got.Dir, x.crds)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// foreign has the API server judge the examples with other projects' kinds, by the schemas
// of those projects.
func foreign(t *testing.T, p *kube.Plane) {
	applyOthers(t, p)
	dir := t.TempDir()
	accepted(t, p, filepath.Join(dir, "k3s.yaml"), read(t, "examples/k3s.yaml"))
	// the refs have another form in the version of the kinds that there are schemas of
	rke2 := strings.NewReplacer(
		"controlplane.cluster.x-k8s.io/v1beta2", "controlplane.cluster.x-k8s.io/v1beta1", "bootstrap.cluster.x-k8s.io/v1beta2", "bootstrap.cluster.x-k8s.io/v1beta1",
		"    spec:\n      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind", "    infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind",
	).Replace(read(t, "examples/rke2.yaml"))
	accepted(t, p, filepath.Join(dir, "rke2.yaml"), rke2)
	var talos []string
	for doc := range strings.SplitSeq(generate(t, p, "talos", "talos"), "\n---\n") {
		if !strings.Contains(doc, "\nkind: TalosControlPlane\n") {
			talos = append(talos, doc)
		}
	}
	accepted(t, p, filepath.Join(dir, "talos.yaml"), strings.Join(talos, "\n---\n"))
	operator(t, p)
}

// operator does what the example for the Cluster API Operator says to do, and finds in the
// ConfigMap what the operator looks for there: the version, the metadata that has a series
// for it, and the components, as they are or packed.
func operator(t *testing.T, p *kube.Plane) {
	ctx := t.Context()
	example := read(t, "examples/operator.yaml")
	accepted(t, p, filepath.Join(t.TempDir(), "operator.yaml"), example)
	files := released(t)
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plain, packed, ok := strings.Cut(example, "\n# gzip ")
	if !ok {
		t.Fatal("the example does not say how to pack the components")
	}
	for name, says := range map[string]string{"plain": plain, "packed": "# gzip " + packed} {
		var made configMap
		for _, line := range regexp.MustCompile(`(?m)^# ((?:kubectl|gzip) .*)$`).FindAllStringSubmatch(says, -1) {
			if strings.HasPrefix(line[1], "kubectl create namespace ") {
				continue // that of TestReleaseInARealCluster is there
			}
			command(ctx, t, p, dir, line[1])
		}
		if name == "packed" { // it says only what is different
			command(ctx, t, p, dir, "kubectl -n rackstrap-capi-system label configmap "+version+" provider.cluster.x-k8s.io/name=rackstrap")
		}
		selector := regexp.MustCompile(`matchLabels:\n\s+(\S+): (\S+)\n`).FindStringSubmatch(example)
		if len(selector) == 0 || !strings.Contains(example, "\n  version: "+version+"\n") {
			t.Fatalf("the example has no selector, or not the version %s", version)
		}
		out, err := p.Kubectl(ctx, "-n", "rackstrap-capi-system", "get", "configmaps", "-l", selector[1]+"="+selector[2], "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil || out != version {
			t.Fatalf("%s: the selector finds %q: %v", name, out, err)
		}
		if out, err = p.Kubectl(ctx, "-n", "rackstrap-capi-system", "get", "configmap", version, "-o", "json"); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(out), &made); err != nil {
			t.Fatal(err)
		}
		if made.Data["metadata"] != string(files["metadata.yaml"]) {
			t.Errorf("%s: metadata:\n%s", name, made.Data["metadata"])
		}
		components, size := made.components(t)
		if !bytes.Equal(components, files["infrastructure-components.yaml"]) {
			t.Errorf("%s: the components are not those of the release", name)
		}
		t.Logf("%s: a ConfigMap of %d bytes", name, size)
		if size > 1<<20/5 {
			t.Errorf("%s: a ConfigMap of %d bytes; the example says that less than a fifth of 1 MiB is needed", name, size)
		}
		if _, err := p.Kubectl(ctx, "-n", "rackstrap-capi-system", "delete", "configmap", version); err != nil {
			t.Fatal(err)
		}
	}
}

// configMap is what the operator reads of one.
type configMap struct {
	Metadata   struct{ Annotations map[string]string }
	Data       map[string]string
	BinaryData map[string]string
}

// components are read as the operator reads them; size is what counts against the limit.
func (c *configMap) components(t *testing.T) (data []byte, size int) {
	t.Helper()
	for _, v := range c.Data {
		size += len(v)
	}
	if c.Metadata.Annotations["provider.cluster.x-k8s.io/compressed"] != "true" {
		return []byte(c.Data["components"]), size
	}
	packed, err := base64.StdEncoding.DecodeString(c.BinaryData["components"])
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	return data, size + len(packed)
}

// command runs a line of an example in a folder.
func command(ctx context.Context, t *testing.T, p *kube.Plane, dir, line string) {
	t.Helper()
	words := strings.Fields(line)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	if words[0] == "kubectl" {
		cmd = p.Command(ctx, "kubectl", append([]string{"--kubeconfig", p.Kubeconfig}, words[1:]...)...)
	}
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
}
