package machine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
)

// live is the provider against a real API server, a real appliance and simulated
// machines. The test does what the core of the Cluster API would do.
type live struct{ *suite.Suite }

func start(t *testing.T, o suite.Options) *live {
	t.Helper()
	l := &live{suite.New(t, o)}
	l.cluster("c1")
	return l
}

// cluster makes a Cluster whose RackstrapCluster is ready.
func (l *live) cluster(name string) {
	l.Helper()
	l.make("default", name, nil)
	l.provisioned("default", name)
}

// make makes a Cluster and its RackstrapCluster, with more labels.
func (l *live) make(namespace, name string, labels map[string]string) {
	l.Helper()
	l.Apply(fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: RackstrapCluster, name: %[1]s}
`, name, namespace))
	c := new(clusterv1.Cluster)
	l.must(l.Get(namespace, name, c))
	infra := &infrav1.RackstrapCluster{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: namespace, Labels: map[string]string{clusterv1.ClusterNameLabel: name},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: name, UID: c.UID}},
	}}
	maps.Copy(infra.Labels, labels)
	infra.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: "10.77.255.10", Port: 6443}
	infra.Spec.Appliance.SecretRef.Name = suite.Secret
	l.must(l.Client.Create(l.Context(), infra))
}

// provisioned waits for the RackstrapCluster, and tells its Cluster so.
func (l *live) provisioned(namespace, name string) {
	l.Helper()
	l.Eventually("the RackstrapCluster is ready", func() error {
		infra := new(infrav1.RackstrapCluster)
		if err := l.Get(namespace, name, infra); err != nil {
			return err
		}
		if !ptr.Deref(infra.Status.Initialization.Provisioned, false) {
			return fmt.Errorf("%+v", infra.Status.Conditions)
		}
		return nil
	})
	c := new(clusterv1.Cluster)
	l.must(l.Get(namespace, name, c))
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	l.must(l.Client.Status().Update(l.Context(), c))
}

func (l *live) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// machine makes a Machine of c1 with its bootstrap data and its RackstrapMachine.
func (l *live) machine(name string, change func(m *clusterv1.Machine, o *infrav1.RackstrapMachine)) {
	l.Helper()
	l.machineIn("default", name, change)
}

func (l *live) machineIn(namespace, name string, change func(m *clusterv1.Machine, o *infrav1.RackstrapMachine)) {
	l.Helper()
	ctx := l.Context()
	labels := map[string]string{clusterv1.ClusterNameLabel: "c1", clusterv1.MachineDeploymentNameLabel: "md"}
	l.must(l.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-data", Namespace: namespace, Labels: map[string]string{contract.MoveLabel: ""}}, Type: "cluster.x-k8s.io/secret",
		StringData: map[string]string{"value": "## template: jinja\n#cloud-config\nruncmd: [echo t0ken-of-" + name + "]\n", "format": "cloud-config"},
	}))
	c := new(clusterv1.Cluster)
	l.must(l.Get(namespace, "c1", c))
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: namespace, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: c.Name, UID: c.UID}},
	}}
	m.Spec = clusterv1.MachineSpec{
		ClusterName: "c1", Version: suite.KubernetesVersion, Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To(name + "-data")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.Group, Kind: "RackstrapMachine", Name: name},
	}
	o := &infrav1.RackstrapMachine{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels}}
	o.Spec.Image.Name = suite.Image
	if change != nil {
		change(m, o)
	}
	l.must(l.Client.Create(ctx, m))
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: m.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}
	l.must(l.Client.Create(ctx, o))
}

func (l *live) object(name string) (*infrav1.RackstrapMachine, error) {
	o := new(infrav1.RackstrapMachine)
	return o, l.Get("default", name, o)
}

// ready waits for the reason of Ready.
func (l *live) ready(name, reason string) *infrav1.RackstrapMachine {
	l.Helper()
	var o *infrav1.RackstrapMachine
	l.Eventually(name+" is "+reason, func() (err error) {
		if o, err = l.object(name); err != nil {
			return err
		}
		for _, c := range o.Status.Conditions {
			// the conditions are written before the rest
			if c.Type == clusterv1.ReadyCondition && c.Reason == reason && (reason != clusterv1.ReadyReason || ptr.Deref(o.Status.Initialization.Provisioned, false)) {
				return nil
			}
		}
		return fmt.Errorf("%+v", o.Status.Conditions)
	})
	return o
}

// unhealthy has a Machine fail its health check.
func (l *live) unhealthy(name string) *clusterv1.Machine {
	l.Helper()
	m := new(clusterv1.Machine)
	l.must(l.Get("default", name, m))
	base := m.DeepCopy()
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse, Reason: "Unhealthy"})
	l.must(l.Client.Status().Patch(l.Context(), m, ctrlclient.MergeFrom(base)))
	return m
}

// runs waits until a machine has booted what was installed; Ready comes before that.
func (l *live) runs(hardware string) {
	l.Helper()
	l.Eventually(hardware+" runs its system", func() error {
		if sys, ok := l.Machine(hardware).Installed(); !ok || sys.Boots == 0 {
			return errors.New("not yet")
		}
		return nil
	})
}

func (l *live) remove(names ...string) {
	l.Helper()
	for _, name := range names {
		o, err := l.object(name)
		l.must(err)
		l.must(l.Client.Delete(l.Context(), o))
	}
}

func (l *live) gone(name string) {
	l.Helper()
	l.Eventually(name+" is gone", func() error {
		o, err := l.object(name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("%+v", o.Status.Conditions))
	})
}

// claims lists those of the appliance.
func (l *live) claims(active bool) []hardware.Claim {
	l.Helper()
	all, err := l.API.Claims.List(l.Context())
	l.must(err)
	return slices.DeleteFunc(all, func(c hardware.Claim) bool { return c.Status.Ended.IsZero() != active })
}

// One life: the id is written first, then the claim, the install, the provider's id and
// all that the contract wants; then the machine is known to have stopped before the
// object goes, and is wiped after it.
func TestContractOneLife(t *testing.T) {
	t.Parallel()
	l := start(t, suite.Options{Machines: 2})
	l.machine("w1", func(m *clusterv1.Machine, _ *infrav1.RackstrapMachine) { m.Spec.FailureDomain = "b" })
	o := l.ready("w1", clusterv1.ReadyReason)
	claims := l.claims(true)
	if len(claims) != 1 || claims[0].Meta.Name != o.Spec.ClaimID || claims[0].Spec.Owner != suite.OwnerPrefix+"default/c1/w1" {
		t.Fatalf("%+v", claims)
	}
	c := claims[0].Status
	if o.Spec.ProviderID != c.ProviderID || o.Status.FailureDomain != "b" || !ptr.Deref(o.Status.Initialization.Provisioned, false) || o.Spec.Appliance.SecretRef.Name != suite.Secret {
		t.Errorf("%+v", o)
	}
	addresses := fmt.Sprint(o.Status.Addresses)
	if m := l.Machine(c.Hardware); !strings.Contains(addresses, m.Addr().String()) || !strings.Contains(addresses, c.Hardware) {
		t.Errorf("addresses: %s", addresses)
	}
	sys, ok := l.Machine(c.Hardware).Installed()
	if !ok || !strings.Contains(string(sys.UserData), "t0ken-of-w1") || sys.Meta("provider-id") != c.ProviderID {
		t.Errorf("installed: %+v", sys)
	}
	if all := l.Kubectl("get", "rackstrapmachines,events,events.events.k8s.io,rackstrapclusters,machines", "-o", "yaml"); strings.Contains(all, "t0ken") {
		t.Error("the bootstrap data is in an object")
	}
	l.remove("w1")
	l.gone("w1")
	ended := l.claims(false)
	if len(ended) != 1 || ended[0].Status.Stopped == nil {
		t.Errorf("the object went before the machine is known to have stopped: %+v", ended)
	}
	l.Eventually("everything is available", l.AllAvailable)
}

// Two machines and one free Hardware: one wins, the other says what speaks against the
// rest, and gets what becomes free without anybody asking for it.
func TestNoHardwareFits(t *testing.T) {
	t.Parallel()
	l := start(t, suite.Options{Machines: 1})
	l.machine("w1", nil)
	l.ready("w1", clusterv1.ReadyReason)
	l.machine("w2", nil)
	o := l.ready("w2", infrav1.NoHardwareFitsReason)
	if !strings.Contains(fmt.Sprint(o.Status.Conditions), "1 claimed") {
		t.Errorf("%+v", o.Status.Conditions)
	}
	l.remove("w1")
	l.ready("w2", clusterv1.ReadyReason)
	l.remove("w2")
	l.gone("w2")
}

// A deletion waits for nothing: not for bootstrap data, not for the Cluster, not for an
// image, and not for a hold.
func TestNoDeletionIsGated(t *testing.T) {
	t.Parallel()
	l := start(t, suite.Options{Machines: 2})
	l.machine("data", func(m *clusterv1.Machine, _ *infrav1.RackstrapMachine) {
		m.Spec.Bootstrap.DataSecretName = nil
		m.Spec.Bootstrap.ConfigRef.Name, m.Spec.Bootstrap.ConfigRef.Kind, m.Spec.Bootstrap.ConfigRef.APIGroup = "x", "KubeadmConfig", "bootstrap.cluster.x-k8s.io"
	})
	l.machine("image", func(_ *clusterv1.Machine, o *infrav1.RackstrapMachine) { o.Spec.Image.Name = "nowhere" })
	l.machine("hold", func(_ *clusterv1.Machine, o *infrav1.RackstrapMachine) {
		o.Annotations = map[string]string{infrav1.HoldAnnotation: ""}
	})
	l.ready("data", infrav1.WaitingForBootstrapDataReason)
	o := l.ready("image", infrav1.ImageMissingReason)
	if !strings.Contains(fmt.Sprint(o.Status.Conditions), "rackstrap image add nowhere") {
		t.Errorf("%+v", o.Status.Conditions)
	}
	l.ready("hold", infrav1.OnHoldReason)
	if n := len(l.claims(true)); n != 0 {
		t.Errorf("%d claims", n)
	}
	c := new(clusterv1.Cluster)
	l.must(l.Get("default", "c1", c))
	l.remove("data", "image", "hold")
	for _, name := range []string{"data", "image", "hold"} {
		l.gone(name)
	}
	// a request for a claim that was still on its way takes nothing now
	if _, err := l.API.Claims.Create(t.Context(), &hardware.Claim{Meta: hardware.Meta{Name: o.Spec.ClaimID}, Spec: hardware.ClaimSpec{Owner: suite.OwnerPrefix + "default/c1/image"}}); err == nil {
		t.Error("a late claim took a machine")
	}
}

// Paused: nothing is done, also for a deletion, until it is over.
func TestContractPaused(t *testing.T) {
	t.Parallel()
	l := start(t, suite.Options{Machines: 1})
	l.machine("w1", nil)
	o := l.ready("w1", clusterv1.ReadyReason)
	base := o.DeepCopy()
	o.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	l.must(l.Client.Patch(t.Context(), o, ctrlclient.MergeFrom(base)))
	l.Eventually("paused", func() error {
		o, err := l.object("w1")
		for _, c := range o.Status.Conditions {
			if c.Type == clusterv1.PausedCondition && c.Status == metav1.ConditionTrue {
				return nil
			}
		}
		return errors.Join(err, errors.New("not yet"))
	})
	l.remove("w1")
	l.Never(3*time.Second, "a paused deletion is acted upon", func() error {
		if _, err := l.object("w1"); err != nil {
			return err
		}
		if len(l.claims(true)) != 1 {
			return errors.New("the claim has ended")
		}
		return nil
	})
	o, err := l.object("w1")
	l.must(err)
	base = o.DeepCopy()
	o.Annotations = nil
	l.must(l.Client.Patch(t.Context(), o, ctrlclient.MergeFrom(base)))
	l.gone("w1")
}

// The Secret leads to another appliance than the one that has the machine: its system may
// run, so that nothing is ended in the wrong place and the deletion waits, unless somebody
// says that the appliance is gone for good.
func TestSecretOfAnotherAppliance(t *testing.T) {
	t.Parallel()
	l := start(t, suite.Options{Machines: 1})
	l.machine("w1", func(_ *clusterv1.Machine, o *infrav1.RackstrapMachine) {
		o.Finalizers = []string{infrav1.MachineFinalizer}
		o.Spec.ClaimID, o.Spec.ProviderID, o.Spec.Appliance.SecretRef.Name = "far", "rackstrap://elsewhere/uid/far", suite.Secret
	})
	l.ready("w1", infrav1.ClaimLostReason)
	l.remove("w1")
	l.Eventually("the deletion says what it waits for", func() error {
		o, err := l.object("w1")
		if err != nil {
			return err
		}
		for _, c := range o.Status.Conditions {
			if c.Type == clusterv1.ReadyCondition && c.Reason == clusterv1.DeletingReason && strings.Contains(c.Message, "is of another one") {
				return nil
			}
		}
		return fmt.Errorf("%+v", o.Status.Conditions)
	})
	if all := append(l.claims(true), l.claims(false)...); len(all) > 0 {
		t.Errorf("claims in an appliance that never had one: %+v", all)
	}
	l.Kubectl("annotate", "rackstrapmachine", "w1", infrav1.SkipAnnotation+"="+infrav1.SkipRelease)
	l.gone("w1")
}
