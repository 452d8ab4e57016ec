package cluster

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// keptAnnotation of a RackstrapCluster names the Secrets that it put SecretFinalizer
// on, comma-separated: no other record says which they were when spec.appliance has
// changed meanwhile. It is written before the finalizer is.
const keptAnnotation = "infrastructure.cluster.x-k8s.io/kept-secrets"

// keepSecret keeps the Secrets that the cluster and its machines' claims need, and
// lets go those that nobody needs any more. done false: a write woke us again.
func (r *Reconciler) keepSecret(ctx context.Context, obj *infrav1.RackstrapCluster, machines []infrav1.RackstrapMachine) (done bool, err error) {
	want := obj.Spec.Appliance.SecretRef.Name
	kept := keptSecrets(obj)
	if !slices.Contains(kept, want) {
		return false, r.noteKept(ctx, obj, append(kept, want))
	}
	if err := r.keep(ctx, obj.Namespace, want); err != nil {
		return false, err
	}
	rest := []string{want}
	for _, name := range kept {
		if name == want {
			continue
		}
		gone, err := r.letGo(ctx, obj, name, machines)
		if err != nil {
			return false, err
		}
		if !gone {
			rest = append(rest, name)
		}
	}
	if len(rest) < len(kept) {
		return false, r.noteKept(ctx, obj, rest)
	}
	return true, nil
}

// letSecretsGo takes the finalizer off all Secrets that nobody else needs.
func (r *Reconciler) letSecretsGo(ctx context.Context, obj *infrav1.RackstrapCluster) error {
	all := new(infrav1.RackstrapMachineList)
	if err := r.List(ctx, all, client.InNamespace(obj.Namespace)); err != nil {
		return err
	}
	for _, name := range keptSecrets(obj) {
		if _, err := r.letGo(ctx, obj, name, all.Items); err != nil {
			return err
		}
	}
	return nil
}

func keptSecrets(obj *infrav1.RackstrapCluster) []string {
	return slices.DeleteFunc(strings.Split(obj.Annotations[keptAnnotation], ","), func(s string) bool { return s == "" })
}

func (r *Reconciler) noteKept(ctx context.Context, obj *infrav1.RackstrapCluster, names []string) error {
	slices.Sort(names)
	before := obj.DeepCopy()
	if obj.Annotations == nil {
		obj.Annotations = map[string]string{}
	}
	obj.Annotations[keptAnnotation] = strings.Join(names, ",")
	return r.Patch(ctx, obj, client.MergeFrom(before))
}

// keep puts the finalizer on a Secret, and the label by which `clusterctl move` takes
// it along. A Secret that is not there, or is being deleted, stays as it is: whoever
// uses it says so.
func (r *Reconciler) keep(ctx context.Context, namespace, name string) error {
	s := new(corev1.Secret)
	if err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, ok := s.Labels[contract.MoveLabel]; (ok && controllerutil.ContainsFinalizer(s, infrav1.SecretFinalizer)) || !s.DeletionTimestamp.IsZero() {
		return nil
	}
	before := s.DeepCopy()
	controllerutil.AddFinalizer(s, infrav1.SecretFinalizer)
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[contract.MoveLabel] = ""
	return client.IgnoreNotFound(r.Patch(ctx, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// claimed reports whether a claim was made with the token of a Secret.
func claimed(name string, machines []infrav1.RackstrapMachine) bool {
	return slices.ContainsFunc(machines, func(m infrav1.RackstrapMachine) bool {
		return m.Spec.ClaimID != "" && m.Spec.Appliance.SecretRef.Name == name
	})
}

// keptBesides reports whether another cluster keeps a Secret, and lets it go when it is
// the last. One that is being deleted keeps it for its claims alone: two that go at the
// same time would leave it to each other.
func keptBesides(obj *infrav1.RackstrapCluster, name string, all []infrav1.RackstrapCluster) bool {
	return slices.ContainsFunc(all, func(o infrav1.RackstrapCluster) bool {
		return o.UID != obj.UID && o.DeletionTimestamp.IsZero() && (o.Spec.Appliance.SecretRef.Name == name || slices.Contains(keptSecrets(&o), name))
	})
}

// letGo takes the finalizer off a Secret that no claim and no other cluster of the
// namespace needs.
func (r *Reconciler) letGo(ctx context.Context, obj *infrav1.RackstrapCluster, name string, machines []infrav1.RackstrapMachine) (gone bool, err error) {
	if claimed(name, machines) {
		return false, nil
	}
	others := new(infrav1.RackstrapClusterList)
	if err := r.List(ctx, others, client.InNamespace(obj.Namespace)); err != nil {
		return false, err
	}
	if keptBesides(obj, name, others.Items) {
		return true, nil
	}
	s := new(corev1.Secret)
	if err := r.Get(ctx, client.ObjectKey{Namespace: obj.Namespace, Name: name}, s); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	before := s.DeepCopy()
	if !controllerutil.RemoveFinalizer(s, infrav1.SecretFinalizer) {
		return true, nil
	}
	err = r.Patch(ctx, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return err == nil || apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}
