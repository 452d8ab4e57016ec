package sim_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// data are what an install is given, by the format.
var data = map[sim.Format]string{
	sim.CloudConfig: "#cloud-config\r\nruncmd:\n- [echo, \"ü\"]\n\n",
	sim.Ignition:    `{"ignition": {"version": "3.4.0"},` + "\n\t" + `"storage": {}}`,
	sim.Talos:       "machine: {type: worker}\r\n# the end",
}

// TestALife: a machine is claimed, installed, boots its disk, is released with a
// verified wipe, and is off and available.
func TestALife(t *testing.T) {
	t.Parallel()
	started := make(chan *sim.System, 16)
	s := newSite(t, "simlife", sim.Options{OS: func(ctx context.Context, _ *sim.Machine, sys *sim.System) {
		started <- sys
		<-ctx.Done()
	}})
	for format, text := range data {
		m := s.add(sim.Spec{Name: "m-" + strings.ToLower(string(format)), Disks: []sim.Disk{{Bytes: 100e9}, {Bytes: 4e12, Rotational: true}}})
		s.provision(m, api.Provision{Format: string(format), UserData: text, Disk: "smallest"})
		s.awaitState(m, hardware.StateProvisioned)
		s.awaitMachine(m, func(m *sim.Machine) bool { return m.State() == sim.Running })
		sys := <-started
		if sys.Format != format || string(sys.UserData) != text || sys.Disk != "/dev/sda" || sys.Checksum == "" || sys.Boots != 1 {
			t.Errorf("%s: the system is %+v", format, sys)
		}
		if format != sim.Ignition && (sys.InstanceID == "" || len(sys.NetworkConfig) == 0) {
			t.Errorf("%s: meta-data %q, network %q", format, sys.MetaData, sys.NetworkConfig)
		}
		if _, err := s.api.ReleaseClaim(t.Context(), "claim-"+m.Name()); err != nil {
			t.Fatal(err)
		}
		s.awaitState(m, hardware.StateAvailable)
		s.awaitMachine(m, func(m *sim.Machine) bool { return m.State() == sim.Off })
		if _, ok := m.Installed(); ok {
			t.Errorf("%s: a system is left", format)
		}
		wiped := map[string]bool{}
		for _, w := range s.rack.Writes() {
			if w.Machine == m.Name() && w.What == workflow.KindDiskWipe && w.Workflow != sys.Workflow {
				wiped[w.Disk] = true
			}
		}
		if len(wiped) != 2 {
			t.Errorf("%s: wiped %v", format, wiped)
		}
	}
	s.innocent()
}
