package suite_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	clientapi "github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
)

// firstVersion is two upgrades before suite.KubernetesVersion.
const firstVersion = "v1.34.6"

// imageFormat is how the images are called that a topology looks for.
const imageFormat = "{os}-{version}-kube-{kubernetesVersion}"

// imageName is one of Debian 12 in that format.
func imageName(version string) string {
	return "debian-12-kube-" + strings.ReplaceAll(version, ".", "-")
}

// ofTheLab is what the shipped ClusterClass lacks here: the etcd of simulated nodes is
// nobody else's, and the versions that a chain of upgrades goes by.
const ofTheLab = `[
{"op": "add", "path": "/spec/kubernetesVersions", "value": ["v1.34.6", "v1.35.4", "v1.36.3"]},
{"op": "add", "path": "/spec/patches/-", "value": {"name": "etcd", "definitions": [{
  "selector": {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlaneTemplate", "matchResources": {"controlPlane": true}},
  "jsonPatches": [{"op": "add", "path": "/spec/template/spec/kubeadmConfigSpec/clusterConfiguration", "value": {"etcd": {"external": {
    "endpoints": ["https://127.0.0.1:2379"], "caFile": "/etc/kubernetes/pki/etcd/ca.crt",
    "certFile": "/etc/kubernetes/pki/apiserver-etcd-client.crt", "keyFile": "/etc/kubernetes/pki/apiserver-etcd-client.key"}}}}]}]}}
]`

// topology is a cluster that its ClusterClass makes, and what is asked of it.
type topology struct {
	*suite.Suite
	c       suite.Cluster
	version string // of spec.topology; c.Version is that of all machines
	disk    string
}

// apply writes the Cluster of the shipped flavor, with clusterctl's variables filled in.
func (d *topology) apply() {
	d.Helper()
	file := filepath.Join(d.TempDir(), "cluster.yaml")
	text := strings.Replace(d.Shipped("templates/cluster-template-topology.yaml"), "        os: $", fmt.Sprintf("        format: %q\n        os: $", imageFormat), 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
	cmd := d.Plane.Command(d.Context(), "clusterctl", "generate", "yaml", "--from", file)
	cmd.Env = append(
		cmd.Env, "GOPROXY=off", "CLUSTERCTL_DISABLE_VERSIONCHECK=true", "XDG_CONFIG_HOME="+d.Plane.Dir, "CLUSTER_NAME="+d.c.Name, "NAMESPACE="+d.c.Namespace, "KUBERNETES_VERSION="+d.version,
		"CONTROL_PLANE_ENDPOINT_HOST="+d.c.Host, "SERVICE_CIDR=10.97.0.0/16", fmt.Sprintf("WORKER_MACHINE_COUNT=%d", d.c.Workers), "RACKSTRAP_DISK="+d.disk,
	)
	out, err := cmd.Output()
	if err != nil {
		d.Fatal(err)
	}
	d.Apply(string(out))
}

// inspected has a look into all machines: the class asks for processors and memory.
func (d *topology) inspected() {
	d.Helper()
	for _, h := range d.Hardware() {
		if _, err := d.API.Inspect(d.Context(), h.Meta.Name); err != nil {
			d.Fatal(err)
		}
	}
	d.Eventually("what is in the machines is known", func() error {
		for _, h := range d.Hardware() {
			if h.Facts == nil {
				return fmt.Errorf("not that of %s", h.Meta.Name)
			}
		}
		return nil
	})
}

// runs waits until all machines are as d.c says, and no worker was newer than the
// control plane meanwhile; also is more that must be so.
func (d *topology) runs(what string, also ...func() error) {
	d.Helper()
	d.Eventually(what, func() error {
		d.orderly()
		err := d.Running(d.c)
		for _, f := range also {
			err = cmp.Or(err, f())
		}
		return err
	})
	checkNodes(d.Suite, d.c)
}

// orderly: no worker is newer than any machine of the control plane.
func (d *topology) orderly() {
	d.Helper()
	list, err := d.Machines(d.c)
	if err != nil {
		d.Fatal(err)
	}
	oldest, newest := "v9", ""
	for _, m := range list {
		if _, control := m.Labels[clusterv1.MachineControlPlaneLabel]; control {
			oldest = min(oldest, m.Spec.Version)
		} else {
			newest = max(newest, m.Spec.Version)
		}
	}
	if newest > oldest {
		d.Fatalf("a worker has %s, while the control plane has %s", newest, oldest)
	}
}

// infra are the RackstrapMachines of the cluster, by name.
func (d *topology) infra() map[string]*infrav1.RackstrapMachine {
	d.Helper()
	var list infrav1.RackstrapMachineList
	if err := d.Client.List(d.Context(), &list, client.InNamespace(d.c.Namespace)); err != nil {
		d.Fatal(err)
	}
	out := map[string]*infrav1.RackstrapMachine{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// templates are the RackstrapMachineTemplates and how often each was written.
func (d *topology) templates() map[string]int64 {
	d.Helper()
	var list infrav1.RackstrapMachineTemplateList
	if err := d.Client.List(d.Context(), &list, client.InNamespace(d.c.Namespace)); err != nil {
		d.Fatal(err)
	}
	out := map[string]int64{}
	for _, t := range list.Items {
		out[t.Name] = t.Generation
	}
	return out
}

// reconciled is an error unless the topology controller is content.
func (d *topology) reconciled() error {
	c := new(clusterv1.Cluster)
	if err := d.Get(d.c.Namespace, d.c.Name, c); err != nil {
		return err
	}
	if have := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition); have == nil || have.Status != metav1.ConditionTrue {
		return fmt.Errorf("TopologyReconciled: %+v", have)
	}
	return nil
}

// A cluster of the ClusterClass that we ship comes up, is scaled, has its templates
// rotated, and goes two versions up, the second of which has no image at first: what
// runs goes on, the machine that waits says what to type, and nothing more is needed
// than the image.
func TestTopology(t *testing.T) {
	t.Parallel()
	two := sim.Spec{Disks: []sim.Disk{{Bytes: 50e9}, {Bytes: 200e9}}}
	d := &topology{
		Suite:   suite.New(t, suite.Options{CAPI: true, Specs: []sim.Spec{two, two, two, two, two}}),
		c:       suite.Cluster{Name: "c1", Namespace: "default", ControlPlane: 1, Workers: 1, Version: firstVersion, Host: suite.FreeHost()},
		version: firstVersion, disk: "smallest",
	}
	for _, v := range []string{firstVersion, suite.OldKubernetesVersion} {
		d.AddImage(imageName(v), v)
	}
	etcd, err := suite.ExternalEtcd(d.c.Namespace, d.c.Name)
	if err != nil {
		t.Fatal(err)
	}
	d.Apply(etcd)
	d.Apply(d.Shipped("templates/clusterclass-rackstrap.yaml"))
	d.Kubectl("patch", "clusterclass", "rackstrap", "--type=json", "-p", ofTheLab)
	d.inspected()
	d.apply()
	d.runs("the cluster is up", d.reconciled)

	d.c.Workers = 2
	d.apply()
	d.runs("two workers run")
	d.rotated()
	d.referred()
	d.c.Workers = 1
	d.apply()
	d.runs("one worker runs")
	d.upgraded()

	d.Delete(d.c)
	d.Eventually("every machine is back, and wiped", d.AllAvailable)
	wiped(d.Suite)
}

// rotated: another value of a variable makes new templates, and machines of them take
// the place of the old ones. Asking again whether a template would change changes none.
func (d *topology) rotated() {
	d.Helper()
	before, machines := d.templates(), d.infra()
	d.disk = "largest"
	d.apply()
	d.runs("all machines are of the new templates", func() error {
		now := d.infra()
		for name, m := range now {
			if machines[name] != nil || m.Spec.Disk != "largest" {
				return fmt.Errorf("%s has the disk %s", name, m.Spec.Disk)
			}
		}
		return d.reconciled()
	})
	for name, m := range d.infra() {
		if sys, ok := d.Machine(m.Status.Hardware.Name).Installed(); !ok || sys.Disk != "/dev/sdb" {
			d.Errorf("%s is installed on %v", name, sys)
		}
	}
	// Those of the class stay; the cluster's are others.
	var after map[string]int64
	d.Eventually("the old templates are gone", func() error {
		after = d.templates()
		for name := range before {
			if _, kept := after[name]; kept != strings.HasPrefix(name, "rackstrap-") {
				return fmt.Errorf("templates %v, were %v", after, before)
			}
		}
		return nil
	})
	if len(after) != len(before) {
		d.Errorf("templates %v, were %v", after, before)
	}
	d.Kubectl("annotate", "cluster", d.c.Name, "test.example/look=again")
	d.Never(3*time.Second, "templates change", func() error {
		if now := d.templates(); !maps.Equal(now, after) {
			return fmt.Errorf("%v, were %v", now, after)
		}
		return d.reconciled()
	})
}

// referred: the class names another template for its workers, and machines of it take the
// place of those of the old one; the control plane is not touched.
func (d *topology) referred() {
	d.Helper()
	machines := d.infra()
	worker := func(o *infrav1.RackstrapMachine) bool { return o.Labels[clusterv1.MachineDeploymentNameLabel] != "" }
	template := new(infrav1.RackstrapMachineTemplate)
	if err := d.Get(d.c.Namespace, "rackstrap-default-worker", template); err != nil {
		d.Fatal(err)
	}
	template.ObjectMeta = metav1.ObjectMeta{Namespace: d.c.Namespace, Name: "rackstrap-default-worker-2"}
	template.Spec.Template.Spec.MetaData = map[string]string{"generation": "2"}
	if err := d.Client.Create(d.Context(), template); err != nil {
		d.Fatal(err)
	}
	d.Kubectl("patch", "clusterclass", "rackstrap", "--type=json", "-p", `[{"op": "replace", "path": "/spec/workers/machineDeployments/0/infrastructure/templateRef/name", "value": "rackstrap-default-worker-2"}]`)
	d.runs("the workers are of the class's other template", func() error {
		for name, o := range d.infra() {
			if worker(o) && (machines[name] != nil || o.Spec.MetaData["generation"] != "2" || o.Spec.Disk != "largest") {
				return fmt.Errorf("%s is of the old one: %+v", name, o.Spec)
			}
			if !worker(o) && machines[name] == nil {
				d.Fatalf("%s is new, a machine of the control plane", name)
			}
		}
		return d.reconciled()
	})
}

// upgraded: the control plane goes two versions up and the workers after it. It stops
// where there is no image, with all as it was, and goes on by itself.
func (d *topology) upgraded() {
	d.Helper()
	d.version = suite.KubernetesVersion
	d.apply()
	name := imageName(suite.KubernetesVersion)
	var waits *infrav1.RackstrapMachine
	d.Eventually("the upgrade waits for an image", func() error {
		d.orderly()
		for _, m := range d.infra() {
			c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.ReadyCondition)
			if c != nil && c.Reason == infrav1.ImageMissingReason && strings.Contains(c.Message, "rackstrap image add "+name+" FILE-OR-URL") {
				waits = m
				return nil
			}
		}
		return errors.New("no machine does")
	})
	d.Eventually("nothing else is under way", d.halted)
	d.Never(4*time.Second, "the upgrade goes on without an image", d.halted)
	d.Eventually("its Machine says the same", func() error {
		list, err := d.Machines(d.c)
		if err != nil {
			return err
		}
		for _, m := range list {
			c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.InfrastructureReadyCondition)
			if m.Spec.InfrastructureRef.Name == waits.Name && c != nil && strings.Contains(c.Message, "rackstrap image add "+name) && m.Spec.Version == suite.KubernetesVersion {
				return nil
			}
		}
		return errors.New("it does not")
	})
	d.AddImage(name, suite.KubernetesVersion)
	d.Within(time.Minute, "it goes on", func() error {
		if m := d.infra()[waits.Name]; m == nil || m.UID != waits.UID || m.Spec.ProviderID == "" {
			return fmt.Errorf("%+v", m)
		}
		return nil
	})
	d.Eventually("the control plane is upgraded", func() error {
		d.orderly()
		list, err := d.Machines(d.c)
		for _, m := range list {
			if _, control := m.Labels[clusterv1.MachineControlPlaneLabel]; control && (m.Spec.Version != suite.KubernetesVersion || !m.Status.NodeRef.IsDefined()) {
				err = fmt.Errorf("%s has %s, and the node %q", m.Name, m.Spec.Version, m.Status.NodeRef.Name)
			}
		}
		return err
	})
	d.c.Version = suite.KubernetesVersion
	d.runs("all machines are upgraded", d.reconciled)
}

// halted is an error unless the control plane has the version in the middle, the worker
// the first one, and nothing but those two has a claim.
func (d *topology) halted() error {
	list, err := d.Machines(d.c)
	if err != nil {
		return err
	}
	var run []string
	for _, m := range list {
		if m.Status.Phase == "Running" && m.DeletionTimestamp.IsZero() {
			run = append(run, m.Spec.Version)
		}
	}
	yes := true
	claims, err := d.API.ListClaims(d.Context(), clientapi.ClaimFilter{Active: &yes})
	if err != nil {
		return err
	}
	slices.Sort(run)
	if !slices.Equal(run, []string{firstVersion, suite.OldKubernetesVersion}) || len(list) != 3 || len(claims) != 2 {
		return fmt.Errorf("of %d machines %v run, with %d claims", len(list), run, len(claims))
	}
	return nil
}
