package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// certManager satisfies clusterctl, which only makes an Issuer and a Certificate to see
// whether they can be made.
const certManager = `apiVersion: v1
kind: Namespace
metadata: {name: cert-manager}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: issuers.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {kind: Issuer, listKind: IssuerList, plural: issuers, singular: issuer}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {kind: Certificate, listKind: CertificateList, plural: certificates, singular: certificate}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// Infrastructure is an infrastructure provider as clusterctl finds it.
type Infrastructure struct {
	Name, Version string
	// Files of its release by name: infrastructure-components.yaml, metadata.yaml,
	// cluster-template.yaml, …
	Files map[string][]byte
}

// Repository writes a clusterctl repository that needs no network, and its
// configuration, which it returns the path of: the three providers that StartManagers
// runs, and infra.
func (p *Plane) Repository(ctx context.Context, infra Infrastructure) (string, error) {
	m, err := p.managersOf(ctx)
	if err != nil {
		return "", err
	}
	module, err := capiModule(ctx)
	if err != nil {
		return "", err
	}
	meta, err := os.ReadFile(filepath.Join(module, "metadata.yaml"))
	if err != nil {
		return "", err
	}
	version := "v" + module[strings.LastIndex(module, "@v")+2:]
	root := filepath.Dir(p.RepositoryConfig())
	var conf strings.Builder
	conf.WriteString("providers:\n")
	for _, x := range providers() {
		b, err := p.render(ctx, x)
		if err != nil {
			return "", err
		}
		if b, err = local(b, m.at(x.name), p.Identity.CA.CertPEM, true); err != nil {
			return "", fmt.Errorf("%s: %w", x.components, err)
		}
		dir := filepath.Join(root, x.repository, version)
		if err := writeAll(dir, map[string][]byte{x.components: b, "metadata.yaml": meta}); err != nil {
			return "", err
		}
		fmt.Fprintf(&conf, "- {name: %s, type: %s, url: %q}\n", x.short, x.kind, filepath.Join(dir, x.components))
	}
	dir := filepath.Join(root, "infrastructure-"+infra.Name, infra.Version)
	if err := writeAll(dir, infra.Files); err != nil {
		return "", err
	}
	fmt.Fprintf(&conf, "- {name: %s, type: InfrastructureProvider, url: %q}\n", infra.Name, filepath.Join(dir, "infrastructure-components.yaml"))
	// The oldest version of cert-manager that this clusterctl takes is not checked: it
	// takes what the configuration says.
	dir = filepath.Join(root, "cert-manager", "v1.20.0")
	if err := writeAll(dir, map[string][]byte{"cert-manager.yaml": []byte(certManager)}); err != nil {
		return "", err
	}
	fmt.Fprintf(&conf, "cert-manager: {url: %q, version: v1.20.0}\n", filepath.Join(dir, "cert-manager.yaml"))
	path := p.RepositoryConfig()
	return path, os.WriteFile(path, []byte(conf.String()), 0o600)
}

// RepositoryConfig is where Repository writes clusterctl's configuration.
func (p *Plane) RepositoryConfig() string {
	return filepath.Join(p.Dir, "repository", "clusterctl.yaml")
}

func writeAll(dir string, files map[string][]byte) error {
	err := os.MkdirAll(dir, 0o755)
	for name, b := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	return err
}

// Clusterctl runs clusterctl with the configuration that Repository wrote, and returns
// what it printed. It asks no network for a newer version.
func (p *Plane) Clusterctl(ctx context.Context, args ...string) (string, error) {
	cmd := p.Command(ctx, "clusterctl", append([]string{"--config", p.RepositoryConfig()}, args...)...)
	cmd.Env = append(cmd.Env, "GOPROXY=off", "CLUSTERCTL_DISABLE_VERSIONCHECK=true", "XDG_CONFIG_HOME="+p.Dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("clusterctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), err
}
