// Package template reconciles RackstrapMachineTemplates: their status says what a
// machine of them will be, so that the autoscaler can scale up from zero.
package template

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rackstrap/rackstrap/api/capi/internal/appliance"
	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
)

const (
	// every is how often a template is looked at, and how old the list of Hardware may
	// be that it is measured by.
	every = 5 * time.Minute
	// soon is when one is whose appliance does not answer.
	soon = 30 * time.Second
	// answer is how long the appliance may take.
	answer = 20 * time.Second
)

// Reconciler reconciles RackstrapMachineTemplates.
type Reconciler struct {
	client.Client
	Appliances *appliance.Pool
	Inventory  *appliance.Inventory

	filter contract.Filter
}

// Setup registers the reconciler, for the objects that filter takes.
func (r *Reconciler) Setup(_ context.Context, m ctrl.Manager, filter contract.Filter, o controller.Options) error {
	r.filter = filter
	return ctrl.NewControllerManagedBy(m).
		For(&infrav1.RackstrapMachineTemplate{}, builder.WithPredicates(filter.Predicate())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.fromCluster), builder.WithPredicates(clusterChanged())).
		WithOptions(o).
		Complete(r)
}

// clusterChanged lets through what of a Cluster concerns us: pause, and the first time
// that it has its infrastructure.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok1 := e.ObjectOld.(*clusterv1.Cluster)
		now, ok2 := e.ObjectNew.(*clusterv1.Cluster)
		return ok1 && ok2 && (ptr.Deref(old.Spec.Paused, false) != ptr.Deref(now.Spec.Paused, false) || old.Spec.InfrastructureRef != now.Spec.InfrastructureRef ||
			ptr.Deref(old.Status.Initialization.InfrastructureProvisioned, false) != ptr.Deref(now.Status.Initialization.InfrastructureProvisioned, false))
	}}
}

func (r *Reconciler) fromCluster(ctx context.Context, o client.Object) []reconcile.Request {
	all := new(infrav1.RackstrapMachineTemplateList)
	if err := r.List(ctx, all, client.InNamespace(o.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the templates cannot be listed")
		return nil
	}
	var out []reconcile.Request
	for i := range all.Items {
		if clusterOf(&all.Items[i]) == o.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return out
}

// clusterOf is the name of the Cluster that uses a template, by its owner or its label;
// empty where none does.
func clusterOf(o client.Object) string {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == clusterv1.ClusterKind && isCore(ref) {
			return ref.Name
		}
	}
	return o.GetLabels()[clusterv1.ClusterNameLabel]
}

// ofClass reports whether a template belongs to a ClusterClass: machines are made from
// copies of it, which are templates of their own.
func ofClass(o client.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.Kind == clusterv1.ClusterClassKind && isCore(ref) })
}

func isCore(ref metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == clusterv1.GroupVersion.Group
}

// Reconcile measures what a machine of the template will be. It writes the status
// alone: the spec of a template never changes.
func (r *Reconciler) Reconcile(ctx context.Context, rq ctrl.Request) (result ctrl.Result, err error) {
	obj := new(infrav1.RackstrapMachineTemplate)
	if err := r.Get(ctx, rq.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.filter.Takes(obj) || !obj.DeletionTimestamp.IsZero() || ofClass(obj) {
		return ctrl.Result{}, nil
	}
	cluster, err := r.cluster(ctx, obj)
	if err != nil {
		return ctrl.Result{}, err
	}
	if leave, err := contract.Paused(ctx, r.Client, cluster, obj); err != nil || leave {
		return ctrl.Result{}, err
	}
	p, err := contract.NewPatcher(r.Client, obj)
	if err != nil {
		return ctrl.Result{}, err
	}
	defer func() { err = errors.Join(err, p.Patch(ctx)) }()
	infra, waits, err := r.infra(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if waits != "" {
		contract.Set(obj, clusterv1.ReadyCondition, metav1.ConditionUnknown, infrav1.WaitingForClusterReason, waits)
		if cluster == nil {
			return ctrl.Result{}, nil // an owner wakes us
		}
		return ctrl.Result{RequeueAfter: soon}, nil
	}
	asking, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	if err := r.measure(asking, obj, cluster.Name, infra); err != nil {
		reason, message := appliance.Trouble(err)
		if reason == "" || ctx.Err() != nil {
			return ctrl.Result{}, err
		}
		// what was known stays: it is the best there is
		contract.Set(obj, clusterv1.ReadyCondition, metav1.ConditionFalse, reason, message)
		return ctrl.Result{RequeueAfter: soon}, nil
	}
	return ctrl.Result{RequeueAfter: every}, nil
}

func (r *Reconciler) cluster(ctx context.Context, obj *infrav1.RackstrapMachineTemplate) (*clusterv1.Cluster, error) {
	name := clusterOf(obj)
	if name == "" {
		return nil, nil
	}
	out := new(clusterv1.Cluster)
	err := r.Get(ctx, client.ObjectKey{Namespace: obj.Namespace, Name: name}, out)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return out, err
}

// infra is the RackstrapCluster of a Cluster; waits says why there is none yet.
func (r *Reconciler) infra(ctx context.Context, cluster *clusterv1.Cluster) (infra *infrav1.RackstrapCluster, waits string, err error) {
	if cluster == nil {
		return nil, "no Cluster uses this template yet, so that it is not known which appliance to ask (name it in a MachineDeployment or a control plane)", nil
	}
	ref := cluster.Spec.InfrastructureRef
	if ref.Kind != "RackstrapCluster" || ref.APIGroup != infrav1.Group {
		return nil, fmt.Sprintf("the Cluster %s has no RackstrapCluster as its infrastructureRef", cluster.Name), nil
	}
	infra = new(infrav1.RackstrapCluster)
	err = r.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}, infra)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Sprintf("the RackstrapCluster %s, which the Cluster %s names, does not exist", ref.Name, cluster.Name), nil
	}
	return infra, "", err
}

func (r *Reconciler) measure(ctx context.Context, obj *infrav1.RackstrapMachineTemplate, cluster string, infra *infrav1.RackstrapCluster) error {
	app, err := r.Appliances.For(ctx, infra.Namespace, infra.Spec.Appliance)
	if err != nil {
		return err
	}
	hw, err := r.Inventory.Hardware(ctx, app, every)
	if err != nil {
		return err
	}
	c, err := measure(&obj.Spec.Template.Spec, app.Owner(obj.Namespace, cluster, obj.Name), hw)
	var invalid *hardware.Invalid
	if errors.As(err, &invalid) {
		contract.Set(obj, clusterv1.ReadyCondition, metav1.ConditionFalse, infrav1.InvalidSpecReason, invalid.Error())
		return nil
	}
	if err != nil {
		return err
	}
	s := &obj.Status
	s.Fits, s.Free, s.NodeInfo = ptr.To(c.fits), ptr.To(c.free), c.node
	if !equality.Semantic.DeepEqual(s.Capacity, c.resources) {
		s.Capacity = c.resources
	}
	switch {
	case c.fits == 0:
		contract.Set(obj, clusterv1.ReadyCondition, metav1.ConditionFalse, infrav1.NoHardwareFitsReason, "no Hardware fits: "+c.refused())
	case c.resources.Cpu().IsZero():
		contract.Set(obj, clusterv1.ReadyCondition, metav1.ConditionFalse, infrav1.NoHardwareFitsReason, "what is in the Hardware that fits is not known; boot its worker once: rackstrap hardware inspect NAME")
	default:
		contract.Set(obj, clusterv1.ReadyCondition, metav1.ConditionTrue, infrav1.CapacityKnownReason, "")
	}
	return nil
}
