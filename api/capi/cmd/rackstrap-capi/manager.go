package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rackstrap/rackstrap/api/capi/internal/appliance"
	"github.com/rackstrap/rackstrap/api/capi/internal/cluster"
	"github.com/rackstrap/rackstrap/api/capi/internal/contract"
	"github.com/rackstrap/rackstrap/api/capi/internal/machine"
	"github.com/rackstrap/rackstrap/api/capi/internal/node"
	"github.com/rackstrap/rackstrap/api/capi/internal/remediation"
	"github.com/rackstrap/rackstrap/api/capi/internal/template"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// options are the flags of the controllers; --namespace and --watch-filter are part of
// clusterctl's contract.
type options struct {
	kubeconfig, namespace, watchFilter string
	metrics, health                    string
	elect                              bool
	concurrency                        int
	resync                             time.Duration
	verbose                            bool
}

func managerFlags(c *cobra.Command) *options {
	o := &options{}
	f := c.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "management cluster; that of the pod, or $KUBECONFIG, where empty")
	f.StringVar(&o.namespace, "namespace", "", "look at this namespace only")
	f.StringVar(&o.watchFilter, "watch-filter", "", "look at objects whose label cluster.x-k8s.io/watch-filter has this value only")
	f.StringVar(&o.metrics, "metrics-address", "127.0.0.1:8080", "where /metrics is served, plain HTTP; 0 is nowhere")
	f.StringVar(&o.health, "health-address", ":9440", "where /healthz and /readyz are served, plain HTTP")
	f.BoolVar(&o.elect, "leader-elect", false, "run only while holding the Lease, so that a second replica waits")
	f.IntVar(&o.concurrency, "concurrency", 10, "objects of one kind that are looked at at the same time")
	f.DurationVar(&o.resync, "sync-period", 10*time.Minute, "look at everything again after this time, whether or not something happened")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "log more")
	return o
}

// newScheme knows all kinds that the controllers read.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, ipamv1.AddToScheme, infrav1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (o *options) config() (*rest.Config, error) {
	if o.kubeconfig == "" {
		return ctrl.GetConfig()
	}
	return clientcmd.BuildConfigFromFlags("", o.kubeconfig)
}

func (o *options) run(ctx context.Context) error {
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	log := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	cfg, err := o.config()
	if err != nil {
		return fmt.Errorf("no management cluster: %w (name it with --kubeconfig)", err)
	}
	s, err := newScheme()
	if err != nil {
		return err
	}
	co := cache.Options{SyncPeriod: &o.resync}
	if o.namespace != "" {
		co.DefaultNamespaces = map[string]cache.Config{o.namespace: {}}
	}
	m, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: s, Cache: co, Metrics: metricsserver.Options{BindAddress: o.metrics}, HealthProbeBindAddress: o.health,
		LeaderElection: o.elect, LeaderElectionID: "rackstrap-capi.infrastructure.cluster.x-k8s.io", LeaderElectionReleaseOnCancel: true,
		// bootstrap data and tokens are read when they are needed, and kept nowhere
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return err
	}
	pool := &appliance.Pool{Reader: m.GetAPIReader()}
	if err := m.Add(pool); err != nil {
		return err
	}
	inventory := &appliance.Inventory{}
	opts := controller.Options{MaxConcurrentReconciles: o.concurrency}
	machines := &machine.Reconciler{Client: m.GetClient(), Appliances: pool, Inventory: inventory}
	for name, setup := range map[string]func(context.Context, ctrl.Manager, contract.Filter, controller.Options) error{
		"cluster":     (&cluster.Reconciler{Client: m.GetClient(), Appliances: pool, Inventory: inventory}).Setup,
		"machine":     machines.Setup,
		"node":        (&node.Reconciler{Client: m.GetClient()}).Setup,
		"template":    (&template.Reconciler{Client: m.GetClient(), Appliances: pool, Inventory: inventory}).Setup,
		"remediation": (&remediation.Reconciler{Client: m.GetClient(), Appliances: pool, Install: machines.Request}).Setup,
	} {
		if err := setup(ctx, m, contract.Filter(o.watchFilter), opts); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, add := range map[string]func(string, healthz.Checker) error{"healthz": m.AddHealthzCheck, "readyz": m.AddReadyzCheck} {
		if err := add(name, healthz.Ping); err != nil {
			return err
		}
	}
	return m.Start(ctx)
}
