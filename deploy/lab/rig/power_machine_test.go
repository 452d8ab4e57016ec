package rig_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/deploy/lab/rig"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/hardware/bmc"
	"github.com/rackstrap/rackstrap/workflow"
)

// diskText is what the disk of a BIOS machine says when it is booted.
const diskText = "this is the disk"

// bootSector prints diskText through the BIOS and waits for ever, with interrupts on:
// SeaBIOS writes the last character to the serial port when its clock ticks.
func bootSector() []byte {
	code := []byte{
		0xfb, 0x31, 0xc0, 0x8e, 0xd8, // sti; xor ax,ax; mov ds,ax
		0xbe, 0x16, 0x7c, // mov si,0x7c16
		0xac, 0x84, 0xc0, 0x74, 0x06, // next: lodsb; test al,al; jz end
		0xb4, 0x0e, 0xcd, 0x10, // mov ah,0x0e; int 0x10
		0xeb, 0xf5, // jmp next
		0xf4, 0xeb, 0xfd, // end: hlt; jmp end
	}
	b := make([]byte, 1<<20)
	copy(b, code)
	copy(b[len(code):], diskText)
	copy(b[510:], []byte{0x55, 0xaa})
	return b
}

// powerRig is a lab with power control, and the appliance's side of it.
type powerRig struct {
	*lab.Lab
	t     *testing.T
	power *bmc.Power
	rig   *rig.Power
	dhcp  net.PacketConn
}

func newPowerRig(t *testing.T) *powerRig {
	t.Helper()
	lab.Require(t, "qemu-system-x86_64")
	l, err := lab.New(t.Context(), lab.Options{Name: "power"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &powerRig{Lab: l, t: t, power: bmc.NewPower(bmc.Options{NewID: workflow.NewID, Dial: l.Dial}, nil)}
	if r.rig, err = rig.StartPower(t.Context(), l.Namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.rig.Close() })
	if r.dhcp, err = l.ListenPacket(t.Context(), "udp4", ":67"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.dhcp.Close() })
	return r
}

// machine adds a machine and returns its record.
func (r *powerRig) machine(spec lab.MachineSpec) (*lab.Machine, *hardware.Hardware) {
	r.t.Helper()
	m, err := r.AddMachine(r.t.Context(), spec)
	if err != nil {
		r.t.Fatal(err)
	}
	r.rig.Add(m)
	return m, &hardware.Hardware{
		Meta: hardware.Meta{Name: spec.Name},
		Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC(m.MAC())}}, Power: r.rig.Control()},
	}
}

func (r *powerRig) do(h *hardware.Hardware, action, next string, want hardware.PowerState) {
	r.t.Helper()
	if out, err := r.power.Do(r.t.Context(), h, action, next); err != nil || out.State != want || out.Message != "" {
		r.t.Fatalf("%s %s: %+v, %v, want %q", action, next, out, err, want)
	}
}

// netboots waits for a DHCP packet of the machine.
func (r *powerRig) netboots(ctx context.Context, m *lab.Machine) {
	r.t.Helper()
	if until, ok := ctx.Deadline(); ok {
		_ = r.dhcp.SetReadDeadline(until)
	}
	for packet := make([]byte, 1500); ; {
		n, _, err := r.dhcp.ReadFrom(packet)
		if err != nil {
			log, _ := os.ReadFile(m.SerialLog())
			r.t.Fatalf("no DHCP packet: %v\n%s", err, log)
		}
		if bytes.Contains(packet[:n], m.MAC()) {
			return
		}
	}
}

// TestPowerSwitchesMachines: the appliance's driver switches machines with real
// firmware, one after the other, and what they boot once is what it said.
func TestPowerSwitchesMachines(t *testing.T) {
	t.Parallel()
	r := newPowerRig(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	image := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(image, bootSector(), 0o600); err != nil {
		t.Fatal(err)
	}

	m, h := r.machine(lab.MachineSpec{Name: "bios", RAM: 128, Disks: []lab.DiskSpec{{From: image}}})
	r.do(h, "status", "", hardware.PowerOff)
	r.do(h, "on", "network", hardware.PowerOn)
	r.do(h, "status", "", hardware.PowerOn)
	r.netboots(ctx, m)
	on := m.PoweredOn()
	r.do(h, "on", "", hardware.PowerOn)
	if !m.PoweredOn().Equal(on) {
		t.Error("a machine that is on was switched on again")
	}
	r.do(h, "off", "", hardware.PowerOff)
	r.do(h, "status", "", hardware.PowerOff)
	r.do(h, "off", "", hardware.PowerOff)

	// Its own order is network, disk. The disk is for one boot; a restart has the order again.
	r.do(h, "cycle", "disk", hardware.PowerOn)
	if err := m.WaitSerial(ctx, diskText); err != nil {
		t.Fatal(err)
	}
	from := len(m.Console().Text())
	if rom := m.MAC().String(); strings.Contains(m.Console().Text(), rom) {
		t.Errorf("told to boot its disk, it says: %s", m.Console().Text())
	} else if err := m.Reset(ctx); err != nil {
		t.Fatal(err)
	} else if _, err := m.Console().Wait(ctx, from, rom); err != nil { // what the card's ROM shows first
		t.Fatal(err)
	}
	before := m.PoweredOn()
	r.do(h, "cycle", "", hardware.PowerOn)
	if !m.PoweredOn().After(before) {
		t.Error("cycle did not switch it off and on")
	}
	r.do(h, "off", "", hardware.PowerOff)

	// A UEFI machine learns its disks in the first boot.
	m, h = r.machine(lab.MachineSpec{Name: "uefi", RAM: 256, Firmware: lab.UEFI, DiskFirst: true, Disks: []lab.DiskSpec{{From: image}}})
	if out, err := r.power.Do(ctx, h, "on", "network"); err != nil || out.State != hardware.PowerOn {
		t.Fatalf("%+v, %v", out, err)
	}
	r.netboots(ctx, m)
	r.do(h, "cycle", "disk", hardware.PowerOn)
	if err := m.WaitSerial(ctx, "Misc Device"); err != nil {
		t.Fatal(err)
	}
	if text := m.Console().Text(); strings.Contains(text, "PXE") {
		t.Errorf("told to boot its disk, it says: %s", text)
	}
	r.do(h, "off", "", hardware.PowerOff)
}
