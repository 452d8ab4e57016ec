package sim_test

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// held are the machines whose system somebody uses.
type held struct {
	mu sync.Mutex
	by map[string]bool
}

func (h *held) set(machine string, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.by[machine] = is
}

// guard forbids that another workflow writes over a system that is used.
func (h *held) guard(w sim.Write) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.Over != nil && w.Over.Workflow != w.Workflow && h.by[w.Machine] {
		return errors.New("its system is in use")
	}
	return nil
}

// installs counts how often each machine's disk got an image.
func installs(r *sim.Rack) map[string]int {
	out := map[string]int{}
	for _, w := range r.Writes() {
		if w.What == workflow.KindImageWrite {
			out[w.Machine]++
		}
	}
	return out
}

// openFiles counts this process's descriptors.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestFifty: fifty machines are installed at the same time, each once, and released at
// the same time. A rack that is idle afterwards holds nothing of that.
func TestFifty(t *testing.T) { // not parallel: it counts goroutines
	used := &held{by: map[string]bool{}}
	s := newSite(t, "simfifty", sim.Options{Guard: used.guard})
	for range 50 {
		s.add(sim.Spec{})
	}
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	began := time.Now()
	for _, m := range s.rack.Machines() {
		used.set(m.Name(), true)
		s.provision(m, api.Provision{})
	}
	for _, m := range s.rack.Machines() {
		s.awaitState(m, hardware.StateProvisioned)
		s.awaitMachine(m, func(m *sim.Machine) bool { return m.State() == sim.Running })
	}
	t.Logf("50 machines run their system after %.1f s", time.Since(began).Seconds())
	for name, n := range installs(s.rack) {
		if n != 1 {
			t.Errorf("%s was installed %d times", name, n)
		}
	}
	for _, m := range s.rack.Machines() {
		used.set(m.Name(), false)
		if _, err := s.api.ReleaseClaim(t.Context(), "claim-"+m.Name()); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range s.rack.Machines() {
		s.awaitState(m, hardware.StateAvailable)
		s.awaitMachine(m, func(m *sim.Machine) bool { return m.State() == sim.Off })
	}
	t.Logf("and are clean again after %.1f s", time.Since(began).Seconds())
	s.innocent()

	// What ends takes a moment to do so.
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > goroutines+20 || openFiles(t) > files+20 {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines and %d files, were %d and %d", runtime.NumGoroutine(), openFiles(t), goroutines, files)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestDaemonIsKilled: the daemon dies while machines are in the middle of their installs,
// and while others have none. Each goes on where it was: it is installed once.
func TestDaemonIsKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t, "simkill", sim.Options{ActionTime: 400 * time.Millisecond})
	for range 10 {
		s.provision(s.add(sim.Spec{}), api.Provision{UserData: data[sim.CloudConfig]})
	}
	for _, m := range s.rack.Machines() {
		s.awaitMachine(m, func(m *sim.Machine) bool { return m.State() == sim.Worker })
	}
	if err := s.appliance.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.appliance.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range s.rack.Machines() {
		s.awaitState(m, hardware.StateProvisioned)
		s.awaitMachine(m, func(m *sim.Machine) bool { return m.State() == sim.Running })
		if sys, ok := m.Installed(); !ok || string(sys.UserData) != data[sim.CloudConfig] {
			t.Errorf("%s has %+v", m.Name(), sys)
		}
		if m.Boots() != 2 {
			t.Errorf("%s booted %d times: %q", m.Name(), m.Boots(), m.Console())
		}
	}
	for name, n := range installs(s.rack) {
		if n != 1 {
			t.Errorf("%s was installed %d times", name, n)
		}
	}
}

// TestFaults: what is wrong with a machine shows, and the appliance gets over it where
// another attempt can.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := newSite(t, "simfaults", sim.Options{ActionTime: 300 * time.Millisecond})
	fails := s.add(sim.Spec{Name: "fails", Faults: sim.Faults{Fail: map[workflow.Kind]int{workflow.KindImageWrite: 1}}})
	drops := s.add(sim.Spec{Name: "drops"})
	keeps := s.add(sim.Spec{Name: "keeps", Faults: sim.Faults{KeepOn: true}})
	lies := s.add(sim.Spec{Name: "lies", Faults: sim.Faults{Lie: true}})
	silent := s.add(sim.Spec{Name: "silent", Faults: sim.Faults{NoBMC: true}})
	hangs := s.add(sim.Spec{Name: "hangs", Faults: sim.Faults{Hang: 1}})

	for _, m := range []*sim.Machine{fails, drops} {
		s.provision(m, api.Provision{})
	}
	s.awaitMachine(drops, (*sim.Machine).DropConnection)
	for _, m := range []*sim.Machine{fails, drops} {
		s.awaitState(m, hardware.StateProvisioned)
	}
	if n := installs(s.rack); n["fails"] != 1 || n["drops"] != 1 {
		t.Errorf("installs: %v", n)
	}
	for _, tt := range []struct {
		m    *sim.Machine
		want hardware.PowerState
		is   sim.State
	}{
		{keeps, hardware.PowerOn, sim.Firmware},
		{lies, hardware.PowerOff, sim.Firmware},
		{hangs, hardware.PowerOff, sim.Off},
	} {
		if err := tt.m.PowerOn(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.awaitMachine(tt.m, func(m *sim.Machine) bool { return m.State() != sim.Off })
		if tt.m == hangs && tt.m.State() != sim.Hung {
			t.Errorf("hangs is %s", tt.m.State())
		}
		got, err := s.api.Power(t.Context(), tt.m.Name(), api.Power{Action: api.PowerActionOff})
		if err == nil && got.State != tt.want || tt.m.State() != tt.is {
			t.Errorf("%s: the BMC says %+v, %v; the machine is %s", tt.m.Name(), got, err, tt.m.State())
		}
	}
	if got, err := s.api.Power(t.Context(), silent.Name(), api.Power{Action: api.PowerActionOn}); err == nil {
		t.Errorf("silent: the BMC says %+v", got)
	}
	keeps.Pull()
	if keeps.State() != sim.Off {
		t.Errorf("keeps is %s without a cable", keeps.State())
	}
}
