package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/l2"
	"github.com/rackstrap/rackstrap/hardware"
)

// slowTime bounds a boot over a link that is closed twice, or loses what it carries.
const slowTime = 10 * time.Minute

// blocked is how long spanning tree keeps a port closed in these tests: listening and
// learning take 30 s with the standard's times (IEEE 802.1Q table 13-5), and some
// switches take longer.
const blocked = 40 * time.Second

// TestSlowLinks boots to the worker's first RPC behind ports that do what the ports of
// real switches do to a machine that boots. Where a port closes after its link came up,
// it closes again when the worker's kernel takes the card over.
func TestSlowLinks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		firmware lab.Firmware
		port     l2.Port
	}{
		"spanning-tree": {lab.UEFI, l2.Port{Blocked: blocked}},
		// The ROM's iPXE gives up after some seconds, unless the port says what it does.
		"spanning-tree-ipxe": {lab.BIOS, l2.Port{Blocked: blocked, BPDU: true}},
		"loss":               {lab.UEFI, l2.Port{Loss: 0.05, Delay: time.Millisecond, Seed: 4}},
		// A port of an aggregation that lets a machine without LACP in after a while.
		"lacp-fallback": {lab.UEFI, l2.Port{LACP: &l2.LACP{Group: 1, Fallback: blocked}}},
	} {
		if !named() && name != "spanning-tree-ipxe" {
			continue // `make lab` runs them all
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRack(t, name)
			ctx, cancel := context.WithTimeout(t.Context(), slowTime)
			defer cancel()
			m, err := r.AddMachine(ctx, lab.MachineSpec{Name: "m1", Firmware: tt.firmware, Port: &tt.port, Disks: []lab.DiskSpec{{Size: 1 << 30, Serial: "D1"}}}, 11)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Appliance.Client.Inspect(ctx, m.Name()); err != nil {
				t.Fatal(err)
			}
			if err := m.PowerOn(ctx); err != nil {
				t.Fatal(err)
			}
			if err := m.WaitSerial(ctx, "Rackstrap worker"); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := m.FlapLink(); err != nil {
				t.Fatal(err)
			}
			ev, err := r.AwaitReason(ctx, m.Name(), hardware.ReasonWorkerConnected, "")
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("the worker called %.0f s after power-on, %.0f s after its own start", ev.First.Sub(m.PoweredOn()).Seconds(), ev.First.Sub(began).Seconds())
			early := tt.port.Blocked
			if tt.port.LACP != nil {
				early = tt.port.LACP.Fallback
			}
			if ev.First.Sub(began) < early {
				t.Errorf("the worker called %v after the link came up, through a port that is closed for %v", ev.First.Sub(began), early)
			}
			if lost, err := m.LostFrames(); err != nil || (lost > 0) != (tt.port.Loss > 0) {
				t.Errorf("the cable that loses %v of its frames lost %d, %v", tt.port.Loss, lost, err)
			}
			if _, err := r.AwaitReason(ctx, m.Name(), hardware.ReasonWorkflowSucceeded, ""); err != nil {
				t.Fatal(err)
			}
		})
	}
}
