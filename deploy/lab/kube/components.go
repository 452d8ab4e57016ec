package kube

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// provider is one of the Cluster API's own: where its module has it, and how it runs.
type provider struct {
	name       string // of the process and of the folder
	kustomize  string // in the module sigs.k8s.io/cluster-api
	binary     string
	features   string
	repository string // of clusterctl: folder, file
	components string
	kind       string // of clusterctl's configuration
	short      string // its name there
}

// providers run with everything on that a cluster of ours may use.
func providers() []provider {
	return []provider{
		{
			name: "capi-core", kustomize: "core", binary: "capi-core",
			features:   "MachinePool=true,ClusterTopology=true,RuntimeSDK=true,InPlaceUpdates=true,MachineTaintPropagation=true",
			repository: "cluster-api", components: "core-components.yaml", kind: "CoreProvider", short: "cluster-api",
		},
		{
			name: "capi-bootstrap", kustomize: "bootstrap/kubeadm", binary: "capi-bootstrap-kubeadm",
			features:   "MachinePool=true,KubeadmBootstrapFormatIgnition=true",
			repository: "bootstrap-kubeadm", components: "bootstrap-components.yaml", kind: "BootstrapProvider", short: "kubeadm",
		},
		{
			name: "capi-control-plane", kustomize: "controlplane/kubeadm", binary: "capi-controlplane-kubeadm",
			features:   "MachinePool=true,ClusterTopology=true,KubeadmBootstrapFormatIgnition=true,InPlaceUpdates=true,MachineTaintPropagation=true",
			repository: "control-plane-kubeadm", components: "control-plane-components.yaml", kind: "ControlPlaneProvider", short: "kubeadm",
		},
	}
}

// capiModule is where the Cluster API's files are. Its version is that of the tools.
func capiModule(ctx context.Context) (string, error) {
	root, err := Source(ctx)
	if err != nil {
		return "", err
	}
	return moduleDir(ctx, filepath.Join(root, "deploy/capi/env/capi"), "sigs.k8s.io/cluster-api")
}

// render is the release's components file of a provider, as kustomize makes it from the
// module. It is kept beside the binaries, which are of the same version.
func (p *Plane) render(ctx context.Context, x provider) ([]byte, error) {
	dir := filepath.Join(filepath.Dir(p.Bin), "components")
	path := filepath.Join(dir, x.components)
	if b, err := os.ReadFile(path); err == nil {
		return b, nil
	}
	module, err := capiModule(ctx)
	if err != nil {
		return nil, err
	}
	out, err := p.Kubectl(ctx, "kustomize", filepath.Join(module, x.kustomize, "config/default"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, x.components)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(out)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	return []byte(out), err
}

// local rewrites components for a manager that is a process: its webhooks are a URL of
// at, which is host:port, with our authority. Deployments and what belongs to them go, unless all is
// kept: clusterctl reads what is installed from them, and nothing schedules them.
func local(components []byte, at string, ca []byte, all bool) ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	dec := yaml.NewDecoder(bytes.NewReader(components))
	for {
		var doc map[string]any
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out.Bytes(), enc.Close()
		}
		if err != nil {
			return nil, err
		}
		if doc == nil {
			continue
		}
		kind, _ := doc["kind"].(string)
		meta := child(doc, "metadata")
		delete(child(meta, "annotations"), "cert-manager.io/inject-ca-from")
		switch kind {
		case "Deployment", "Service", "Certificate", "Issuer":
			if !all {
				continue
			}
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			hooks, _ := doc["webhooks"].([]any)
			for _, h := range hooks {
				if h, ok := h.(map[string]any); ok {
					byURL(child(h, "clientConfig"), at, ca)
				}
			}
		case "CustomResourceDefinition":
			byURL(child(doc, "spec", "conversion", "webhook", "clientConfig"), at, ca)
			// What clusterctl marks, and `clusterctl move` then looks for.
			labels, ok := meta["labels"].(map[string]any)
			if !ok {
				labels = map[string]any{}
				meta["labels"] = labels
			}
			labels["clusterctl.cluster.x-k8s.io"] = ""
		}
		if err := enc.Encode(doc); err != nil {
			return nil, err
		}
	}
}

// byURL turns the reference to a Service into a URL. Server-side apply would keep both
// where the other was there before, which is invalid: this comes first, never on top.
func byURL(c map[string]any, at string, ca []byte) {
	s, ok := c["service"].(map[string]any)
	if !ok {
		return
	}
	path, _ := s["path"].(string)
	delete(c, "service")
	c["url"] = "https://" + at + path
	c["caBundle"] = base64.StdEncoding.EncodeToString(ca)
}

// child walks down; it is nil, which reads as empty, where something is missing.
func child(m map[string]any, path ...string) map[string]any {
	for _, k := range path {
		m, _ = m[k].(map[string]any)
	}
	return m
}

// crds reads the CustomResourceDefinitions of a folder, and returns them as one text.
func crds(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return "", err
	}
	var all []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		all = append(all, strings.TrimPrefix(string(b), "---\n"))
	}
	return strings.Join(all, "---\n"), nil
}
