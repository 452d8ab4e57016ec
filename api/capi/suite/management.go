package suite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/deploy/lab/kube"
)

// Provider is what Kill and Restart of a plane call our provider.
const Provider = "rackstrap-capi"

// The service account of our provider, as deploy/capi installs it.
const (
	providerNamespace = "rackstrap-capi-system"
	providerAccount   = "rackstrap-capi-manager"
)

// version of our provider in the clusterctl repository.
const version = "v0.1.0"

// Management is a management cluster with our provider.
type Management struct {
	Plane *kube.Plane
	// Client has all rights. It reads from the API server, without a cache.
	Client ctrlclient.WithWatch
	// Config is the client's.
	Config *rest.Config
	// Metrics is where our provider serves them: host and port in the lab's namespace.
	Metrics string

	s      *Suite
	health string
}

// Scheme knows the kinds of all providers.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	var err error
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme,
		controlplanev1.AddToScheme, ipamv1.AddToScheme, addonsv1.AddToScheme, infrav1.AddToScheme,
	} {
		err = errors.Join(err, add(s))
	}
	return s, err
}

// NewManagement makes one more management cluster beside the first one, as a target of
// a move: with the same providers, and nothing in it.
func (s *Suite) NewManagement() *Management {
	s.Helper()
	m, err := s.manage(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return m
}

func (s *Suite) manage(ctx context.Context) (*Management, error) {
	s.more++
	m := &Management{s: s}
	dir := filepath.Join(s.dir, "m"+strconv.Itoa(s.more))
	p, err := kube.Start(ctx, kube.Options{Dir: dir, Bin: s.bin.Tools, Namespace: s.Lab.Namespace, Controllers: kube.Management()})
	if err != nil {
		return nil, err
	}
	m.Plane = p
	s.Cleanup(func() {
		for _, name := range []string{Provider, "capi-core", "capi-bootstrap", "capi-control-plane"} {
			s.dump(name, p.LogPath(name))
		}
		if err := p.Stop(); err != nil {
			s.Error(err)
		}
	})
	if m.Config, m.Client, err = connect(p); err != nil {
		return nil, err
	}
	if err := m.install(ctx); err != nil {
		return nil, err
	}
	if err := p.Apply(ctx, s.secretYAML("default")); err != nil {
		return nil, err
	}
	if s.options.NoProvider {
		return m, nil
	}
	return m, m.startProvider(ctx, s.options.ProviderFlags)
}

// secretYAML is the Secret with the appliance's connection.
func (s *Suite) secretYAML(namespace string) string {
	out := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s, labels: {clusterctl.cluster.x-k8s.io/move: \"\"}}\nstringData:\n", Secret, namespace)
	for k, v := range s.secret {
		out += fmt.Sprintf("  %s: %q\n", k, v)
	}
	return out
}

// ApplianceSecret writes the Secret with the appliance's connection into a namespace,
// which is made where it is missing.
func (m *Management) ApplianceSecret(namespace string) {
	m.s.Helper()
	m.Apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n%s", namespace, m.s.secretYAML(namespace)))
}

// connect makes a client from where the plane is.
func connect(p *kube.Plane) (*rest.Config, ctrlclient.WithWatch, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	cfg.Dial, cfg.QPS = p.Dial, -1
	scheme, err := Scheme()
	if err != nil {
		return nil, nil, err
	}
	c, err := ctrlclient.NewWithWatch(cfg, ctrlclient.Options{Scheme: scheme})
	return cfg, c, err
}

// install puts the providers in: with clusterctl, as they are released, or without.
func (m *Management) install(ctx context.Context) error {
	release, err := m.release(ctx)
	if err != nil {
		return err
	}
	o := m.s.options
	switch {
	case o.Clusterctl:
		if _, err := m.Plane.Repository(ctx, release); err != nil {
			return err
		}
		if _, err := m.Plane.Clusterctl(ctx, "init", "--infrastructure", "rackstrap:"+version); err != nil {
			return err
		}
		return m.Plane.StartManagers(ctx)
	case o.CAPI:
		if err := m.Plane.StartCAPI(ctx); err != nil {
			return err
		}
	default:
		if err := m.Plane.ApplyCAPICRDs(ctx); err != nil {
			return err
		}
	}
	return m.Plane.ApplyComponents(ctx, release.Files["infrastructure-components.yaml"])
}

// release makes our provider's release, as `make capi-release` does.
func (m *Management) release(ctx context.Context) (kube.Infrastructure, error) {
	r := kube.Infrastructure{Name: "rackstrap", Version: version, Files: map[string][]byte{}}
	out := filepath.Join(m.Plane.Dir, "release")
	cmd := exec.CommandContext(ctx, filepath.Join(m.s.bin.Source, "deploy/capi/release"), version, out)
	if said, err := cmd.CombinedOutput(); err != nil {
		return r, fmt.Errorf("deploy/capi/release: %w: %s", err, said)
	}
	files, err := filepath.Glob(filepath.Join(out, version, "*.yaml"))
	for _, f := range files {
		b, rerr := os.ReadFile(f)
		err = errors.Join(err, rerr)
		r.Files[filepath.Base(f)] = b
	}
	for name, text := range m.s.options.Flavors {
		r.Files["cluster-template-"+name+".yaml"] = text
	}
	return r, err
}

// StartProvider starts our provider under its own rights, with the flags of the Options
// and more. Plane.Kill and Plane.Restart do the rest.
func (m *Management) StartProvider(flags ...string) {
	m.s.Helper()
	if err := m.startProvider(m.s.Context(), append(m.s.options.ProviderFlags, flags...)); err != nil {
		m.s.Fatal(err)
	}
}

// StartProviderAs starts one more of our provider, which Plane.Kill and Plane.Restart know
// by name.
func (m *Management) StartProviderAs(name string, flags ...string) {
	m.s.Helper()
	if _, _, err := m.runProvider(m.s.Context(), name, flags); err != nil {
		m.s.Fatal(err)
	}
	m.s.Cleanup(func() { m.s.dump(name, m.Plane.LogPath(name)) })
}

func (m *Management) startProvider(ctx context.Context, flags []string) (err error) {
	m.Metrics, m.health, err = m.runProvider(ctx, Provider, flags)
	return err
}

func (m *Management) runProvider(ctx context.Context, name string, flags []string) (metrics, health string, err error) {
	user, groups := kube.ServiceAccountUser(providerNamespace, providerAccount)
	conf, err := m.Plane.WriteKubeconfig(user, groups...)
	if err != nil {
		return "", "", err
	}
	for _, addr := range []*string{&metrics, &health} {
		port, err := m.Plane.FreePort(ctx)
		if err != nil {
			return "", "", err
		}
		*addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	return metrics, health, m.Plane.Run(ctx, kube.Process{
		Name: name, Path: m.s.bin.Provider, Ready: "http://" + health + "/readyz",
		Args: append([]string{"--kubeconfig=" + conf, "--metrics-address=" + metrics, "--health-address=" + health, "--verbose"}, flags...),
	})
}

// Move has clusterctl move the namespace default to another management cluster, with more
// flags.
func (m *Management) Move(to *Management, flags ...string) error {
	if _, err := os.Stat(m.Plane.RepositoryConfig()); err != nil {
		release, err := m.release(m.s.Context())
		if err != nil {
			return err
		}
		if _, err := m.Plane.Repository(m.s.Context(), release); err != nil {
			return err
		}
	}
	_, err := m.Plane.Clusterctl(m.s.Context(), append([]string{"move", "--namespace", "default", "--kubeconfig", m.Plane.Kubeconfig, "--to-kubeconfig", to.Plane.Kubeconfig}, flags...)...)
	return err
}

// KillProvider ends our provider with SIGKILL.
func (m *Management) KillProvider() {
	m.s.Helper()
	if err := m.Plane.Kill(Provider); err != nil {
		m.s.Fatal(err)
	}
}

// RestartProvider starts it again.
func (m *Management) RestartProvider() {
	m.s.Helper()
	if err := m.Plane.Restart(m.s.Context(), Provider); err != nil {
		m.s.Fatal(err)
	}
}

// Apply applies documents.
func (m *Management) Apply(yaml string) {
	m.s.Helper()
	if err := m.Plane.Apply(m.s.Context(), yaml); err != nil {
		m.s.Fatal(err)
	}
}

// Kubectl runs kubectl and returns what it printed.
func (m *Management) Kubectl(args ...string) string {
	m.s.Helper()
	out, err := m.Plane.Kubectl(m.s.Context(), args...)
	if err != nil {
		m.s.Fatal(err)
	}
	return out
}

// Get reads an object.
func (m *Management) Get(namespace, name string, obj ctrlclient.Object) error {
	return m.Client.Get(m.s.Context(), ctrlclient.ObjectKey{Namespace: namespace, Name: name}, obj)
}
