// Package remediation reconciles RackstrapRemediations: the power of an unhealthy
// machine is cycled, its system is installed again, it is replaced. All that has to be
// known after a restart is in the status before it is done.
package remediation

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/capi/internal/appliance"
	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
)

const (
	// again is when a remediation that goes on is looked at at the latest, in case that an
	// event was missed.
	again = 2 * time.Minute
	// soon is when an appliance is asked again that did not answer, or refused an install.
	soon = 30 * time.Second
	// within is how long the appliance may take for one look.
	within = 45 * time.Second
	// letGo is how long a deletion waits for a machine to be switched on again.
	letGo = 10 * time.Minute
)

// Installer makes the request for the install of a machine, as it was made the first
// time; why says that it cannot be made.
type Installer func(ctx context.Context, app *appliance.Appliance, o *infrav1.RackstrapMachine, m *clusterv1.Machine, h *hardware.Hardware) (rq api.Provision, why string, err error)

// Reconciler reconciles RackstrapRemediations.
type Reconciler struct {
	client.Client
	Appliances *appliance.Pool
	// Install is machine.Reconciler's.
	Install Installer

	// live reads what we wrote ourselves, which a cache may not show yet: what was begun
	// is not begun twice.
	live     client.Reader
	recorder events.EventRecorder
	filter   contract.Filter
	places   appliance.Places
	started  time.Time
}

// Setup registers the reconciler, for the objects that filter takes.
func (r *Reconciler) Setup(_ context.Context, m ctrl.Manager, filter contract.Filter, o controller.Options) error {
	r.live, r.recorder, r.filter, r.started = m.GetAPIReader(), m.GetEventRecorder("rackstrapremediation"), filter, time.Now()
	r.Appliances.Listen(r.places.Wake)
	return ctrl.NewControllerManagedBy(m).For(&infrav1.RackstrapRemediation{}, builder.WithPredicates(filter.Predicate())).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.ofMachine)).
		Watches(&infrav1.RackstrapMachine{}, handler.EnqueueRequestsFromMapFunc(r.ofInfra)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster)).
		WatchesRawSource(r.places.Source()).
		WithOptions(o).Complete(r)
}

// ofMachine is the remediation of a Machine: it has its name.
func (r *Reconciler) ofMachine(ctx context.Context, o client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(o)
	if r.Get(ctx, key, new(infrav1.RackstrapRemediation)) != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

func (r *Reconciler) ofInfra(ctx context.Context, o client.Object) []reconcile.Request {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == "Machine" {
			return r.ofMachine(ctx, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: ref.Name}})
		}
	}
	return nil
}

func (r *Reconciler) ofCluster(ctx context.Context, o client.Object) []reconcile.Request {
	var list infrav1.RackstrapRemediationList
	if err := r.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: o.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "remediations of a cluster cannot be listed")
		return nil
	}
	out := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		out[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}
	}
	return out
}

// Reconcile brings one RackstrapRemediation closer to its end.
func (r *Reconciler) Reconcile(ctx context.Context, rq ctrl.Request) (ctrl.Result, error) {
	obj := new(infrav1.RackstrapRemediation)
	if err := r.live.Get(ctx, rq.NamespacedName, obj); err != nil {
		r.places.Drop(rq)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.filter.Takes(obj) {
		r.places.Drop(rq)
		return ctrl.Result{}, nil
	}
	if contract.Moved(obj) {
		return ctrl.Result{}, nil
	}
	v, cluster, err := r.view(ctx, obj)
	if err != nil {
		return ctrl.Result{}, err
	}
	deleting := !obj.DeletionTimestamp.IsZero()
	if !deleting {
		if added, err := contract.EnsureFinalizer(ctx, r.Client, obj, infrav1.RemediationFinalizer); added || err != nil {
			return ctrl.Result{}, err
		}
	}
	if leave, err := contract.Paused(ctx, r.Client, cluster, obj); leave || err != nil {
		return ctrl.Result{}, err
	}
	if deleting {
		restore(obj)
		return r.end(ctx, v)
	}
	p, err := contract.NewPatcher(r.Client, obj)
	if err != nil {
		return ctrl.Result{}, err
	}
	before := obj.DeepCopy()
	restore(obj)
	d, workErr := r.run(ctx, v)
	if d.step == stepBegin && workErr == nil {
		workErr = save(obj)
	}
	if d.message != "" {
		contract.Set(obj, clusterv1.ReadyCondition, metav1.ConditionFalse, d.reason, d.message)
	}
	if err := p.Patch(ctx); err != nil {
		return ctrl.Result{}, kerrors.NewAggregate([]error{workErr, err})
	}
	r.tell(before, obj)
	if workErr != nil {
		return ctrl.Result{}, workErr
	}
	if d.step == stepBegin {
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil // what was written is done now
	}
	if d.step == stepDrop {
		return ctrl.Result{}, client.IgnoreNotFound(r.Delete(ctx, obj, client.Preconditions{UID: &obj.UID}))
	}
	if d.reason == infrav1.RemediationGaveUpReason || (d.again == 0 && v.app == nil) {
		return ctrl.Result{}, nil
	}
	if d.again == 0 || d.again > again {
		d.again = again
	}
	return ctrl.Result{RequeueAfter: d.again}, nil
}

// tell makes an event of what is new.
func (r *Reconciler) tell(before, now *infrav1.RackstrapRemediation) {
	was, is := find(before.Status.Conditions, clusterv1.ReadyCondition), find(now.Status.Conditions, clusterv1.ReadyCondition)
	if is == nil || was != nil && was.Reason == is.Reason && was.Message == is.Message {
		return
	}
	kind := "Normal"
	if is.Reason == infrav1.RemediationGaveUpReason || is.Reason == infrav1.RemediationNotPossibleReason {
		kind = "Warning"
	}
	r.recorder.Eventf(now, nil, kind, is.Reason, "Remediate", "%s", is.Message)
}

// view reads what is around a remediation.
func (r *Reconciler) view(ctx context.Context, obj *infrav1.RackstrapRemediation) (*looking, *clusterv1.Cluster, error) {
	v := &looking{view: view{object: obj, now: time.Now(), started: r.started}}
	var err error
	if v.machine, err = contract.OwnerMachine(ctx, r.Client, obj); err != nil {
		return nil, nil, err
	}
	cluster, err := contract.ClusterOf(ctx, r.Client, obj)
	if err != nil || v.machine == nil {
		return v, cluster, err
	}
	if cluster == nil {
		if cluster, err = contract.ClusterOf(ctx, r.Client, v.machine); err != nil {
			return nil, nil, err
		}
	}
	v.initialized = cluster != nil && ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, false)
	if ref := v.machine.Spec.InfrastructureRef; ref.APIGroup == infrav1.Group && ref.Kind == "RackstrapMachine" {
		infra := new(infrav1.RackstrapMachine)
		err = r.Get(ctx, client.ObjectKey{Namespace: v.machine.Namespace, Name: ref.Name}, infra)
		if err == nil {
			v.infra = infra
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, nil, err
		}
	}
	if controlPlane(v.machine) {
		v.before, err = r.before(ctx, v)
		return v, cluster, err
	}
	return v, cluster, nil
}

// before is the control plane machine of the same cluster whose remediation is older and
// still does something; empty: none is.
func (r *Reconciler) before(ctx context.Context, v *looking) (string, error) {
	var list infrav1.RackstrapRemediationList
	if err := r.List(ctx, &list, client.InNamespace(v.object.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: v.machine.Spec.ClusterName}); err != nil {
		return "", err
	}
	for i := range list.Items {
		o := &list.Items[i]
		p := o.Status.Phase
		if o.UID == v.object.UID || !o.DeletionTimestamp.IsZero() || p == infrav1.PhaseReplace || p == infrav1.PhaseGaveUp || !older(o, v.object) {
			continue
		}
		m, err := contract.OwnerMachine(ctx, r.Client, o)
		if err != nil {
			return "", err
		}
		if m != nil && controlPlane(m) && m.DeletionTimestamp.IsZero() && !healthy(m) {
			return m.Name, nil
		}
	}
	return "", nil
}

func older(a, b *infrav1.RackstrapRemediation) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// beginning writes what is begun into the status.
func beginning(v *view, phase infrav1.RemediationPhase) {
	s := &v.object.Status
	again := s.Phase == phase && resumed(v.object)
	s.StepStarted = &metav1.Time{Time: v.now}
	s.Phase = phase
	if phase == infrav1.PhasePowerCycle && !again {
		s.Tries = ptr.To(ptr.Deref(s.Tries, 0) + 1)
		s.PowerBefore = asked(v.hardware)
	}
	contract.Set(v.object, clusterv1.ReadyCondition, metav1.ConditionFalse, infrav1.RemediatingReason, fmt.Sprintf("The step %s begins", phase))
}
