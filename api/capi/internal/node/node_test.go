package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rackstrap/rackstrap/api/capi/internal/node"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/deploy/lab/kube"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plane is a real API server with the Cluster API's kinds and ours. It is the management
// cluster, and the workload cluster by the kubeconfig that is returned.
func plane(t *testing.T) (*rest.Config, []byte) {
	t.Helper()
	bin, err := kube.Tools(t.Context(), func(s string) { t.Log(s) })
	must(t, err)
	p, err := kube.Start(t.Context(), kube.Options{Dir: t.TempDir(), Bin: bin})
	must(t, err)
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	must(t, p.ApplyCAPICRDs(t.Context()))
	root, err := kube.Source(t.Context())
	must(t, err)
	must(t, p.ApplyCRDs(t.Context(), filepath.Join(root, "deploy/capi/config/crd")))
	kubeconfig, err := os.ReadFile(p.Kubeconfig)
	must(t, err)
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must(t, err)
	return cfg, kubeconfig
}

// run runs the controller until the test ends.
func run(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme} {
		must(t, add(s))
	}
	m, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: s, Metrics: metricsserver.Options{BindAddress: "0"}})
	must(t, err)
	r := &node.Reconciler{Client: m.GetClient()}
	must(t, r.Setup(t.Context(), m, "", controller.Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	t.Cleanup(func() { cancel(); must(t, <-done) })
	c, err := client.New(cfg, client.Options{Scheme: s})
	must(t, err)
	return c
}

// installed makes a Machine and its RackstrapMachine, whose system runs.
func installed(t *testing.T, c client.Client, host string, more ...string) {
	t.Helper()
	labels := map[string]string{clusterv1.ClusterNameLabel: "c1"}
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m-" + host, Labels: labels}}
	m.Spec.ClusterName, m.Spec.Bootstrap.DataSecretName = "c1", ptr.To("data")
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.Group, Kind: "RackstrapMachine", Name: "m-" + host}
	must(t, c.Create(t.Context(), m))
	o := &infrav1.RackstrapMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "m-" + host, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, clusterv1.GroupVersion.WithKind("Machine"))},
	}}
	o.Spec.ProviderID, o.Spec.Image.Name = "rackstrap://lab/"+host, "node"
	must(t, c.Create(t.Context(), o))
	o.Status.Initialization.Provisioned = ptr.To(true)
	o.Status.Addresses = []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: host}}
	for _, name := range more {
		o.Status.Addresses = append(o.Status.Addresses, clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: name})
	}
	must(t, c.Status().Update(t.Context(), o))
}

func eventually(t *testing.T, is func() error) {
	t.Helper()
	end := time.Now().Add(90 * time.Second)
	for err := is(); err != nil; err = is() {
		if time.Now().After(end) {
			t.Fatal(err)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// A Node without a provider id gets that of the machine whose host name it has; one that
// has one keeps it. Which of two it is nobody guesses.
func TestNodeGetsProviderID(t *testing.T) {
	t.Parallel()
	cfg, kubeconfig := plane(t)
	c, ctx := run(t, cfg), t.Context()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c1"}}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.Group, Kind: "RackstrapCluster", Name: "c1"}
	must(t, c.Create(ctx, cluster))
	must(t, c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c1-kubeconfig"}, Data: map[string][]byte{"value": kubeconfig}}))
	for _, n := range []corev1.Node{
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: corev1.NodeSpec{ProviderID: "kind://b"}},
	} {
		must(t, c.Create(ctx, &n))
	}
	id := func(name string) string {
		n := new(corev1.Node)
		must(t, c.Get(ctx, client.ObjectKey{Name: name}, n))
		return n.Spec.ProviderID
	}
	// Node d may be either of two machines.
	installed(t, c, "e", "d")
	installed(t, c, "f", "d")
	must(t, c.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "d"}}))
	installed(t, c, "b")
	installed(t, c, "a")
	eventually(t, func() error {
		if got := id("a"); got != "rackstrap://lab/a" {
			return fmt.Errorf("a has %q", got)
		}
		return nil
	})
	if got := id("b"); got != "kind://b" {
		t.Errorf("b has %q", got)
	}
	if got := id("d"); got != "" {
		t.Errorf("d has %q", got)
	}
	eventually(t, func() error {
		var list eventsv1.EventList
		must(t, c.List(ctx, &list))
		for _, e := range list.Items {
			if e.Reason == "NodeAmbiguous" && e.Type == "Warning" && strings.Contains(e.Note, "Node d") {
				return nil
			}
		}
		return errors.New("nobody says that d may be two")
	})
}
