package kube_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/kube"
)

func tools(t *testing.T) string {
	t.Helper()
	bin, err := kube.Tools(t.Context(), func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

func start(t *testing.T, ns *lab.Namespace) *kube.Plane {
	t.Helper()
	began := time.Now()
	p, err := kube.Start(t.Context(), kube.Options{Dir: t.TempDir(), Bin: tools(t), Namespace: ns, Controllers: kube.Management()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("ready after %v", time.Since(began))
	return p
}

func eventually(t *testing.T, what string, ok func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within a minute", what)
		case <-tick.C:
		}
	}
}

// A killed API server comes back with what was written, deletion cascades to what is
// owned, and a service account may do what RBAC lets it and no more.
func TestPlane(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	ctx := t.Context()
	if err := p.Apply(ctx, `
apiVersion: v1
kind: ConfigMap
metadata: {name: owner, namespace: default}
`); err != nil {
		t.Fatal(err)
	}
	uid, err := p.Kubectl(ctx, "get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(ctx, `
apiVersion: v1
kind: ConfigMap
metadata: {name: owned, namespace: default, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: `+uid+`}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: manager, namespace: default}]
`); err != nil {
		t.Fatal(err)
	}
	user, groups := kube.ServiceAccountUser("default", "manager")
	conf, err := p.WriteKubeconfig(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Kubectl(ctx, "--kubeconfig", conf, "get", "configmap", "owner"); err != nil {
		t.Error(err)
	}
	if _, err := p.Kubectl(ctx, "--kubeconfig", conf, "get", "secrets"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("a service account without the right got: %v", err)
	}

	old := p.PID(kube.APIServer)
	if err := p.Kill(kube.APIServer); err != nil {
		t.Fatal(err)
	}
	if p.PID(kube.APIServer) != 0 {
		t.Error("a killed process has a PID")
	}
	if err := p.Restart(ctx, kube.APIServer); err != nil {
		t.Fatal(err)
	}
	if now := p.PID(kube.APIServer); now == 0 || now == old {
		t.Errorf("restarted as %d, was %d", now, old)
	}
	if _, err := p.Kubectl(ctx, "delete", "configmap", "owner"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what is owned goes", func(ctx context.Context) bool {
		_, err := p.Kubectl(ctx, "get", "configmap", "owned")
		return err != nil && strings.Contains(err.Error(), "NotFound")
	})
}

// clusterctl installs everything from a folder, and the managers answer: a Cluster that
// makes no sense is refused by the core's webhook, a good one is reconciled.
func TestClusterAPI(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	ctx := t.Context()
	root, err := kube.Source(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Repository(ctx, release(t, root)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	out, err := p.Clusterctl(ctx, "init", "--infrastructure", "rackstrap:v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("clusterctl init took %v\n%s", time.Since(began), out)
	began = time.Now()
	if err := p.StartManagers(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("managers ready after %v", time.Since(began))
	bad := strings.Replace(cluster, "10.244.0.0/16", "nonsense", 1)
	if err := p.Apply(ctx, bad); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a Cluster with a bad CIDR block: %v", err)
	}
	if err := p.Apply(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the core reconciles the Cluster", func(ctx context.Context) bool {
		phase, err := p.Kubectl(ctx, "get", "cluster", "c1", "-o", "jsonpath={.status.phase}")
		return err == nil && phase == "Provisioning"
	})
	if out, err = p.Clusterctl(ctx, "describe", "cluster", "c1"); err != nil || !strings.Contains(out, "default/c1") {
		t.Errorf("clusterctl describe: %v\n%s", err, out)
	}
}

const cluster = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c1, namespace: default}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.244.0.0/16]}}
  controlPlaneEndpoint: {host: 10.77.0.9, port: 6443}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: RackstrapCluster, name: c1}
`

// release is the least that clusterctl installs: our kinds.
func release(t *testing.T, root string) kube.Infrastructure {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy/capi/config/crd/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no CRDs: ", err)
	}
	all := "apiVersion: v1\nkind: Namespace\nmetadata: {name: rackstrap-capi-system}\n"
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all += "---\n" + strings.TrimPrefix(string(b), "---\n")
	}
	return kube.Infrastructure{Name: "rackstrap", Version: "v0.1.0", Files: map[string][]byte{
		"infrastructure-components.yaml": []byte(all),
		"metadata.yaml":                  []byte("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: [{major: 0, minor: 1, contract: v1beta2}]\n"),
	}}
}
