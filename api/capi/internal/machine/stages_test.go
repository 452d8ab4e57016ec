package machine_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/workflow"
)

// stages are machines that stay where they are until they are let go on: "steady" is
// installed, "installing" is about to be written, "waiting" waits for the Hardware that
// "deleting" had, whose BMC does not answer, and "held" has no claim.
type stages struct {
	*live
	gate func() // lets the install go on
}

func startStages(t *testing.T, o suite.Options) *stages {
	t.Helper()
	open := make(chan struct{})
	x := &stages{gate: sync.OnceFunc(func() { close(open) })}
	o.Machines = 4
	o.Guard = func(w sim.Write) error {
		if w.Machine == "sim-002" && w.What == workflow.KindImageWrite {
			select {
			case <-open:
			case <-t.Context().Done():
			}
		}
		return nil
	}
	x.live = start(t, o)
	t.Cleanup(x.gate)
	on := func(hardware string) func(*clusterv1.Machine, *infrav1.RackstrapMachine) {
		return func(_ *clusterv1.Machine, o *infrav1.RackstrapMachine) { o.Spec.HardwareName = hardware }
	}
	x.machine("steady", on("sim-001"))
	x.machine("installing", on("sim-002"))
	x.machine("deleting", on("sim-003"))
	x.machine("held", func(m *clusterv1.Machine, o *infrav1.RackstrapMachine) {
		on("sim-004")(m, o)
		o.Annotations = map[string]string{infrav1.HoldAnnotation: ""}
	})
	x.ready("steady", clusterv1.ReadyReason)
	x.ready("installing", infrav1.InstallingReason)
	x.ready("deleting", clusterv1.ReadyReason)
	x.ready("held", infrav1.OnHoldReason)
	x.machine("waiting", on("sim-003"))
	x.ready("waiting", infrav1.NoHardwareFitsReason)
	x.Machine("sim-003").SetFaults(func(f *sim.Faults) { f.NoBMC = true })
	x.remove("deleting")
	x.ready("deleting", clusterv1.DeletingReason)
	x.Eventually("the claim of what is deleted has ended", func() error {
		if n := len(x.claims(false)); n != 1 {
			return fmt.Errorf("%d have", n)
		}
		return nil
	})
	return x
}

// all are the names of the machines.
func (*stages) all() []string { return []string{"steady", "installing", "waiting", "deleting", "held"} }

// goOn lets every machine go on to its end.
func (x *stages) goOn() {
	x.gate()
	x.Machine("sim-003").SetFaults(func(f *sim.Faults) { f.NoBMC = false })
}

// installs are the names of all that were asked for, sorted.
func (x *stages) installs() []string {
	x.Helper()
	list, err := x.API.Workflows.List(x.Context())
	x.must(err)
	var out []string
	for _, w := range list {
		if w.Spec.Purpose == workflow.PurposeInstall {
			out = append(out, w.Meta.Name)
		}
	}
	slices.Sort(out)
	return out
}

// held are all claims, with the Hardware and whether they are held.
func (x *stages) held() []string {
	x.Helper()
	list, err := x.API.Claims.List(x.Context())
	x.must(err)
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprintf("%s of %s on %q, held %v", c.Meta.Name, c.Spec.Owner, c.Status.Hardware, c.Status.Ended.IsZero()))
	}
	slices.Sort(out)
	return out
}

// pause sets spec.paused of the Cluster.
func (l *live) pause(yes bool) {
	l.Helper()
	c := new(clusterv1.Cluster)
	l.must(l.Get("default", "c1", c))
	base := c.DeepCopy()
	c.Spec.Paused = ptr.To(yes)
	l.must(l.Client.Patch(l.Context(), c, ctrlclient.MergeFrom(base)))
}

// Paused at any stage, a deletion that waits among them: nothing is asked of the
// appliance until it is over, and then everything goes on from where it was.
func TestContractPausedAtEveryStage(t *testing.T) {
	t.Parallel()
	x := startStages(t, suite.Options{Proxy: true})
	x.pause(true)
	for _, name := range x.all() {
		x.Eventually(name+" is paused", func() error {
			o, err := x.object(name)
			if c := meta.FindStatusCondition(o.Status.Conditions, clusterv1.PausedCondition); err == nil && (c == nil || c.Status != metav1.ConditionTrue) {
				err = fmt.Errorf("%+v", o.Status.Conditions)
			}
			return err
		})
	}
	var mu sync.Mutex
	var asked []string
	x.Proxy.Judge(func(r suite.Request) suite.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.Path != "/events" { // what happens is listened to
			asked = append(asked, r.Method+" "+r.Path)
		}
		return suite.Fault{}
	})
	claims := x.held()
	x.remove("held", "waiting")
	x.goOn()
	x.Eventually("the appliance went on", func() error {
		w, err := x.API.Workflows.List(t.Context())
		for i := range w {
			if !w[i].Status.State.Ended() {
				err = errors.Join(err, fmt.Errorf("%s is %s", w[i].Meta.Name, w[i].Status.State))
			}
		}
		return err
	})
	x.Never(3*time.Second, "what is paused is acted upon", func() error {
		for _, name := range x.all() {
			if _, err := x.object(name); err != nil {
				return err
			}
		}
		if now := x.held(); !slices.Equal(now, claims) {
			return fmt.Errorf("claims %q, were %q", now, claims)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(asked) > 0 {
			return fmt.Errorf("the appliance was asked %q", asked)
		}
		return nil
	})
	x.Proxy.Judge(nil)
	x.pause(false)
	for _, name := range []string{"deleting", "held", "waiting"} {
		x.gone(name)
	}
	x.ready("steady", clusterv1.ReadyReason)
	x.ready("installing", clusterv1.ReadyReason)
	if n := len(x.installs()); n != 3 {
		t.Errorf("%d installs", n)
	}
}

// clusterctl moves a cluster with machines at every stage. Nothing is installed or
// claimed again, no claim ends, and all go on where they moved to. clusterctl itself
// loses one thing: what was being deleted is wanted again there, so its machine says
// that it has no claim any more.
func TestMoveAtEveryStage(t *testing.T) {
	t.Parallel()
	x := startStages(t, suite.Options{})
	target := *x.Suite
	target.Management = x.NewManagement()
	to := &live{&target}
	to.must(to.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: suite.Secret, Namespace: "default"}}))
	from := x.live

	x.initialized()
	if err := x.Move(to.Management); err == nil {
		t.Fatal("clusterctl moved a machine that has no Node")
	}
	for _, name := range x.all() {
		x.node(name)
	}
	claims, installs := x.held(), x.installs()
	x.must(x.Move(to.Management, "--dry-run"))
	x.ready("held", infrav1.OnHoldReason)
	for _, m := range []*live{from, to} {
		var list infrav1.RackstrapMachineList
		x.must(m.Client.List(t.Context(), &list, ctrlclient.InNamespace("default")))
		if n := len(list.Items); m == from && n != len(x.all()) || m == to && n != 0 {
			t.Errorf("%d machines after a move that was none", n)
		}
	}
	x.must(x.Move(to.Management))
	for _, list := range []ctrlclient.ObjectList{&clusterv1.ClusterList{}, &infrav1.RackstrapClusterList{}, &infrav1.RackstrapMachineList{}, &corev1.SecretList{}} {
		x.must(from.Client.List(t.Context(), list, ctrlclient.InNamespace("default")))
		if n := meta.LenList(list); n != 0 {
			t.Errorf("%d of %T were left behind", n, list)
		}
	}
	if now := x.held(); !slices.Equal(now, claims) {
		t.Errorf("claims %q, were %q", now, claims)
	}
	x.live = to
	x.provisioned("default", "c1")
	x.ready("steady", clusterv1.ReadyReason)
	x.ready("installing", infrav1.InstallingReason)
	x.ready("waiting", infrav1.NoHardwareFitsReason)
	x.ready("held", infrav1.OnHoldReason)
	x.ready("deleting", infrav1.ClaimLostReason)
	x.remove("deleting")
	x.ready("deleting", clusterv1.DeletingReason)
	if now := x.held(); !slices.Equal(now, claims) {
		t.Errorf("claims %q, were %q", now, claims)
	}
	if now := x.installs(); !slices.Equal(now, installs) {
		t.Errorf("installs %q, were %q", now, installs)
	}
	s := new(corev1.Secret)
	x.must(x.Get("default", suite.Secret, s))
	if !slices.Contains(s.Finalizers, infrav1.SecretFinalizer) {
		t.Errorf("the Secret has the finalizers %q", s.Finalizers)
	}
	x.goOn()
	x.gone("deleting")
	x.ready("installing", clusterv1.ReadyReason)
	x.ready("waiting", clusterv1.ReadyReason)
	x.remove(x.all()[:3]...)
	x.remove("held")
	for _, name := range x.all() {
		x.gone(name)
	}
	if n := len(x.installs()); n != 4 {
		t.Errorf("%d installs", n)
	}
	x.Eventually("everything is available", x.AllAvailable)
}

// initialized says that the control plane is there, as clusterctl asks.
func (l *live) initialized() {
	l.Helper()
	c := new(clusterv1.Cluster)
	l.must(l.Get("default", "c1", c))
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: "Initialized"})
	l.must(l.Client.Status().Update(l.Context(), c))
}

// node gives a Machine one; clusterctl moves no Machine without.
func (l *live) node(name string) {
	l.Helper()
	m := new(clusterv1.Machine)
	err := l.Get("default", name, m)
	if apierrors.IsNotFound(err) {
		return
	}
	l.must(err)
	m.Status.NodeRef.Name = name
	l.must(l.Client.Status().Update(l.Context(), m))
}
