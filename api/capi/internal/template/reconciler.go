// Package template reconciles RackstrapMachineTemplates.
package template

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/rackstrap/rackstrap/api/capi/internal/appliance"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// Reconciler reconciles RackstrapMachineTemplates.
type Reconciler struct {
	client.Client
	Appliances *appliance.Pool
}

// Setup registers the reconciler. filter is what all controllers leave out.
func (r *Reconciler) Setup(_ context.Context, m ctrl.Manager, filter predicate.Predicate, o controller.Options) error {
	return ctrl.NewControllerManagedBy(m).For(&infrav1.RackstrapMachineTemplate{}).WithEventFilter(filter).WithOptions(o).Complete(r)
}

// Reconcile brings one RackstrapMachineTemplate closer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, rq ctrl.Request) (ctrl.Result, error) {
	obj := new(infrav1.RackstrapMachineTemplate)
	return ctrl.Result{}, client.IgnoreNotFound(r.Get(ctx, rq.NamespacedName, obj))
}
