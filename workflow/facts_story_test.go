package workflow_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// seen is a machine with one disk, as a worker reports it.
func seen(mac hardware.MAC, uuid, serial, disk string) *hardware.Facts {
	return &hardware.Facts{
		CPUs: 4, MemoryBytes: 32 << 30, Vendor: "Dell Inc.", UUID: uuid, Serial: serial,
		Disks: []hardware.DiskFact{{Path: "/dev/sda", Bytes: 480e9, Serial: disk, Transport: "sata"}}, NICs: []hardware.NICFact{{Name: "eth0", MAC: mac, Link: true}},
	}
}

// reports boots a machine and lets its worker report.
func (r *rig) reports(xid uint32, f *hardware.Facts) {
	r.t.Helper()
	r.pass(time.Minute)
	_, tok := r.boot(xid)
	s := r.attach(tok, newKey(), nil)
	r.must(s.Facts(r.ctx, f))
	r.must(s.Facts(r.ctx, f)) // not acknowledged, sent again
	s.Detach()
}

const (
	uuid1 = "4c4c4544-0042-3510-8052-b4c04f564231"
	uuid2 = "4c4c4544-0043-4d10-8031-c2c04f4b4432"
)

// What is read anew at each boot is compared: changes are one event each, a machine that
// is not the one of before is told of until it is that one again or a human vouches.
func TestFactsAreCompared(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mac := r.hw.Spec.Interfaces[0].MAC
	r.start("debian")
	r.reports(1, seen(mac, uuid1, "AAA1", "D1"))
	r.reports(2, seen(mac, uuid1, "AAA1", "D1"))
	if told := append(r.mention(hardware.ReasonFactsChanged), r.mention(hardware.ReasonConflict)...); told != nil {
		t.Fatalf("nothing changed: %q", told)
	}
	r.reports(3, seen(mac, uuid1, "AAA1", "D2"))
	if told := r.mention(hardware.ReasonFactsChanged); len(told) != 1 || told[0] != "disk D1 (480 GB sata) is gone; disk D2 (480 GB sata) is new" {
		t.Errorf("told %q", told)
	}
	disputed := func(s hardware.Status) bool {
		return slices.ContainsFunc(s.Issues, func(i hardware.Issue) bool { return i.Kind == hardware.IssueConflict })
	}
	r.reports(4, seen(mac, uuid2, "AAA2", "D2"))
	r.await(disputed)
	if told := r.mention(hardware.ReasonConflict); len(told) != 1 || !strings.Contains(told[0], uuid1) {
		t.Errorf("told %q", told)
	}
	r.next(hardware.TargetWorker, hardware.ReasonWorkflowActive) // it stops nothing
	r.must(r.e.SetHold(r.ctx, r.hw.Meta.UID, true))
	r.must(r.e.SetHold(r.ctx, r.hw.Meta.UID, false)) // so many boots without an action are a loop
	r.reports(5, seen(mac, uuid2, "AAA2", "D2"))
	if s := r.status(); !s.Disputed() {
		t.Error("a second report of the other machine ends it")
	}
	r.reports(6, seen(mac, uuid1, "AAA1", "D2"))
	r.await(func(s hardware.Status) bool { return !disputed(s) })
	r.reports(7, seen(mac, uuid2, "AAA2", "D2"))
	r.must(r.e.Accept(r.ctx, r.hw.Meta.UID, "new mainboard"))
	if s := r.status(); s.Disputed() || len(r.mention(hardware.ReasonAccepted)) != 1 {
		t.Errorf("a human vouched: %+v", s.Conflicts)
	}
	r.reports(8, seen(mac, uuid2, "AAA2", "D2"))
	r.await(func(s hardware.Status) bool { return !disputed(s) })
	if told := r.mention(hardware.ReasonConflict); len(told) != 2 || r.status().Conflicts != nil {
		t.Errorf("told %q, conflicts %+v", told, r.status().Conflicts)
	}
}

// The View finds the other machine with a UUID, a serial number or a NIC.
func TestConflictWithAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mac := r.hw.Spec.Interfaces[0].MAC
	r.start("debian")
	r.reports(1, seen(mac, uuid1, "AAA1", "D1"))
	other := &hardware.Hardware{Meta: hardware.Meta{Name: "m2"}, Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{0x52, 0x54, 0, 0, 0, 2}}}}}
	r.must(r.db.CreateHardware(r.ctx, other))
	first := r.hw
	r.hw = other
	f := seen(hardware.MAC{0x52, 0x54, 0, 0, 0, 2}, strings.ToUpper(uuid1), "aaa1", "D9")
	f.NICs = append(f.NICs, hardware.NICFact{Name: "eth1", MAC: mac})
	alike := r.db.View().Alike(f)
	if len(alike) < 3 || alike[0].Meta.Name != "m2" && alike[1].Meta.Name != "m1" {
		t.Fatalf("found %d", len(alike))
	}
	var kinds []hardware.ConflictKind
	for _, c := range hardware.Conflicts(other, f, alike, r.clock()) {
		if c.With != "m1" {
			t.Errorf("%+v", c)
		}
		kinds = append(kinds, c.Kind)
	}
	if !slices.Equal(kinds, []hardware.ConflictKind{hardware.ConflictUUID, hardware.ConflictSerial, hardware.ConflictMAC}) {
		t.Errorf("conflicts %v", kinds)
	}
	r.hw = first
	r.reports(2, seen(mac, uuid2, "AAA2", "D1")) // m1 is another machine now: the index forgets
	if alike := r.db.View().Alike(&hardware.Facts{UUID: uuid1, Serial: "AAA1"}); len(alike) != 0 {
		t.Errorf("found %d by an old UUID", len(alike))
	}
}
