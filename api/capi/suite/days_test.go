package suite_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"

	"github.com/rackstrap/rackstrap/api/capi/suite"
	"github.com/rackstrap/rackstrap/api/capi/suite/allocator"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/workflow"
)

// workers are one machine with an address of a pool, whose kubelet is not told its
// provider id. The templates differ in what becomes of the Hardware.
const workers = `apiVersion: ipam.lab.example/v1alpha1
kind: LabIPPool
metadata: {name: nodes, namespace: default}
spec: {first: 10.77.100.10, count: 10, prefix: 16, gateway: 10.77.0.1}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: RackstrapMachineTemplate
metadata: {name: keep, namespace: default}
spec: {template: {spec: {image: {name: node}, disk: smallest, reuse: {disks: Keep}, network: {addresses: [{poolRef: {apiGroup: ipam.lab.example, kind: LabIPPool, name: nodes}}]}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: RackstrapMachineTemplate
metadata: {name: wipe, namespace: default}
spec: {template: {spec: {image: {name: node}, disk: smallest, reuse: {disks: Wipe}, network: {addresses: [{poolRef: {apiGroup: ipam.lab.example, kind: LabIPPool, name: nodes}}]}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: RackstrapMachineTemplate
metadata: {name: last, namespace: default}
spec: {template: {spec: {image: {name: node}, disk: smallest, reuse: {disks: Wipe}}}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: w, namespace: default}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {name: "{{ ds.meta_data.local_hostname }}"}}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: RackstrapRemediationTemplate
metadata: {name: r, namespace: default}
spec: {template: {spec: {timeoutSeconds: 40}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: w, namespace: default}
spec:
  clusterName: c1
  replicas: 1
  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}
  selector: {matchLabels: {}}
  template:
    spec:
      clusterName: c1
      version: v1.36.3
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: w}}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: RackstrapMachineTemplate, name: keep}
`

const healthCheck = `apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata: {name: h, namespace: default}
spec:
  clusterName: c1
  selector: {matchLabels: {cluster.x-k8s.io/deployment-name: w}}
  checks:
    nodeStartupTimeoutSeconds: 0
    unhealthyNodeConditions: [{type: Ready, status: Unknown, timeoutSeconds: 2}]
  remediation: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: RackstrapRemediationTemplate, name: r}}
`

// days is a cluster with one worker, and what befalls it.
type days struct {
	*suite.Suite
	c suite.Cluster
}

// worker waits until the workers are so many, and run, and returns one that is none of
// those.
func (d *days) worker(count int, not ...string) *infrav1.RackstrapMachine {
	d.Helper()
	d.c.Workers = count
	o := new(infrav1.RackstrapMachine)
	d.Eventually(fmt.Sprintf("%d workers run", count), func() error {
		if err := d.Running(d.c); err != nil {
			return err
		}
		list, err := d.Machines(d.c)
		if err != nil {
			return err
		}
		for _, m := range list {
			if m.Labels[clusterv1.MachineDeploymentNameLabel] != "w" || !m.DeletionTimestamp.IsZero() || strings.Contains(strings.Join(not, " "), m.Name) {
				continue
			}
			return d.Get("default", m.Spec.InfrastructureRef.Name, o)
		}
		return errors.New("it is not another one yet")
	})
	return o
}

// written are the kinds of the writes to a machine's disk from the n-th write of the
// rack on.
func (d *days) written(machine, disk string, n int) []string {
	var out []string
	for _, w := range d.Rack.Writes()[n:] {
		if w.Machine == machine && w.Disk == disk {
			out = append(out, string(w.What))
		}
	}
	return out
}

// rollOut has the worker replaced by one of another template, whose kubelet is told its
// provider id.
func (d *days) rollOut(template string, old *infrav1.RackstrapMachine) *infrav1.RackstrapMachine {
	d.Helper()
	d.Kubectl("patch", "machinedeployment", "w", "--type=merge", "-p", `{"spec": {"template": {"spec": {"bootstrap": {"configRef": {"name": "c1"}}, "infrastructureRef": {"name": "`+template+`"}}}}}`)
	d.freed(old)
	return d.worker(1, old.Name)
}

// freed waits until the pool's address of a machine is given back, which is not before
// its system stopped.
func (d *days) freed(old *infrav1.RackstrapMachine) {
	d.Helper()
	if len(old.Spec.Network.Addresses) == 0 {
		return
	}
	d.Eventually("the address of "+old.Name+" is free", func() error {
		err := d.Get("default", old.Name+"-0", new(ipamv1.IPAddress))
		if err == nil {
			return errors.New("not yet")
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		claim, err := d.API.Claims.Get(d.Context(), old.Spec.ClaimID)
		if err == nil && claim.Status.Stopped == nil {
			d.Errorf("the address of %s is free, and its system may run: %+v", old.Name, claim.Status)
		}
		return err
	})
}

// What befalls a worker in its life: its provider id is written for it, it is changed in
// place, rolled out with its disks kept and wiped, restarted by a health check, given up
// by it, and scaled in.
func TestDays(t *testing.T) {
	t.Parallel()
	two := sim.Spec{Disks: []sim.Disk{{Bytes: 50e9}, {Bytes: 200e9}}, Rack: "a"}
	d := &days{Suite: suite.New(t, suite.Options{CAPI: true, Specs: []sim.Spec{two, two, two, two}}), c: suite.Cluster{Name: "c1"}}
	d.Apply(allocator.CRD)
	d.Kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "labippools.ipam.lab.example")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- allocator.Run(ctx, d.Config) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	d.Create(&d.c)
	d.Apply(workers)
	o := d.worker(1)
	checkNodes(d.Suite, d.c)
	d.address(o)
	d.changed(o)
	o = d.kept(o)
	o = d.wipedFor(o)
	d.Apply(healthCheck)
	d.restarted(o)
	o = d.replaced(o)
	d.scaledIn(o)
	d.installedOnce()
}

// address: what the pool gave is in the machine's network configuration, and in the
// status.
func (d *days) address(o *infrav1.RackstrapMachine) {
	d.Helper()
	ip := new(ipamv1.IPAddress)
	if err := d.Get("default", o.Name+"-0", ip); err != nil {
		d.Fatal(err)
	}
	sys, ok := d.Machine(o.Status.Hardware.Name).Installed()
	if !ok || !strings.Contains(string(sys.NetworkConfig), ip.Spec.Address+"/16") {
		d.Errorf("the network-config has no %s:\n%s", ip.Spec.Address, sys.NetworkConfig)
	}
	if s := fmt.Sprint(o.Status.Addresses); !strings.Contains(s, ip.Spec.Address) {
		d.Errorf("status.addresses: %s, want %s", s, ip.Spec.Address)
	}
	for _, c := range o.Status.Conditions {
		if c.Type == infrav1.AddressesReadyCondition && c.Status == metav1.ConditionTrue {
			return
		}
	}
	d.Errorf("AddressesReady: %+v", o.Status.Conditions)
}

// changed: all but what is written once may be changed, and nothing is done about it.
func (d *days) changed(o *infrav1.RackstrapMachine) {
	d.Helper()
	n := len(d.Rack.Writes())
	d.Kubectl("label", "rackstrapmachine", o.Name, "changed=yes")
	d.Kubectl("patch", "rackstrapmachine", o.Name, "--type=merge", "-p",
		`{"spec": {"image": {"name": "node-old"}, "disk": "largest", "parameters": {"a": 1}, "metaData": {"a": "b"}, "hardwareSelector": {"matchLabels": {"not": "there"}}, "requirements": {"cpus": 4000}}}`)
	// one that was just started looks at everything
	d.KillProvider()
	d.RestartProvider()
	d.Never(3*time.Second, "the machine is touched", func() error { return d.Running(d.c) })
	now := new(infrav1.RackstrapMachine)
	if err := d.Get("default", o.Name, now); err != nil {
		d.Fatal(err)
	}
	if now.Spec.ClaimID != o.Spec.ClaimID || now.Spec.ProviderID != o.Spec.ProviderID || fmt.Sprint(now.Status.Addresses) != fmt.Sprint(o.Status.Addresses) {
		d.Errorf("it was %+v, and is %+v", o, now)
	}
	if more := d.Rack.Writes()[n:]; len(more) > 0 {
		d.Errorf("it was written to: %+v", more)
	}
}

// kept: the replacement has the same Hardware, and nobody wrote to its other disk.
func (d *days) kept(o *infrav1.RackstrapMachine) *infrav1.RackstrapMachine {
	d.Helper()
	n := len(d.Rack.Writes())
	next := d.rollOut("wipe", o)
	name := o.Status.Hardware.Name
	if next.Status.Hardware.Name != name {
		d.Errorf("on %s, want %s again", next.Status.Hardware.Name, name)
	}
	if w := d.written(name, "/dev/sdb", n); len(w) > 0 {
		d.Errorf("the disk that was to be kept: %v", w)
	}
	if w := strings.Join(d.written(name, "/dev/sda", n), " "); w == "" {
		d.Error("the system was not installed again")
	}
	return next
}

// wipedFor: the replacement has the same Hardware, wiped.
func (d *days) wipedFor(o *infrav1.RackstrapMachine) *infrav1.RackstrapMachine {
	d.Helper()
	n := len(d.Rack.Writes())
	name := o.Status.Hardware.Name
	next := d.rollOut("last", o)
	if next.Status.Hardware.Name != name {
		d.Errorf("on %s, want %s again", next.Status.Hardware.Name, name)
	}
	for _, disk := range []string{"/dev/sda", "/dev/sdb"} {
		if w := strings.Join(d.written(name, disk, n), " "); !strings.HasPrefix(w, "disk.wipe") {
			d.Errorf("%s: %q, want it wiped first", disk, w)
		}
	}
	return next
}

// phase waits for a step of the remediation of a machine.
func (d *days) phase(name string, want infrav1.RemediationPhase) {
	d.Helper()
	r := new(infrav1.RackstrapRemediation)
	d.Eventually("the remediation is in "+string(want), func() error {
		if err := d.Get("default", name, r); err != nil {
			return err
		}
		if r.Status.Phase != want {
			return fmt.Errorf("%s: %+v", r.Status.Phase, r.Status.Conditions)
		}
		return nil
	})
}

// restarted: a machine whose node is silent is switched off and on, once, though the
// provider is killed meanwhile; healthy again, it is left alone.
func (d *days) restarted(o *infrav1.RackstrapMachine) {
	d.Helper()
	m := d.Machine(o.Status.Hardware.Name)
	boots, n := m.Boots(), len(d.Rack.Writes())
	m.Halt()
	d.phase(o.Name, infrav1.PhasePowerCycle)
	d.KillProvider()
	d.RestartProvider()
	d.Eventually("it is healthy, and the remediation gone", func() error {
		if err := d.Get("default", o.Name, new(infrav1.RackstrapRemediation)); !apierrors.IsNotFound(err) {
			return fmt.Errorf("still there: %w", err)
		}
		return d.Running(d.c)
	})
	if got := m.Boots() - boots; got != 1 {
		d.Errorf("%d boots, want 1", got)
	}
	if more := d.Rack.Writes()[n:]; len(more) > 0 {
		d.Errorf("it was written to: %+v", more)
	}
}

// replaced: one that shows no sign of life is replaced by another Hardware, and
// quarantined.
func (d *days) replaced(o *infrav1.RackstrapMachine) *infrav1.RackstrapMachine {
	d.Helper()
	m := d.Machine(o.Status.Hardware.Name)
	m.SetFaults(func(f *sim.Faults) { f.Hang = 1000 })
	m.Halt()
	d.phase(o.Name, infrav1.PhasePowerCycle)
	next := d.worker(1, o.Name)
	if next.Status.Hardware.Name == m.Name() {
		d.Errorf("the machine that was given up is used again: %s", m.Name())
	}
	h, err := d.API.Hardware.Get(d.Context(), m.Name())
	if err != nil || !h.Status.Quarantined() || !strings.Contains(h.Status.QuarantinedFor(), "remediation of the Machine "+o.Name) {
		d.Errorf("not quarantined for the remediation: %+v, %v", h.Status, err)
	}
	return next
}

// scaledIn: of two workers the one goes that is marked.
func (d *days) scaledIn(o *infrav1.RackstrapMachine) {
	d.Helper()
	d.Kubectl("scale", "machinedeployment", "w", "--replicas=2")
	other := d.worker(2, o.Name)
	d.Kubectl("annotate", "machine", o.Name, clusterv1.DeleteMachineAnnotation+"=")
	d.Kubectl("scale", "machinedeployment", "w", "--replicas=1")
	if left := d.worker(1, o.Name); left.Name != other.Name {
		d.Errorf("%s is left, want %s", left.Name, other.Name)
	}
}

// installedOnce: no claim has two installs.
func (d *days) installedOnce() {
	d.Helper()
	list, err := d.API.Workflows.List(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	seen := map[string]string{}
	for _, w := range list {
		if w.Spec.Purpose != workflow.PurposeInstall {
			continue
		}
		if was, ok := seen[w.Spec.Claim]; ok {
			d.Errorf("the claim %s has the installs %s and %s", w.Spec.Claim, was, w.Meta.Name)
		}
		seen[w.Spec.Claim] = w.Meta.Name
	}
}
