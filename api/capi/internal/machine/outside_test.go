package machine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// token makes a claimer, and the data of a Secret for it.
func (l *live) token(name string, spec api.NewTokenSpec) map[string]string {
	l.Helper()
	spec.Role = hardware.RoleClaimer
	made, err := l.API.CreateToken(l.Context(), name, spec)
	l.must(err)
	out := l.Connection()
	out["token"], out["ownerPrefix"] = made.Secret, spec.OwnerPrefix
	return out
}

// The token in the Secret becomes one of another tenant, ends, or is revoked, while a
// machine is installed, runs, and is deleted. Nothing is claimed or ended with it, the
// object says what is wrong, and goes on with the right token.
func TestTokenOfTheSecretChanges(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	l := start(t, suite.Options{Machines: 2, Guard: func(w sim.Write) error {
		if w.What == workflow.KindImageWrite {
			select {
			case <-open:
			case <-t.Context().Done():
			}
		}
		return nil
	}})
	right := l.Connection()
	tenant := l.token("tenant", api.NewTokenSpec{OwnerPrefix: "other/"})
	l.machine("w1", nil)
	id := l.ready("w1", infrav1.InstallingReason).Spec.ClaimID
	mine := func() {
		t.Helper()
		if held := l.claims(true); len(held) != 1 || held[0].Meta.Name != id || held[0].Spec.Owner != suite.OwnerPrefix+"default/c1/w1" {
			t.Errorf("claims %+v, want %s alone", held, id)
		}
	}

	l.leadsTo(tenant, "w1")
	l.says("w1", infrav1.ApplianceRefusedReason, "claim")
	mine()
	l.leadsTo(right, "w1")
	l.ready("w1", infrav1.InstallingReason)
	close(open)
	l.ready("w1", clusterv1.ReadyReason)

	l.leadsTo(tenant, "w1")
	l.says("w1", infrav1.ClaimLostReason, "its token may not see")
	end := time.Now().Add(2 * time.Second)
	short := l.token("short", api.NewTokenSpec{OwnerPrefix: suite.OwnerPrefix, Expires: end.UTC().Format(time.RFC3339)})
	l.Eventually("a token has ended", func() error {
		if time.Now().Before(end) {
			return errors.New("not yet")
		}
		return nil
	})
	l.leadsTo(short, "w1")
	l.says("w1", infrav1.ApplianceRefusedReason, "expired")
	l.leadsTo(right, "w1")
	l.ready("w1", clusterv1.ReadyReason)

	l.leadsTo(tenant, "w1")
	l.remove("w1")
	l.says("w1", clusterv1.DeletingReason, "the claim "+id+" has to be ended there")
	mine()
	l.must(l.API.RevokeToken(t.Context(), "tenant"))
	l.Kubectl("annotate", "rackstrapmachine", "w1", "test.example/look=again")
	l.says("w1", clusterv1.DeletingReason, "token")
	l.leadsTo(l.token("new", api.NewTokenSpec{OwnerPrefix: suite.OwnerPrefix}), "w1")
	l.gone("w1")
	l.Eventually("everything is available", l.AllAvailable)
}

// Somebody on the appliance gives a machine back that runs, and takes its record away: the
// object says so, claims nothing instead, and its deletion waits for nothing.
func TestHardwareIsTakenAway(t *testing.T) {
	t.Parallel()
	l := start(t, suite.Options{Machines: 2})
	l.machine("w1", nil)
	o := l.ready("w1", clusterv1.ReadyReason)
	name := o.Status.Hardware.Name
	l.runs(name)
	_, err := l.API.ReleaseClaim(t.Context(), o.Spec.ClaimID)
	l.must(err)
	l.says("w1", infrav1.ClaimLostReason, "was ended in the appliance")
	l.Eventually("the machine is available", func() error {
		h, err := l.API.Hardware.Get(t.Context(), name)
		if err == nil && h.Status.State != hardware.StateAvailable {
			err = fmt.Errorf("it is %s", h.Status.State)
		}
		return err
	})
	l.must(l.API.Hardware.Delete(t.Context(), name, 0))
	l.Kubectl("annotate", "rackstrapmachine", "w1", "test.example/look=again")
	l.says("w1", infrav1.ClaimLostReason, "was ended in the appliance")
	if held := l.claims(true); len(held) > 0 {
		t.Errorf("claims %+v", held)
	}
	if now, err := l.object("w1"); err != nil || now.Spec.ProviderID != o.Spec.ProviderID || now.Status.Initialization.Provisioned == nil {
		t.Errorf("%+v, %v", now, err)
	}
	l.remove("w1")
	l.gone("w1")
}

// Two clusters have the same name, and so have their machines, in two namespaces. One
// namespace is deleted with all that is in it, at once and in no order: its machine is given
// back, its Secret stays until then, and the other one is not touched.
func TestNamespaceIsDeleted(t *testing.T) {
	t.Parallel()
	l := start(t, suite.Options{Machines: 2})
	l.ApplianceSecret("there")
	l.make("there", "c1", nil)
	l.provisioned("there", "c1")
	l.machine("w1", nil)
	l.machineIn("there", "w1", nil)
	o := l.ready("w1", clusterv1.ReadyReason)
	other := new(infrav1.RackstrapMachine)
	l.Eventually("the other one is ready", func() error {
		if err := l.Get("there", "w1", other); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(other.Status.Conditions, clusterv1.ReadyCondition) {
			return fmt.Errorf("%+v", other.Status.Conditions)
		}
		return nil
	})
	l.runs(other.Status.Hardware.Name)
	l.Machine(other.Status.Hardware.Name).SetFaults(func(f *sim.Faults) { f.NoBMC = true })
	l.Kubectl("delete", "namespace", "there", "--wait=false")
	l.Eventually("its claim has ended", func() error {
		if ended := l.claims(false); len(ended) != 1 || ended[0].Spec.Owner != suite.OwnerPrefix+"there/c1/w1" {
			return fmt.Errorf("%+v", ended)
		}
		return nil
	})
	l.Eventually("all that it needs is being deleted, and there", func() error {
		for _, x := range []ctrlclient.Object{&infrav1.RackstrapMachine{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}, &infrav1.RackstrapCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: suite.Secret}}} {
			l.must(l.Get("there", x.GetName(), x))
			if x.GetDeletionTimestamp().IsZero() {
				return fmt.Errorf("%T is not being deleted", x)
			}
		}
		return nil
	})
	l.Machine(other.Status.Hardware.Name).SetFaults(func(f *sim.Faults) { f.NoBMC = false })
	l.Eventually("the namespace is gone", func() error {
		n := new(corev1.Namespace)
		if err := l.Get("", "there", n); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%+v, %w", n.Status.Conditions, err)
		}
		return nil
	})
	l.alone(o)
	l.ready("w1", clusterv1.ReadyReason)
	l.remove("w1")
	l.gone("w1")
	l.Eventually("everything is available", l.AllAvailable)
}

// Paused before a remediation begins, and while one is under way: the machine is not
// switched, and a remediation that is deleted stays, until the pause is over.
func TestRemediationPaused(t *testing.T) {
	t.Parallel()
	l := start(t, suite.Options{Machines: 1})
	l.machine("w1", nil)
	name := l.ready("w1", clusterv1.ReadyReason).Status.Hardware.Name
	l.runs(name)
	m := l.unhealthy("w1")
	remediation := func() (*infrav1.RackstrapRemediation, error) {
		r := new(infrav1.RackstrapRemediation)
		return r, l.Get("default", "w1", r)
	}
	isPaused := func() {
		t.Helper()
		l.Eventually("the remediation is paused", func() error {
			r, err := remediation()
			if err == nil && !meta.IsStatusConditionTrue(r.Status.Conditions, clusterv1.PausedCondition) {
				err = fmt.Errorf("%+v", r.Status.Conditions)
			}
			return err
		})
	}
	boots := l.Machine(name).Boots()
	still := func() error {
		if n := l.Machine(name).Boots(); n != boots {
			return fmt.Errorf("%d boots, were %d", n, boots)
		}
		_, err := remediation()
		return err
	}
	l.pause(true)
	l.must(l.Client.Create(t.Context(), &infrav1.RackstrapRemediation{
		ObjectMeta: metav1.ObjectMeta{
			Name: "w1", Namespace: "default", Labels: map[string]string{clusterv1.ClusterNameLabel: "c1"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "w1", UID: m.UID}},
		},
	}))
	isPaused()
	l.Never(3*time.Second, "a paused remediation does something", still)
	l.pause(false)
	l.Eventually("the power is cycled", func() error {
		if l.Machine(name).Boots() == boots {
			return errors.New("not yet")
		}
		return nil
	})
	l.pause(true)
	isPaused()
	boots = l.Machine(name).Boots()
	r, err := remediation()
	l.must(err)
	l.must(l.Client.Delete(t.Context(), r))
	l.Never(3*time.Second, "a paused remediation goes, or does something", still)
	l.pause(false)
	l.Eventually("it is gone", func() error {
		if _, err := remediation(); !apierrors.IsNotFound(err) {
			return fmt.Errorf("still there: %w", err)
		}
		return nil
	})
}
