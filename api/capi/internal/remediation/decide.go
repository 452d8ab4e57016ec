package remediation

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rackstrap/rackstrap/api"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

const (
	// defaultTimeout is how long a step may take to make the node healthy.
	defaultTimeout = 10 * time.Minute
	// settle is what a health check has to come to a verdict: after we were started, and
	// before a remediation is taken for one that nobody needs any more.
	settle = time.Minute
	// powerAgain is between two tries at a power controller that refuses.
	powerAgain = 20 * time.Second
)

// step is what is done next.
type step int

const (
	// stepWait: nothing, until something happens.
	stepWait step = iota
	// stepLook reads what the appliance has of the machine.
	stepLook
	// stepBegin writes the next phase into the status, before anything of it is done.
	stepBegin
	// stepCycle asks for the power cycle that the status says.
	stepCycle
	// stepReinstall asks for the install.
	stepReinstall
	// stepReplace tells the Machine's owner, and the release to come.
	stepReplace
	// stepDrop deletes a remediation that nobody needs.
	stepDrop
)

// view is all that a decision is made from. What is nil is not there.
type view struct {
	object  *infrav1.RackstrapRemediation
	machine *clusterv1.Machine
	infra   *infrav1.RackstrapMachine
	// initialized: the cluster has a control plane, which a reinstall must not make again.
	initialized bool
	// before is the remediation of another control plane machine that comes first.
	before string
	// looked: hardware and install are what the appliance says; nil: there is none.
	looked   bool
	hardware *hardware.Hardware
	install  *api.Workflow
	now      time.Time
	// started is when this process was.
	started time.Time
}

// decision is the next step, and what is said of it.
type decision struct {
	step            step
	phase           infrav1.RemediationPhase // of stepBegin
	reason, message string
	// again is when to look again; 0: something wakes us.
	again time.Duration
}

func waits(reason, format string, args ...any) decision {
	return decision{reason: reason, message: fmt.Sprintf(format, args...)}
}

// decide says what is next for a remediation that is not being deleted.
func decide(v *view) decision {
	if d := decideApart(v); d != nil {
		return *d
	}
	switch v.object.Status.Phase {
	case infrav1.PhasePowerCycle:
		return decidePower(v)
	case infrav1.PhaseReinstall:
		return decideReinstall(v)
	case infrav1.PhaseReplace:
		return decideReplace(v)
	case infrav1.PhaseGaveUp:
		return gaveUp(v)
	}
	return next(v)
}

// decideApart is for machines of which nothing is done now; nil: something is.
func decideApart(v *view) *decision {
	wait := func(reason, format string, args ...any) *decision {
		d := waits(reason, format, args...)
		return &d
	}
	m := v.machine
	switch {
	case m == nil:
		return wait(infrav1.RemediationNotPossibleReason, "No Machine owns this object: a MachineHealthCheck makes it; to have a Machine remediated, annotate it with %s", clusterv1.RemediateMachineAnnotation)
	case v.infra == nil:
		return wait(infrav1.RemediationNotPossibleReason, "The Machine %s has no RackstrapMachine", m.Name)
	case !m.DeletionTimestamp.IsZero() || !v.infra.DeletionTimestamp.IsZero():
		return wait(infrav1.RemediationNotPossibleReason, "The Machine %s is being deleted; nothing is done to it", m.Name)
	case has(m, clusterv1.MachineSkipRemediationAnnotation):
		return wait(infrav1.RemediationNotPossibleReason, "The Machine %s has the annotation %s; remove it to go on", m.Name, clusterv1.MachineSkipRemediationAnnotation)
	case has(m, clusterv1.PausedAnnotation) || has(v.infra, clusterv1.PausedAnnotation):
		return wait(infrav1.OnHoldReason, "The Machine %s is paused; remove the annotation %s to go on", m.Name, clusterv1.PausedAnnotation)
	case has(v.infra, infrav1.HoldAnnotation):
		return wait(infrav1.OnHoldReason, "The annotation %s of the RackstrapMachine %s stops it here; remove it to go on", infrav1.HoldAnnotation, v.infra.Name)
	case healthy(m):
		// The health check makes us before it writes its verdict. It deletes us when the
		// machine is healthy; but not where it stopped between the two, or is gone.
		d := waits(infrav1.RemediatingReason, "The health check of the Machine %s succeeds; nothing is done to it", m.Name)
		if age := v.now.Sub(v.object.CreationTimestamp.Time); age < settle {
			d.again = settle - age
		} else {
			d.step = stepDrop
		}
		return &d
	case v.infra.Spec.ClaimID == "":
		return wait(infrav1.RemediationNotPossibleReason, "The Machine %s has no Hardware yet (see: kubectl -n %s describe rackstrapmachine %s)", m.Name, v.infra.Namespace, v.infra.Name)
	case !v.looked:
		return &decision{step: stepLook}
	case resumed(v.object):
		// What stood still has its whole time again: nobody judged the node meanwhile.
		return &decision{step: stepBegin, phase: v.object.Status.Phase}
	}
	return nil
}

func has(o metav1.Object, annotation string) bool {
	_, ok := o.GetAnnotations()[annotation]
	return ok
}

// healthy reports whether a health check says that the machine is.
func healthy(m *clusterv1.Machine) bool {
	return status(m.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition) == metav1.ConditionTrue
}

func status(list []metav1.Condition, kind string) metav1.ConditionStatus {
	if c := find(list, kind); c != nil {
		return c.Status
	}
	return ""
}

func find(list []metav1.Condition, kind string) *metav1.Condition {
	for i := range list {
		if list[i].Type == kind {
			return &list[i]
		}
	}
	return nil
}

// resumed reports whether the last that was said of a step is that it stands still.
func resumed(o *infrav1.RackstrapRemediation) bool {
	c := find(o.Status.Conditions, clusterv1.ReadyCondition)
	return o.Status.Phase != "" && c != nil && c.Reason == infrav1.OnHoldReason
}

// lost says why the claim gives us no machine to do something to, empty if it does.
func lost(v *view) string {
	h := v.hardware
	switch {
	case h == nil:
		return fmt.Sprintf("The appliance has no Hardware for the claim %s any more", v.infra.Spec.ClaimID)
	case h.Status.Claim == nil || h.Status.Claim.ID != v.infra.Spec.ClaimID:
		return fmt.Sprintf("Hardware %s is not held by the claim %s any more", h.Meta.Name, v.infra.Spec.ClaimID)
	}
	return ""
}

// next is the first phase after the present one that makes sense.
func next(v *view) decision {
	done := v.object.Status.Phase
	if lost(v) == "" {
		if done == "" || done == infrav1.PhasePowerCycle {
			if tries := ptr.Deref(v.object.Status.Tries, 0); installed(v) && tries < ptr.Deref(v.object.Spec.PowerCycles, 1) {
				return begin(v, infrav1.PhasePowerCycle)
			}
		}
		if done != infrav1.PhaseReinstall && keepOff(v) == "" {
			return begin(v, infrav1.PhaseReinstall)
		}
		if h := v.hardware; h.Status.State == hardware.StateProvisioning {
			return waits(infrav1.RemediatingReason, "Hardware %s is being installed; nothing is done before that has ended (see: rackstrap explain %s)", h.Meta.Name, h.Meta.Name)
		}
	}
	if !ptr.Deref(v.object.Spec.Replace, true) {
		return decision{step: stepBegin, phase: infrav1.PhaseGaveUp}
	}
	return decision{step: stepBegin, phase: infrav1.PhaseReplace}
}

// begin waits for a control plane machine that comes first: two that are restarted at
// the same time may cost etcd its quorum.
func begin(v *view, p infrav1.RemediationPhase) decision {
	if v.before != "" {
		d := waits(infrav1.RemediatingReason, "The remediation of the control plane machine %s comes first", v.before)
		d.again = settle
		return d
	}
	return decision{step: stepBegin, phase: p}
}

// installed reports whether there is a system that a power cycle would start.
func installed(v *view) bool { return v.hardware.Status.State == hardware.StateProvisioned }

// keepOff says why the machine is not installed again; empty: it is.
func keepOff(v *view) string {
	joined := v.machine.Status.NodeRef.IsDefined()
	switch policy := v.object.Spec.Reinstall; {
	case policy == infrav1.ReinstallNever:
		return "spec.reinstall is Never"
	case v.hardware.Status.State == hardware.StateProvisioning:
		return "it is being installed"
	case v.initialized && controlPlane(v.machine):
		// Its bootstrap data would make a second cluster of the same name, or a second
		// member of etcd; whoever replaces the Machine takes the old member out first.
		return "the control plane is there already"
	case joined && policy != infrav1.ReinstallAlways:
		return "its node has joined, and its bootstrap data is good for one join only"
	}
	return ""
}

func controlPlane(m *clusterv1.Machine) bool {
	_, ok := m.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// left is how long the present step has yet, from since on or from when it could be
// judged at all.
func left(v *view, since time.Time) time.Duration {
	limit := defaultTimeout
	if s := v.object.Spec.TimeoutSeconds; s > 0 {
		limit = time.Duration(s) * time.Second
	}
	if c := find(v.object.Status.Conditions, clusterv1.PausedCondition); c != nil && c.LastTransitionTime.After(since) {
		since = c.LastTransitionTime.Time
	}
	end := since.Add(limit)
	if grace := v.started.Add(min(settle, limit)); grace.After(end) {
		end = grace
	}
	return end.Sub(v.now)
}

func begun(v *view) time.Time {
	if t := v.object.Status.StepStarted; t != nil {
		return t.Time
	}
	return v.now
}

// asked is when the appliance was last asked to switch the machine, as PowerBefore has it.
func asked(h *hardware.Hardware) string {
	if h.Status.Power.AskedAt.IsZero() {
		return "never"
	}
	return h.Status.Power.AskedAt.UTC().Format(time.RFC3339Nano)
}

func decidePower(v *view) decision {
	if lost(v) != "" {
		return next(v)
	}
	h, p := v.hardware, v.hardware.Status.Power
	n, of := ptr.Deref(v.object.Status.Tries, 1), ptr.Deref(v.object.Spec.PowerCycles, 1)
	rest := left(v, begun(v))
	if rest <= 0 {
		return next(v)
	}
	if h.Status.Hold || h.Status.Maintenance {
		d := waits(infrav1.RemediatingReason, "Hardware %s is on hold or in maintenance: somebody looks after it (see: rackstrap explain %s)", h.Meta.Name, h.Meta.Name)
		d.again = rest
		return d
	}
	if asked(h) == v.object.Status.PowerBefore {
		return decision{step: stepCycle}
	}
	if p.Error != "" {
		d := waits(infrav1.RemediatingReason, "The power of Hardware %s could not be cycled (%d of %d); it is tried again: %s (see: rackstrap power %s status)", h.Meta.Name, n, of, p.Error, h.Meta.Name)
		if d.again = powerAgain - v.now.Sub(p.AskedAt); d.again <= 0 {
			d = decision{step: stepCycle}
		}
		return d
	}
	d := waits(infrav1.RemediatingReason, "The power of Hardware %s was cycled (%d of %d); its node has time to become healthy", h.Meta.Name, n, of)
	if byHand(h) {
		d.message = fmt.Sprintf("Hardware %s has no power control: press its reset button, or switch it off and on (%d of %d)", h.Meta.Name, n, of)
	}
	d.again = rest
	return d
}

func byHand(h *hardware.Hardware) bool {
	return h.Spec.Power == nil || h.Spec.Power.Driver == hardware.PowerManual
}

// workflowName is that of the install: asked for again, it is the same.
func workflowName(o *infrav1.RackstrapRemediation, claim string) string {
	return fmt.Sprintf("capi-%.40s-%.8s", claim, id(o))
}

func decideReinstall(v *view) decision {
	w := v.install
	switch {
	case lost(v) != "":
		return next(v)
	case w == nil && left(v, begun(v)) <= 0:
		return next(v) // it was refused all the time
	case w == nil:
		return decision{step: stepReinstall}
	case !w.Status.State.Ended():
		return waits(infrav1.RemediatingReason, "Workflow %s installs Hardware %s again (see: rackstrap explain %s)", w.Meta.Name, v.hardware.Meta.Name, v.hardware.Meta.Name)
	case w.Status.State != workflow.StateSucceeded:
		return next(v)
	}
	rest := left(v, later(begun(v), w.Status.Finished))
	if rest <= 0 {
		return next(v)
	}
	d := waits(infrav1.RemediatingReason, "Hardware %s was installed again; its node has time to become healthy", v.hardware.Meta.Name)
	d.again = rest
	return d
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func decideReplace(v *view) decision {
	if metav1.GetControllerOf(v.machine) == nil {
		return waits(infrav1.RemediationGaveUpReason, "Nothing helped, and the Machine %s has no owner that would replace it: kubectl -n %s delete machine %s", v.machine.Name, v.machine.Namespace, v.machine.Name)
	}
	if !has(v.infra, infrav1.UnhealthyAnnotation) || status(v.machine.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition) != metav1.ConditionFalse {
		return decision{step: stepReplace}
	}
	return waits(infrav1.RemediatingReason, "Nothing helped: %s %s is asked to replace the Machine (see its condition %s)", metav1.GetControllerOf(v.machine).Kind, metav1.GetControllerOf(v.machine).Name, clusterv1.MachineOwnerRemediatedCondition)
}

func gaveUp(v *view) decision {
	return waits(infrav1.RemediationGaveUpReason, "Nothing helped, and spec.replace is false: look at the machine, or replace it (kubectl -n %s delete machine %s)", v.machine.Namespace, v.machine.Name)
}
