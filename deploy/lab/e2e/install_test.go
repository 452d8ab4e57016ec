package e2e_test

import (
	"context"
	"testing"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/hardware"
)

// install powers the machine on and returns when the installed system answers
// over SSH with the right name and address.
func install(t *testing.T, r *rig.Rack, m *lab.Machine, n int) *rig.SSH {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), installTime)
	defer cancel()
	if _, err := r.Install(ctx, m.Name(), nil); err != nil {
		t.Fatal(err)
	}
	if err := m.PowerOn(ctx); err != nil {
		t.Fatal(err)
	}
	return finished(ctx, t, r, m, n)
}

// finished waits for the end of the machine's workflow and for its system.
func finished(ctx context.Context, t *testing.T, r *rig.Rack, m *lab.Machine, n int) *rig.SSH {
	t.Helper()
	if _, err := r.AwaitReason(ctx, m.Name(), hardware.ReasonWorkflowSucceeded, ""); err != nil {
		t.Fatal(err)
	}
	s, err := r.Check(ctx, m.Name(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestInstallUEFI(t *testing.T) {
	r := newRack(t, "uefi")
	addDebian(t, r)
	m, err := r.AddMachine(t.Context(), lab.MachineSpec{Name: "m1", Firmware: lab.UEFI, RAM: 512, Disks: []lab.DiskSpec{{Size: 4 << 30, Serial: "D1"}}}, 11)
	if err != nil {
		t.Fatal(err)
	}
	install(t, r, m, 11)
}

func TestInstallBIOS(t *testing.T) {
	r := newRack(t, "bios")
	addDebian(t, r)
	m, err := r.AddMachine(t.Context(), lab.MachineSpec{Name: "m1", Firmware: lab.BIOS, RAM: 512, Disks: []lab.DiskSpec{{Size: 4 << 30, Serial: "D1"}}}, 11)
	if err != nil {
		t.Fatal(err)
	}
	install(t, r, m, 11)
}
