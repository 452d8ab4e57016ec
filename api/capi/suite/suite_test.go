package suite_test

import (
	"errors"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// The harness itself: everything is up, and the core takes a RackstrapCluster as its
// own, which needs our CRDs' labels and the core's own rights.
func TestHarness(t *testing.T) {
	t.Parallel()
	s := suite.New(t, suite.Options{Machines: 2, CAPI: true})
	s.Apply(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c1, namespace: default}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: RackstrapCluster, name: c1}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: RackstrapCluster
metadata: {name: c1, namespace: default}
spec:
  controlPlaneEndpoint: {host: 10.77.255.10, port: 6443}
  appliance: {secretRef: {name: rackstrap}}
`)
	s.Eventually("the core owns the RackstrapCluster", func() error {
		c := new(infrav1.RackstrapCluster)
		if err := s.Get("default", "c1", c); err != nil {
			return err
		}
		if c.Labels[clusterv1.ClusterNameLabel] != "c1" || len(c.OwnerReferences) != 1 {
			return errors.New("no owner yet")
		}
		return nil
	})
	s.KillProvider()
	s.RestartProvider()
	s.Eventually("every machine is available", s.AllAvailable)
}
