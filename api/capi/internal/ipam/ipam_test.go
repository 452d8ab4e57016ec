package ipam_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rackstrap/rackstrap/api/capi/internal/ipam"
	"github.com/rackstrap/rackstrap/api/capi/suite/allocator"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/deploy/lab/kube"
)

// management is a real API server with the Cluster API's core and our kinds, and an
// allocator.
func management(t *testing.T) client.Client {
	t.Helper()
	bin, err := kube.Tools(t.Context(), func(s string) { t.Log(s) })
	must(t, err)
	p, err := kube.Start(t.Context(), kube.Options{Dir: t.TempDir(), Bin: bin, Controllers: kube.Management()})
	must(t, err)
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	must(t, p.StartCAPI(t.Context()))
	root, err := kube.Source(t.Context())
	must(t, err)
	must(t, p.ApplyCRDs(t.Context(), root+"/deploy/capi/config/crd"))
	must(t, p.Apply(t.Context(), allocator.CRD))
	_, err = p.Kubectl(t.Context(), "wait", "--for=condition=Established", "--timeout=60s", "crd", "labippools.ipam.lab.example")
	must(t, err)
	must(t, p.Apply(t.Context(), world))
	cfg, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- allocator.Run(ctx, cfg) }()
	t.Cleanup(func() { cancel(); must(t, <-done) })
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, ipamv1.AddToScheme, infrav1.AddToScheme} {
		must(t, add(s))
	}
	c, err := client.New(cfg, client.Options{Scheme: s})
	must(t, err)
	return c
}

// The Cluster is not more than what allocators look at.
const world = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c1, namespace: default}
spec:
  controlPlaneEndpoint: {host: 10.77.0.9, port: 6443}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: RackstrapCluster, name: c1}
---
apiVersion: ipam.lab.example/v1alpha1
kind: LabIPPool
metadata: {name: nodes, namespace: default}
spec: {first: 10.0.0.10, count: 1, prefix: 24, gateway: 10.0.0.1}
---
apiVersion: ipam.lab.example/v1alpha1
kind: LabIPPool
metadata: {name: six, namespace: default}
spec: {first: "fd00::10", count: 100, prefix: 64}
`

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func machine(name string) *infrav1.RackstrapMachine {
	pool := func(name string) infrav1.PoolAddress {
		return infrav1.PoolAddress{PoolRef: infrav1.PoolReference{APIGroup: "ipam.lab.example", Kind: "LabIPPool", Name: name}}
	}
	return &infrav1.RackstrapMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c1"}, Finalizers: []string{infrav1.MachineFinalizer}},
		Spec: infrav1.RackstrapMachineSpec{Install: infrav1.Install{
			Image:   infrav1.Image{Name: "debian"},
			Network: infrav1.Network{Addresses: []infrav1.PoolAddress{pool("nodes"), pool("six")}},
		}},
	}
}

// until asks until ok.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// TestIPAMAddresses: a machine has its addresses from the pools, each by one claim; what
// is missing is said; the addresses are not given to another machine before the first
// was released, even if somebody deletes its claims.
func TestIPAMAddresses(t *testing.T) {
	t.Parallel()
	c, ctx := management(t), t.Context()
	one, two := machine("m1"), machine("m2")
	must(t, c.Create(ctx, one))
	must(t, c.Create(ctx, two))

	var got []ipam.Address
	until(t, "addresses of m1", func() bool {
		var waiting string
		var err error
		got, waiting, err = ipam.Ensure(ctx, c, one)
		must(t, err)
		return waiting == ""
	})
	want := []ipam.Address{{Prefix: netip.MustParsePrefix("10.0.0.10/24"), Gateway: netip.MustParseAddr("10.0.0.1")}, {Prefix: netip.MustParsePrefix("fd00::10/64")}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
	if again, err := ipam.Addresses(ctx, c, one); err != nil || len(again) != 2 || again[0] != want[0] {
		t.Errorf("read again: %v, %v", again, err)
	}
	claim := new(ipamv1.IPAddressClaim)
	must(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "m1-0"}, claim))
	if o := metav1.GetControllerOf(claim); o == nil || o.UID != one.UID || o.Kind != "RackstrapMachine" || o.BlockOwnerDeletion == nil || !*o.BlockOwnerDeletion ||
		claim.Labels[clusterv1.ClusterNameLabel] != "c1" || claim.Spec.ClusterName != "c1" {
		t.Errorf("claim: %+v", claim)
	}

	const full = "The pool LabIPPool/nodes has given no address to the IPAddressClaim m2-0 yet: PoolExhausted, no address is left (see `kubectl -n default describe ipaddressclaim m2-0`)."
	waits := func() bool {
		none, waiting, err := ipam.Ensure(ctx, c, two)
		must(t, err)
		if waiting == "" || none != nil {
			t.Fatalf("m2 has %v", none)
		}
		return waiting == full
	}
	until(t, full, waits)

	// Somebody deletes the claim of a machine that runs: its address stays taken.
	must(t, c.Delete(ctx, claim))
	until(t, "the claim goes", func() bool { return c.Get(ctx, client.ObjectKeyFromObject(claim), claim) != nil })
	until(t, "the address is being deleted", func() bool {
		ip := new(ipamv1.IPAddress)
		must(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "m1-0"}, ip))
		return !ip.DeletionTimestamp.IsZero()
	})
	until(t, full, waits)

	must(t, c.Delete(ctx, one))
	must(t, ipam.Release(ctx, c, one))
	until(t, "m2 has the address", func() bool {
		got, waiting, err := ipam.Ensure(ctx, c, two)
		must(t, err)
		return waiting == "" && got[0] == want[0]
	})
	must(t, c.Get(ctx, client.ObjectKeyFromObject(one), one))
	one.Finalizers = nil
	must(t, c.Update(ctx, one))
	until(t, "all claims of m1 go", func() bool {
		return c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "m1-1"}, claim) != nil
	})

	// A machine whose finalizer is taken away by hand leaves nothing that cannot go.
	must(t, c.Get(ctx, client.ObjectKeyFromObject(two), two))
	two.Finalizers = nil
	must(t, c.Update(ctx, two))
	must(t, c.Delete(ctx, two))
	until(t, "the addresses of m2 go", func() bool {
		must(t, ipam.Orphans(ctx, c, client.ObjectKeyFromObject(two)))
		var all ipamv1.IPAddressList
		must(t, c.List(ctx, &all))
		return len(all.Items) == 0
	})

	// What is another's is not taken.
	three := machine("m3")
	must(t, c.Create(ctx, three))
	must(t, c.Create(ctx, &ipamv1.IPAddressClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m3-0"},
		Spec:       ipamv1.IPAddressClaimSpec{ClusterName: "c1", PoolRef: ipamv1.IPPoolReference{APIGroup: "ipam.lab.example", Kind: "LabIPPool", Name: "nodes"}},
	}))
	_, _, err := ipam.Ensure(ctx, c, three)
	if bad := new(ipam.InvalidError); !errors.As(err, &bad) || !strings.Contains(err.Error(), "is not of this RackstrapMachine") {
		t.Errorf("m3: %v", err)
	}
	if err := ipam.Release(ctx, c, three); err != nil || c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "m3-0"}, claim) != nil || !claim.DeletionTimestamp.IsZero() {
		t.Errorf("the claim of another went: %v", err)
	}
}
