package remediation

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/capi/internal/appliance"
	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
)

// looking is a view and where more of it is found.
type looking struct {
	view
	app *appliance.Appliance
}

// run does step after step until there is none. Errors of the appliance are decisions.
func (r *Reconciler) run(ctx context.Context, v *looking) (decision, error) {
	asking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for range 10 { // more are none of one look
		d := decide(&v.view)
		var err error
		switch d.step {
		case stepWait, stepDrop:
			return d, nil
		case stepBegin:
			beginning(&v.view, d.phase)
			return d, nil
		case stepLook:
			err = r.look(asking, v)
		case stepCycle:
			_, err = v.app.Power(asking, v.hardware.Meta.Name, api.Power{Action: api.PowerActionCycle, NextBoot: "disk"})
			if p := new(api.Problem); errors.As(err, &p) && p.Code == api.CodePowerFailed {
				err = nil // it is in the Hardware's status
			}
			if err == nil {
				err = r.look(asking, v)
			}
		case stepReinstall:
			var stop *decision
			if stop, err = r.reinstall(asking, v); stop != nil {
				return *stop, nil
			}
		case stepReplace:
			err = r.replace(ctx, v)
		}
		if err == nil {
			continue
		}
		reason, message := appliance.Trouble(err)
		if reason == "" {
			return d, err
		}
		return decision{reason: reason, message: message, again: soon}, nil
	}
	return decision{again: soon}, nil
}

// look reads the Hardware, and the install that we asked for.
func (r *Reconciler) look(ctx context.Context, v *looking) error {
	var err error
	if v.app == nil {
		if v.app, err = r.Appliances.For(ctx, v.infra.Namespace, v.infra.Spec.Appliance); err != nil {
			return err
		}
	}
	rq := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(v.object)}
	r.places.Put(rq, appliance.Place{Secret: v.app.Secret})
	v.looked, v.hardware, v.install = true, nil, nil
	claim, err := found(v.app.Claims.Get(ctx, v.infra.Spec.ClaimID))
	if err != nil || claim == nil || !claim.Status.Ended.IsZero() {
		return err
	}
	h, err := found(v.app.Hardware.Get(ctx, claim.Status.Hardware))
	if err != nil || h == nil || h.Meta.UID != claim.Status.UID {
		return err
	}
	r.places.Put(rq, appliance.Place{Secret: v.app.Secret, Hardware: h.Meta.Name})
	v.hardware = h
	v.install, err = found(v.app.Workflows.Get(ctx, workflowName(v.object, v.infra.Spec.ClaimID)))
	return err
}

// found makes nil of what is not found.
func found[T any](x *T, err error) (*T, error) {
	if p := new(api.Problem); errors.As(err, &p) && p.Code == api.CodeNotFound {
		return nil, nil
	}
	return x, err
}

// reinstall asks for the install that the status says, under the same claim: the
// machine stays the same node.
func (r *Reconciler) reinstall(ctx context.Context, v *looking) (*decision, error) {
	refused := func(why string) *decision {
		d := waits(infrav1.RemediatingReason, "Hardware %s cannot be installed again now: %s", v.hardware.Meta.Name, why)
		d.again = soon
		return &d
	}
	rq, why, err := r.Install(ctx, v.app, v.infra, v.machine, v.hardware)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return refused(why), nil
	}
	rq.Name, rq.Reinstall = workflowName(v.object, v.infra.Spec.ClaimID), true
	_, err = v.app.Provision(ctx, v.hardware.Meta.Name, rq)
	if p := new(api.Problem); errors.As(err, &p) && p.Status < 500 && p.Code != api.CodeExists {
		return refused(p.Error()), nil
	} else if err != nil && !errors.As(err, &p) {
		return nil, err
	}
	return nil, r.look(ctx, v)
}

// replace tells the release to come that the machine is not to be given to others, and
// then the Machine's owner, which decides whether it is safe to delete the Machine now.
func (r *Reconciler) replace(ctx context.Context, v *looking) error {
	if !has(v.infra, infrav1.UnhealthyAnnotation) {
		base := v.infra.DeepCopy()
		if v.infra.Annotations == nil {
			v.infra.Annotations = map[string]string{}
		}
		v.infra.Annotations[infrav1.UnhealthyAnnotation] = fmt.Sprintf("remediation of the Machine %s gave up: neither a power cycle nor a new install helped", v.machine.Name)
		if err := r.Patch(ctx, v.infra, client.MergeFrom(base)); err != nil {
			return err
		}
	}
	if status(v.machine.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition) == metav1.ConditionFalse {
		return nil
	}
	base := v.machine.DeepCopy()
	contract.Set(v.machine, clusterv1.MachineOwnerRemediatedCondition, metav1.ConditionFalse, clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, "Neither a power cycle nor a new install helped")
	return r.Status().Patch(ctx, v.machine, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// end lets a remediation go that was deleted. A machine that was switched off by a power
// cycle that did not come to its end is on again before; not one that is being deleted.
func (r *Reconciler) end(ctx context.Context, v *looking) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(v.object, infrav1.RemediationFinalizer) {
		return ctrl.Result{}, nil
	}
	if lives(&v.view) {
		if err := r.forgive(ctx, v); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.leaveOn(ctx, v); err != nil {
			reason, message := appliance.Trouble(err)
			if reason == "" {
				return ctrl.Result{}, err
			}
			if v.now.Sub(v.object.DeletionTimestamp.Time) < letGo {
				return ctrl.Result{RequeueAfter: soon}, nil
			}
			r.recorder.Eventf(v.object, nil, "Warning", reason, "Remediate", "nobody knows whether the machine is on: %s", message)
		}
		if healthy(v.machine) {
			r.recorder.Eventf(v.object, nil, "Normal", infrav1.RemediationSucceededReason, "Remediate", "the Machine %s is healthy again", v.machine.Name)
		}
	}
	base := v.object.DeepCopy()
	controllerutil.RemoveFinalizer(v.object, infrav1.RemediationFinalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, v.object, client.MergeFrom(base)))
}

// lives reports whether the machine of a remediation is to go on.
func lives(v *view) bool {
	return v.object.Status.Phase != "" && v.machine != nil && v.machine.DeletionTimestamp.IsZero() &&
		v.infra != nil && v.infra.DeletionTimestamp.IsZero() && v.infra.Spec.ClaimID != ""
}

// forgive takes back that the machine was given up, where it is healthy after all.
func (r *Reconciler) forgive(ctx context.Context, v *looking) error {
	if !has(v.infra, infrav1.UnhealthyAnnotation) || status(v.machine.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition) == metav1.ConditionFalse && !healthy(v.machine) {
		return nil
	}
	base := v.infra.DeepCopy()
	delete(v.infra.Annotations, infrav1.UnhealthyAnnotation)
	return client.IgnoreNotFound(r.Patch(ctx, v.infra, client.MergeFrom(base)))
}

// leaveOn switches the machine on where its power controller says that it is off.
func (r *Reconciler) leaveOn(ctx context.Context, v *looking) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := r.look(ctx, v); err != nil {
		return err
	}
	// A machine that is being installed is switched by the appliance.
	if lost(&v.view) != "" || byHand(v.hardware) || !installed(&v.view) {
		return nil
	}
	now, err := v.app.Power(ctx, v.hardware.Meta.Name, api.Power{Action: api.PowerActionStatus})
	if err != nil || now.State != hardware.PowerOff {
		return err
	}
	_, err = v.app.Power(ctx, v.hardware.Meta.Name, api.Power{Action: api.PowerActionOn, NextBoot: "disk"})
	return err
}
