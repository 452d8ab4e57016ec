// Package allocator is an IPAM provider for the suites, which keeps to the contract that
// the Cluster API sets for one: the names, owners and finalizers of what it makes, and
// that it leaves alone what is paused.
package allocator

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// CRD is the kind of its pools: the first address, how many follow it, and what goes
// with each of them.
const CRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: labippools.ipam.lab.example
  labels: {cluster.x-k8s.io/v1beta2: v1alpha1, clusterctl.cluster.x-k8s.io: ""}
spec:
  group: ipam.lab.example
  scope: Namespaced
  names: {kind: LabIPPool, listKind: LabIPPoolList, plural: labippools, singular: labippool}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [first, count, prefix]
            properties:
              first: {type: string}
              count: {type: integer}
              prefix: {type: integer}
              gateway: {type: string}
`

// Finalizers of the contract.
const (
	releaseFinalizer = "ipam.lab.example/release-address"
	protectFinalizer = "ipam.cluster.x-k8s.io/protect-address"
)

func poolKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "ipam.lab.example", Version: "v1alpha1", Kind: "LabIPPool"}
}

type allocator struct{ client.Client }

// Run allocates until ctx ends.
func Run(ctx context.Context, cfg *rest.Config) error {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme, ipamv1.AddToScheme} {
		if err := add(s); err != nil {
			return err
		}
	}
	skip := true // a test binary may run several
	m, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: s, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard()})
	if err != nil {
		return err
	}
	a := &allocator{m.GetClient()}
	err = ctrl.NewControllerManagedBy(m).For(&ipamv1.IPAddressClaim{}).Owns(&ipamv1.IPAddress{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(a.claimsOf)).
		WithOptions(controller.Options{SkipNameValidation: &skip}).Complete(a)
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

func (a *allocator) claimsOf(ctx context.Context, cluster client.Object) []reconcile.Request {
	var all ipamv1.IPAddressClaimList
	if err := a.List(ctx, &all, client.InNamespace(cluster.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.GetName()}); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range all.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
	}
	return out
}

// Reconcile follows the steps of the contract, "IPAM Provider Specification".
func (a *allocator) Reconcile(ctx context.Context, rq ctrl.Request) (ctrl.Result, error) {
	claim := new(ipamv1.IPAddressClaim)
	if err := a.Get(ctx, rq.NamespacedName, claim); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ref := claim.Spec.PoolRef; ref.APIGroup != poolKind().Group || ref.Kind != poolKind().Kind {
		return ctrl.Result{}, nil
	}
	cluster := new(clusterv1.Cluster)
	if err := a.Get(ctx, client.ObjectKey{Namespace: claim.Namespace, Name: claim.Spec.ClusterName}, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if annotations.IsPaused(cluster, claim) {
		return ctrl.Result{}, nil
	}
	if !claim.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, a.release(ctx, claim)
	}
	if controllerutil.AddFinalizer(claim, releaseFinalizer) {
		return ctrl.Result{}, a.Update(ctx, claim)
	}
	old := claim.DeepCopy()
	name, err := a.allocate(ctx, claim)
	if err != nil {
		return ctrl.Result{}, err
	}
	var later ctrl.Result
	if name == "" {
		later.RequeueAfter = time.Second
		conditions.Set(claim, metav1.Condition{Type: ipamv1.IPAddressClaimReadyCondition, Status: metav1.ConditionFalse, Reason: ipamv1.IPAddressClaimReadyPoolExhaustedReason, Message: "no address is left"})
	} else {
		claim.Status.AddressRef.Name = name
		conditions.Set(claim, metav1.Condition{Type: ipamv1.IPAddressClaimReadyCondition, Status: metav1.ConditionTrue, Reason: "Allocated"})
	}
	return later, a.Status().Patch(ctx, claim, client.MergeFrom(old))
}

func (a *allocator) release(ctx context.Context, claim *ipamv1.IPAddressClaim) error {
	ip := new(ipamv1.IPAddress)
	err := a.Get(ctx, client.ObjectKeyFromObject(claim), ip)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		if controllerutil.RemoveFinalizer(ip, protectFinalizer) {
			if err := a.Update(ctx, ip); err != nil {
				return err
			}
		}
		if err := a.Delete(ctx, ip); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(claim, releaseFinalizer)
	return client.IgnoreNotFound(a.Update(ctx, claim))
}

// allocate makes the IPAddress of a claim, and returns its name; empty: none is free.
func (a *allocator) allocate(ctx context.Context, claim *ipamv1.IPAddressClaim) (string, error) {
	have := new(ipamv1.IPAddress)
	if err := a.Get(ctx, client.ObjectKeyFromObject(claim), have); !apierrors.IsNotFound(err) {
		return claim.Name, err
	}
	pool := new(unstructured.Unstructured)
	pool.SetGroupVersionKind(poolKind())
	if err := a.Get(ctx, client.ObjectKey{Namespace: claim.Namespace, Name: claim.Spec.PoolRef.Name}, pool); err != nil {
		return "", err
	}
	free, err := a.free(ctx, claim, pool)
	if err != nil || free == "" {
		return "", err
	}
	bits, _, err := unstructured.NestedInt64(pool.Object, "spec", "prefix")
	if err != nil {
		return "", err
	}
	gateway, _, err := unstructured.NestedString(pool.Object, "spec", "gateway")
	if err != nil {
		return "", err
	}
	prefix, yes, no := int32(bits), true, false
	claimKind := ipamv1.GroupVersion.WithKind("IPAddressClaim")
	ip := &ipamv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: claim.Namespace, Name: claim.Name, Labels: claim.Labels, Finalizers: []string{protectFinalizer},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: claimKind.GroupVersion().String(), Kind: claimKind.Kind, Name: claim.Name, UID: claim.UID, Controller: &yes, BlockOwnerDeletion: &yes},
				{APIVersion: poolKind().GroupVersion().String(), Kind: poolKind().Kind, Name: pool.GetName(), UID: pool.GetUID(), Controller: &no, BlockOwnerDeletion: &yes},
			},
		},
		Spec: ipamv1.IPAddressSpec{
			ClaimRef: ipamv1.IPAddressClaimReference{Name: claim.Name}, PoolRef: claim.Spec.PoolRef, Address: free, Prefix: &prefix, Gateway: gateway,
		},
	}
	return claim.Name, a.Create(ctx, ip)
}

// free is the first address of the pool that no IPAddress has; empty where there is none.
// One controller asks, one claim at a time, so that two claims never get the same.
func (a *allocator) free(ctx context.Context, claim *ipamv1.IPAddressClaim, pool *unstructured.Unstructured) (string, error) {
	first, _, err := unstructured.NestedString(pool.Object, "spec", "first")
	if err != nil {
		return "", err
	}
	count, _, err := unstructured.NestedInt64(pool.Object, "spec", "count")
	if err != nil {
		return "", err
	}
	addr, err := netip.ParseAddr(first)
	if err != nil {
		return "", fmt.Errorf("pool %s: %w", pool.GetName(), err)
	}
	var all ipamv1.IPAddressList
	if err := a.List(ctx, &all, client.InNamespace(claim.Namespace)); err != nil {
		return "", err
	}
	used := map[string]bool{}
	for i := range all.Items {
		if all.Items[i].Spec.PoolRef == claim.Spec.PoolRef {
			used[all.Items[i].Spec.Address] = true
		}
	}
	for range count {
		if !used[addr.String()] {
			return addr.String(), nil
		}
		addr = addr.Next()
	}
	return "", nil
}
