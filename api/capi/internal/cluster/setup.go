package cluster

import (
	"context"

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

	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// Setup registers the reconciler, for the objects that filter takes.
func (r *Reconciler) Setup(_ context.Context, m ctrl.Manager, filter contract.Filter, o controller.Options) error {
	r.filter = filter
	return ctrl.NewControllerManagedBy(m).
		For(&infrav1.RackstrapCluster{}, builder.WithPredicates(filter.Predicate())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(fromCluster), builder.WithPredicates(clusterChanged())).
		Watches(&infrav1.RackstrapMachine{}, handler.EnqueueRequestsFromMapFunc(r.fromMachine), builder.WithPredicates(claimChanged())).
		WithOptions(o).
		Complete(r)
}

// clusterChanged lets through what of a Cluster concerns us: pause and endpoint.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok1 := e.ObjectOld.(*clusterv1.Cluster)
		now, ok2 := e.ObjectNew.(*clusterv1.Cluster)
		return ok1 && ok2 && (ptr.Deref(old.Spec.Paused, false) != ptr.Deref(now.Spec.Paused, false) ||
			old.Spec.ControlPlaneEndpoint != now.Spec.ControlPlaneEndpoint || old.Spec.InfrastructureRef != now.Spec.InfrastructureRef)
	}}
}

// claimChanged lets through machines that get a claim, and that go.
func claimChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return hasClaim(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return hasClaim(e.ObjectOld) != hasClaim(e.ObjectNew) || e.ObjectOld.GetLabels()[clusterv1.ClusterNameLabel] != e.ObjectNew.GetLabels()[clusterv1.ClusterNameLabel]
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return hasClaim(e.Object) },
	}
}

func hasClaim(o client.Object) bool {
	m, ok := o.(*infrav1.RackstrapMachine)
	return ok && m.Spec.ClaimID != ""
}

func fromCluster(_ context.Context, o client.Object) []reconcile.Request {
	c, ok := o.(*clusterv1.Cluster)
	if ref := c.Spec.InfrastructureRef; ok && ref.APIGroup == infrav1.Group && ref.Kind == "RackstrapCluster" {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: c.Namespace, Name: ref.Name}}}
	}
	return nil
}

// fromMachine names the RackstrapClusters of the machine's cluster, and those that
// keep a Secret that the machine had: with its claim another cluster's may go too.
func (r *Reconciler) fromMachine(ctx context.Context, o client.Object) []reconcile.Request {
	all := new(infrav1.RackstrapClusterList)
	if err := r.List(ctx, all, client.InNamespace(o.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: o.GetLabels()[clusterv1.ClusterNameLabel]}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the clusters cannot be listed")
		return nil
	}
	var out []reconcile.Request
	for i := range all.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
	}
	return out
}
