package sim_test

import (
	"context"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// TestKeptDisks: a machine is kept with what is on its disks; the shipped template
// installs over its system and touches no other disk, and the old system never starts
// again. After the next release both disks are wiped.
func TestKeptDisks(t *testing.T) {
	t.Parallel()
	started := make(chan *sim.System, 16)
	s := newSite(t, "simkept", sim.Options{OS: func(ctx context.Context, _ *sim.Machine, sys *sim.System) {
		started <- sys
		<-ctx.Done()
	}})
	m := s.add(sim.Spec{Name: "kept", Disks: []sim.Disk{{Bytes: 100e9}, {Bytes: 4e12, Rotational: true}}})
	install := func(id string) *sim.System {
		claim := &hardware.Claim{Meta: hardware.Meta{Name: id}, Spec: hardware.ClaimSpec{Owner: "team/" + id, Reuse: "team/web", Hardware: m.Name()}}
		if _, err := s.api.Claim(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if _, err := s.api.Provision(t.Context(), m.Name(), api.Provision{Image: imageName, Claim: id, Disk: "smallest"}); err != nil {
			t.Fatal(err)
		}
		s.awaitState(m, hardware.StateProvisioned)
		s.awaitMachine(m, func(m *sim.Machine) bool { return m.State() == sim.Running })
		return <-started
	}
	first := install("web-1")
	if _, err := s.api.ReleaseClaimWith(t.Context(), "web-1", api.ReleaseClaim{Reserve: &hardware.Reserve{For: "team/web", KeepDisks: true}}); err != nil {
		t.Fatal(err)
	}
	s.await(m, "stopped", func(h *hardware.Hardware) bool { return h.Status.Stopping != nil && !h.Status.Stopping.Awaited() })
	second := install("web-2")
	if second.Workflow == first.Workflow {
		t.Errorf("the old system started again: %+v", second)
	}
	over := false
	for _, w := range s.rack.Writes() {
		if w.Disk != "/dev/sda" {
			t.Errorf("%s was written by %s of workflow %s", w.Disk, w.What, w.Workflow)
		}
		over = over || w.Workflow == second.Workflow && w.What == workflow.KindDiskWipe && w.Over != nil && w.Over.Workflow == first.Workflow
	}
	if !over {
		t.Error("the second install did not go over the first one")
	}
	if _, err := s.api.ReleaseClaim(t.Context(), "web-2"); err != nil {
		t.Fatal(err)
	}
	s.awaitState(m, hardware.StateAvailable)
	h, err := s.api.Hardware.Get(t.Context(), m.Name())
	if err != nil || h.Status.Wiped == nil || len(h.Status.Wiped.Disks) != 2 {
		t.Errorf("after the second release: %+v, %v", h, err)
	}
	s.innocent()
}
