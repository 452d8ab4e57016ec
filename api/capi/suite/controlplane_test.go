package suite_test

import (
	"fmt"
	"testing"

	"github.com/rackstrap/rackstrap/api/capi/suite"
)

// A control plane of one becomes three, one again, and another version, whose image is
// looked up; each machine that went is wiped.
func TestControlPlane(t *testing.T) {
	t.Parallel()
	// two in each of three racks: wherever the worker is, each has one for the control plane
	s := suite.New(t, suite.Options{Machines: 6, CAPI: true})
	c := suite.Cluster{Name: "c1", Workers: 1, Version: suite.OldKubernetesVersion}
	s.Create(&c)
	for _, n := range []int{3, 1} {
		c.ControlPlane = n
		s.Kubectl("scale", "kubeadmcontrolplane", c.ControlPlaneName(), fmt.Sprintf("--replicas=%d", n))
		s.Eventually(fmt.Sprintf("%d control plane machines run", n), func() error { return s.Running(c) })
		checkNodes(s, c)
	}

	// Workers are never newer than the control plane.
	patch := func(kind, name, text string) { s.Kubectl("patch", kind, name, "--type=merge", "-p", text) }
	patch("kubeadmcontrolplane", c.ControlPlaneName(), `{"spec": {"version": "`+suite.KubernetesVersion+`"}}`)
	s.Eventually("the control plane is upgraded", func() error {
		list, err := s.Machines(c)
		if err != nil {
			return err
		}
		n := 0
		for _, m := range list {
			if m.Spec.Version == suite.KubernetesVersion && m.Status.Phase == "Running" {
				n++
			}
		}
		if n != 1 || len(list) != 2 {
			return fmt.Errorf("%d machines of %d are", n, len(list))
		}
		return nil
	})
	patch("machinedeployment", c.WorkersName(), `{"spec": {"template": {"spec": {"version": "`+suite.KubernetesVersion+`"}}}}`)
	c.Version = suite.KubernetesVersion
	s.Eventually("the workers are upgraded", func() error { return s.Running(c) })
	checkNodes(s, c)
	s.Delete(c)
	s.Eventually("every machine is back, and wiped", s.AllAvailable)
	wiped(s)
}
