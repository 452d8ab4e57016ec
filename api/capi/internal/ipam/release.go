package ipam

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// Release gives the addresses of a machine back, whose system is known to run no more.
// It waits for nobody: a claim whose provider does not answer goes without us.
func Release(ctx context.Context, c client.Client, m *infrav1.RackstrapMachine) error {
	for i := range maxAddresses {
		claim := new(ipamv1.IPAddressClaim)
		err := c.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: ClaimName(m.Name, i)}, claim)
		if apierrors.IsNotFound(err) { // also where somebody deleted it while the machine ran
			if err := unprotect(ctx, c, client.ObjectKey{Namespace: m.Namespace, Name: ClaimName(m.Name, i)}, true); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if !isOf(claim, client.ObjectKeyFromObject(m)) {
			continue
		}
		if name := claim.Status.AddressRef.Name; name != "" {
			if err := unprotect(ctx, c, client.ObjectKey{Namespace: m.Namespace, Name: name}, false); err != nil {
				return err
			}
		}
		if !claim.DeletionTimestamp.IsZero() {
			continue
		}
		if err := c.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// Orphans lets the addresses of a machine go that does not exist any more, though
// nobody released it: its finalizer was taken away by hand.
func Orphans(ctx context.Context, c client.Client, key client.ObjectKey) error {
	for i := range maxAddresses {
		if err := unprotect(ctx, c, client.ObjectKey{Namespace: key.Namespace, Name: ClaimName(key.Name, i)}, true); err != nil {
			return err
		}
	}
	return nil
}

// unprotect takes our finalizer from an IPAddress; with deleting only from one that
// somebody deleted.
func unprotect(ctx context.Context, c client.Client, key client.ObjectKey, deleting bool) error {
	ip := new(ipamv1.IPAddress)
	if err := c.Get(ctx, key, ip); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !controllerutil.ContainsFinalizer(ip, Finalizer) || (deleting && ip.DeletionTimestamp.IsZero()) {
		return nil
	}
	old := ip.DeepCopy()
	controllerutil.RemoveFinalizer(ip, Finalizer)
	return client.IgnoreNotFound(c.Patch(ctx, ip, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})))
}

// isOf reports whether a claim is of the machine of that name, or was of an earlier one.
func isOf(claim *ipamv1.IPAddressClaim, machine client.ObjectKey) bool {
	o := metav1.GetControllerOf(claim)
	return o != nil && o.Kind == "RackstrapMachine" && o.Name == machine.Name && claim.Namespace == machine.Namespace
}
