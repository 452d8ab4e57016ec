package capi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// object is what the test reads of Machines, RackstrapMachines and Nodes.
type object struct {
	Metadata struct {
		Name              string
		UID               string
		CreationTimestamp time.Time
		DeletionTimestamp *time.Time
		Labels            map[string]string
	}
	Spec struct {
		ProviderID string
		ClaimID    string
		NodeName   string
	}
	Status struct {
		Phase      string
		NodeRef    struct{ Name string }
		Conditions []condition
		Hardware   struct{ Name string }
	}
}

type condition struct {
	Type, Status, Reason, Message string
	LastTransitionTime            time.Time
}

func (o *object) condition(kind string) condition {
	i := slices.IndexFunc(o.Status.Conditions, func(c condition) bool { return c.Type == kind })
	if i < 0 {
		return condition{Type: kind, Status: "missing"}
	}
	return o.Status.Conditions[i]
}

// list reads objects of the management cluster, oldest first.
func (w *world) list(kind string) ([]object, error) {
	return w.decode(w.plane.Kubectl(w.ctx, "get", kind, "-n", "default", "-o", "json"))
}

// nodes reads the Nodes of the cluster that was made.
func (w *world) nodes() ([]object, error) { return w.decode(w.there("get", "nodes", "-o", "json")) }

func (w *world) decode(text string, err error) ([]object, error) {
	if err != nil {
		return nil, err
	}
	var l struct{ Items []object }
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return nil, err
	}
	slices.SortFunc(l.Items, func(a, b object) int { return a.Metadata.CreationTimestamp.Compare(b.Metadata.CreationTimestamp) })
	return l.Items, nil
}

// there runs kubectl against the cluster that was made, as its administrator.
func (w *world) there(args ...string) (string, error) {
	text, err := w.plane.Kubectl(w.ctx, "get", "secret", cluster+"-kubeconfig", "-n", "default", "-o", "jsonpath={.data.value}")
	if err != nil {
		return "", err
	}
	conf, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", err
	}
	path := filepath.Join(w.dir, "there")
	if err := os.WriteFile(path, conf, 0o600); err != nil {
		return "", err
	}
	return w.plane.Kubectl(w.ctx, append([]string{"--kubeconfig", path, "--request-timeout=20s"}, args...)...)
}

// running is an error unless the cluster has n Machines that run, and each is a Node that
// is ready and has the provider id of its Machine.
func (w *world) running(n int) error {
	machines, err := w.list("machines")
	if err != nil {
		return err
	}
	var wrong []string
	if len(machines) != n {
		wrong = append(wrong, fmt.Sprintf("%d machines, want %d", len(machines), n))
	}
	for _, m := range machines {
		if ready := m.condition("Ready"); m.Status.Phase != "Running" || m.Status.NodeRef.Name == "" || ready.Status != "True" {
			infra := m.condition("InfrastructureReady")
			wrong = append(wrong, fmt.Sprintf("%s is %s, node %q, Ready %s, infrastructure: %s %s", m.Metadata.Name, m.Status.Phase, m.Status.NodeRef.Name, ready.Status, infra.Reason, infra.Message))
		}
	}
	if len(wrong) > 0 {
		return joined(wrong)
	}
	nodes, err := w.nodes()
	if err != nil {
		return err
	}
	for _, m := range machines {
		i := slices.IndexFunc(nodes, func(o object) bool { return o.Metadata.Name == m.Status.NodeRef.Name })
		if i < 0 || nodes[i].Spec.ProviderID != m.Spec.ProviderID || nodes[i].condition("Ready").Status != "True" {
			wrong = append(wrong, fmt.Sprintf("machine %s has no ready node with provider id %s", m.Metadata.Name, m.Spec.ProviderID))
		}
	}
	if len(nodes) != n {
		wrong = append(wrong, fmt.Sprintf("%d nodes, want %d", len(nodes), n))
	}
	return joined(wrong)
}
