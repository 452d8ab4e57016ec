package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

const writeImage = "write-image"

// inTheMiddle returns when image.write has moved at least a fifth of the image,
// and fails when the action ends before.
func inTheMiddle(ctx context.Context, t *testing.T, r *rig.Rack, machine string) {
	t.Helper()
	ended := false
	err := r.Await(ctx, machine, func(e *api.Event, p *workflow.Progress) bool {
		ended = ended || e != nil && e.Action == writeImage && e.Reason == hardware.ReasonActionSucceeded
		return ended || p != nil && p.Total > 0 && p.Action == 1 && p.Done > p.Total/5
	})
	if err != nil {
		t.Fatal(err)
	}
	if ended {
		t.Fatal("the image was written before it could be interrupted")
	}
}

// attempts counts the tries of image.write.
func attempts(ctx context.Context, t *testing.T, r *rig.Rack, name string) []workflow.Attempt {
	t.Helper()
	w, err := r.Appliance.Client.Workflows.Get(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	return w.Status.Actions[1].Attempts
}

// TestUEFIInstallOverADaemonKill: kill -9 of the daemon in the middle of
// image.write, and a restart, end in an installed machine, without a second
// attempt: the worker went on by itself. Then the finished machine, whose record
// allows PXE for ever, netboots again and goes to its disk.
func TestUEFIInstallOverADaemonKill(t *testing.T) {
	t.Parallel() // half of a boot is waiting
	r := newRack(t, "uefi")
	addDebian(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), installTime)
	defer cancel()
	m, err := r.AddMachine(ctx, lab.MachineSpec{Name: "m1", Firmware: lab.UEFI, CPUs: 2, Disks: []lab.DiskSpec{{Size: 4 << 30, Serial: "D1"}}}, 11)
	if err != nil {
		t.Fatal(err)
	}
	w, err := r.Install(ctx, m.Name(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.PowerOn(ctx); err != nil {
		t.Fatal(err)
	}
	inTheMiddle(ctx, t, r, m.Name())
	if err := r.Appliance.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.Appliance.Start(ctx); err != nil {
		t.Fatal(err)
	}
	s := finished(ctx, t, r, m, 11)
	if got := attempts(ctx, t, r, w.Meta.Name); len(got) != 1 {
		t.Errorf("image.write took %d attempts: %+v", len(got), got)
	}
	grown(t, s)
	again(ctx, t, r, m)
}

// grown checks that the root file system has most of the 4 GiB disk.
func grown(t *testing.T, s *rig.SSH) {
	t.Helper()
	if out, err := s.Run(`test $(df --output=size -k / | tail -n 1) -gt 3000000 || df -k /`); err != nil || out != "" {
		t.Errorf("the root file system was not grown: %s, %v", out, err)
	}
}

// againTime bounds the way from reset to the system's boot loader. Firmware that is not
// told to go to its disk asks for minutes before it does so by itself.
const againTime = 5 * time.Minute

// again presses reset on a finished machine. It wants it to ask the network, to be told
// to boot its disk, and to start its own system at once.
func again(ctx context.Context, t *testing.T, r *rig.Rack, m *lab.Machine) {
	t.Helper()
	h, err := r.Appliance.Client.Hardware.Get(ctx, m.Name())
	if err != nil {
		t.Fatal(err)
	}
	if !h.Spec.Netboot.PXE() || h.Status.State != hardware.StateProvisioned {
		t.Fatalf("netboot %+v, state %s", h.Spec.Netboot, h.Status.State)
	}
	before, _, err := r.Appliance.Client.ListEvents(ctx, clientFilter(m.Name()))
	if err != nil {
		t.Fatal(err)
	}
	boots := map[string]bool{}
	for _, e := range before {
		boots[e.Boot] = true
	}
	from := len(m.Console().Text())
	if err := m.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, againTime)
	defer cancel()
	// the image's own words, from its own disk
	if _, err := m.Console().Wait(soon, from, "GRUB starts Debian"); err != nil {
		t.Fatal(err)
	}
	events, _, err := r.Appliance.Client.ListEvents(ctx, clientFilter(m.Name()))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Reason == hardware.ReasonProvisioned && !boots[e.Boot] {
			return
		}
	}
	t.Errorf("no event of the boot after the reset says that the machine was sent to its disk because it is provisioned:\n%s", tell(events))
}

// TestBIOSInstallOverAPowerCut: a disk that held another system, and a power cut
// in the middle of image.write, end in an installed machine.
func TestBIOSInstallOverAPowerCut(t *testing.T) {
	t.Parallel()
	r := newRack(t, "bios")
	addDebian(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), installTime)
	defer cancel()
	m, err := r.AddMachine(ctx, lab.MachineSpec{Name: "m1", Firmware: lab.BIOS, CPUs: 2, Disks: []lab.DiskSpec{{Size: 4 << 30, Serial: "D1", From: otherSystem(t)}}}, 11)
	if err != nil {
		t.Fatal(err)
	}
	w, err := r.Install(ctx, m.Name(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.PowerOn(ctx); err != nil {
		t.Fatal(err)
	}
	inTheMiddle(ctx, t, r, m.Name())
	if err := m.PowerOff(); err != nil {
		t.Fatal(err)
	}
	if err := m.PowerOn(ctx); err != nil {
		t.Fatal(err)
	}
	grown(t, finished(ctx, t, r, m, 11))
	got := attempts(ctx, t, r, w.Meta.Name)
	if len(got) != 2 || !got[0].Interrupted || got[1].State != workflow.StateSucceeded {
		t.Errorf("attempts of image.write: %+v", got)
	}
}
