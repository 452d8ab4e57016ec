// Package contract is all that the controllers use of the Cluster API's own helpers
// (sigs.k8s.io/cluster-api/util), in one place: upstream gives limited guarantees for
// them and plans to move them to a module of their own.
package contract

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Object is one of our kinds that has conditions.
type Object interface {
	client.Object
	conditions.Setter
}

// Filter is the value that the label cluster.x-k8s.io/watch-filter of our objects must have
// for us to look at them; empty: whatever it is. Only our own kinds are asked for it: what
// wakes us, such as a Machine or a Cluster, is everybody's.
type Filter string

// Takes reports whether we look at obj.
func (f Filter) Takes(obj client.Object) bool {
	return f == "" || obj.GetLabels()[clusterv1.WatchLabel] == string(f)
}

// Predicate lets through what we look at. It keeps events out of a queue; what comes into
// it by way of another object, or by an event of an appliance, is judged with Takes.
func (f Filter) Predicate() predicate.Predicate { return predicate.NewPredicateFuncs(f.Takes) }

// OwnerMachine is the Machine that owns obj, nil where there is none, or none yet.
func OwnerMachine(ctx context.Context, c client.Client, obj client.Object) (*clusterv1.Machine, error) {
	m, err := util.GetOwnerMachine(ctx, c, metav1.ObjectMeta{Namespace: obj.GetNamespace(), OwnerReferences: obj.GetOwnerReferences()})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return m, err
}

// OwnerCluster is the Cluster that owns obj, nil where there is none, or none yet.
func OwnerCluster(ctx context.Context, c client.Client, obj client.Object) (*clusterv1.Cluster, error) {
	o, err := util.GetOwnerCluster(ctx, c, metav1.ObjectMeta{Namespace: obj.GetNamespace(), OwnerReferences: obj.GetOwnerReferences()})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}

// ClusterOf is the Cluster that obj's label names, nil where there is none.
func ClusterOf(ctx context.Context, c client.Client, obj client.Object) (*clusterv1.Cluster, error) {
	name := obj.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil, nil
	}
	out := new(clusterv1.Cluster)
	err := c.Get(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}, out)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return out, err
}

// MachineToInfrastructure maps a Machine to its object of kind, which has the namespace
// in common with it.
func MachineToInfrastructure(kind schema.GroupVersionKind) handler.MapFunc {
	return util.MachineToInfrastructureMapFunc(kind)
}

// EnsureFinalizer adds the finalizer, in a write of its own. added says: it was not
// there, the caller returns, and nothing was done in the outside world before it.
func EnsureFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) (added bool, err error) {
	return finalizers.EnsureFinalizer(ctx, c, obj, finalizer)
}

// Paused keeps the condition Paused and says whether to leave obj alone, be it that it
// is paused or that the condition was just written. cluster may be nil.
func Paused(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, obj Object) (leave bool, err error) {
	is, requeue, err := paused.EnsurePausedCondition(ctx, c, cluster, obj)
	return is || requeue, err
}

// IsPaused reports whether obj is paused, for those who keep no condition of it.
func IsPaused(cluster *clusterv1.Cluster, obj client.Object) bool {
	return annotations.IsPaused(cluster, obj)
}

// MoveLabel makes `clusterctl move` take an object along that no Cluster owns.
const MoveLabel = clusterctlv1.ClusterctlMoveLabel

// ExternallyManaged reports whether another tool manages obj: we leave it alone.
func ExternallyManaged(obj client.Object) bool { return annotations.IsExternallyManaged(obj) }

// Moved reports whether `clusterctl move` is deleting obj here because it lives on in
// another management cluster: nothing is given back, and clusterctl takes the
// finalizers off.
func Moved(obj client.Object) bool {
	_, ok := obj.GetAnnotations()[clusterctlv1.DeleteForMoveAnnotation]
	return ok
}

// Patcher writes what changed in an object since NewPatcher.
type Patcher struct {
	helper *patch.Helper
	obj    Object
	owned  []string
}

// NewPatcher remembers obj as it is. owned are the conditions that only the caller
// writes, besides Ready and Paused.
func NewPatcher(c client.Client, obj Object, owned ...string) (*Patcher, error) {
	h, err := patch.NewHelper(obj, c)
	return &Patcher{h, obj, append(owned, clusterv1.ReadyCondition, clusterv1.PausedCondition)}, err
}

// Patch writes the changes. An object that is gone meanwhile, because its last
// finalizer went in the same patch, is no error.
func (p *Patcher) Patch(ctx context.Context) error {
	err := p.helper.Patch(ctx, p.obj, patch.WithOwnedConditions{Conditions: p.owned})
	var all kerrors.Aggregate
	if errors.As(err, &all) {
		return kerrors.FilterOut(all, apierrors.IsNotFound)
	}
	return client.IgnoreNotFound(err)
}

// Set sets a condition. Messages are sentences, the same as long as nothing changes:
// each other one is a write.
func Set(obj Object, kind string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(obj, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

// Unset removes a condition that does not apply.
func Unset(obj Object, kind string) { conditions.Delete(obj, kind) }
