// Package capi_test makes real clusters: with the real API server, the Cluster API's own
// managers and ours, and machines that boot from the network, are installed by our
// worker and become nodes by kubeadm.
package capi_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/kube"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/hardware"
)

const (
	// binEnv names the appliance's binary, with the boot files inside: `make build`.
	binEnv = "RACKSTRAP_BIN"
	// keepEnv names a folder that keeps logs and disks after the test.
	keepEnv = "RACKSTRAP_LAB_DIR"
	// providerVersion is that of the release which the test makes.
	providerVersion = "v0.1.0"
	provider        = "rackstrap-capi"
	cluster         = "real"
	imageName       = "debian-12-node"
)

//go:embed testdata/kustomization.yaml
var kustomization string

// world is a rack with machines and a management cluster beside it.
type world struct {
	testing.TB
	ctx      context.Context
	dir      string
	rack     *rig.Rack
	machines []*lab.Machine
	plane    *kube.Plane
	tools    string
	source   string // the root of our source
	version  string // of Kubernetes
	table    table
}

// machine describes one of the machines; the first has the address .11.
type machine struct {
	role, rack string
	firmware   lab.Firmware
	memory     int // MiB
}

func newWorld(t testing.TB, ctx context.Context, machines []machine) *world {
	t.Helper()
	lab.Require(t, "qemu-system-x86_64", "mmdebstrap", "unshare")
	w := &world{TB: t, ctx: ctx}
	w.open(machines)
	return w
}

// must ends the test with an error.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) open(machines []machine) {
	w.Helper()
	var err error
	say := func(s string) { w.Log(s) }
	w.source, err = kube.Source(w.ctx)
	w.must(err)
	w.tools, err = kube.Tools(w.ctx, say)
	w.must(err)
	w.version, err = lab.NodeVersion(w.ctx, w.tools)
	w.must(err)
	img, err := lab.NodeImage(w.ctx, w.tools, "", say)
	w.must(err)
	bin := os.Getenv(binEnv)
	if bin == "" {
		bin = filepath.Join(w.source, "bin", "rackstrap")
	}
	w.makeDir()
	w.rack, err = rig.NewRack(w.ctx, "capi", filepath.Join(w.dir, "lab"), bin)
	w.must(err)
	w.Cleanup(func() {
		if err := w.rack.Close(); err != nil {
			w.Error(err)
		}
	})
	w.Cleanup(w.dump)
	w.upload(img)
	for i, m := range machines {
		w.addMachine(i, m)
	}
	w.plane = w.manage("management")
}

// makeDir makes the folder of the test; sockets below it want a short path.
func (w *world) makeDir() {
	w.Helper()
	if w.dir = os.Getenv(keepEnv); w.dir != "" {
		return
	}
	var err error
	w.dir, err = os.MkdirTemp("", "rs")
	w.must(err)
	w.Cleanup(func() { _ = os.RemoveAll(w.dir) })
}

// upload puts the node image into the appliance, as one that a lookup finds.
func (w *world) upload(img lab.Image) {
	w.Helper()
	f, err := os.Open(img.Path)
	w.must(err)
	defer f.Close()
	_, err = w.rack.Appliance.Client.UploadImage(w.ctx, imageName, f, client.Upload{
		Checksum: "sha256:" + img.SHA256, Size: img.Size, Arch: img.Arch, OS: "debian", OSVersion: "12", KubernetesVersion: w.version,
	})
	w.must(err)
}

// firstAddress is the last part of the first machine's address.
const firstAddress = 11

func (w *world) addMachine(i int, m machine) {
	w.Helper()
	v, err := w.rack.Lab.AddMachine(w.ctx, lab.MachineSpec{
		Name: fmt.Sprintf("m%d", i+1), Firmware: m.firmware, CPUs: 2, RAM: m.memory,
		Disks: []lab.DiskSpec{{Size: 6 << 30, Serial: fmt.Sprintf("DISK%d", i+1)}},
		// Everything in a cluster speaks TLS, which takes an older processor a hundred times
		// as many instructions, each of them emulated.
		Args: []string{"-cpu", "max"},
	})
	w.must(err)
	h := w.rack.Hardware(v, firstAddress+i)
	h.Spec.Rack, h.Meta.Labels["role"] = m.rack, m.role
	_, err = w.rack.Appliance.Client.Hardware.Create(w.ctx, h)
	w.must(err)
	w.machines = append(w.machines, v)
}

// manage starts a management cluster in the lab's namespace, from where its managers
// reach the nodes, with what `clusterctl init` installs from a local repository.
func (w *world) manage(name string) *kube.Plane {
	w.Helper()
	p, err := kube.Start(w.ctx, kube.Options{Dir: filepath.Join(w.dir, name), Bin: w.tools, Namespace: w.rack.Lab.Namespace, Controllers: kube.Management()})
	w.must(err)
	w.Cleanup(func() {
		if err := p.Stop(); err != nil {
			w.Error(err)
		}
	})
	_, err = p.Repository(w.ctx, w.release(p))
	w.must(err)
	_, err = p.Clusterctl(w.ctx, "init", "--infrastructure", "rackstrap:"+providerVersion)
	w.must(err)
	w.must(p.StartManagers(w.ctx))
	w.must(p.Apply(w.ctx, w.secret()))
	w.startProvider(p)
	return p
}

// release makes the provider's release, as `make capi-release` does.
func (w *world) release(p *kube.Plane) kube.Infrastructure {
	w.Helper()
	out := filepath.Join(p.Dir, "release")
	w.run(w.source, filepath.Join(w.source, "deploy/capi/release"), providerVersion, out)
	r := kube.Infrastructure{Name: "rackstrap", Version: providerVersion, Files: map[string][]byte{}}
	files, err := filepath.Glob(filepath.Join(out, providerVersion, "*.yaml"))
	w.must(err)
	for _, f := range files {
		r.Files[filepath.Base(f)], err = os.ReadFile(f)
		w.must(err)
	}
	return r
}

// startProvider runs our provider with the rights that the release gives it.
func (w *world) startProvider(p *kube.Plane) {
	w.Helper()
	bin := filepath.Join(w.dir, provider)
	if _, err := os.Stat(bin); err != nil {
		w.run(filepath.Join(w.source, "api/capi"), "go", "build", "-o", bin, "./cmd/rackstrap-capi")
	}
	user, groups := kube.ServiceAccountUser("rackstrap-capi-system", "rackstrap-capi-manager")
	conf, err := p.WriteKubeconfig(user, groups...)
	w.must(err)
	port, err := p.FreePort(w.ctx)
	w.must(err)
	health := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	w.must(p.Run(w.ctx, kube.Process{
		Name: provider, Path: bin, Ready: "http://" + health + "/readyz",
		Args: []string{"--kubeconfig=" + conf, "--metrics-address=0", "--health-address=" + health, "--verbose"},
	}))
}

// secret is the Secret with the connection to the appliance.
func (w *world) secret() string {
	w.Helper()
	t, err := w.rack.Appliance.Client.CreateToken(w.ctx, "capi-"+strconv.Itoa(int(time.Now().UnixMilli()%1e9)), api.NewTokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: "capi/"})
	w.must(err)
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: rackstrap, namespace: default, labels: {clusterctl.cluster.x-k8s.io/move: ""}}
stringData: {url: "https://%s", token: %q, ownerPrefix: capi/, fingerprint: %q}
`, net.JoinHostPort(w.rack.Lab.Gateway().String(), client.DefaultPort), t.Secret, t.Fingerprint)
}

// manifests are those of the released template with what emulated machines need.
func (w *world) manifests(workers int) string {
	w.Helper()
	text, err := w.plane.Clusterctl(w.ctx, "generate", "cluster", cluster, "--infrastructure", "rackstrap:"+providerVersion, "--target-namespace", "default",
		"--kubernetes-version", w.version, "--control-plane-machine-count", "1", "--worker-machine-count", strconv.Itoa(workers))
	w.must(err)
	dir := filepath.Join(w.dir, "cluster")
	w.must(os.MkdirAll(dir, 0o755))
	w.must(os.WriteFile(filepath.Join(dir, "cluster.yaml"), []byte(text), 0o600))
	w.must(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600))
	return w.kubectl("kustomize", dir)
}

// file writes a file of the test and returns its path.
func (w *world) file(name, text string) string {
	w.Helper()
	path := filepath.Join(w.dir, name)
	w.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// pauseImage is an image that each node has.
func (w *world) pauseImage() string {
	w.Helper()
	list, err := exec.CommandContext(w.ctx, filepath.Join(w.tools, "kubeadm"), "config", "images", "list", "--kubernetes-version", w.version).Output()
	w.must(err)
	for _, ref := range strings.Fields(string(list)) {
		if strings.Contains(ref, "/pause:") {
			return ref
		}
	}
	w.Fatalf("no pause in %s", list)
	return ""
}

// kubectl talks to the management cluster.
func (w *world) kubectl(args ...string) string {
	w.Helper()
	out, err := w.plane.Kubectl(w.ctx, args...)
	w.must(err)
	return out
}

// run runs a command of this host in dir.
func (w *world) run(dir, name string, args ...string) {
	w.Helper()
	cmd := exec.CommandContext(w.ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%s: %v: %s", name, err, out)
	}
}

// within waits until is returns nil, and fails with its last error.
func (w *world) within(d time.Duration, what string, is func() error) {
	w.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(w.ctx, d)
	defer cancel()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for last := ""; ; {
		err := is()
		if err == nil {
			w.Logf("%s: after %v", what, time.Since(began).Round(time.Second))
			return
		}
		if now := err.Error(); now != last {
			w.Logf("%5.0f s: %s: %s", time.Since(began).Seconds(), what, now)
			last = now
		}
		select {
		case <-ctx.Done():
			w.Fatalf("%s: not within %v: %v", what, d, err)
		case <-tick.C:
		}
	}
}

// dump shows what a person would look at first.
func (w *world) dump() {
	if !w.Failed() {
		return
	}
	logs := []string{w.rack.Appliance.Log}
	for _, glob := range []string{"*/log/*.log", "lab/machines/*/serial.log"} {
		more, err := filepath.Glob(filepath.Join(w.dir, glob))
		if err != nil {
			w.Error(err)
		}
		logs = append(logs, more...)
	}
	for _, p := range logs {
		if b, err := os.ReadFile(p); err == nil {
			w.Logf("%s:\n%s", p, b[max(0, len(b)-5000):])
		}
	}
	if w.plane != nil {
		out, err := w.plane.Kubectl(context.WithoutCancel(w.ctx), "get", "cluster-api", "-A", "-o", "wide")
		w.Log(out, err)
	}
}

// joined makes one error of what is wrong.
func joined(wrong []string) error {
	if len(wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(wrong, "; "))
}
