package remediation

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// start is when the present step began; the times of the cases count from it.
func start() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// sick is a worker that is installed and whose node joined, and is unhealthy now.
func sick() *view {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "m1",
		OwnerReferences: []metav1.OwnerReference{{Kind: "MachineSet", Name: "ms1", Controller: ptr.To(true)}},
	}}
	m.Status.NodeRef.Name = "node1"
	contract.Set(m, clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionFalse, "Unhealthy", "")
	h := &hardware.Hardware{Meta: hardware.Meta{Name: "h1"}, Spec: hardware.Spec{Power: &hardware.PowerControl{Driver: hardware.PowerWebhook}}}
	h.Status.State, h.Status.Claim = hardware.StateProvisioned, &hardware.ClaimRef{ID: "claim1"}
	return &view{
		object:  &infrav1.RackstrapRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m1", UID: "12345678-9", CreationTimestamp: metav1.Time{Time: start()}}},
		machine: m, infra: &infrav1.RackstrapMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "i1"}, Spec: infrav1.RackstrapMachineSpec{ClaimID: "claim1"}},
		looked: true, hardware: h, now: start(), started: start().Add(-time.Hour),
	}
}

// TestRemediationSteps: what is next, of each step and each thing that comes between.
func TestRemediationSteps(t *testing.T) {
	t.Parallel()
	cycling := func(v *view, tries int32) {
		v.object.Status.Phase, v.object.Status.Tries = infrav1.PhasePowerCycle, ptr.To(tries)
		v.object.Status.StepStarted, v.object.Status.PowerBefore = &metav1.Time{Time: start()}, "never"
	}
	cycled := func(v *view) { cycling(v, 1); v.hardware.Status.Power.AskedAt = start() }
	over := func(v *view) { v.now = start().Add(11 * time.Minute) }
	reinstalling := func(v *view, s workflow.State) {
		v.object.Status.Phase, v.object.Status.StepStarted = infrav1.PhaseReinstall, &metav1.Time{Time: start()}
		if s != "" {
			v.install = &api.Workflow{}
			v.install.Meta.Name, v.install.Status.State, v.install.Status.Finished = "w1", s, start().Add(20*time.Minute)
		}
	}
	ready := func(v *view, reason string) {
		contract.Set(v.object, clusterv1.ReadyCondition, metav1.ConditionFalse, reason, "x")
	}
	for _, c := range []struct {
		name  string
		make  func(v *view)
		step  step
		phase infrav1.RemediationPhase
		says  string
	}{
		{"a new one", func(*view) {}, stepBegin, infrav1.PhasePowerCycle, ""},
		{"never a power cycle", func(v *view) { v.object.Spec.PowerCycles = ptr.To(int32(0)) }, stepBegin, infrav1.PhaseReplace, ""},
		{"begun, not asked", func(v *view) { cycling(v, 1) }, stepCycle, "", ""},
		{"asked: not again after a restart", cycled, stepWait, "", "was cycled (1 of 1)"},
		{"the controller refuses", func(v *view) { cycled(v); v.hardware.Status.Power.Error = "no" }, stepWait, "", "tried again: no"},
		{"it is asked again", func(v *view) {
			cycled(v)
			v.hardware.Status.Power.Error, v.now = "no", start().Add(powerAgain)
		}, stepCycle, "", ""},
		{"by hand", func(v *view) { cycled(v); v.hardware.Spec.Power = nil }, stepWait, "", "press its reset button"},
		{"on hold in the appliance", func(v *view) { cycling(v, 1); v.hardware.Status.Hold = true }, stepWait, "", "is on hold"},
		{"another power cycle", func(v *view) { cycled(v); over(v); v.object.Spec.PowerCycles = ptr.To(int32(2)) }, stepBegin, infrav1.PhasePowerCycle, ""},
		{"joined: replaced", func(v *view) { cycled(v); over(v) }, stepBegin, infrav1.PhaseReplace, ""},
		{"joined, good data", func(v *view) { cycled(v); over(v); v.object.Spec.Reinstall = infrav1.ReinstallAlways }, stepBegin, infrav1.PhaseReinstall, ""},
		{"never joined", func(v *view) { cycled(v); over(v); v.machine.Status.NodeRef.Name = "" }, stepBegin, infrav1.PhaseReinstall, ""},
		{"never", func(v *view) {
			cycled(v)
			over(v)
			v.machine.Status.NodeRef.Name, v.object.Spec.Reinstall = "", infrav1.ReinstallNever
		}, stepBegin, infrav1.PhaseReplace, ""},
		{"an install that failed is not switched, but installed", func(v *view) { v.machine.Status.NodeRef.Name, v.hardware.Status.State = "", hardware.StateFailed }, stepBegin, infrav1.PhaseReinstall, ""},
		{"an install that runs", func(v *view) { v.machine.Status.NodeRef.Name, v.hardware.Status.State = "", hardware.StateProvisioning }, stepWait, "", "is being installed"},
		{"no etcd member is made twice", func(v *view) {
			cycled(v)
			over(v)
			v.machine.Labels, v.initialized, v.machine.Status.NodeRef.Name = map[string]string{clusterv1.MachineControlPlaneLabel: ""}, true, ""
		}, stepBegin, infrav1.PhaseReplace, ""},
		{"the first of a control plane", func(v *view) {
			cycled(v)
			over(v)
			v.machine.Labels, v.machine.Status.NodeRef.Name = map[string]string{clusterv1.MachineControlPlaneLabel: ""}, ""
		}, stepBegin, infrav1.PhaseReinstall, ""},
		{"one of a control plane after the other", func(v *view) { v.before = "m0" }, stepWait, "", "m0 comes first"},
		{"reinstall, not asked", func(v *view) { reinstalling(v, "") }, stepReinstall, "", ""},
		{"refused all the time", func(v *view) { reinstalling(v, ""); over(v) }, stepBegin, infrav1.PhaseReplace, ""},
		{"it runs, as long as it takes", func(v *view) { reinstalling(v, workflow.StateRunning); over(v) }, stepWait, "", "Workflow w1 installs"},
		{"done", func(v *view) { reinstalling(v, workflow.StateSucceeded); v.now = start().Add(25 * time.Minute) }, stepWait, "", "was installed again"},
		{"done, and no help", func(v *view) { reinstalling(v, workflow.StateSucceeded); v.now = start().Add(31 * time.Minute) }, stepBegin, infrav1.PhaseReplace, ""},
		{"failed", func(v *view) { reinstalling(v, workflow.StateFailed) }, stepBegin, infrav1.PhaseReplace, ""},
		{"not to be replaced", func(v *view) { reinstalling(v, workflow.StateFailed); v.object.Spec.Replace = ptr.To(false) }, stepBegin, infrav1.PhaseGaveUp, ""},
		{"gave up", func(v *view) { v.object.Status.Phase = infrav1.PhaseGaveUp }, stepWait, "", "spec.replace is false"},
		{"replace", func(v *view) { v.object.Status.Phase = infrav1.PhaseReplace }, stepReplace, "", ""},
		{"replaced by nobody", func(v *view) {
			v.object.Status.Phase, v.machine.OwnerReferences = infrav1.PhaseReplace, nil
		}, stepWait, "", "kubectl -n ns delete machine m1"},
		{"the owner knows", func(v *view) {
			v.object.Status.Phase, v.infra.Annotations = infrav1.PhaseReplace, map[string]string{infrav1.UnhealthyAnnotation: "x"}
			contract.Set(v.machine, clusterv1.MachineOwnerRemediatedCondition, metav1.ConditionFalse, "x", "")
		}, stepWait, "", "MachineSet ms1 is asked"},

		{"nobody's", func(v *view) { v.machine = nil }, stepWait, "", clusterv1.RemediateMachineAnnotation},
		{"no RackstrapMachine", func(v *view) { v.infra = nil }, stepWait, "", "has no RackstrapMachine"},
		{"the machine goes", func(v *view) { cycling(v, 1); v.infra.DeletionTimestamp = &metav1.Time{Time: start()} }, stepWait, "", "is being deleted"},
		{"skipped", func(v *view) {
			v.machine.Annotations = map[string]string{clusterv1.MachineSkipRemediationAnnotation: ""}
		}, stepWait, "", "remove it to go on"},
		{"the Machine is paused", func(v *view) {
			cycling(v, 1)
			v.machine.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		}, stepWait, "", "is paused"},
		{"held", func(v *view) { cycling(v, 1); v.infra.Annotations = map[string]string{infrav1.HoldAnnotation: ""} }, stepWait, "", infrav1.HoldAnnotation},
		{"held no more: the step has its time again", func(v *view) { cycled(v); over(v); ready(v, infrav1.OnHoldReason) }, stepBegin, infrav1.PhasePowerCycle, ""},
		{"paused for long", func(v *view) {
			cycled(v)
			over(v)
			contract.Set(v.object, clusterv1.PausedCondition, metav1.ConditionFalse, "NotPaused", "")
			v.object.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: start().Add(10 * time.Minute)}
		}, stepWait, "", "was cycled"},
		{"we were away: the health check judges first", func(v *view) { cycled(v); over(v); v.started = v.now }, stepWait, "", "was cycled"},
		{"healthy, just made", func(v *view) {
			contract.Set(v.machine, clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionTrue, "Healthy", "")
		}, stepWait, "", "succeeds"},
		{"healthy, and forgotten", func(v *view) {
			contract.Set(v.machine, clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionTrue, "Healthy", "")
			over(v)
		}, stepDrop, "", ""},
		{"no Hardware", func(v *view) { v.infra.Spec.ClaimID = "" }, stepWait, "", "no Hardware yet"},
		{"not looked at", func(v *view) { v.looked = false }, stepLook, "", ""},
		{"the claim is gone", func(v *view) { cycling(v, 1); v.hardware.Status.Claim.ID = "another" }, stepBegin, infrav1.PhaseReplace, ""},
		{"the Hardware is gone", func(v *view) { v.hardware = nil }, stepBegin, infrav1.PhaseReplace, ""},
	} {
		v := sick()
		c.make(v)
		d := decide(v)
		if d.step != c.step || d.phase != c.phase || !strings.Contains(d.message, c.says) || c.says == "" && d.step == stepWait {
			t.Errorf("%s: step %d %s %q, want %d %s %q", c.name, d.step, d.phase, d.message, c.step, c.phase, c.says)
		}
		if again := decide(v); again != d {
			t.Errorf("%s: says another thing the second time: %+v", c.name, again)
		}
	}
}

// TestRemediationBeginsOnce: what a hold interrupts is gone on with, and not counted
// twice.
func TestRemediationBeginsOnce(t *testing.T) {
	t.Parallel()
	v := sick()
	beginning(v, infrav1.PhasePowerCycle)
	if s := v.object.Status; *s.Tries != 1 || s.PowerBefore != "never" || s.Phase != infrav1.PhasePowerCycle {
		t.Errorf("%+v", s)
	}
	v.hardware.Status.Power.AskedAt = start()
	contract.Set(v.object, clusterv1.ReadyCondition, metav1.ConditionFalse, infrav1.OnHoldReason, "x")
	v.now = start().Add(time.Hour)
	beginning(v, infrav1.PhasePowerCycle)
	if s := v.object.Status; *s.Tries != 1 || s.PowerBefore != "never" || !s.StepStarted.Time.Equal(v.now) {
		t.Errorf("%+v", s)
	}
	if d := decide(v); d.step != stepWait {
		t.Errorf("cycled again: %+v", d)
	}
	v.now = v.now.Add(time.Hour)
	beginning(v, infrav1.PhasePowerCycle)
	if s := v.object.Status; *s.Tries != 2 || s.PowerBefore != "2026-11-21T12:00:00Z" {
		t.Errorf("%+v", s)
	}
}

// TestRemediationIsMoved: in another management cluster, where the status is empty and
// the UID another one, nothing is done twice.
func TestRemediationIsMoved(t *testing.T) {
	t.Parallel()
	v := sick()
	v.object.UID = "0123456789"
	beginning(v, infrav1.PhasePowerCycle)
	name := workflowName(v.object, "c")
	if err := save(v.object); err != nil {
		t.Fatal(err)
	}
	was := v.object.Status
	v.object.UID, v.object.Status = "abcdefghij", infrav1.RackstrapRemediationStatus{}
	restore(v.object)
	if s := v.object.Status; s.Phase != was.Phase || *s.Tries != 1 || s.PowerBefore != was.PowerBefore || s.StepStarted.Sub(was.StepStarted.Time).Abs() > time.Second {
		t.Errorf("%+v, want %+v", s, was)
	}
	if got := workflowName(v.object, "c"); got != name {
		t.Errorf("the install is %s, was %s", got, name)
	}
	v.hardware.Status.Power.AskedAt = start()
	if d := decide(v); d.step != stepWait {
		t.Errorf("cycled again: %+v", d)
	}
	v.object.Status = infrav1.RackstrapRemediationStatus{}
	v.object.Annotations[infrav1.ProgressAnnotation] = "{"
	if restore(v.object); v.object.Status.Phase != "" {
		t.Errorf("%+v", v.object.Status)
	}
}
