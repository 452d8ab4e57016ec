package machine

import (
	"context"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rackstrap/rackstrap/api/capi/internal/appliance"
	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	"github.com/rackstrap/rackstrap/api/capi/internal/ipam"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

const (
	// again is when an object is looked at again while it is on its way, in case that an
	// event was missed.
	again = 2 * time.Minute
	// soon is when an appliance is asked again that did not answer, or had no image: a
	// claimer is told of machines, not of images.
	soon = 15 * time.Second
	// within is how long the appliance may take for all that one look asks of it.
	within = 45 * time.Second
)

// Reconciler reconciles RackstrapMachines.
type Reconciler struct {
	client.Client
	Appliances *appliance.Pool
	Inventory  *appliance.Inventory

	// live reads what a cache may not show yet.
	live     client.Reader
	recorder events.EventRecorder
	filter   contract.Filter
	places   appliance.Places
	spreading
}

// Setup registers the reconciler, for the objects that filter takes.
func (r *Reconciler) Setup(_ context.Context, m ctrl.Manager, filter contract.Filter, o controller.Options) error {
	r.live, r.recorder, r.filter = m.GetAPIReader(), m.GetEventRecorder("rackstrapmachine"), filter
	r.Appliances.Listen(r.places.Wake)
	return ctrl.NewControllerManagedBy(m).
		For(&infrav1.RackstrapMachine{}, builder.WithPredicates(filter.Predicate(), changes())).
		Owns(&ipamv1.IPAddressClaim{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(contract.MachineToInfrastructure(infrav1.GroupVersion().WithKind("RackstrapMachine")))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(clusterChanges())).
		Watches(&infrav1.RackstrapCluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(r.places.Source()).
		WithOptions(o).Complete(r)
}

// changes lets through what is not only our own report: whoever wakes up at what it
// wrote itself never sleeps. Paused is written by itself, and what follows is done when
// that is seen.
func changes() predicate.Predicate {
	bare := func(o client.Object) *infrav1.RackstrapMachine {
		m := o.(*infrav1.RackstrapMachine).DeepCopy()
		paused := m.Status.Conditions
		m.Status = infrav1.RackstrapMachineStatus{}
		for _, c := range paused {
			if c.Type == clusterv1.PausedCondition {
				m.Status.Conditions = []metav1.Condition{c}
			}
		}
		m.ResourceVersion, m.ManagedFields = "", nil
		return m
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		// a resync shows the same object twice
		return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() || !reflect.DeepEqual(bare(e.ObjectOld), bare(e.ObjectNew))
	}}
}

// clusterChanges lets through what machines wait for of a Cluster.
func clusterChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		a, b := e.ObjectOld.(*clusterv1.Cluster), e.ObjectNew.(*clusterv1.Cluster)
		return a.Generation != b.Generation || !reflect.DeepEqual(a.Status.Initialization, b.Status.Initialization)
	}}
}

// ofCluster names the machines of a Cluster, or of a RackstrapCluster.
func (r *Reconciler) ofCluster(ctx context.Context, o client.Object) []reconcile.Request {
	name := o.GetName()
	if _, ours := o.(*infrav1.RackstrapCluster); ours {
		name = o.GetLabels()[clusterv1.ClusterNameLabel]
	}
	var list infrav1.RackstrapMachineList
	if err := r.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "machines of a cluster cannot be listed")
		return nil
	}
	out := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		out[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}
	}
	return out
}

// Reconcile brings one RackstrapMachine closer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, rq ctrl.Request) (_ ctrl.Result, reterr error) {
	obj := new(infrav1.RackstrapMachine)
	if err := r.Get(ctx, rq.NamespacedName, obj); err != nil {
		r.places.Drop(rq)
		if apierrors.IsNotFound(err) {
			err = ipam.Orphans(ctx, r.Client, rq.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	if !r.filter.Takes(obj) {
		r.places.Drop(rq)
		return ctrl.Result{}, nil
	}
	if contract.Moved(obj) {
		return ctrl.Result{}, nil // also no finalizer, which clusterctl would not see any more
	}
	v, err := r.view(ctx, obj)
	if err != nil {
		return ctrl.Result{}, err
	}
	deleting := !obj.DeletionTimestamp.IsZero()
	if v.machine == nil && !deleting {
		return ctrl.Result{}, nil // the Machine's controller sets the owner, which wakes us
	}
	if added, err := contract.EnsureFinalizer(ctx, r.Client, obj, infrav1.MachineFinalizer); added || err != nil {
		return ctrl.Result{}, err
	}
	if leave, err := contract.Paused(ctx, r.Client, v.cluster, obj); leave || err != nil {
		return ctrl.Result{}, err
	}
	if deleting && !controllerutil.ContainsFinalizer(obj, infrav1.MachineFinalizer) {
		return ctrl.Result{}, nil
	}
	p, err := contract.NewPatcher(r.Client, obj, owned()...)
	if err != nil {
		return ctrl.Result{}, err
	}
	before := obj.DeepCopy()
	w := &work{Reconciler: r, view: v, rq: rq}
	d, workErr := w.run(ctx)
	report(v, d)
	if err := p.Patch(ctx); err != nil {
		return ctrl.Result{}, kerrors.NewAggregate([]error{workErr, err})
	}
	r.tell(before, obj, d)
	if d.step == stepDone && deleting {
		return ctrl.Result{}, w.letGo(ctx)
	}
	return ctrl.Result{RequeueAfter: w.when(d)}, workErr
}

// owned are the conditions that nobody else writes.
func owned() []string {
	return []string{infrav1.HardwareClaimedCondition, infrav1.AddressesReadyCondition, infrav1.InstalledCondition, infrav1.HardwareHealthyCondition, infrav1.ReleasedCondition}
}

// view reads what is around an object; what is not there is nil.
func (r *Reconciler) view(ctx context.Context, obj *infrav1.RackstrapMachine) (*view, error) {
	v := &view{object: obj}
	var err error
	if v.machine, err = contract.OwnerMachine(ctx, r.Client, obj); err != nil {
		return nil, err
	}
	if v.cluster, err = contract.ClusterOf(ctx, r.Client, obj); err != nil || v.cluster == nil {
		return v, err
	}
	ref := v.cluster.Spec.InfrastructureRef
	if ref.APIGroup != infrav1.Group || ref.Kind != "RackstrapCluster" {
		return v, nil
	}
	infra := new(infrav1.RackstrapCluster)
	err = r.Get(ctx, client.ObjectKey{Namespace: v.cluster.Namespace, Name: ref.Name}, infra)
	if err == nil {
		v.infra = infra
	}
	return v, client.IgnoreNotFound(err)
}

// report writes a decision into the object's conditions.
func report(v *view, d decision) {
	refresh(v)
	if v.seen != nil && (v.seen.claim == nil || lost(v) != "") {
		contract.Unset(v.object, infrav1.HardwareHealthyCondition)
	}
	for _, c := range conditions(v, d) {
		contract.Set(v.object, c.Type, c.Status, c.Reason, c.Message)
	}
}

// tell makes an event of what is new.
func (r *Reconciler) tell(before, now *infrav1.RackstrapMachine, d decision) {
	if d.skipped != "" {
		r.recorder.Eventf(now, nil, "Warning", "Skipped", "Delete", "%s", d.skipped)
	}
	was, is := ready(before), ready(now)
	if is == nil || was != nil && was.Reason == is.Reason && was.Message == is.Message {
		return
	}
	kind := "Normal"
	if slices.Contains(bad(), is.Reason) {
		kind = "Warning"
	}
	message := is.Message
	if is.Status == metav1.ConditionTrue {
		message = "The machine is installed as " + now.Spec.ProviderID
	}
	r.recorder.Eventf(now, nil, kind, is.Reason, "Reconcile", "%s", message)
}

func ready(o *infrav1.RackstrapMachine) *metav1.Condition {
	for i := range o.Status.Conditions {
		if o.Status.Conditions[i].Type == clusterv1.ReadyCondition {
			return &o.Status.Conditions[i]
		}
	}
	return nil
}

// bad are the reasons that somebody should look at.
func bad() []string {
	return []string{
		infrav1.ApplianceSecretMissingReason, infrav1.ApplianceSecretInvalidReason, infrav1.ApplianceUnreachableReason, infrav1.ApplianceRefusedReason,
		infrav1.NoHardwareFitsReason, infrav1.ClaimLostReason, infrav1.ClaimOfAnotherReason, infrav1.ImageMissingReason, infrav1.BootstrapDataUnusableReason, infrav1.InvalidSpecReason, infrav1.InstallFailedReason,
	}
}
