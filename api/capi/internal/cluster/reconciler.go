// Package cluster reconciles RackstrapClusters.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/rackstrap/rackstrap/api/capi/internal/appliance"
	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

const (
	// soon is when a cluster that waits for somebody to mend something is looked at
	// again. Secrets are not watched: whoever watches some must be allowed to read all.
	soon = 15 * time.Second
	// later is when one that is ready is: its appliance is asked whether it is there.
	later = time.Minute
	// listed is how old the list of Hardware may be that failure domains follow from.
	listed = 5 * time.Minute
	// answer is how long the appliance may take.
	answer = 20 * time.Second
)

// Reconciler reconciles RackstrapClusters.
type Reconciler struct {
	client.Client
	Appliances *appliance.Pool
	Inventory  *appliance.Inventory

	filter contract.Filter
}

// Reconcile brings one RackstrapCluster closer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, rq ctrl.Request) (result ctrl.Result, err error) {
	obj := new(infrav1.RackstrapCluster)
	if err := r.Get(ctx, rq.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deleting := !obj.DeletionTimestamp.IsZero()
	if !r.filter.Takes(obj) || contract.Moved(obj) || contract.ExternallyManaged(obj) && !(deleting && controllerutil.ContainsFinalizer(obj, infrav1.ClusterFinalizer)) {
		return ctrl.Result{}, nil // one that was ours once goes as ours do: nobody else takes our finalizers off
	}
	owner, err := contract.OwnerCluster(ctx, r.Client, obj)
	if err != nil {
		return ctrl.Result{}, err
	}
	if owner == nil && !deleting {
		return ctrl.Result{}, nil // the Cluster API sets the owner, which wakes us
	}
	if added, err := contract.EnsureFinalizer(ctx, r.Client, obj, infrav1.ClusterFinalizer); err != nil || added {
		return ctrl.Result{}, err
	}
	if leave, err := contract.Paused(ctx, r.Client, owner, obj); err != nil || leave {
		return ctrl.Result{}, err
	}
	p, err := contract.NewPatcher(r.Client, obj, infrav1.ApplianceReachableCondition, infrav1.FailureDomainsKnownCondition)
	if err != nil {
		return ctrl.Result{}, err
	}
	defer func() { err = errors.Join(err, p.Patch(ctx)) }()
	all := new(infrav1.RackstrapMachineList)
	if err := r.List(ctx, all, client.InNamespace(obj.Namespace)); err != nil {
		return ctrl.Result{}, err
	}
	claims := claimsOf(all.Items, clusterName(obj, owner))
	obj.Status.Machines = ptr.To(int32(len(claims)))
	if deleting {
		return r.remove(ctx, obj, claims)
	}
	if done, err := r.keepSecret(ctx, obj, all.Items); err != nil || !done {
		return ctrl.Result{}, err
	}
	return r.look(ctx, obj, owner)
}

// look asks the appliance, and says what follows.
func (r *Reconciler) look(ctx context.Context, obj *infrav1.RackstrapCluster, owner *clusterv1.Cluster) (ctrl.Result, error) {
	asking, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	next := later
	if err := r.ask(asking, obj); err != nil {
		reason, message := appliance.Trouble(err)
		var no *notOurs
		if errors.As(err, &no) {
			reason, message = infrav1.ApplianceSecretInvalidReason, no.Error()
		}
		if reason == "" || ctx.Err() != nil {
			return ctrl.Result{}, err
		}
		contract.Set(obj, infrav1.ApplianceReachableCondition, metav1.ConditionFalse, reason, message)
		next = soon
	}
	state := sum(obj, owner)
	if state.status == metav1.ConditionTrue {
		obj.Status.Initialization.Provisioned = ptr.To(true) // and it stays, whatever becomes of the appliance
	}
	contract.Set(obj, clusterv1.ReadyCondition, state.status, state.reason, state.message)
	return ctrl.Result{RequeueAfter: next}, nil
}

// notOurs is a token that may not claim for the owners that the Secret names.
type notOurs struct{ text string }

func (e *notOurs) Error() string { return e.text }

// ask finds out whether the appliance takes our token, and how its Hardware is
// divided.
func (r *Reconciler) ask(ctx context.Context, obj *infrav1.RackstrapCluster) error {
	app, err := r.Appliances.For(ctx, obj.Namespace, obj.Spec.Appliance)
	if err != nil {
		return err
	}
	who, err := app.WhoAmI(ctx)
	if err != nil {
		return err
	}
	if text := unfit(&who, app); text != "" {
		return &notOurs{text}
	}
	d := domains{}
	if !ptr.Deref(obj.Spec.FailureDomains.Disabled, false) {
		hw, err := r.Inventory.Hardware(ctx, app, listed)
		if err != nil {
			return err
		}
		d = divide(&obj.Spec.FailureDomains, hw)
	}
	contract.Set(obj, infrav1.ApplianceReachableCondition, metav1.ConditionTrue, infrav1.ApplianceReachableReason, ends(&who, app, time.Now()))
	obj.Status.FailureDomains = d.list
	d.tell(obj)
	return nil
}

// remove lets the cluster go when no machine has a claim any more, which only the
// token of its Secret can end.
func (r *Reconciler) remove(ctx context.Context, obj *infrav1.RackstrapCluster, claims []string) (ctrl.Result, error) {
	if len(claims) > 0 {
		names := strings.Join(claims[:min(len(claims), 10)], ", ")
		if more := len(claims) - 10; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		contract.Set(
			obj, clusterv1.ReadyCondition, metav1.ConditionFalse, infrav1.WaitingForMachinesReason,
			fmt.Sprintf("these RackstrapMachines have a claim, which needs the Secret of this cluster to end: %s", names),
		)
		return ctrl.Result{}, nil // the last of them wakes us
	}
	if err := r.letSecretsGo(ctx, obj); err != nil {
		return ctrl.Result{}, err
	}
	contract.Set(obj, clusterv1.ReadyCondition, metav1.ConditionFalse, clusterv1.DeletingReason, "")
	controllerutil.RemoveFinalizer(obj, infrav1.ClusterFinalizer)
	return ctrl.Result{}, nil
}

// clusterName is the name of the Cluster, also when that is gone.
func clusterName(obj *infrav1.RackstrapCluster, owner *clusterv1.Cluster) string {
	if owner != nil {
		return owner.Name
	}
	return obj.Labels[clusterv1.ClusterNameLabel]
}

// claimsOf are the names of the cluster's machines that have a claim, sorted.
func claimsOf(all []infrav1.RackstrapMachine, cluster string) []string {
	var out []string
	for i := range all {
		if m := &all[i]; m.Spec.ClaimID != "" && m.Labels[clusterv1.ClusterNameLabel] == cluster {
			out = append(out, m.Name)
		}
	}
	slices.Sort(out)
	return out
}
