package suite_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rackstrap/rackstrap/api/capi/suite"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/workflow"
)

// watched is a worker that takes the machine with the label first before any other, and a
// health check that looks at the Machine's condition, which is all that there is of a
// machine that never became a node.
const watched = `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: RackstrapMachineTemplate
metadata: {name: w, namespace: default}
spec: {template: {spec: {image: {name: node}, disk: smallest, preferred: [{weight: 100, hardwareSelector: {matchLabels: {first: "yes"}}}]}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: RackstrapRemediationTemplate
metadata: {name: r, namespace: default}
spec: {template: {spec: {timeoutSeconds: 30}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: w, namespace: default}
spec:
  clusterName: c1
  replicas: 1
  selector: {matchLabels: {}}
  template:
    spec:
      clusterName: c1
      version: v1.36.3
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: c1}}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: RackstrapMachineTemplate, name: w}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata: {name: h, namespace: default}
spec:
  clusterName: c1
  selector: {matchLabels: {cluster.x-k8s.io/deployment-name: w}}
  checks:
    nodeStartupTimeoutSeconds: 0
    unhealthyMachineConditions: [{type: InfrastructureReady, status: "False", timeoutSeconds: 60}]
  remediation: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: RackstrapRemediationTemplate, name: r}}
`

// A machine whose install fails, however often it is tried, is seen by a health check of the
// real core: our remediation installs it again, gives it up, and the cluster has the size
// that is wanted, on another Hardware.
func TestFailedInstallIsRemediated(t *testing.T) {
	t.Parallel()
	s := suite.New(t, suite.Options{CAPI: true, Machines: 2})
	c := suite.Cluster{Name: "c1"}
	s.Create(&c)
	bad := s.AddMachine(sim.Spec{Name: "bad", Labels: map[string]string{"first": "yes"}})
	bad.SetFaults(func(f *sim.Faults) { f.Fail = map[workflow.Kind]int{workflow.KindImageWrite: 1000} })
	s.Apply(watched)

	const patience = 6 * time.Minute
	o := new(infrav1.RackstrapMachine)
	s.Within(patience, "the install failed", func() error {
		var list infrav1.RackstrapMachineList
		if err := s.Client.List(t.Context(), &list); err != nil {
			return err
		}
		for i := range list.Items {
			if x := &list.Items[i]; x.Status.Hardware != nil && x.Status.Hardware.Name == bad.Name() {
				if r := meta.FindStatusCondition(x.Status.Conditions, clusterv1.ReadyCondition); r != nil && r.Reason == infrav1.InstallFailedReason {
					*o = *x
					return nil
				}
				return fmt.Errorf("%+v", x.Status.Conditions)
			}
		}
		return errors.New("nobody has it")
	})
	s.Within(patience, "the health check sees it", func() error {
		m := new(clusterv1.Machine)
		if err := s.Get("default", o.Name, m); err != nil {
			return err
		}
		h := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
		if h == nil || h.Reason != clusterv1.MachineHealthCheckUnhealthyMachineReason || !strings.Contains(h.Message, "InfrastructureReady") {
			return fmt.Errorf("%+v", m.Status.Conditions)
		}
		return nil
	})
	reinstalled := ""
	s.Within(patience, "it is installed again, and given up", func() error {
		list, err := s.API.Workflows.List(t.Context())
		if err != nil {
			return err
		}
		for _, w := range list {
			if w.Spec.Claim == o.Spec.ClaimID && w.Spec.Purpose == workflow.PurposeInstall && w.Meta.Name != "capi-"+o.Spec.ClaimID {
				reinstalled = w.Meta.Name
			}
		}
		if err := s.Get("default", o.Name, new(infrav1.RackstrapMachine)); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %w", err)
		}
		return nil
	})
	if reinstalled == "" {
		t.Error("it was not installed again before it was given up")
	}
	c.Workers = 1
	s.Within(patience, "the cluster has the size that is wanted", func() error { return s.Running(c) })
	h, err := s.API.Hardware.Get(t.Context(), bad.Name())
	if err != nil || !h.Status.Quarantined() || !strings.Contains(h.Status.QuarantinedFor(), "remediation of the Machine "+o.Name) {
		t.Errorf("not quarantined for the remediation: %+v, %v", h.Status, err)
	}
	s.Within(patience, "the health check is content", func() error {
		x := new(clusterv1.MachineHealthCheck)
		if err := s.Get("default", "h", x); err != nil {
			return err
		}
		if ptr.Deref(x.Status.ExpectedMachines, 0) != 1 || ptr.Deref(x.Status.CurrentHealthy, 0) != 1 {
			return fmt.Errorf("%+v", x.Status)
		}
		return nil
	})
}
