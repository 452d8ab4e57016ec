package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/hardware"
)

// What every suite has.
const (
	// KubernetesVersion is the version of the real parts.
	KubernetesVersion = "v1.36.3"
	// OldKubernetesVersion is one to upgrade from; there is an image for it.
	OldKubernetesVersion = "v1.35.4"
	// Image is an image of the appliance for KubernetesVersion, of Debian 12.
	Image = "node"
	// OldImage is one for OldKubernetesVersion.
	OldImage = "node-old"
	// Secret is the one with the appliance's connection, in the namespace default.
	Secret = "rackstrap"
	// OwnerPrefix is that of the token in it.
	OwnerPrefix = "capi/"
)

// Options describe a suite.
type Options struct {
	// Machines is how many there are, besides Specs. They are in racks a, b and c by
	// turns.
	Machines int
	Specs    []sim.Spec
	// CAPI runs the core, the kubeadm bootstrap and the kubeadm control plane providers,
	// and simulated nodes: what a machine does when it boots what kubeadm's data made of it.
	// Without it there are the kinds of the Cluster API only, and no webhooks.
	CAPI bool
	// Clusterctl installs the providers with `clusterctl init`; it needs CAPI.
	Clusterctl bool
	// Flavors are more cluster templates in the clusterctl repository, by name.
	Flavors map[string][]byte
	// Proxy puts one between the provider and the appliance.
	Proxy bool
	// NoProvider leaves our provider out; StartProvider starts it.
	NoProvider bool
	// ProviderFlags are more flags of our provider.
	ProviderFlags []string
	// OS is called when a machine boots its disk, instead of the simulated nodes.
	OS func(ctx context.Context, m *sim.Machine, s *sim.System)
	// Guard judges each write to a disk; see sim.Options.
	Guard func(w sim.Write) error
	// ActionTime is how long each action of a workflow takes.
	ActionTime time.Duration
}

// Suite is an appliance, its machines, and a management cluster. Its methods fail the
// test where they cannot do what they say.
type Suite struct {
	testing.TB
	*Management

	Lab       *lab.Lab
	Appliance *rig.Appliance
	// API is the appliance's, with all rights.
	API  *client.Client
	Rack *sim.Rack
	// Proxy is what the provider reaches the appliance by; nil where it was not asked for.
	Proxy *Proxy
	// Nodes are the workload clusters of the simulated nodes; nil without CAPI.
	Nodes *Nodes

	bin     Binaries
	options Options
	dir     string
	secret  map[string]string // the data of Secret
	more    int               // management clusters so far
}

// New makes a suite, which ends with the test. When the test failed, the ends of all
// logs are printed.
func New(t testing.TB, o Options) *Suite {
	t.Helper()
	lab.Require(t)
	s := &Suite{TB: t, options: o}
	if err := s.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Suite) open(ctx context.Context) (err error) {
	if s.bin, err = Build(); err != nil {
		return err
	}
	// A socket's path has 107 bytes at most.
	if s.dir, err = os.MkdirTemp("", "rs"); err != nil {
		return err
	}
	s.Cleanup(func() { _ = os.RemoveAll(s.dir) })
	if s.Lab, err = lab.New(ctx, lab.Options{Name: "capi", Dir: s.dir, Subnet: netip.MustParsePrefix("10.77.0.0/16")}); err != nil {
		return err
	}
	s.Cleanup(func() {
		if err := s.Lab.Close(); err != nil {
			s.Error(err)
		}
	})
	if err := s.startAppliance(ctx); err != nil {
		return err
	}
	if err := s.startRack(ctx); err != nil {
		return err
	}
	for name, v := range map[string]string{Image: KubernetesVersion, OldImage: OldKubernetesVersion} {
		if err := s.upload(ctx, name, v); err != nil {
			return err
		}
	}
	if s.secret, err = s.token(ctx, s.API, client.DefaultPort); err != nil {
		return err
	}
	if s.options.Proxy {
		if err := s.proxy(ctx); err != nil {
			return err
		}
	}
	s.Management, err = s.manage(ctx)
	return err
}

func (s *Suite) startAppliance(ctx context.Context) (err error) {
	if s.Appliance, err = rig.NewAppliance(s.Lab.Namespace, s.Lab.Bridge(), s.bin.Appliance, filepath.Join(s.dir, "appliance")); err != nil {
		return err
	}
	s.API = s.Appliance.Client
	s.Cleanup(func() { s.dump("appliance", s.Appliance.Log) })
	return s.Appliance.Start(ctx)
}

func (s *Suite) startRack(ctx context.Context) (err error) {
	o := sim.Options{Lab: s.Lab, OS: s.options.OS, Guard: s.options.Guard, ActionTime: s.options.ActionTime}
	if s.options.CAPI && o.OS == nil {
		s.Nodes = &Nodes{s: s}
		o.OS = s.Nodes.boot
		s.Cleanup(s.Nodes.close)
	}
	if s.Rack, err = sim.NewRack(ctx, o); err != nil {
		return err
	}
	s.Cleanup(func() {
		if s.Failed() {
			for _, m := range s.Rack.Machines() {
				s.Logf("%s is %s:\n%s", m.Name(), m.State(), strings.Join(last(m.Console(), 12), "\n"))
			}
		}
		for _, v := range s.Rack.Violations() {
			s.Errorf("what must never happen to a machine: %s", v)
		}
		if err := s.Rack.Close(); err != nil {
			s.Error(err)
		}
	})
	if _, err := s.API.Subnets.Create(ctx, s.Rack.Subnet()); err != nil {
		return err
	}
	specs := s.options.Specs
	for n := range s.options.Machines {
		specs = append(specs, sim.Spec{Rack: string("abc"[n%3])})
	}
	for _, spec := range specs {
		if _, err := s.add(ctx, spec); err != nil {
			return err
		}
	}
	return nil
}

// AddMachine puts one more machine into the rack and its record into the appliance,
// where it is available at once: its facts are known.
func (s *Suite) AddMachine(spec sim.Spec) *sim.Machine {
	s.Helper()
	m, err := s.add(s.Context(), spec)
	if err != nil {
		s.Fatal(err)
	}
	return m
}

func (s *Suite) add(ctx context.Context, spec sim.Spec) (*sim.Machine, error) {
	m, err := s.Rack.Add(spec)
	if err != nil {
		return nil, err
	}
	_, err = s.API.Hardware.Create(ctx, m.Record())
	return m, err
}

// AddImage adds an image to the appliance, of Debian 12 and a version of Kubernetes.
func (s *Suite) AddImage(name, kubernetes string) {
	s.Helper()
	if err := s.upload(s.Context(), name, kubernetes); err != nil {
		s.Fatal(err)
	}
}

// upload adds an image that is just large enough to be one.
func (s *Suite) upload(ctx context.Context, name, kubernetes string) error {
	image := make([]byte, 1<<20)
	image[510], image[511] = 0x55, 0xaa // an MBR
	copy(image, name)
	_, err := s.API.UploadImage(ctx, name, bytes.NewReader(image), client.Upload{
		Size: int64(len(image)), Arch: "amd64", OS: "debian", OSVersion: "12", KubernetesVersion: kubernetes,
	})
	return err
}

// NewAppliance starts one more appliance beside the first one: an installation of its own,
// without machines. connection is the data of a Secret for it.
func (s *Suite) NewAppliance() (a *rig.Appliance, connection map[string]string) {
	s.Helper()
	a, connection, err := s.newAppliance(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return a, connection
}

func (s *Suite) newAppliance(ctx context.Context) (*rig.Appliance, map[string]string, error) {
	dir := filepath.Join(s.dir, "other")
	a, err := rig.NewAppliance(s.Lab.Namespace, s.Lab.Bridge(), s.bin.Appliance, dir)
	if err != nil {
		return nil, nil, err
	}
	conf := fmt.Sprintf("data: %s\nsocket: %s\ninterfaces: []\ndhcp: {enabled: false}\ntftp: {listen: \":7169\"}\nhttp: {listen: \":7180\"}\nhttps: {listen: \":7543\"}\nworker: {listen: \":42213\"}\nhealth: {listen: \"127.0.0.1:7181\"}\n", filepath.Join(dir, "data"), a.Socket)
	if err := os.WriteFile(a.Config, []byte(conf), 0o600); err != nil {
		return nil, nil, err
	}
	if err := a.Start(ctx); err != nil {
		return nil, nil, err
	}
	s.Cleanup(func() { _ = a.Kill() })
	connection, err := s.token(ctx, a.Client, "7543")
	return a, connection, err
}

// token makes a claimer and the data of its Secret.
func (s *Suite) token(ctx context.Context, a *client.Client, port string) (map[string]string, error) {
	t, err := a.CreateToken(ctx, "capi", api.NewTokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: OwnerPrefix})
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"url": fmt.Sprintf("https://%s:%s", s.Lab.Gateway(), port), "token": t.Secret, "ownerPrefix": OwnerPrefix, "fingerprint": t.Fingerprint,
	}, nil
}

// Connection is the data of the Secret with the appliance's connection.
func (s *Suite) Connection() map[string]string { return maps.Clone(s.secret) }

// Shipped is a file of deploy/capi.
func (s *Suite) Shipped(name string) string {
	s.Helper()
	b, err := os.ReadFile(filepath.Join(s.bin.Source, "deploy/capi", name))
	if err != nil {
		s.Fatal(err)
	}
	return string(b)
}

// Machine is a simulated machine by the name of its Hardware.
func (s *Suite) Machine(name string) *sim.Machine {
	s.Helper()
	m := s.Rack.Machine(name)
	if m == nil {
		s.Fatalf("no machine %s", name)
	}
	return m
}

// Hardware reads all records.
func (s *Suite) Hardware() []hardware.Hardware {
	s.Helper()
	list, err := s.API.Hardware.List(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return list
}

// AllAvailable is an error unless every machine is back: available, without a claim, and
// with nothing on its disks but what a verified wipe left.
func (s *Suite) AllAvailable() error {
	list, err := s.API.Hardware.List(s.Context())
	if err != nil {
		return err
	}
	for _, h := range list {
		if h.Status.State != hardware.StateAvailable {
			err = errors.Join(err, fmt.Errorf("%s is %s", h.Meta.Name, h.Status.State))
		}
		if sys, ok := s.Rack.Machine(h.Meta.Name).Installed(); ok {
			err = errors.Join(err, fmt.Errorf("%s has a system from workflow %s on %s", h.Meta.Name, sys.Workflow, sys.Disk))
		}
	}
	return err
}

// patience bounds the waits for something that must happen.
const patience = 3 * time.Minute

// Eventually waits until is returns nil; the test fails with its last error.
func (s *Suite) Eventually(what string, is func() error) {
	s.Helper()
	s.Within(patience, what, is)
}

// Within is Eventually with a time of its own.
func (s *Suite) Within(d time.Duration, what string, is func() error) {
	s.Helper()
	limit := time.NewTimer(d)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for {
		err := is()
		if err == nil {
			s.Logf("%s: after %v", what, time.Since(began).Round(10*time.Millisecond))
			return
		}
		select {
		case <-limit.C:
			s.Fatalf("%s: not within %v: %v", what, d, err)
		case <-s.Context().Done():
			s.Fatalf("%s: %v", what, s.Context().Err())
		case <-tick.C:
		}
	}
}

// Never fails the test where is returns an error in the given time.
func (s *Suite) Never(d time.Duration, what string, is func() error) {
	s.Helper()
	limit := time.NewTimer(d)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := is(); err != nil {
			s.Fatalf("%s: %v", what, err)
		}
		select {
		case <-limit.C:
			return
		case <-tick.C:
		}
	}
}

// dump prints the end of a log of a failed test.
func (s *Suite) dump(name, path string) {
	if !s.Failed() {
		return
	}
	if b, err := os.ReadFile(path); err == nil {
		s.Logf("%s:\n%s", name, b[max(0, len(b)-8000):])
	}
}

func last(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }
