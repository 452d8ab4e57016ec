package stage

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/deploy/lab/sim"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// FillRack fills the stage: two networks, images, and machines in every state. It returns
// when they have been asked to be what they shall be; see them become so, or call
// Settled. busy is for how long the slow ones write.
func (s *Stage) FillRack(ctx context.Context, busy time.Duration) error {
	if err := s.network(ctx); err != nil {
		return err
	}
	if err := errors.Join(s.AddImage(ctx, ImageName, "debian", "12"), s.AddImage(ctx, "ubuntu-2404", "ubuntu", "24.04")); err != nil {
		return err
	}
	n := 0
	for _, c := range cast(busy) {
		for range c.count {
			n++
			if err := s.enter(ctx, c, n); err != nil {
				return fmt.Errorf("%s: %w", c.role, err)
			}
		}
	}
	for i := range 3 { // no records: they are found
		m, err := s.Rack.Add(sim.Spec{Name: fmt.Sprintf("found-%d", i+1), Facts: model(100 + i), Disks: disks(i)})
		if err != nil {
			return err
		}
		if err := m.PowerOn(ctx); err != nil {
			return err
		}
	}
	return s.Rack.Stray(hardware.MAC{0x00, 0x1b, 0x21, 0x0a, 0x0b, 0x0c}, "PRINTER-3F")
}

// network is the LAN with a pool and discovery, and a network of others.
func (s *Stage) network(ctx context.Context) error {
	lan := s.Rack.Subnet()
	lan.Spec.Mode = hardware.ModePool
	lan.Spec.Discovery = true
	// The machines are in the upper half; what the pool lends is at its end.
	probe := false // the rack's namespace answers for all of them
	lan.Spec.Pool = &hardware.Pool{
		Allow:  hardware.PoolKnown,
		Probe:  &probe,
		Ranges: []hardware.AddrRange{{From: netip.MustParseAddr("10.77.250.10"), To: netip.MustParseAddr("10.77.250.250")}},
	}
	off := &hardware.Subnet{Meta: hardware.Meta{Name: "storage"}, Spec: hardware.SubnetSpec{Prefix: netip.MustParsePrefix("10.90.4.0/24"), Mode: hardware.ModeReservation, MTU: 9000}}
	_, err := s.API.Subnets.Create(ctx, lan)
	if err == nil {
		_, err = s.API.Subnets.Create(ctx, off)
	}
	return err
}

// part is what some machines are there for.
type part struct {
	role   string
	count  int
	faults sim.Faults
	// play is done once the record is there.
	play func(ctx context.Context, s *Stage, m *sim.Machine) error
}

// cast are the machines with a record, in the order of their places.
func cast(busy time.Duration) []part {
	always := 1000
	return []part{
		{role: "compute", count: 11, play: owned("team/web")},
		{role: "db", count: 4, play: owned("team/data")},
		{role: "compute", count: 3, faults: sim.Faults{ActionTime: busy}, play: owned("team/web")},
		{role: "spare", count: 10, play: inspected},
		{role: "spare", count: 2, faults: sim.Faults{Fail: map[workflow.Kind]int{workflow.KindImageWrite: always}}, play: owned("team/web")},
		{role: "spare", count: 1, faults: sim.Faults{NoBMC: true}, play: func(ctx context.Context, s *Stage, m *sim.Machine) error {
			_, err := s.API.Power(ctx, m.Name(), api.Power{Action: api.PowerActionOn})
			if err == nil {
				return errors.New("a machine without a BMC was switched on")
			}
			return nil // the record says what went wrong
		}},
		{role: "spare", count: 1, faults: sim.Faults{Hang: always}, play: owned("team/data")},
		{role: "spare", count: 2, play: func(ctx context.Context, s *Stage, m *sim.Machine) error {
			_, err := s.API.Hold(ctx, m.Name(), true)
			return err
		}},
		{role: "spare", count: 2, play: func(ctx context.Context, s *Stage, m *sim.Machine) error {
			_, err := s.API.Maintenance(ctx, m.Name(), true, "a fan is loud")
			return err
		}},
		{role: "old", count: 1, play: func(ctx context.Context, s *Stage, m *sim.Machine) error {
			_, err := s.API.Retire(ctx, m.Name(), true, "sold")
			return err
		}},
	}
}

// perRack machines are in a rack, two height units each.
const perRack = 10

// enter puts the n-th machine into its rack and has it play its part.
func (s *Stage) enter(ctx context.Context, c part, n int) error {
	rack := fmt.Sprintf("r%d", 1+(n-1)/perRack)
	unit := 1 + 2*((n-1)%perRack)
	drives := disks(n)
	if c.faults.ActionTime > 0 {
		drives = drives[:1] // no disk array is wiped in minutes
	}
	m, err := s.Add(ctx, sim.Spec{
		Name: fmt.Sprintf("%s-u%02d", rack, unit), Rack: rack, Faults: c.faults, Facts: model(n), Disks: drives,
		CPUs: 16 << (n % 3), MemoryBytes: 64 << 30 << (n % 3),
		Labels: map[string]string{"role": c.role, "site": "hall-" + strconv.Itoa(1+n/25), "rack": rack},
	}, func(h *hardware.Hardware) {
		h.Spec.Position = strconv.Itoa(unit)
		h.Spec.AssetTag = fmt.Sprintf("A-%05d", 31000+n)
		if n == 1 {
			h.Spec.Notes = "The left power supply was changed in March."
		}
	})
	if err != nil {
		return err
	}
	return c.play(ctx, s, m)
}

// owned claims a machine and installs it.
func owned(owner string) func(context.Context, *Stage, *sim.Machine) error {
	return func(ctx context.Context, s *Stage, m *sim.Machine) error {
		id := m.Name() + "-claim"
		if _, err := s.API.Claim(ctx, &hardware.Claim{Meta: hardware.Meta{Name: id}, Spec: hardware.ClaimSpec{Owner: owner + "/" + m.Name(), Hardware: m.Name()}}); err != nil {
			return err
		}
		_, err := s.API.Provision(ctx, m.Name(), api.Provision{Image: ImageName, Claim: id, Disk: "smallest"})
		return err
	}
}

func inspected(ctx context.Context, s *Stage, m *sim.Machine) error {
	_, err := s.API.Inspect(ctx, m.Name())
	return err
}

// model is what the n-th machine was bought as.
func model(n int) func(*hardware.Facts) {
	models := []struct{ vendor, product, cpu, bios string }{
		{"Dell Inc.", "PowerEdge R650", "Intel(R) Xeon(R) Gold 5318Y CPU @ 2.10GHz", "Dell Inc. 1.9.2 11/17/2022"},
		{"Supermicro", "SYS-110P-WTR", "Intel(R) Xeon(R) Silver 4310 CPU @ 2.10GHz", "American Megatrends 1.4 05/12/2023"},
		{"HPE", "ProLiant DL325 Gen11", "AMD EPYC 9354P 32-Core Processor", "HPE A56 2.16 03/01/2024"},
	}
	m := models[n%len(models)]
	return func(f *hardware.Facts) {
		f.Vendor, f.Product, f.CPUModel, f.BIOS = m.vendor, m.product, m.cpu, m.bios
		f.Serial = fmt.Sprintf("SN%07d", 4120000+n*37)
		f.NICs[0].Driver, f.NICs[0].Mbps = "ice", 25_000
		second := f.NICs[0].MAC
		second[2] = 0x02
		f.NICs = append(f.NICs, hardware.NICFact{Name: "eth1", MAC: second, Driver: "ice", Link: n%2 == 0, Mbps: 25_000 * (1 - n%2)})
	}
}

func disks(n int) []sim.Disk {
	system := sim.Disk{Path: "/dev/nvme0n1", Bytes: 480e9, Model: "MZ1L2480HCHQ", Transport: "nvme"}
	if n%3 == 0 {
		return []sim.Disk{system}
	}
	data := []sim.Disk{system}
	for i := range 2 + n%3 {
		data = append(data, sim.Disk{Path: "/dev/sd" + string(rune('a'+i)), Bytes: 8e12, Model: "ST8000NM000A", Transport: "sata", Rotational: true, Layout: left(n + i)})
	}
	return data
}

// left is what somebody left on a data disk; nil is nothing.
func left(n int) *hardware.Layout {
	const mib, size = 1 << 20, 8e12
	switch n % 4 {
	case 0:
		return &hardware.Layout{Table: hardware.TableGPT, Partitions: []hardware.PartitionFact{
			{Number: 1, Start: mib, Bytes: 200 * mib, Type: "EFI system", Content: hardware.ContentVFAT, Label: "ESP"},
			{Number: 2, Start: 201 * mib, Bytes: 64 << 30, Type: "Linux swap", Content: hardware.ContentSwap},
			{Number: 3, Start: 201*mib + 64<<30, Bytes: 5e12, Type: "Linux RAID", Name: "md-data", Content: hardware.ContentRAID, Label: "old:0"},
		}}
	case 1:
		return &hardware.Layout{Table: hardware.TableNone, Content: hardware.ContentLVM2}
	case 2:
		return &hardware.Layout{Table: hardware.TableGPT, Partitions: []hardware.PartitionFact{
			{Number: 1, Start: mib, Bytes: size - 10*mib, Type: "ZFS", Name: "zfs-5d11"}, {Number: 9, Start: size - 9*mib, Bytes: 8 * mib, Type: "ZFS reserved"},
		}}
	}
	return nil
}
