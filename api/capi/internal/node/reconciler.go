// Package node writes the provider id into a Node whose kubelet was not told it, which
// the Cluster API finds the Node of a Machine by.
package node

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// again is when the workload cluster is asked again for a Node that is not there.
const again = 30 * time.Second

// Reconciler gives Nodes their provider ids. It writes nothing in the management
// cluster.
type Reconciler struct {
	client.Client

	clusters clusters
	recorder events.EventRecorder
	filter   contract.Filter

	mu   sync.Mutex
	told map[client.ObjectKey]string // the last trouble that an event was made of
}

// Setup registers the reconciler, for the objects that filter takes.
func (r *Reconciler) Setup(_ context.Context, m ctrl.Manager, filter contract.Filter, o controller.Options) error {
	r.clusters.reader, r.recorder, r.filter = m.GetAPIReader(), m.GetEventRecorder("rackstrapmachine-node"), filter
	return ctrl.NewControllerManagedBy(m).Named("node").For(&infrav1.RackstrapMachine{}, builder.WithPredicates(filter.Predicate())).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(contract.MachineToInfrastructure(infrav1.GroupVersion().WithKind("RackstrapMachine")))).
		WithOptions(o).Complete(r)
}

// Reconcile looks for the Node of one machine, as long as its Machine has none.
func (r *Reconciler) Reconcile(ctx context.Context, rq ctrl.Request) (ctrl.Result, error) {
	o := new(infrav1.RackstrapMachine)
	if err := r.Get(ctx, rq.NamespacedName, o); err != nil {
		if apierrors.IsNotFound(err) {
			r.tell(rq.NamespacedName, nil, "")
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.filter.Takes(o) || !o.DeletionTimestamp.IsZero() || o.Spec.ProviderID == "" || !ptr.Deref(o.Status.Initialization.Provisioned, false) {
		return ctrl.Result{}, nil
	}
	m, err := contract.OwnerMachine(ctx, r.Client, o)
	if err != nil || m == nil || !m.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, err
	}
	if m.Status.NodeRef.IsDefined() {
		r.tell(rq.NamespacedName, nil, "")
		return ctrl.Result{}, nil
	}
	c, err := contract.ClusterOf(ctx, r.Client, o)
	if err != nil {
		return ctrl.Result{}, err
	}
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Labels[clusterv1.ClusterNameLabel]}
	if c == nil || !c.DeletionTimestamp.IsZero() {
		r.clusters.forget(key)
		return ctrl.Result{}, nil
	}
	if contract.IsPaused(c, o) {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	if err := r.look(ctx, key, o); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("the Nodes of the workload cluster cannot be looked at; trying again", "error", err.Error())
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// look finds the Node, and gives it the provider id.
func (r *Reconciler) look(ctx context.Context, cluster client.ObjectKey, o *infrav1.RackstrapMachine) error {
	nodes, err := r.clusters.nodes(ctx, cluster)
	if err != nil {
		return err
	}
	var all infrav1.RackstrapMachineList
	if err := r.List(ctx, &all, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}); err != nil {
		return err
	}
	n, trouble := choose(o, nodes, all.Items)
	r.tell(client.ObjectKeyFromObject(o), o, trouble)
	if n == nil {
		return nil
	}
	if err := r.clusters.give(ctx, cluster, n, o.Spec.ProviderID); err != nil {
		return err
	}
	r.recorder.Eventf(o, nil, "Normal", "ProviderIDGiven", "Reconcile", "The Node %s had no provider id; it has %s now", n.Name, o.Spec.ProviderID)
	return nil
}

// give writes the provider id into a Node, where nobody wrote to it meanwhile.
func (c *clusters) give(ctx context.Context, cluster client.ObjectKey, n *corev1.Node, id string) error {
	w := c.of(cluster)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = time.Time{} // what was read is not true any more, whatever comes of this
	if w.client == nil {
		return fmt.Errorf("the kubeconfig of the Cluster %s is gone", cluster)
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion},
		"spec":     map[string]any{"providerID": id},
	})
	if err != nil {
		return err
	}
	_, err = w.client.Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "rackstrap-capi"})
	return err
}

// tell makes an event of trouble that is new; empty: there is none any more.
func (r *Reconciler) tell(key client.ObjectKey, o *infrav1.RackstrapMachine, trouble string) {
	r.mu.Lock()
	was := r.told[key]
	if r.told == nil {
		r.told = map[client.ObjectKey]string{}
	}
	r.told[key] = trouble
	if trouble == "" {
		delete(r.told, key)
	}
	r.mu.Unlock()
	if trouble != "" && trouble != was {
		r.recorder.Eventf(o, nil, "Warning", "NodeAmbiguous", "Reconcile", "%s", trouble)
	}
}
