package suite_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// A cluster that runs moves to another management cluster, both made by clusterctl init,
// and back: its machines, nodes, claims and installs stay as they are, and it goes on
// growing and shrinking where it is.
func TestMove(t *testing.T) {
	t.Parallel()
	s := suite.New(t, suite.Options{Machines: 4, CAPI: true, Clusterctl: true})
	c := suite.Cluster{Name: "c1", Workers: 1}
	s.Create(&c)
	first, second := s.Management, s.NewManagement()
	if err := second.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: suite.Secret, Namespace: "default"}}); err != nil {
		t.Fatal(err)
	}
	before := belongings(s, c)
	move := func(to *suite.Management) {
		from := s.Management
		if err := from.Move(to); err != nil {
			t.Fatal(err)
		}
		s.Management = to
		s.Eventually("all machines run where they moved to", func() error { return s.Running(c) })
		checkNodes(s, c)
		for _, list := range []client.ObjectList{&clusterv1.MachineList{}, &infrav1.RackstrapMachineList{}, &infrav1.RackstrapMachineTemplateList{}, &corev1.SecretList{}} {
			if err := from.Client.List(t.Context(), list, client.InNamespace("default")); err != nil {
				t.Fatal(err)
			}
			if n := meta.LenList(list); n != 0 {
				t.Errorf("%d of %T were left behind", n, list)
			}
		}
	}
	move(second)
	if after := belongings(s, c); !slices.Equal(after, before) {
		t.Errorf("%q, were %q", after, before)
	}
	scale(s, &c, 2)
	before = belongings(s, c)
	move(first)
	if after := belongings(s, c); !slices.Equal(after, before) {
		t.Errorf("%q, were %q", after, before)
	}
	scale(s, &c, 1)
	s.Delete(c)
	s.Eventually("every machine is back, and wiped", s.AllAvailable)
}

func scale(s *suite.Suite, c *suite.Cluster, n int) {
	s.Helper()
	c.Workers = n
	s.Kubectl("scale", "machinedeployment", c.WorkersName(), fmt.Sprintf("--replicas=%d", n))
	s.Eventually(fmt.Sprintf("%d workers run", n), func() error { return s.Running(*c) })
}

// belongings are the claims and installs of the appliance, and the machines and nodes of
// a cluster.
func belongings(s *suite.Suite, c suite.Cluster) []string {
	s.Helper()
	var out []string
	claims, err := s.API.Claims.List(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, x := range claims {
		out = append(out, fmt.Sprintf("claim %s of %s on %s, held %v", x.Meta.Name, x.Spec.Owner, x.Status.Hardware, x.Status.Ended.IsZero()))
	}
	workflows, err := s.API.Workflows.List(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, x := range workflows {
		out = append(out, fmt.Sprintf("workflow %s", x.Meta.Name))
	}
	machines, err := s.Machines(c)
	if err != nil {
		s.Fatal(err)
	}
	for _, x := range machines {
		out = append(out, fmt.Sprintf("machine %s %s %s", x.Name, x.Spec.ProviderID, x.Status.NodeRef.Name))
	}
	for _, h := range s.Hardware() {
		out = append(out, fmt.Sprintf("%s booted %d times", h.Meta.Name, s.Machine(h.Meta.Name).Boots()))
	}
	slices.Sort(out)
	return out
}
