// Package ipam asks pools for the addresses of machines, by IPAddressClaims of the
// Cluster API's IPAM contract, and says what the appliance is to make of them.
package ipam

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// Finalizer keeps an IPAddress while the machine may still use it, also where its claim
// is deleted before the machine is (a namespace that goes, a deletion in the
// foreground): providers give an address away when its IPAddress is gone.
const Finalizer = "infrastructure.cluster.x-k8s.io/rackstrapmachine-address"

// maxAddresses is what the schema allows of spec.network.addresses.
const maxAddresses = 8

// Address is what a pool gave.
type Address struct {
	Prefix netip.Prefix
	// Gateway is not valid where the pool has none.
	Gateway netip.Addr
}

// InvalidError is an address that no machine can have, or a spec that cannot be done.
type InvalidError struct{ Detail string }

func (e *InvalidError) Error() string { return e.Detail }

// ClaimName is the name of the claim for one entry of spec.network.addresses.
func ClaimName(machine string, index int) string { return machine + "-" + strconv.Itoa(index) }

// Ensure asks for the addresses of a machine's spec, each once, and returns what was
// given, in the order of the spec. waiting is a sentence that says which of them is
// missing; then got is nil. *InvalidError.
func Ensure(ctx context.Context, c client.Client, m *infrav1.RackstrapMachine) (got []Address, waiting string, err error) {
	asked := m.Spec.Network.Addresses
	for i := range asked {
		a, why, err := ensure(ctx, c, m, i)
		if err != nil {
			return nil, "", err
		}
		if why != "" && waiting == "" {
			waiting = why
		}
		got = append(got, a)
	}
	if waiting != "" {
		return nil, waiting, nil
	}
	return got, "", nil
}

func ensure(ctx context.Context, c client.Client, m *infrav1.RackstrapMachine, i int) (Address, string, error) {
	want := newClaim(m, i)
	have := new(ipamv1.IPAddressClaim)
	err := c.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		// It exists where our cache is late; the event of its creation wakes us again.
		if err := c.Create(ctx, want); err != nil && !apierrors.IsAlreadyExists(err) {
			return Address{}, "", fmt.Errorf("IPAddressClaim %s: %w", want.Name, err)
		}
		return Address{}, missing(want, ""), nil
	}
	if err != nil {
		return Address{}, "", err
	}
	switch {
	case isOf(have, client.ObjectKeyFromObject(m)) && !metav1.IsControlledBy(have, m):
		return Address{}, fmt.Sprintf("The IPAddressClaim %s is of an earlier machine of this name, and goes with it.", have.Name), nil
	case !metav1.IsControlledBy(have, m):
		return Address{}, "", &InvalidError{fmt.Sprintf("the IPAddressClaim %s is not of this RackstrapMachine (see who made it: kubectl -n %s describe ipaddressclaim %s)", have.Name, have.Namespace, have.Name)}
	case !have.DeletionTimestamp.IsZero():
		return Address{}, fmt.Sprintf("The IPAddressClaim %s is being deleted; it is made again when it is gone.", have.Name), nil
	case have.Spec.PoolRef != want.Spec.PoolRef:
		return Address{}, "", &InvalidError{fmt.Sprintf(
			"spec.network.addresses[%d] was changed to the pool %s, and the IPAddressClaim %s asks %s (delete the claim to ask again: kubectl -n %s delete ipaddressclaim %s)",
			i, pool(want), have.Name, pool(have), have.Namespace, have.Name,
		)}
	case have.Status.AddressRef.Name == "":
		return Address{}, missing(have, readyMessage(have)), nil
	}
	return given(ctx, c, have)
}

// given reads what a claim was given, and keeps it from being given to another.
func given(ctx context.Context, c client.Client, claim *ipamv1.IPAddressClaim) (Address, string, error) {
	ip := new(ipamv1.IPAddress)
	err := c.Get(ctx, client.ObjectKey{Namespace: claim.Namespace, Name: claim.Status.AddressRef.Name}, ip)
	if apierrors.IsNotFound(err) {
		return Address{}, fmt.Sprintf("The IPAddressClaim %s names the IPAddress %s, which does not exist.", claim.Name, claim.Status.AddressRef.Name), nil
	}
	if err != nil {
		return Address{}, "", err
	}
	if !ip.DeletionTimestamp.IsZero() {
		return Address{}, fmt.Sprintf("The IPAddress %s is being deleted.", ip.Name), nil
	}
	if ip.Spec.ClaimRef.Name != claim.Name {
		return Address{}, "", &InvalidError{fmt.Sprintf("the IPAddressClaim %s names the IPAddress %s, which was given to %s (look at the provider of the pool %s)", claim.Name, ip.Name, ip.Spec.ClaimRef.Name, pool(claim))}
	}
	a, err := parse(ip)
	if err != nil {
		return Address{}, "", err
	}
	if !controllerutil.ContainsFinalizer(ip, Finalizer) {
		old := ip.DeepCopy()
		controllerutil.AddFinalizer(ip, Finalizer)
		if err := c.Patch(ctx, ip, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})); err != nil {
			return Address{}, "", err
		}
	}
	return a, "", nil
}

func parse(ip *ipamv1.IPAddress) (Address, error) {
	wrong := func(what, value string) error {
		return &InvalidError{fmt.Sprintf("the IPAddress %s has the %s %.64q, which is none (correct the pool %s/%s)", ip.Name, what, value, ip.Spec.PoolRef.Kind, ip.Spec.PoolRef.Name)}
	}
	addr, err := netip.ParseAddr(ip.Spec.Address)
	if err != nil {
		return Address{}, wrong("address", ip.Spec.Address)
	}
	if ip.Spec.Prefix == nil {
		return Address{}, wrong("prefix", "")
	}
	p, err := addr.Prefix(int(*ip.Spec.Prefix))
	if err != nil {
		return Address{}, wrong("prefix", strconv.Itoa(int(*ip.Spec.Prefix)))
	}
	out := Address{Prefix: netip.PrefixFrom(addr, p.Bits())}
	if ip.Spec.Gateway != "" {
		if out.Gateway, err = netip.ParseAddr(ip.Spec.Gateway); err != nil {
			return Address{}, wrong("gateway", ip.Spec.Gateway)
		}
	}
	return out, nil
}

// newClaim is the claim for one entry. It is moved with the machine by clusterctl, and
// goes after it, by its owner reference.
func newClaim(m *infrav1.RackstrapMachine, i int) *ipamv1.IPAddressClaim {
	ref := m.Spec.Network.Addresses[i].PoolRef
	cluster := m.Labels[clusterv1.ClusterNameLabel]
	labels := map[string]string{clusterv1.ClusterNameLabel: cluster}
	if filter, ok := m.Labels[clusterv1.WatchLabel]; ok {
		labels[clusterv1.WatchLabel] = filter // else --watch-filter hides its events from us
	}
	return &ipamv1.IPAddressClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, Name: ClaimName(m.Name, i), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, infrav1.GroupVersion().WithKind("RackstrapMachine"))},
		},
		Spec: ipamv1.IPAddressClaimSpec{
			ClusterName: cluster,
			PoolRef:     ipamv1.IPPoolReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name},
		},
	}
}

func pool(c *ipamv1.IPAddressClaim) string { return c.Spec.PoolRef.Kind + "/" + c.Spec.PoolRef.Name }

func missing(c *ipamv1.IPAddressClaim, why string) string {
	if why != "" {
		why = ": " + why
	}
	return fmt.Sprintf("The pool %s has given no address to the IPAddressClaim %s yet%s (see `kubectl -n %s describe ipaddressclaim %s`).", pool(c), c.Name, why, c.Namespace, c.Name)
}

// readyMessage is what the pool's provider says of a claim that it cannot serve.
func readyMessage(c *ipamv1.IPAddressClaim) string {
	for _, x := range c.Status.Conditions {
		if x.Type == ipamv1.IPAddressClaimReadyCondition && x.Status == metav1.ConditionFalse {
			return x.Reason + ", " + x.Message
		}
	}
	return ""
}

// Addresses are those that a machine has of its pools, in the order of the spec, up to
// the first that is not known. It asks for none.
func Addresses(ctx context.Context, c client.Reader, m *infrav1.RackstrapMachine) ([]Address, error) {
	var out []Address
	for i := range maxAddresses {
		claim := new(ipamv1.IPAddressClaim)
		err := c.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: ClaimName(m.Name, i)}, claim)
		if apierrors.IsNotFound(err) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if !metav1.IsControlledBy(claim, m) || claim.Status.AddressRef.Name == "" {
			return out, nil
		}
		ip := new(ipamv1.IPAddress)
		if err := c.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: claim.Status.AddressRef.Name}, ip); err != nil {
			if apierrors.IsNotFound(err) {
				return out, nil
			}
			return nil, err
		}
		a, err := parse(ip)
		if err != nil {
			return out, nil // Ensure says what is wrong with it
		}
		out = append(out, a)
	}
	return out, nil
}
