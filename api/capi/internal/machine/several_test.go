package machine_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// untouched is an error where a provider wrote to the object: its finalizer comes first.
func (l *live) untouched(namespace, name string, o contract.Object) error {
	if err := l.Get(namespace, name, o); err != nil {
		return err
	}
	if len(o.GetFinalizers()) > 0 || len(o.GetConditions()) > 0 {
		return fmt.Errorf("%T %s/%s has %q and %+v", o, namespace, name, o.GetFinalizers(), o.GetConditions())
	}
	return nil
}

// left lists the machines that nobody may touch.
func (l *live) left(names ...string) error {
	var err error
	for _, name := range names {
		err = errors.Join(err, l.untouched("default", name, new(infrav1.RackstrapMachine)))
	}
	return err
}

// stays deletes a machine whose provider does not run: the others leave it alone.
func (l *live) stays(name string, stir func()) {
	l.Helper()
	l.remove(name)
	stir()
	l.Never(3*time.Second, "another provider acts upon "+name, func() error {
		if _, err := l.object(name); err != nil {
			return err
		}
		for _, c := range l.claims(true) {
			if c.Spec.Owner == suite.OwnerPrefix+"default/c1/"+name {
				return nil
			}
		}
		return errors.New("its claim has ended")
	})
}

// Two providers with a --watch-filter each: objects with the label of the one are left
// alone by the other, those without a label by both, also where a Machine, a Cluster or a
// RackstrapCluster leads to them, which have labels of their own, or none.
func TestWatchFilter(t *testing.T) {
	t.Parallel()
	l := &live{suite.New(t, suite.Options{Machines: 3, NoProvider: true})}
	label := func(value string) map[string]string { return map[string]string{clusterv1.WatchLabel: value} }
	l.StartProviderAs("a", "--watch-filter=a")
	l.make("default", "c1", label("a"))
	l.provisioned("default", "c1")
	l.make("default", "c2", label("b"))
	for name, value := range map[string]string{"wa": "a", "wb": "b", "none": ""} {
		l.machine(name, func(m *clusterv1.Machine, o *infrav1.RackstrapMachine) {
			o.Labels = maps.Clone(o.Labels)
			m.Labels = maps.Clone(o.Labels)
			maps.Copy(m.Labels, label("a"))
			if value != "" {
				maps.Copy(o.Labels, label(value))
			}
		})
	}
	m := new(clusterv1.Machine)
	l.must(l.Get("default", "wb", m))
	r := &infrav1.RackstrapRemediation{ObjectMeta: metav1.ObjectMeta{
		Name: "wb", Namespace: "default", Labels: label("b"),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "wb", UID: m.UID}},
	}}
	l.must(l.Client.Create(t.Context(), r))
	l.Apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: RackstrapMachineTemplate\nmetadata: {name: tb, namespace: default, labels: {cluster.x-k8s.io/cluster-name: c1, cluster.x-k8s.io/watch-filter: b}}\nspec: {template: {spec: {image: {name: node}}}}\n")
	l.ready("wa", clusterv1.ReadyReason)

	domains := 0
	stir := func() { // all that leads to other objects
		domains++
		l.Kubectl("patch", "rackstrapcluster", "c1", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"failureDomains":{"label":"d%d"}}}`, domains))
		l.Kubectl("annotate", "--overwrite", "machines", "wa", "wb", "none", fmt.Sprintf("test.example/stirred=%d", domains))
		for _, name := range []string{"c1", "c2"} {
			l.Kubectl("label", "--overwrite", "cluster", name, "cluster.x-k8s.io/watch-filter=a")
			l.Kubectl("patch", "cluster", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"controlPlaneEndpoint":{"host":"10.77.255.%d","port":6443}}}`, domains))
		}
	}
	stir()
	l.Never(3*time.Second, "somebody else's object is touched", func() error {
		return errors.Join(
			l.left("wb", "none"), l.untouched("default", "c2", new(infrav1.RackstrapCluster)),
			l.untouched("default", "wb", new(infrav1.RackstrapRemediation)), l.untouched("default", "tb", new(infrav1.RackstrapMachineTemplate)),
		)
	})
	l.must(l.Client.Delete(t.Context(), r))

	l.StartProviderAs("b", "--watch-filter=b")
	l.ready("wb", clusterv1.ReadyReason)
	l.must(l.Plane.Kill("a"))
	l.stays("wa", stir)
	l.must(l.left("none"))
	l.must(l.Plane.Restart(t.Context(), "a"))
	l.gone("wa")
	l.remove("wb")
	l.gone("wb")
	l.must(l.left("none"))
	l.Eventually("everything is available", l.AllAvailable)
}

// Two providers with a --namespace each.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	l := &live{suite.New(t, suite.Options{Machines: 1, NoProvider: true})}
	l.ApplianceSecret("there")
	l.StartProviderAs("there", "--namespace=there")
	l.make("default", "c1", nil)
	l.make("there", "c1", nil)
	there := func() error {
		c := new(infrav1.RackstrapCluster)
		if err := l.Get("there", "c1", c); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ReadyCondition) {
			return fmt.Errorf("%+v", c.Status.Conditions)
		}
		return nil
	}
	l.Eventually("the cluster there is ready", there)
	l.must(l.untouched("default", "c1", new(infrav1.RackstrapCluster)))
	l.StartProviderAs("here", "--namespace=default")
	l.provisioned("default", "c1")
	l.machine("w1", nil)
	l.ready("w1", clusterv1.ReadyReason)
	l.must(l.Plane.Kill("here"))
	l.stays("w1", func() { l.Kubectl("annotate", "machine", "w1", "test.example/stirred=1") })
	l.must(l.Plane.Restart(t.Context(), "here"))
	l.gone("w1")
	l.must(there())
}

// A remediation that waits for somebody in the appliance goes on when they are done: it is
// told so, and does not look every now and then only.
func TestRemediationHearsTheAppliance(t *testing.T) {
	t.Parallel()
	l := start(t, suite.Options{Machines: 1})
	l.machine("w1", nil)
	o := l.ready("w1", clusterv1.ReadyReason)
	name := o.Status.Hardware.Name
	l.runs(name)
	m := l.unhealthy("w1")
	_, err := l.API.Hold(t.Context(), name, true)
	l.must(err)
	l.must(l.Client.Create(t.Context(), &infrav1.RackstrapRemediation{ObjectMeta: metav1.ObjectMeta{
		Name: "w1", Namespace: "default", Labels: map[string]string{clusterv1.ClusterNameLabel: "c1"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "w1", UID: m.UID}},
	}}))
	message := func(reason string) string {
		r := new(infrav1.RackstrapRemediation)
		l.must(l.Get("default", "w1", r))
		if c := meta.FindStatusCondition(r.Status.Conditions, clusterv1.ReadyCondition); c != nil && c.Reason == reason {
			return c.Message
		}
		return ""
	}
	onHold := "Hardware " + name + " is on hold or in maintenance: somebody looks after it (see: rackstrap explain " + name + ")"
	l.Eventually("it waits for somebody", func() error {
		if got := message(infrav1.RemediatingReason); got != onHold {
			return errors.New(got)
		}
		return nil
	})
	boots := l.Machine(name).Boots()
	_, err = l.API.Hold(t.Context(), name, false)
	l.must(err)
	l.Within(20*time.Second, "the power is cycled", func() error {
		if n := l.Machine(name).Boots(); n == boots {
			return fmt.Errorf("%d boots: %s", n, message(infrav1.RemediatingReason))
		}
		return nil
	})
}
