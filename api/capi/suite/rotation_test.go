package suite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
)

// A control plane and a MachineDeployment are pointed at another RackstrapMachineTemplate,
// which is the way to change one: all machines are replaced by machines of it, on disks
// that it names, and the old template can go. A name that is no template's replaces
// nothing. Then the cluster is deleted while it is paused: nothing happens until the pause
// is over.
func TestRotationByReference(t *testing.T) {
	t.Parallel()
	two := sim.Spec{Disks: []sim.Disk{{Bytes: 50e9}, {Bytes: 200e9}}}
	s := suite.New(t, suite.Options{CAPI: true, Specs: []sim.Spec{two, two, two, two}})
	c := suite.Cluster{Name: "c1", ControlPlane: 1, Workers: 1}
	s.Create(&c)
	before := infraOf(s, c)

	s.Kubectl("patch", "machinedeployment", c.WorkersName(), "--type=merge", "-p", `{"spec": {"template": {"spec": {"infrastructureRef": {"name": "nowhere"}}}}}`)
	s.Never(4*time.Second, "machines go for a template that is not there", func() error {
		for name := range before {
			o := new(infrav1.RackstrapMachine)
			if err := s.Get("default", name, o); err != nil {
				return err
			}
			if !o.DeletionTimestamp.IsZero() {
				return fmt.Errorf("%s is being deleted", name)
			}
		}
		return nil
	})
	s.Apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: RackstrapMachineTemplate\nmetadata: {name: second, namespace: default}\nspec: {template: {spec: {image: {name: node}, disk: largest}}}\n")
	s.Kubectl("patch", "kubeadmcontrolplane", c.ControlPlaneName(), "--type=merge", "-p", `{"spec": {"machineTemplate": {"spec": {"infrastructureRef": {"name": "second"}}}}}`)
	s.Kubectl("patch", "machinedeployment", c.WorkersName(), "--type=merge", "-p", `{"spec": {"template": {"spec": {"infrastructureRef": {"name": "second"}}}}}`)
	s.Eventually("all machines are of the other template", func() error {
		if err := s.Running(c); err != nil {
			return err
		}
		for name, o := range infraOf(s, c) {
			if before[name] != nil || o.Annotations[clusterv1.TemplateClonedFromNameAnnotation] != "second" {
				return fmt.Errorf("%s is of %s", name, o.Annotations[clusterv1.TemplateClonedFromNameAnnotation])
			}
		}
		return nil
	})
	checkNodes(s, c)
	for name, o := range infraOf(s, c) {
		if sys, ok := s.Machine(o.Status.Hardware.Name).Installed(); !ok || sys.Disk != "/dev/sdb" {
			t.Errorf("%s is installed on %+v", name, sys)
		}
	}
	s.Kubectl("delete", "rackstrapmachinetemplate", c.Name)
	deletedWhilePaused(s, c)
}

// infraOf are the RackstrapMachines of a cluster, by name.
func infraOf(s *suite.Suite, c suite.Cluster) map[string]*infrav1.RackstrapMachine {
	s.Helper()
	var list infrav1.RackstrapMachineList
	if err := s.Client.List(s.Context(), &list, client.InNamespace(c.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: c.Name}); err != nil {
		s.Fatal(err)
	}
	out := map[string]*infrav1.RackstrapMachine{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// deletedWhilePaused deletes a paused cluster, its infrastructure and its Secret: all stay
// as they are, and go when the pause is over.
func deletedWhilePaused(s *suite.Suite, c suite.Cluster) {
	s.Helper()
	s.Kubectl("patch", "cluster", c.Name, "--type=merge", "-p", `{"spec": {"paused": true}}`)
	s.Eventually("all is paused", func() error {
		var err error
		for name, o := range infraOf(s, c) {
			if !meta.IsStatusConditionTrue(o.Status.Conditions, clusterv1.PausedCondition) {
				err = fmt.Errorf("%s: %+v", name, o.Status.Conditions)
			}
		}
		return err
	})
	held := belongings(s, c)
	for _, what := range []string{"cluster/" + c.Name, "rackstrapcluster/" + c.Name, "secret/" + suite.Secret} {
		s.Kubectl("delete", "--wait=false", what)
	}
	for name := range infraOf(s, c) {
		s.Kubectl("delete", "--wait=false", "rackstrapmachine", name)
	}
	s.Never(5*time.Second, "what is paused is taken down", func() error {
		if now := belongings(s, c); strings.Join(now, "\n") != strings.Join(held, "\n") {
			return fmt.Errorf("%q, were %q", now, held)
		}
		if n := len(infraOf(s, c)); n != c.ControlPlane+c.Workers {
			return fmt.Errorf("%d machines are left", n)
		}
		return s.Get("default", suite.Secret, new(corev1.Secret))
	})
	s.Kubectl("patch", "cluster", c.Name, "--type=merge", "-p", `{"spec": {"paused": false}}`)
	s.Eventually("all is gone", func() error {
		for _, x := range []client.Object{&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name}}, &infrav1.RackstrapCluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: suite.Secret}}} {
			if err := s.Get("default", x.GetName(), x); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T is there, or not known to be: %w", x, err)
			}
		}
		return nil
	})
	s.Eventually("every machine is back, and wiped", s.AllAvailable)
}
