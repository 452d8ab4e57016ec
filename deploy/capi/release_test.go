package capi_test

import (
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab/kube"
	"github.com/rackstrap/rackstrap/workflow"
)

const version = "v0.1.0"

// released are the files of a release, as `make capi-release` makes them.
func released(t *testing.T) map[string][]byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "./release", version, t.TempDir()).Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range list {
		if files[f.Name()], err = os.ReadFile(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// clusterctl deletes a provider by the label, so everything has it; a ClusterClass has
// no variables of clusterctl, and all variables of the components are ours.
func TestRelease(t *testing.T) {
	t.Parallel()
	files := released(t)
	for _, name := range []string{"infrastructure-components.yaml", "metadata.yaml", "cluster-template.yaml", "cluster-template-topology.yaml", "clusterclass-rackstrap.yaml", "cluster-template-ignition.yaml", "cluster-template-talos.yaml"} {
		if len(files[name]) == 0 {
			t.Errorf("no %s", name)
		}
	}
	components := string(files["infrastructure-components.yaml"])
	namespaces := 0
	for i, doc := range strings.Split(components, "\n---\n") {
		_, metadata, _ := strings.Cut(doc, "\nmetadata:")
		metadata, _, _ = strings.Cut(metadata, "\nspec:")
		if !strings.Contains(metadata+"\n", "\n    cluster.x-k8s.io/provider: infrastructure-rackstrap\n") {
			t.Errorf("document %d of the components has no label of the provider:\n%.200s", i, doc)
		}
		if strings.Contains(doc, "kind: Namespace\n") {
			namespaces++
		}
	}
	if namespaces != 1 {
		t.Errorf("%d namespaces, want one", namespaces)
	}
	for _, v := range regexp.MustCompile(`\$\{(\w+)`).FindAllStringSubmatch(components, -1) {
		if !strings.HasPrefix(v[1], "RACKSTRAP_CAPI_") {
			t.Errorf("variable %s of the components is not called RACKSTRAP_CAPI_…", v[1])
		}
	}
	if strings.Contains(components, "@VERSION@") || !strings.Contains(components, "rackstrap-capi:"+version) {
		t.Error("the image is not that of the version")
	}
	if strings.Contains(string(files["clusterclass-rackstrap.yaml"]), "${") {
		t.Error("the ClusterClass has variables of clusterctl")
	}
	for _, m := range regexp.MustCompile(`\nkind: (\w+)\n`).FindAllStringSubmatch("\n"+string(files["cluster-template-talos.yaml"]), -1) {
		if strings.HasPrefix(m[1], "Kubeadm") {
			t.Errorf("the template of Talos has a %s", m[1])
		}
	}
}

// The real clusterctl installs the release, and the real webhooks and schemas take what
// its templates, the examples and the converter make, other projects' kinds among them;
// the rights are those that are needed and no more; a kubeadm node on Flatcar gets data
// that the install takes.
func TestReleaseInARealCluster(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bin, err := kube.Tools(ctx, func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	p, err := kube.Start(ctx, kube.Options{Dir: t.TempDir(), Bin: bin, Controllers: kube.Management()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := p.Repository(ctx, kube.Infrastructure{Name: "rackstrap", Version: version, Files: released(t)}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Clusterctl(ctx, "init", "--infrastructure", "rackstrap:"+version); err != nil {
		t.Fatal(err)
	}
	if err := p.StartManagers(ctx); err != nil {
		t.Fatal(err)
	}
	rights(t, p)
	dir := t.TempDir()
	for _, flavor := range []string{"", "ignition", "topology"} {
		text := generate(t, p, flavor, "t"+flavor)
		accepted(t, p, filepath.Join(dir, "flavor-"+flavor+".yaml"), text)
		if flavor == "ignition" {
			flatcar(t, p, text)
		}
	}
	accepted(t, p, filepath.Join(dir, "autoscaler.yaml"), read(t, "examples/autoscaler.yaml"))
	for _, name := range []string{"capt-v1alpha4", "capt-v1beta1", "capm3-v1beta1"} {
		text := read(t, "../../api/capi/internal/convert/testdata/"+name+".out")
		for _, ns := range regexp.MustCompile(`\n  namespace: (\S+)`).FindAllStringSubmatch(text, -1) {
			if err := p.Apply(ctx, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+ns[1]+"}\n"); err != nil {
				t.Fatal(err)
			}
		}
		accepted(t, p, filepath.Join(dir, name+".yaml"), text)
	}
	foreign(t, p)
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// generate is a cluster of a flavor, all of whose variables are given.
func generate(t *testing.T, p *kube.Plane, flavor, name string) string {
	t.Helper()
	conf := filepath.Join(p.Dir, "repository", "clusterctl.yaml")
	text := read(t, conf)
	if !strings.Contains(text, "CONTROL_PLANE_ENDPOINT_HOST") {
		text += "CONTROL_PLANE_ENDPOINT_HOST: 10.0.0.9\nTALOS_VERSION: v1.11\nTALOS_IMAGE: talos\n"
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"generate", "cluster", name, "-n", "default", "--infrastructure", "rackstrap:" + version, "--kubernetes-version", "v1.36.3", "--worker-machine-count", "2"}
	if flavor != "" {
		args = append(args, "--flavor", flavor)
	}
	out, err := p.Clusterctl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// accepted gives objects to the API server, which keeps none of them.
func accepted(t *testing.T, p *kube.Plane, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Kubectl(t.Context(), "create", "--dry-run=server", "--validate=strict", "-f", file); err != nil {
		t.Errorf("%s: %v", filepath.Base(file), err)
	}
}

// rights asks the API server what the provider's service account may do.
func rights(t *testing.T, p *kube.Plane) {
	t.Helper()
	user, _ := kube.ServiceAccountUser("rackstrap-capi-system", "rackstrap-capi-manager")
	for what, want := range map[string]bool{
		"get secrets": true, "patch secrets": true, "list secrets": false, "watch secrets": false, "create secrets": false, "delete secrets": false,
		"watch machines.cluster.x-k8s.io": true, "delete machines.cluster.x-k8s.io": false, "create machines.cluster.x-k8s.io": false, "update clusters.cluster.x-k8s.io": false,
		"patch rackstrapmachines.infrastructure.cluster.x-k8s.io": true, "create rackstrapmachines.infrastructure.cluster.x-k8s.io": false, "delete rackstrapmachines.infrastructure.cluster.x-k8s.io": false,
		"create ipaddressclaims.ipam.cluster.x-k8s.io": true, "create ipaddresses.ipam.cluster.x-k8s.io": false,
		"update secrets": false, "update rackstrapmachines.infrastructure.cluster.x-k8s.io": false, "patch machines.cluster.x-k8s.io": false, "list machinedeployments.cluster.x-k8s.io": false,
		"patch ipaddressclaims.ipam.cluster.x-k8s.io": false, "delete rackstrapremediations.infrastructure.cluster.x-k8s.io": true,
		"create pods": false, "get pods": false, "get nodes": false, "create clusterroles.rbac.authorization.k8s.io": false, "impersonate users": false,
		"create events": true, "list configmaps": false,
	} {
		verb, resource, _ := strings.Cut(what, " ")
		out, err := p.Kubectl(t.Context(), "auth", "can-i", verb, resource, "--as", user, "-n", "default")
		if got := strings.HasPrefix(out, "yes"); got != want {
			t.Errorf("the provider may %s: %v, want %v (%v)", what, got, want, err)
		}
	}
}

// flatcar makes the real kubeadm providers write Ignition data, which the appliance's
// install must take.
func flatcar(t *testing.T, p *kube.Plane, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := p.Apply(ctx, text); err != nil {
		t.Fatal(err)
	}
	// what the provider would say of a cluster that is ready
	eventually(ctx, t, "the RackstrapCluster is ready", func() bool {
		_, err := p.Kubectl(ctx, "patch", "rackstrapcluster", "tignition", "--subresource=status", "--type=merge", "-p", `{"status":{"initialization":{"provisioned":true}}}`)
		return err == nil
	})
	var value string
	eventually(ctx, t, "there is bootstrap data", func() bool {
		out, err := p.Kubectl(ctx, "get", "secrets", "--field-selector", "type=cluster.x-k8s.io/secret", "-o", `jsonpath={range .items[*]}{.data.format} {.data.value}{"\n"}{end}`)
		for line := range strings.SplitSeq(out, "\n") {
			if v, ok := strings.CutPrefix(line, base64.StdEncoding.EncodeToString([]byte("ignition"))+" "); ok {
				value = v
			}
		}
		return err == nil && value != ""
	})
	data, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := workflow.ValidIgnition(string(data)); err != nil {
		t.Errorf("the install refuses what the kubeadm provider writes: %v", err)
	}
	if strings.Contains(string(data), "ds.meta_data") {
		t.Error("Ignition data has a template of cloud-init, which nobody fills in")
	}
}

func eventually(ctx context.Context, t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not in time", what)
		case <-tick.C:
		}
	}
}
