package sim_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/hardware"
)

// binEnv names the binary under test; built by the first test where it is empty.
const binEnv = "RACKSTRAP_BIN"

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

var (
	buildOnce sync.Once
	built     string
	errBuild  error
)

// daemon is the path of the real binary.
func daemon(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv(binEnv); bin != "" {
		return bin
	}
	buildOnce.Do(func() {
		dir, err := os.MkdirTemp("", "rs-bin")
		if err != nil {
			errBuild = err
			return
		}
		built = filepath.Join(dir, "rackstrap")
		out, err := exec.Command("go", "build", "-o", built, "github.com/rackstrap/rackstrap/cmd/rackstrap").CombinedOutput()
		if err != nil {
			errBuild = errors.New(string(out))
		}
	})
	if errBuild != nil {
		t.Fatal(errBuild)
	}
	return built
}

// imageName is a record of an image that is just large enough to be one.
const imageName = "tiny"

// site is an appliance with a rack of simulated machines.
type site struct {
	*testing.T
	lab       *lab.Lab
	appliance *rig.Appliance
	api       *client.Client
	rack      *sim.Rack
}

// patience bounds the waits for something that must happen.
const patience = 2 * time.Minute

func newSite(t *testing.T, name string, o sim.Options) *site {
	t.Helper()
	lab.Require(t)
	bin := daemon(t)
	dir, err := os.MkdirTemp("", "rs") // a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := lab.New(t.Context(), lab.Options{Name: name, Dir: dir, Subnet: netip.MustParsePrefix("10.77.0.0/16")})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, lab: l}
	t.Cleanup(func() { s.close() })
	if s.appliance, err = rig.NewAppliance(l.Namespace, l.Bridge(), bin, filepath.Join(dir, "appliance")); err != nil {
		t.Fatal(err)
	}
	if err := s.appliance.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.api = s.appliance.Client
	o.Lab = l
	if s.rack, err = sim.NewRack(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if _, err := s.api.Subnets.Create(t.Context(), s.rack.Subnet()); err != nil {
		t.Fatal(err)
	}
	image := make([]byte, 1<<20)
	image[510], image[511] = 0x55, 0xaa
	if _, err := s.api.UploadImage(t.Context(), imageName, bytes.NewReader(image), client.Upload{Size: int64(len(image))}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) close() {
	if s.Failed() && s.appliance != nil {
		if b, err := os.ReadFile(s.appliance.Log); err == nil {
			s.Logf("appliance:\n%s", b[max(0, len(b)-6000):])
		}
		for i, m := range s.machines() {
			if i < 3 {
				s.Logf("%s is %s: %q", m.Name(), m.State(), m.Console())
			}
		}
	}
	var err error
	if s.rack != nil {
		err = s.rack.Close()
	}
	if s.appliance != nil && s.api != nil {
		err = errors.Join(err, s.appliance.Stop())
	}
	if err := errors.Join(err, s.lab.Close()); err != nil {
		s.Error(err)
	}
}

func (s *site) machines() []*sim.Machine {
	if s.rack == nil {
		return nil
	}
	return s.rack.Machines()
}

// add puts a machine into the rack and its record into the appliance.
func (s *site) add(spec sim.Spec) *sim.Machine {
	s.Helper()
	m, err := s.rack.Add(spec)
	if err == nil {
		_, err = s.api.Hardware.Create(s.Context(), m.Record())
	}
	if err != nil {
		s.Fatal(err)
	}
	return m
}

// claim takes a machine by name.
func (s *site) claim(m *sim.Machine) string {
	s.Helper()
	id := "claim-" + m.Name()
	if _, err := s.api.Claim(s.Context(), &hardware.Claim{Meta: hardware.Meta{Name: id}, Spec: hardware.ClaimSpec{Owner: "test/" + m.Name(), Hardware: m.Name()}}); err != nil {
		s.Fatal(err)
	}
	return id
}

func (s *site) provision(m *sim.Machine, in api.Provision) {
	s.Helper()
	in.Image, in.Claim = imageName, s.claim(m)
	if _, err := s.api.Provision(s.Context(), m.Name(), in); err != nil {
		s.Fatal(err)
	}
}

// await waits until the appliance says that of the machine.
func (s *site) await(m *sim.Machine, what string, is func(h *hardware.Hardware) bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	var last *hardware.Hardware
	for {
		h, err := s.api.Hardware.Get(ctx, m.Name())
		if err == nil && is(h) {
			return
		}
		if err == nil {
			last = h
		}
		select {
		case <-ctx.Done():
			s.Fatalf("%s is not %s: %+v, machine %s: %q", m.Name(), what, last, m.State(), m.Console())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *site) awaitState(m *sim.Machine, want hardware.State) {
	s.Helper()
	s.await(m, string(want), func(h *hardware.Hardware) bool { return h.Status.State == want })
}

// awaitMachine waits for what the machine itself does.
func (s *site) awaitMachine(m *sim.Machine, is func(*sim.Machine) bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if err := m.Await(ctx, is); err != nil {
		s.Fatalf("%v: %q", err, m.Console())
	}
}

// innocent fails the test where something happened that must not.
func (s *site) innocent() {
	s.Helper()
	for _, v := range s.rack.Violations() {
		s.Error(v)
	}
}
