package e2e_test

import (
	"context"
	"testing"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
)

// TestEveryFirmwareInstalls installs a system on a machine of each firmware. The record allows
// PXE for ever and the firmware asks the network first: after the install, and again
// after a reset, the machine is sent to its disk in the way that its firmware takes.
// UEFI and BIOS with iPXE are installed in other tests of this package, over faults.
func TestEveryFirmwareInstalls(t *testing.T) {
	t.Parallel()
	for _, f := range []lab.Firmware{lab.PlainPXE, lab.UEFIHTTP, lab.SecureBoot, lab.ARM64} {
		if !named() {
			continue
		}
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			r := newRack(t, "inst-"+string(f))
			addImage(t, r, f.Arch())
			ctx, cancel := context.WithTimeout(t.Context(), installTime)
			defer cancel()
			m, err := r.AddMachine(ctx, lab.MachineSpec{Name: "m1", Firmware: f, CPUs: 2, Disks: []lab.DiskSpec{{Size: 4 << 30, Serial: "D1"}}}, 11)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Install(ctx, m.Name(), nil); err != nil {
				t.Fatal(err)
			}
			if err := m.PowerOn(ctx); err != nil {
				t.Fatal(err)
			}
			s := finished(ctx, t, r, m, 11)
			grown(t, s)
			if f == lab.SecureBoot {
				secure(t, s)
			}
			again(ctx, t, r, m)
		})
	}
}

// secure wants the installed system to run under Secure Boot.
func secure(t *testing.T, s *rig.SSH) {
	t.Helper()
	// four bytes of attributes, then the value (UEFI 2.10 section 3.3)
	const variable = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
	if out, err := s.Run("od -An -tx1 -j4 -N1 " + variable); err != nil || out != " 01" {
		t.Errorf("SecureBoot is %q, %v", out, err)
	}
}
