package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// managers are the Cluster API's: where each of them listens.
type managers struct {
	certs    string         // folder with tls.crt and tls.key of the webhooks
	host     string         // where the API server finds them
	webhooks map[string]int // by provider
	health   map[string]int
}

// at is where the webhooks of a provider are, as host:port.
func (m *managers) at(provider string) string {
	return net.JoinHostPort(m.host, strconv.Itoa(m.webhooks[provider]))
}

// managersOf chooses the ports once: the components name them, in a clusterctl
// repository too.
func (p *Plane) managersOf(ctx context.Context) (*managers, error) {
	if p.capi != nil {
		return p.capi, nil
	}
	m := &managers{certs: p.pki("webhooks"), host: p.webhooks, webhooks: map[string]int{}, health: map[string]int{}}
	if err := os.MkdirAll(m.certs, 0o700); err != nil {
		return nil, err
	}
	pair, err := p.Identity.CA.Server("webhooks", m.host, "localhost")
	if err != nil {
		return nil, err
	}
	err = errors.Join(os.WriteFile(filepath.Join(m.certs, "tls.crt"), pair.Cert, 0o600), os.WriteFile(filepath.Join(m.certs, "tls.key"), pair.Key, 0o600))
	if err != nil {
		return nil, err
	}
	for _, x := range providers() {
		ports, err := p.ports(ctx, 2)
		if err != nil {
			return nil, err
		}
		m.webhooks[x.name], m.health[x.name] = ports[0], ports[1]
	}
	p.capi = m
	return m, nil
}

// StartCAPI installs the core, the kubeadm bootstrap and the kubeadm control plane
// provider, and runs their managers with their webhooks. The managers' names for Kill
// and Restart are capi-core, capi-bootstrap and capi-control-plane. The managers listen
// for webhooks at all addresses of the namespace, for they have no flag for it.
func (p *Plane) StartCAPI(ctx context.Context) error {
	m, err := p.managersOf(ctx)
	if err != nil {
		return err
	}
	for _, x := range providers() {
		b, err := p.render(ctx, x)
		if err != nil {
			return err
		}
		if b, err = local(b, m.at(x.name), p.Identity.CA.CertPEM, false); err != nil {
			return fmt.Errorf("%s: %w", x.components, err)
		}
		if err := p.Apply(ctx, string(b)); err != nil {
			return err
		}
	}
	return p.StartManagers(ctx)
}

// StartManagers runs the managers of providers that are installed already, as
// `clusterctl init` does it.
func (p *Plane) StartManagers(ctx context.Context) error {
	m, err := p.managersOf(ctx)
	if err != nil {
		return err
	}
	started := make(chan error)
	for _, x := range providers() {
		go func() { started <- p.Run(ctx, p.manager(x, m)) }()
	}
	for range providers() {
		err = errors.Join(err, <-started)
	}
	return err
}

func (p *Plane) manager(x provider, m *managers) Process {
	health := fmt.Sprintf("127.0.0.1:%d", m.health[x.name])
	return Process{Name: x.name, Path: filepath.Join(p.Bin, x.binary), Ready: "http://" + health + "/readyz", Args: []string{
		"--kubeconfig=" + p.Kubeconfig, fmt.Sprintf("--webhook-port=%d", m.webhooks[x.name]), "--webhook-cert-dir=" + m.certs,
		"--health-addr=" + health, "--diagnostics-address=0", "--insecure-diagnostics=true", "--feature-gates=" + x.features,
	}}
}

// ApplyCRDs installs the CustomResourceDefinitions of a folder, with the mark that
// `clusterctl move` looks for, and waits until they are served.
func (p *Plane) ApplyCRDs(ctx context.Context, dir string) error {
	text, err := crds(dir)
	if err != nil {
		return err
	}
	return p.ApplyComponents(ctx, []byte(text))
}

// ApplyCAPICRDs installs the kinds of the three providers that StartCAPI installs, for
// tests that write their objects themselves: no manager, no webhook.
func (p *Plane) ApplyCAPICRDs(ctx context.Context) error {
	module, err := capiModule(ctx)
	if err != nil {
		return err
	}
	for _, x := range providers() {
		if err := p.ApplyCRDs(ctx, filepath.Join(module, x.kustomize, "config/crd/bases")); err != nil {
			return err
		}
	}
	return nil
}

// ApplyComponents installs a provider's components without its Deployment, and waits
// until its kinds are served. The provider has no webhooks.
func (p *Plane) ApplyComponents(ctx context.Context, components []byte) error {
	b, err := local(components, "", nil, false)
	if err != nil {
		return err
	}
	if err := p.Apply(ctx, string(b)); err != nil {
		return err
	}
	_, err = p.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	return err
}
