package suite_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rackstrap/rackstrap/api/capi/suite"
)

// The way of a cluster: a control plane and a worker, a second worker, one less, and
// away. What runs is what was claimed, and everything comes back wiped.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	s := suite.New(t, suite.Options{Machines: 4, CAPI: true})
	c := suite.Cluster{Name: "c1", Workers: 1}
	s.Create(&c)
	checkNodes(s, c)

	scale(s, &c, 3)
	checkNodes(s, c)
	scale(s, &c, 1)
	s.Eventually("two machines are back", func() error { return available(s, 2) })
	s.Delete(c)
	s.Eventually("every machine is back, and wiped", s.AllAvailable)
	wiped(s)
}

// checkNodes compares the workload cluster's nodes with what was installed.
func checkNodes(s *suite.Suite, c suite.Cluster) {
	s.Helper()
	w := s.Nodes.Workload(c.Endpoint())
	if w == nil {
		s.Fatal("there is no workload cluster")
	}
	var nodes corev1.NodeList
	if err := w.Client.List(s.Context(), &nodes); err != nil {
		s.Fatal(err)
	}
	by := map[string]string{}
	for _, n := range nodes.Items {
		by[n.Spec.ProviderID] = n.Name
		if n.Status.NodeInfo.KubeletVersion != c.Version {
			s.Errorf("%s has the kubelet %s, want %s", n.Name, n.Status.NodeInfo.KubeletVersion, c.Version)
		}
	}
	list, err := s.Machines(c)
	if err != nil {
		s.Fatal(err)
	}
	for _, m := range list {
		if by[m.Spec.ProviderID] != m.Status.NodeRef.Name || m.Spec.ProviderID == "" {
			s.Errorf("%s has the provider id %q and the node %q; nodes are %v", m.Name, m.Spec.ProviderID, m.Status.NodeRef.Name, by)
		}
	}
}

func available(s *suite.Suite, want int) error {
	n := 0
	for _, h := range s.Hardware() {
		if h.Status.State == "available" {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d machines are available, want %d", n, want)
	}
	return nil
}

// wiped checks that each disk that was written was wiped after it.
func wiped(s *suite.Suite) {
	s.Helper()
	last := map[string]string{}
	for _, w := range s.Rack.Writes() {
		last[w.Machine+" "+w.Disk] = string(w.What)
	}
	if len(last) == 0 {
		s.Error(errors.New("nothing was written"))
	}
	for disk, what := range last {
		if what != "disk.wipe" {
			s.Errorf("the last write to %s was %s", disk, what)
		}
	}
}
