package machine_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/deploy/lab/kube"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// leadsTo has the Secret lead to another appliance, and the machine looked at: Secrets are
// not watched.
func (l *live) leadsTo(connection map[string]string, machine string) {
	l.Helper()
	s := new(corev1.Secret)
	l.must(l.Get("default", suite.Secret, s))
	s.Data, s.StringData = nil, connection
	l.must(l.Client.Update(l.Context(), s))
	l.Kubectl("annotate", "--overwrite", "rackstrapmachine", machine, "test.example/leads-to="+s.ResourceVersion)
}

// says waits until Ready says the text, with the reason.
func (l *live) says(name, reason, text string) {
	l.Helper()
	l.Eventually(name+" says "+text, func() error {
		o, err := l.object(name)
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(o.Status.Conditions, clusterv1.ReadyCondition); c == nil || c.Reason != reason || !strings.Contains(c.Message, text) {
			return fmt.Errorf("%+v", o.Status.Conditions)
		}
		return nil
	})
}

// The Secret is replaced by one of another appliance while a machine is installed, and has
// no provider id yet. Nothing is claimed or ended over there, the object says where its
// claim is, and goes on when the Secret leads there again; a deletion waits for that.
func TestSecretOfAnotherApplianceBeforeTheInstall(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	l := start(t, suite.Options{Machines: 1, Guard: func(w sim.Write) error {
		if w.What == workflow.KindImageWrite {
			select {
			case <-open:
			case <-t.Context().Done():
			}
		}
		return nil
	}})
	first := l.Connection()
	other, second := l.NewAppliance()
	l.machine("w1", nil)
	o := l.ready("w1", infrav1.InstallingReason)
	here, err := l.API.Version(t.Context())
	l.must(err)
	if o.Spec.ProviderID != "" || o.Spec.Installation != here.Installation {
		t.Fatalf("%+v", o.Spec)
	}
	l.leadsTo(second, "w1")
	l.says("w1", infrav1.ClaimLostReason, "the claim "+o.Spec.ClaimID+" is of another one, "+here.Installation+"; put that one's url and token back")
	l.leadsTo(first, "w1")
	l.ready("w1", infrav1.InstallingReason)
	close(open)
	l.ready("w1", clusterv1.ReadyReason)
	l.leadsTo(second, "w1")
	l.remove("w1")
	l.says("w1", clusterv1.DeletingReason, "the claim "+o.Spec.ClaimID+" has to be ended there")
	all, err := other.Client.Claims.List(t.Context())
	l.must(err)
	if len(all) > 0 || len(l.claims(true)) != 1 {
		t.Errorf("claims over there: %+v; here: %+v", all, l.claims(true))
	}
	l.leadsTo(first, "w1")
	l.gone("w1")
	l.Eventually("everything is available", l.AllAvailable)
}

// etcd is a backup of the management cluster: take makes one, put restores it.
type etcd struct {
	*live
	kept string
}

func (e *etcd) take() {
	e.Helper()
	e.kept = e.TempDir()
	e.still(func(data string) error { return os.CopyFS(e.kept, os.DirFS(data)) })
}

func (e *etcd) put() {
	e.Helper()
	e.still(func(data string) error {
		return errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(e.kept)), filepath.WalkDir(data, func(path string, _ os.DirEntry, err error) error { return errors.Join(err, os.Chmod(path, 0o700)) }))
	})
}

// still does something to etcd's folder while nothing runs.
func (e *etcd) still(do func(data string) error) {
	e.Helper()
	e.must(errors.Join(e.Plane.Kill(suite.Provider), e.Plane.Kill(kube.ControllerManager), e.Plane.Kill(kube.APIServer), e.Plane.Terminate(kube.Etcd)))
	e.must(do(filepath.Join(e.Plane.Dir, "etcd")))
	for _, name := range []string{kube.Etcd, kube.APIServer, kube.ControllerManager, suite.Provider} {
		e.must(e.Plane.Restart(e.Context(), name))
	}
}

// The management cluster comes out of a backup from before a claim, and from before an
// install: the same machine has its claim back and is not installed again. An object that
// was made anew from a file is another one of its name: it claims nothing beside the claim
// that lives, says which that is, and takes it over where somebody says so.
func TestOutOfABackup(t *testing.T) {
	t.Parallel()
	l := start(t, suite.Options{Machines: 3})
	backup := &etcd{live: l}
	hold := func(_ *clusterv1.Machine, o *infrav1.RackstrapMachine) {
		o.Annotations = map[string]string{infrav1.HoldAnnotation: ""}
	}
	l.machine("w1", hold)
	l.machine("w2", hold)
	l.ready("w1", infrav1.OnHoldReason)
	l.ready("w2", infrav1.OnHoldReason)
	backup.take()
	before := map[string]*infrav1.RackstrapMachine{}
	for _, name := range []string{"w1", "w2"} {
		l.Kubectl("annotate", "rackstrapmachine", name, infrav1.HoldAnnotation+"-")
		before[name] = l.ready(name, clusterv1.ReadyReason)
	}
	backup.put()
	if o, err := l.object("w1"); err != nil || o.Spec.ClaimID != "" || o.UID != before["w1"].UID {
		t.Fatalf("that is no backup: %+v, %v", o, err)
	}
	l.Kubectl("annotate", "rackstrapmachine", "w1", infrav1.HoldAnnotation+"-")
	if o := l.ready("w1", clusterv1.ReadyReason); o.Spec.ClaimID != before["w1"].Spec.ClaimID || o.Spec.ProviderID != before["w1"].Spec.ProviderID {
		t.Errorf("%+v\nwas %+v", o.Spec, before["w1"].Spec)
	}
	l.remove("w2") // before it was seen to have a claim
	l.gone("w2")
	l.alone(before["w1"])

	o, err := l.object("w1")
	l.must(err)
	l.KillProvider()
	l.Kubectl("patch", "rackstrapmachine", "w1", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	l.Kubectl("delete", "rackstrapmachine", "w1")
	o.ObjectMeta = metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, Labels: o.Labels, OwnerReferences: o.OwnerReferences}
	o.Spec.ClaimID, o.Spec.Installation, o.Spec.ProviderID, o.Spec.Appliance = "", "", "", infrav1.ApplianceReference{}
	l.must(l.Client.Create(t.Context(), o))
	l.RestartProvider()
	id := before["w1"].Spec.ClaimID
	l.says("w1", infrav1.ClaimOfAnotherReason, "the claim "+id+" of "+suite.OwnerPrefix+"default/c1/w1")
	l.alone(before["w1"])
	c := meta.FindStatusCondition(l.ready("w1", infrav1.ClaimOfAnotherReason).Status.Conditions, clusterv1.ReadyCondition)
	_, patch, _ := strings.Cut(c.Message, "-p '")
	l.Kubectl("patch", "rackstrapmachine", "w1", "--type=merge", "-p", strings.TrimSuffix(patch, "'"))
	if o := l.ready("w1", clusterv1.ReadyReason); o.Spec.ProviderID != before["w1"].Spec.ProviderID {
		t.Errorf("%+v", o.Spec)
	}
	l.alone(before["w1"])
	list, err := l.API.Workflows.List(t.Context())
	l.must(err)
	installs := map[string]int{}
	for _, w := range list {
		if w.Spec.Purpose == workflow.PurposeInstall {
			installs[w.Spec.Claim]++
		}
	}
	if want := map[string]int{id: 1, before["w2"].Spec.ClaimID: 1}; !maps.Equal(installs, want) {
		t.Errorf("installs %v, want %v", installs, want)
	}
	l.remove("w1")
	l.gone("w1")
	l.Eventually("everything is available", l.AllAvailable)
}

// alone checks that the claim of a machine is the only one that is held.
func (l *live) alone(o *infrav1.RackstrapMachine) {
	l.Helper()
	if claims := l.claims(true); len(claims) != 1 || !slices.ContainsFunc(claims, func(c hardware.Claim) bool { return c.Meta.Name == o.Spec.ClaimID }) {
		l.Errorf("claims %+v, want %s alone", claims, o.Spec.ClaimID)
	}
}
