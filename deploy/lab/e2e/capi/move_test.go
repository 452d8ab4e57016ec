package capi_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/kube"
	"github.com/rackstrap/rackstrap/hardware/bmc"
)

// TestFirstManagementCluster: one machine that was booted from the network and installed
// becomes a management cluster: the providers are installed on it, ours runs on it as
// the Deployment of its release, and the cluster that it is itself moves there. Nothing
// is lost and nothing installed again, and from then on it makes its own workers.
func TestFirstManagementCluster(t *testing.T) {
	if os.Getenv(realEnv) == "small" {
		t.Log("left out by " + realEnv + "=small")
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 80*time.Minute)
	defer cancel()
	t.Setenv("CONTROL_PLANE_ENDPOINT_HOST", fmt.Sprintf("10.77.0.%d", firstAddress))
	w := newWorld(t, ctx, []machine{
		{role: "control-plane", rack: "a", firmware: lab.UEFI, memory: 3584},
		{role: "worker", rack: "b", firmware: lab.UEFI, memory: 1536},
	})
	defer w.table.publish(w)

	w.step("kubectl apply to a control plane, ready", func() {
		w.must(w.plane.Apply(ctx, w.manifests(0)))
		w.within(patience, "one node", func() error { return w.running(1) })
	})
	first := w.plane
	var second *kube.Plane
	w.step("clusterctl init on it, our provider a pod", func() { second = w.initialize() })
	before := w.inventory()
	w.step("clusterctl move", func() {
		// An emulated API server breaks off requests when it has much to do; a move that
		// was broken off is begun again, as a person would.
		w.within(patience, "the move", func() error {
			_, err := first.Clusterctl(ctx, "move", "--to-kubeconfig", second.Kubeconfig)
			return err
		})
	})
	left, err := first.Kubectl(ctx, "get", "cluster,machines,rackstrapmachines,rackstrapclusters", "-A", "-o", "name")
	w.must(err)
	if strings.TrimSpace(left) != "" {
		w.Errorf("after the move the first management cluster has %s", left)
	}
	w.must(first.Kill(provider))
	w.plane = second
	w.within(patience, "it runs where it moved to", func() error { return w.running(1) })
	if after := w.inventory(); after != before {
		w.Errorf("before the move\n%safter it\n%s", before, after)
	}
	w.step("a worker that it makes itself", func() {
		w.within(patience, "one replica asked for", func() error {
			_, err := second.Kubectl(ctx, "scale", "machinedeployment", cluster+"-md-0", "-n", "default", "--replicas=1")
			return err
		})
		w.within(patience, "two nodes", func() error { return w.running(2) })
	})
	w.times()
}

// initialize makes a management cluster of the cluster that was made. The Cluster API's
// own managers run beside it, for their images are not to be had; their webhooks are
// where the machine reaches them.
func (w *world) initialize() *kube.Plane {
	w.Helper()
	p, err := kube.Attach(w.ctx, kube.Options{
		Dir: filepath.Join(w.dir, "second"), Bin: w.tools, Namespace: w.rack.Lab.Namespace, Webhooks: w.rack.Lab.Gateway(),
		Address: netip.MustParseAddr(os.Getenv("CONTROL_PLANE_ENDPOINT_HOST")), Port: 6443, Identity: &kube.Identity{CA: w.authority()},
	})
	w.must(err)
	w.Cleanup(func() {
		if err := p.Stop(); err != nil {
			w.Error(err)
		}
	})
	w.carry()
	_, err = p.Repository(w.ctx, w.release(p))
	w.must(err)
	_, err = p.Clusterctl(w.ctx, "init", "--infrastructure", "rackstrap:"+providerVersion)
	w.must(err)
	for _, ns := range []string{"capi-system", "capi-kubeadm-bootstrap-system", "capi-kubeadm-control-plane-system"} {
		w.within(patience, "no manager without an image in "+ns, func() error {
			_, err := p.Kubectl(w.ctx, "scale", "deployment", "--all", "-n", ns, "--replicas=0")
			return err
		})
	}
	w.must(p.StartManagers(w.ctx))
	w.within(patience, "our provider runs as a pod", func() error {
		out, err := p.Kubectl(w.ctx, "get", "deployment", "-n", "rackstrap-capi-system", "-o", "jsonpath={.items[*].status.readyReplicas}")
		if err == nil && out != "1" {
			pods, _ := p.Kubectl(w.ctx, "get", "pods", "-n", "rackstrap-capi-system", "--no-headers")
			err = fmt.Errorf("%q replicas are ready: %s", out, strings.TrimSpace(pods))
		}
		return err
	})
	return p
}

// authority is the one of the cluster that was made.
func (w *world) authority() *kube.Authority {
	w.Helper()
	var s struct{ Data map[string]string }
	w.must(json.Unmarshal([]byte(w.kubectl("get", "secret", cluster+"-ca", "-n", "default", "-o", "json")), &s))
	cert, err := base64.StdEncoding.DecodeString(s.Data["tls.crt"])
	w.must(err)
	key, err := base64.StdEncoding.DecodeString(s.Data["tls.key"])
	w.must(err)
	a, err := kube.ReadAuthority(cert, key)
	w.must(err)
	return a
}

// carry brings the provider's image to the control plane's machine, and leads the
// address of the API server's Service there: no registry and no kube-proxy do it.
func (w *world) carry() {
	w.Helper()
	archive := filepath.Join(w.dir, "provider.tar")
	w.must(lab.WriteArchive(archive, "ghcr.io/rackstrap/rackstrap-capi:"+providerVersion, filepath.Join(w.dir, provider)))
	f, err := os.Open(archive)
	w.must(err)
	defer f.Close()
	host := os.Getenv("CONTROL_PLANE_ENDPOINT_HOST")
	cmd := w.rack.Lab.Command(w.ctx, "ssh", "-i", filepath.Join(w.rack.Lab.Dir(), "id_ed25519"), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-o", "LogLevel=ERROR", "-o", "ConnectTimeout=120", "debian@"+host,
		"sudo ctr --namespace k8s.io images import - && sudo iptables -t nat -A PREROUTING -d 10.96.0.1 -p tcp --dport 443 -j DNAT --to-destination "+host+":6443")
	cmd.Stdin = f
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("ssh: %v: %s", err, out)
	}
}

// inventory is what must be the same after a move.
func (w *world) inventory() string {
	w.Helper()
	var text string
	w.within(patience, "all is listed", func() (err error) {
		text, err = w.listed()
		return err
	})
	return text
}

// listed is claims, provider ids, installs, how often the machines were switched, and
// the Nodes.
func (w *world) listed() (string, error) {
	var out strings.Builder
	infra, err := w.list("rackstrapmachines")
	if err != nil {
		return "", err
	}
	for _, o := range infra {
		fmt.Fprintln(&out, o.Metadata.Name, o.Spec.ClaimID, o.Spec.ProviderID)
	}
	machines, err := w.list("machines")
	if err != nil {
		return "", err
	}
	for _, o := range machines {
		fmt.Fprintln(&out, o.Metadata.Name, o.Spec.ProviderID, o.Status.NodeRef.Name)
	}
	list, err := w.rack.Appliance.Client.Workflows.List(w.ctx)
	if err != nil {
		return "", err
	}
	for i := range list {
		fmt.Fprintln(&out, list[i].Meta.Name, list[i].Status.State)
	}
	calls := w.rack.Power.Calls()
	fmt.Fprintln(&out, len(slices.DeleteFunc(calls, func(c bmc.Call) bool { return c.Action == bmc.ActionStatus })), "power calls")
	nodes, err := w.nodes()
	if err != nil {
		return "", err
	}
	for _, o := range nodes {
		fmt.Fprintln(&out, o.Metadata.Name, o.Metadata.UID)
	}
	return out.String(), nil
}
