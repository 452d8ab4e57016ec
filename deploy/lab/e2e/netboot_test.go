package e2e_test

import (
	"context"
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/hardware"
)

// netbootTime bounds one boot to the worker under emulation on busy cores.
const netbootTime = 8 * time.Minute

// mode is what is on the network.
type mode string

const (
	modeReservation mode = "reservation"
	modePool        mode = "pool"
	modeProxy       mode = "proxy" // beside dnsmasq
	modeRelay       mode = "relay" // behind ISC's relay and a router
)

func modes() []mode { return []mode{modeReservation, modePool, modeProxy, modeRelay} }

// cell is one firmware on one network.
type cell struct {
	firmware lab.Firmware
	mode     mode
}

// always are the cells that `make test` runs, because no other test covers what is in
// them; `make lab` runs all.
func always() []cell {
	return []cell{{lab.PlainPXE, modeRelay}, {lab.UEFI, modeProxy}, {lab.SecureBoot, modePool}}
}

// chain is how a firmware comes to the worker: what it fetches before the script; by HTTP
// where nothing else is said.
func chain(f lab.Firmware) []string {
	return map[lab.Firmware][]string{
		lab.BIOS:           nil, // the ROM is iPXE and takes the script
		lab.PlainPXE:       {"undionly.kpxe by TFTP"},
		lab.UEFI:           {"snponly.efi by TFTP"},
		lab.UEFIHTTP:       {"snponly.efi"},
		lab.SecureBoot:     {"shimx64.efi by TFTP", "grubx64.efi by TFTP"},
		lab.SecureBootHTTP: {"shimx64.img"},
		lab.ARM64:          {"shimaa64.efi by TFTP", "grubaa64.efi by TFTP"},
		lab.ARM64HTTP:      {"shimaa64.img"},
	}[f]
}

// TestNetboot boots each firmware on each network to the worker's first RPC. Cells are
// subtests: go test ./deploy/lab/e2e -run TestNetboot/uefi/proxy
func TestNetboot(t *testing.T) {
	t.Parallel()
	for _, f := range lab.Firmwares() {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			for _, m := range modes() {
				if c := (cell{f, m}); named() || slices.Contains(always(), c) {
					t.Run(string(m), func(t *testing.T) {
						t.Parallel()
						c.run(t)
					})
				}
			}
		})
	}
}

// named reports whether somebody chose tests by name, as `make lab` does: then all of
// that name are meant, else the short choice.
func named() bool { return flag.Lookup("test.run").Value.String() != "" }

// run boots one machine that is inspected, and switched off at the end by its worker.
func (c cell) run(t *testing.T) {
	result := &netbootTimes{Firmware: string(c.firmware), Mode: string(c.mode)}
	t.Cleanup(func() {
		result.Failed = t.Failed()
		netboots.add(*result)
		t.Logf("%+v", *result)
	})
	r, h := c.rack(t)
	ctx, cancel := context.WithTimeout(t.Context(), netbootTime)
	defer cancel()
	m, err := r.Lab.AddMachine(ctx, lab.MachineSpec{Name: "m1", Firmware: c.firmware, Disks: []lab.DiskSpec{{Size: 1 << 30, Serial: "D1"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Appliance.Client.Hardware.Create(ctx, h(m)); err != nil {
		t.Fatal(err)
	}
	w, err := r.Appliance.Client.Inspect(ctx, m.Name())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.PowerOn(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = r.AwaitReason(ctx, m.Name(), hardware.ReasonWorkerConnected, "")
	events, _, lerr := r.Appliance.Client.ListEvents(context.WithoutCancel(ctx), client.Filter{Hardware: m.Name(), Limit: 500})
	result.read(m.PoweredOn(), events)
	if err != nil || lerr != nil {
		result.Why = lastReason(events)
		t.Fatalf("no worker: %v, %v\n%s", err, lerr, tell(events))
	}
	c.check(t, events)
	if _, err := r.AwaitReason(ctx, m.Name(), hardware.ReasonWorkflowSucceeded, ""); err != nil {
		t.Fatalf("workflow %s: %v", w.Meta.Name, err)
	}
	select {
	case <-m.Done(): // not before the appliance has the facts
	case <-ctx.Done():
		t.Fatal("the machine did not switch itself off after the inspection")
	}
	c.facts(ctx, t, r, m)
}

// rack makes the cell's network, and returns what makes the machine's record.
func (c cell) rack(t *testing.T) (*rig.Rack, func(*lab.Machine) *hardware.Hardware) {
	t.Helper()
	const first, last = 100, 199 // of the addresses that are lent
	o := rig.Options{Routed: c.mode == modeRelay}
	o.Subnet = func(r *rig.Rack, s *hardware.SubnetSpec) {
		switch c.mode {
		case modePool:
			s.Mode = hardware.ModePool
			s.Pool = &hardware.Pool{Ranges: []hardware.AddrRange{{From: r.Addr(first), To: r.Addr(last)}}}
		case modeProxy:
			*s = hardware.SubnetSpec{Prefix: s.Prefix, Mode: hardware.ModeProxy}
		}
	}
	r := makeRack(t, string(c.firmware)+"-"+string(c.mode), func(ctx context.Context, name, dir, bin string) (*rig.Rack, error) {
		return rig.NewRackWith(ctx, name, dir, bin, o)
	})
	if _, err := r.Lab.Capture(t.Context(), filepath.Join(r.Lab.Dir(), "lan.pcap")); err != nil {
		t.Fatal(err)
	}
	if c.mode == modeProxy {
		var args []string
		if c.firmware == lab.SecureBoot || c.firmware == lab.ARM64 {
			// GRUB asks the next-server of the server that gave the address.
			args = append(args, "--dhcp-boot=,,"+r.Lab.Gateway().String())
		}
		if _, err := r.Lab.Dnsmasq(t.Context(), r.Addr(2), r.Addr(first), r.Addr(last), args...); err != nil {
			t.Fatal(err)
		}
	}
	return r, func(m *lab.Machine) *hardware.Hardware {
		h := r.Hardware(m, 11)
		h.Spec.Power = nil // the test switches it
		if c.firmware == lab.SecureBoot || c.firmware == lab.SecureBootHTTP {
			h.Spec.Netboot.SecureBoot = hardware.SecureBootOn
		}
		if c.mode == modePool || c.mode == modeProxy {
			h.Spec.Interfaces[0].Addresses = nil
		}
		return h
	}
}

// check wants the boot programs that are right for the firmware, and no others.
func (c cell) check(t *testing.T, events []api.Event) {
	t.Helper()
	var sent []string
	for _, e := range events {
		if e.Reason == hardware.ReasonProgramSent && !slices.Contains(sent, e.Detail) {
			sent = append(sent, e.Detail)
		}
	}
	if want := chain(c.firmware); !slices.Equal(sent, want) {
		t.Errorf("the firmware fetched %q, want %q", sent, want)
	}
}

// facts wants what the worker found to be what the machine is.
func (c cell) facts(ctx context.Context, t *testing.T, r *rig.Rack, m *lab.Machine) {
	t.Helper()
	h, err := r.Appliance.Client.Hardware.Get(ctx, m.Name())
	if err != nil || h.Facts == nil {
		t.Fatalf("no facts: %v", err)
	}
	mode, secure, arch := "uefi", "off", "amd64"
	switch c.firmware {
	case lab.BIOS, lab.PlainPXE:
		mode, secure = "bios", ""
	case lab.SecureBoot, lab.SecureBootHTTP:
		secure = "on"
	case lab.ARM64, lab.ARM64HTTP:
		arch = "arm64"
	}
	f := h.Facts
	if f.Firmware != mode || f.SecureBoot != secure && (secure != "" || f.SecureBoot == "on") || f.Arch != arch {
		t.Errorf("the facts say firmware %q, Secure Boot %q, %s; want %q, %q, %s", f.Firmware, f.SecureBoot, f.Arch, mode, secure, arch)
	}
	if len(f.Disks) != 1 || f.Disks[0].Serial != "D1" || f.Disks[0].Bytes != 1<<30 {
		t.Errorf("the facts have other disks than D1 of 1 GiB: %+v", f.Disks)
	}
}

// lastReason is the last thing that happened to a machine.
func lastReason(events []api.Event) string {
	if len(events) == 0 {
		return "no packet came"
	}
	return events[len(events)-1].Sentence
}

// tell is the events of a machine, one a line.
func tell(events []api.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.First.Format("15:04:05.000 ") + e.Sentence + "\n")
	}
	return b.String()
}
