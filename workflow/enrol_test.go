package workflow_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

var ours = netip.MustParseAddr("10.0.0.1")

// newSite is a rig whose subnet lets unknown machines report themselves.
func newSite(t *testing.T) *rig {
	r := newRig(t)
	r.must(r.db.CreateSubnet(r.ctx, &hardware.Subnet{
		Meta: hardware.Meta{Name: "lan"},
		Spec: hardware.SubnetSpec{Prefix: netip.MustParsePrefix("10.0.0.0/24"), Mode: hardware.ModeProxy, Discovery: true},
	}))
	return r
}

// unknown is a machine without a record.
type unknown struct {
	r     *rig
	mac   hardware.MAC
	addr  netip.Addr
	xid   uint32
	boot  hardware.Boot
	token string
	key   ed25519.PublicKey
	facts hardware.Facts
}

func (r *rig) unknown(n byte) *unknown {
	mac := hardware.MAC{2, 0, 0, 0, 9, n}
	return &unknown{
		r: r, mac: mac, addr: netip.AddrFrom4([4]byte{10, 0, 0, 100 + n}), key: newKey(),
		facts: hardware.Facts{
			Vendor: "ACME", Product: "Rocket", Serial: fmt.Sprintf("CZJ%04d", n), UUID: fmt.Sprintf("11111111-2222-3333-4444-5555555555%02x", n),
			Arch: "amd64", CPUs: 8, MemoryBytes: 32 << 30, Disks: []hardware.DiskFact{{Path: "/dev/sda", Bytes: 1e12}},
			NICs: []hardware.NICFact{{Name: "eth0", MAC: mac, Link: true}},
		},
	}
}

// netboot goes from the first packet to the token.
func (u *unknown) netboot() {
	u.r.t.Helper()
	u.xid++
	uid := hardware.StrangerUID(u.mac)
	b, err := u.r.e.FirstPacket(u.r.ctx, workflow.FirstPacket{Hardware: uid, MAC: u.mac, XID: u.xid, Firmware: hardware.FirmwareUEFI, Subnet: "lan", Discovery: true})
	u.r.must(err)
	u.r.must(u.r.e.Acked(u.r.ctx, uid, b.ID, u.addr, ours, false))
	u.r.e.ObserveStranger(u.mac, b.ID, hardware.ReasonAcked, u.addr.String(), 0, 0)
	g, err := u.r.e.Script(u.r.ctx, uid, u.addr)
	u.r.must(err)
	if g.Token == "" || g.Next.Scope != hardware.ScopeEnrol || g.Hardware.Arch() != "amd64" {
		u.r.t.Fatalf("no token for %s: %+v", u.mac, g)
	}
	u.boot, u.token = b, g.Token
}

// connect is its worker with the token.
func (u *unknown) connect() *workflow.Session {
	u.r.t.Helper()
	s, err := u.dial()
	u.r.must(err)
	return s
}

func (u *unknown) dial() (*workflow.Session, error) {
	adm, err := u.r.e.Redeem(u.r.ctx, u.token, u.key, u.addr)
	if err != nil {
		return nil, err
	}
	if adm.Scope != hardware.ScopeEnrol {
		u.r.t.Fatalf("let in as %+v", adm)
	}
	return u.r.e.Attach(u.r.ctx, adm, nil)
}

// enrol netboots and reports.
func (u *unknown) enrol() *workflow.Session {
	u.r.t.Helper()
	u.netboot()
	s := u.connect()
	f := u.facts
	u.r.must(s.Facts(u.r.ctx, &f))
	return s
}

// record is the machine's, nil where it has none.
func (u *unknown) record() *hardware.Hardware {
	h, ok := u.r.db.View().HardwareByMAC(u.mac)
	if !ok {
		return nil
	}
	h, err := u.r.db.Hardware(u.r.ctx, h.Meta.UID)
	u.r.must(err)
	return h
}

// told is what the worker was told since; an action is never among it.
func told(t *testing.T, s *workflow.Session) (finish *workflow.Finish, closed string) {
	t.Helper()
	for _, c := range s.Take() {
		if c.Assign != nil || c.Cancel != nil {
			t.Fatalf("a worker in enrol scope was told %+v", c)
		}
		if c.Finish != nil {
			finish = c.Finish
		}
		closed += c.Close
	}
	return finish, closed
}

func (r *rig) reasons(uid string) []hardware.Reason {
	r.t.Helper()
	all, err := r.db.Events(r.ctx, workflow.EventQuery{Hardware: uid})
	r.must(err)
	var out []hardware.Reason
	for _, ev := range all {
		out = append(out, ev.Reason)
	}
	return out
}

func (r *rig) rule(name string, spec hardware.RuleSpec) {
	r.t.Helper()
	r.must(r.db.CreateRule(r.ctx, &hardware.Rule{Meta: hardware.Meta{Name: name}, Spec: spec}))
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	u := r.unknown(1)
	u.facts.NICs = append(u.facts.NICs, hardware.NICFact{Name: "eth1", MAC: hardware.MAC{2, 0, 0, 0, 8, 1}}, hardware.NICFact{Name: "usb0", MAC: hardware.MAC{2, 0, 0, 0, 8, 2}, Driver: "cdc_ether"})
	before, err := r.db.Cursor(r.ctx)
	r.must(err)
	u.netboot()
	if l := r.e.Strangers(); len(l) != 1 || l[0].Boot.MAC != u.mac || l[0].Subnet != "lan" || l[0].Last != hardware.ReasonAcked {
		t.Errorf("remembered: %+v", l)
	}
	s := u.connect()
	if f, _ := told(t, s); f == nil || f.What != workflow.FinishWait {
		t.Errorf("told %+v before it reported", f)
	}
	if now, err := r.db.Cursor(r.ctx); err != nil || now != before {
		t.Errorf("a stranger was written to the store: %d, %d, %v", before, now, err)
	}
	r.must(s.Facts(r.ctx, &u.facts))
	if _, closed := told(t, s); !strings.Contains(closed, "sn-czj0001") {
		t.Errorf("the worker was told %q", closed)
	}
	s.Detach()
	h := u.record()
	if h == nil || h.Meta.Name != "sn-czj0001" || h.Status.State != hardware.StatePending || h.Status.Discovered.IsZero() || h.Facts == nil || h.Facts.Vendor != "ACME" || h.Arch() != "amd64" {
		t.Fatalf("the record: %+v", h)
	}
	if len(h.Spec.Interfaces) != 1 || h.Spec.Interfaces[0].MAC != u.mac {
		t.Errorf("it has NICs that it did not boot from: %v", h.Spec.Interfaces)
	}
	want := []hardware.Reason{hardware.ReasonBootStarted, hardware.ReasonAcked, hardware.ReasonWorkerConnected, hardware.ReasonDiscovered, hardware.ReasonFactsReported}
	if got := r.reasons(h.Meta.UID); !slices.Equal(got, want) {
		t.Errorf("its timeline is %v, want %v", got, want)
	}
	if len(r.e.Strangers()) != 0 {
		t.Error("it is still a stranger")
	}
	// the same worker comes again, as the machine of its record
	s = u.connect()
	if f, _ := told(t, s); f == nil || f.What != workflow.FinishWait || !r.e.Connected(h.Meta.UID) {
		t.Errorf("the worker of a pending machine is told %+v", f)
	}
	// another key with its token is what it always was
	if _, err := r.e.Redeem(r.ctx, u.token, newKey(), u.addr); err == nil {
		t.Error("a second key was let in")
	}
	r.must(r.e.SetHold(r.ctx, h.Meta.UID, false))
	u.netboot2(h.Meta.UID)
	s = u.connect()
	_, _ = told(t, s)
	if _, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: h.Meta.Name, Template: "install", Params: map[string]any{"image": "x"}}); err == nil {
		t.Error("a pending machine was given a workflow")
	}
	r.must(r.e.Accept(r.ctx, h.Meta.UID, "mine"))
	if f, _ := told(t, s); f == nil || f.What != workflow.FinishReboot {
		t.Errorf("after accept the worker is told %+v", f)
	}
	h = u.record()
	if h.Status.State != hardware.StateAvailable || len(h.Spec.Interfaces) != 2 || h.Spec.Interfaces[1].MAC != (hardware.MAC{2, 0, 0, 0, 8, 1}) {
		t.Errorf("accepted: %s %v", h.Status.State, h.Spec.Interfaces)
	}
	// a workflow while the enrol worker is still there: it is sent away, and given nothing
	w, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: h.Meta.Name, Template: "install", Params: map[string]any{"image": "x"}})
	r.must(err)
	if f, _ := told(t, s); f == nil || f.What != workflow.FinishReboot {
		t.Errorf("with a workflow the worker is told %+v", f)
	}
	s.Detach()
	s, err = u.dial() // it lost its connection before it restarted
	r.must(err)
	if f, _ := told(t, s); f == nil || f.What != workflow.FinishReboot {
		t.Errorf("come again, it is told %+v", f)
	}
	r.pass(time.Minute)
	_, err = r.e.CancelWorkflow(r.ctx, w.Meta.Name, "enough")
	r.must(err)
	told(t, s)
}

// netboot2 is netboot of a machine that has a record.
func (u *unknown) netboot2(uid string) hardware.Boot {
	u.r.t.Helper()
	u.xid++
	b, err := u.r.e.FirstPacket(u.r.ctx, workflow.FirstPacket{Hardware: uid, MAC: u.mac, XID: u.xid, Firmware: hardware.FirmwareUEFI, Subnet: "lan", Discovery: true})
	u.r.must(err)
	u.r.must(u.r.e.Acked(u.r.ctx, uid, b.ID, u.addr, ours, false))
	g, err := u.r.e.Script(u.r.ctx, uid, u.addr)
	u.r.must(err)
	u.boot, u.token, u.key = b, g.Token, newKey()
	return b
}

// TestDiscoveredByRule: found, accepted and installed, and nobody typed anything.
func TestDiscoveredByRule(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	r.rule("acme", hardware.RuleSpec{
		Match: hardware.RuleMatch{Facts: map[string]string{"vendor": "acme"}, Subnet: "lan"}, Labels: map[string]string{"maker": "acme"}, Accept: true,
		Provision: &hardware.RuleProvision{Template: "install", Params: map[string]any{"image": "debian"}},
	})
	u := r.unknown(1)
	s := u.enrol()
	if f, _ := told(t, s); f == nil || f.What != workflow.FinishReboot {
		t.Errorf("the worker is told %+v", f)
	}
	s.Detach()
	h := u.record()
	if h == nil || h.Status.State != hardware.StateProvisioning || h.Meta.Labels["maker"] != "acme" || h.Status.Rule != "" {
		t.Fatalf("%+v", h)
	}
	var by string
	all, err := r.db.Events(r.ctx, workflow.EventQuery{Hardware: h.Meta.UID, Reason: hardware.ReasonWorkflowCreated})
	r.must(err)
	for _, ev := range all {
		by += ev.By
	}
	if by != "rule acme" {
		t.Errorf("the workflow was created by %q", by)
	}
	b := u.netboot2(h.Meta.UID)
	if b.Next.Scope != hardware.ScopeWork {
		t.Fatalf("it boots %+v", b.Next)
	}
	adm, err := r.e.Redeem(r.ctx, u.token, u.key, u.addr)
	r.must(err)
	s, err = r.e.Attach(r.ctx, adm, nil)
	r.must(err)
	for range 3 {
		r.must(s.Report(r.ctx, workflow.Report{Assignment: assigned(t, s).Assignment, Outcome: workflow.StateSucceeded}))
	}
	if h = u.record(); h.Status.State != hardware.StateProvisioned {
		t.Fatalf("%+v", h.Status)
	}
	// given back, it is not installed again
}

func TestRuleThatCannotProvision(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	r.rule("all", hardware.RuleSpec{Match: hardware.RuleMatch{All: true}, Accept: true, Provision: &hardware.RuleProvision{Template: "gone"}})
	u := r.unknown(1)
	u.enrol()
	h := u.record()
	if h.Status.State != hardware.StateAvailable || h.Status.Rule != "" || !slices.Contains(r.reasons(h.Meta.UID), hardware.ReasonRuleFailed) {
		t.Errorf("%+v, %v", h.Status, r.reasons(h.Meta.UID))
	}
}

// TestDisputedIdentity: who looks like another machine is shown, and accepted by no rule.
func TestDisputedIdentity(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(first, second *unknown){
		"uuid":   func(a, b *unknown) { b.facts.UUID = a.facts.UUID },
		"serial": func(a, b *unknown) { b.facts.Serial = a.facts.Serial },
		"mac": func(a, b *unknown) {
			b.facts.NICs = append(b.facts.NICs, hardware.NICFact{Name: "eth1", MAC: a.mac})
		},
		"swapped NIC": func(a, b *unknown) { b.facts.UUID, b.facts.Serial = a.facts.UUID, a.facts.Serial },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSite(t)
			a, b := r.unknown(1), r.unknown(2)
			a.enrol()
			before := a.record()
			r.rule("all", hardware.RuleSpec{Match: hardware.RuleMatch{All: true}, Accept: true, Labels: map[string]string{"x": "y"}})
			change(a, b)
			b.enrol()
			h, o := b.record(), a.record()
			if h == nil || h.Status.State != hardware.StatePending || !h.Status.Disputed() || h.Meta.Labels["x"] != "y" {
				t.Fatalf("%+v", h)
			}
			if !o.Status.Disputed() || o.Status.Conflicts[0].With != h.Meta.Name {
				t.Errorf("the other record has %+v", o.Status.Conflicts)
			}
			if o.Meta.Revision != before.Meta.Revision || o.Status.State != hardware.StatePending {
				t.Error("the other record was changed")
			}
			for _, x := range []*hardware.Hardware{h, o} {
				if !slices.Contains(r.reasons(x.Meta.UID), hardware.ReasonConflict) {
					t.Errorf("%s: no event", x.Meta.Name)
				}
			}
			r.must(r.e.Accept(r.ctx, h.Meta.UID, "")) // a human may
			if h := b.record(); h.Status.State != hardware.StateAvailable || h.Status.Disputed() {
				t.Errorf("%+v", h.Status)
			}
		})
	}
}

// TestJunkIsNoIdentity: two boards of one series, with nothing filled in.
func TestJunkIsNoIdentity(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	for n := range byte(2) {
		u := r.unknown(n + 1)
		u.facts.UUID, u.facts.Serial = "00000000-0000-0000-0000-000000000000", "To be filled by O.E.M."
		u.enrol()
		if h := u.record(); h.Status.Disputed() || h.Meta.Name != "discovered-"+strings.ReplaceAll(u.mac.String(), ":", "-") {
			t.Errorf("%s: %+v", h.Meta.Name, h.Status.Conflicts)
		}
	}
}

// TestTwoNICs: one machine that boots from two NICs is one record, and nobody else gets
// into it.
func TestTwoNICs(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	a, b, liar := r.unknown(1), r.unknown(2), r.unknown(3)
	nics := append(slices.Clone(a.facts.NICs), b.facts.NICs...)
	a.facts.NICs, b.facts = nics, a.facts
	b.facts.NICs = nics
	first := a.enrol()
	b.enrol()
	h := b.record()
	if h == nil || h.Meta.UID != a.record().Meta.UID || len(h.Spec.Interfaces) != 2 || h.Status.Disputed() {
		t.Fatalf("%+v", h)
	}
	_ = first
	// same again: the worker comes back because its report was not acknowledged
	s := b.connect()
	r.pass(time.Minute)
	f := b.facts
	r.must(s.Facts(r.ctx, &f))
	if n := len(r.machines()); n != 2 {
		t.Fatalf("%d records, want m1 and one more", n)
	}
	liar.facts.UUID, liar.facts.Serial, liar.facts.NICs = a.facts.UUID, a.facts.Serial, append(nics, liar.facts.NICs...)
	liar.enrol()
	if h := liar.record(); h == nil || h.Meta.UID == a.record().Meta.UID || !h.Status.Disputed() {
		t.Errorf("who knows a machine's facts became part of it: %+v", h)
	}
}

// TestStrangerAfterRestart: the appliance forgot the boot, and its token is good.
func TestStrangerAfterRestart(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	u, late := r.unknown(1), r.unknown(2)
	late.netboot()
	r.pass(20 * time.Minute)
	u.netboot()
	r.must(r.kv.Close())
	r.pass(15 * time.Minute)
	r.open()
	if _, err := late.dial(); !refusedWith(err, hardware.ReasonTokenExpired) {
		t.Errorf("a token of 35 minutes ago: %v", err)
	}
	s := u.connect()
	if _, err := r.e.Redeem(r.ctx, u.token, newKey(), u.addr); !refusedWith(err, hardware.ReasonTokenSecond) {
		t.Errorf("a second key: %v", err)
	}
	f := u.facts
	r.must(s.Facts(r.ctx, &f))
	h := u.record()
	if h == nil || h.Status.Hold {
		t.Fatalf("%+v", h)
	}
	// deleted, it is discovered again at its next boot
	r.must(r.db.DeleteHardware(r.ctx, h.Meta.Name, 0))
	r.pass(time.Minute)
	u.key = newKey()
	u.enrol()
	if again := u.record(); again == nil || again.Meta.UID == h.Meta.UID {
		t.Errorf("%+v", again)
	}
}

func refusedWith(err error, r hardware.Reason) bool {
	var x *workflow.Refused
	return errors.As(err, &x) && x.Reason == r
}

// TestDiscoveryOff: without leave nothing is remembered, and a token of before is void.
func TestDiscoveryOff(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	u := r.unknown(1)
	b, err := r.e.FirstPacket(r.ctx, workflow.FirstPacket{Hardware: hardware.StrangerUID(u.mac), MAC: u.mac, XID: 1, Firmware: hardware.FirmwareUEFI, Subnet: "lan"})
	r.must(err)
	if b.Next.Target != hardware.TargetNone || len(r.e.Strangers()) != 0 {
		t.Errorf("%+v", b)
	}
	if _, err := r.e.Script(r.ctx, hardware.StrangerUID(u.mac), u.addr); !errors.Is(err, workflow.ErrNotFound) {
		t.Errorf("script: %v", err)
	}
	u.netboot()
	g, err := r.e.Script(r.ctx, hardware.StrangerUID(u.mac), netip.MustParseAddr("10.0.0.66"))
	r.must(err)
	if g.Token != "" || g.Reason != hardware.ReasonScriptNoToken {
		t.Errorf("another address got %+v", g)
	}
	sub, err := r.db.SubnetByName(r.ctx, "lan")
	r.must(err)
	sub.Spec.Discovery = false
	r.must(r.db.UpdateSubnet(r.ctx, sub))
	if _, err := u.dial(); !refusedWith(err, hardware.ReasonUnknownMachine) {
		t.Errorf("with discovery switched off: %v", err)
	}
}

// TestFlood: made-up machines cost a bounded amount of memory, and push out nobody who
// has an address.
func TestFlood(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	u := r.unknown(1)
	u.netboot()
	before, err := r.db.Cursor(r.ctx)
	r.must(err)
	limited := 0
	for i := range 20_000 {
		mac := hardware.MAC{6, 6, 6, byte(i >> 16), byte(i >> 8), byte(i)}
		b, err := r.e.FirstPacket(r.ctx, workflow.FirstPacket{Hardware: hardware.StrangerUID(mac), MAC: mac, XID: uint32(i), Firmware: hardware.FirmwareBIOS, Subnet: "lan", Discovery: true})
		r.must(err)
		if b.Next.Reason == hardware.ReasonRateLimited {
			limited++
		}
		if i%10 == 0 {
			r.pass(time.Millisecond)
		}
	}
	if n := len(r.e.Strangers()); n > 1024 || limited == 0 {
		t.Errorf("%d remembered, %d limited", n, limited)
	}
	if now, err := r.db.Cursor(r.ctx); err != nil || now != before {
		t.Error("the flood was written to the store")
	}
	u.connect()
}

// TestEnrolmentFull: so many may wait to be accepted, and no more.
func TestEnrolmentFull(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	var all sync.WaitGroup // the store writes what comes at once together
	for i := range workflow.MaxDiscovered {
		all.Go(func() {
			h := &hardware.Hardware{
				Meta: hardware.Meta{Name: fmt.Sprintf("d%d", i), UID: workflow.NewID(r.clock())},
				Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{2, 0, 0, 7, byte(i >> 8), byte(i)}}}},
			}
			mc := &workflow.Machine{UID: h.Meta.UID, Status: hardware.Status{State: hardware.StatePending, Discovered: r.clock()}}
			if err := r.db.Commit(r.ctx, &workflow.Change{Hardware: h, Machine: mc}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	u := r.unknown(1)
	u.netboot()
	s := u.connect()
	f := u.facts
	var later *workflow.Later
	if err := s.Facts(r.ctx, &f); !errors.As(err, &later) || later.Reason != hardware.ReasonEnrolFull || u.record() != nil {
		t.Fatalf("one too many: %v", err)
	}
	if l := r.e.Strangers(); len(l) != 1 || l[0].Last != hardware.ReasonEnrolFull {
		t.Errorf("%+v", l)
	}
	for _, h := range r.machines() {
		if h.Status.State == hardware.StatePending {
			r.must(r.db.DeleteHardware(r.ctx, h.Meta.Name, 0))
			break
		}
	}
	r.must(s.Facts(r.ctx, &f))
	if u.record() == nil {
		t.Error("there is room, and it was not taken")
	}
}

// TestRulesAcceptSoMany: a LAN that makes up machines for a rule gets so many accepted,
// and no more. The others are told why they wait, and follow when there is room.
func TestRulesAcceptSoMany(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	r.rule("all", hardware.RuleSpec{Match: hardware.RuleMatch{All: true}, Accept: true})
	var last *unknown
	accepted := 0
	for i := range 2 * workflow.AcceptBurst {
		u := r.unknown(byte(i % 100))
		u.mac[3], u.facts.NICs[0].MAC[3] = byte(i/100), byte(i/100)
		u.facts.Serial, u.facts.UUID = fmt.Sprintf("CZJ%04d", i), fmt.Sprintf("11111111-2222-3333-4444-55555555%04x", i)
		u.enrol()
		if last = u; u.record().Status.State != hardware.StateAvailable {
			break
		}
		accepted++
		r.pass(500 * time.Millisecond) // what enrolment itself bounds
	}
	h := last.record()
	if accepted < workflow.AcceptBurst || accepted > workflow.AcceptBurst+20 || h.Status.State != hardware.StatePending {
		t.Fatalf("%d were accepted, the next is %s", accepted, h.Status.State)
	}
	adm, err := r.e.Redeem(r.ctx, last.token, last.key, last.addr)
	r.must(err)
	s, err := r.e.Attach(r.ctx, adm, nil)
	r.must(err)
	defer s.Detach()
	f := last.facts
	r.must(s.Facts(r.ctx, &f))
	told := 0
	for _, reason := range r.reasons(h.Meta.UID) {
		if reason == hardware.ReasonRuleLimit {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times: %v", told, r.reasons(h.Meta.UID))
	}
	r.pass(time.Minute)
	deadline := time.Now().Add(20 * time.Second)
	for last.record().Status.State != hardware.StateAvailable {
		if time.Now().After(deadline) {
			t.Fatalf("there is room again, and it is %+v", last.record().Status)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestHostileFacts: what a machine says of itself becomes bounded text, takes nobody's
// name and nobody's MAC.
func TestHostileFacts(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	r.must(r.db.CreateHardware(r.ctx, &hardware.Hardware{Meta: hardware.Meta{Name: "sn-abc123"}, Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{2, 5, 5, 5, 5, 5}}}}}))
	for name, f := range map[string]hardware.Facts{
		"empty":         {},
		"name taken":    {Serial: "ABC123"},
		"a path":        {Serial: "../../etc/passwd1"},
		"html":          {Vendor: "<script>alert(1)</script>", Serial: "<b>1234"},
		"control":       {Vendor: "a\x1b[2J\r\n\x00", Product: strings.Repeat("x", 1<<20), Serial: "12\x0034"},
		"unicode":       {Serial: "ſerial-1234", Vendor: "\xff\xfe", Product: "日本"},
		"negative":      {CPUs: -1},
		"dashes":        {Serial: "-1234-"},
		"reserved MACs": {NICs: []hardware.NICFact{{}, {MAC: hardware.MAC{1, 0, 0x5e, 0, 0, 1}}, {MAC: hardware.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}}},
	} {
		u := r.unknown(byte(len(name)))
		u.mac[3] = byte(len(f.Vendor))
		u.facts = f
		for i := range 1000 {
			u.facts.NICs = append(u.facts.NICs, hardware.NICFact{MAC: hardware.MAC{2, 7, 7, 7, byte(i >> 8), byte(i)}})
		}
		u.facts.Disks = make([]hardware.DiskFact, 5000)
		r.pass(10 * time.Second)
		u.enrol()
		h := u.record()
		if h == nil || !strings.HasPrefix(h.Meta.Name, "discovered-") || len(h.Facts.NICs) > 64 || len(h.Facts.Disks) > 256 || len(h.Facts.Product) > 128 {
			t.Errorf("%s: %+v", name, h)
			continue
		}
		if len(h.Spec.Interfaces) != 1 {
			t.Errorf("%s: it holds %v", name, h.Spec.Interfaces)
		}
		for _, s := range []string{h.Facts.Vendor, h.Facts.Product, h.Facts.Serial} {
			if strings.ContainsAny(s, "\x00\x1b\r\n") {
				t.Errorf("%s: %q", name, s)
			}
		}
		r.must(r.e.Accept(r.ctx, h.Meta.UID, ""))
		h = u.record()
		r.must(h.Validate())
		r.must(r.db.DeleteHardware(r.ctx, h.Meta.Name, 0))
	}
}

// TestReportsAreLimited: one report in a while, and nothing else.
func TestReportsAreLimited(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	u := r.unknown(1)
	u.enrol()
	s := u.connect()
	f := u.facts
	for range 4 {
		r.must(s.Facts(r.ctx, &f))
	}
	var later *workflow.Later
	if err := s.Facts(r.ctx, &f); !errors.As(err, &later) {
		t.Errorf("at once again: %v", err)
	}
	r.pass(2 * time.Minute)
	r.must(s.Facts(r.ctx, &f))
	if err := s.Report(r.ctx, workflow.Report{Outcome: workflow.StateSucceeded}); err == nil {
		t.Error("a report of an action was taken")
	}
}

// TestHumanAcceptsForARule: what a rule installs waits for the human that it leaves the
// decision to.
func TestHumanAcceptsForARule(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	r.rule("wait", hardware.RuleSpec{Match: hardware.RuleMatch{Subnet: "lan"}, Provision: &hardware.RuleProvision{Template: "install", Params: map[string]any{"image": "debian"}}})
	u := r.unknown(1)
	u.enrol()
	h := u.record()
	if h.Status.State != hardware.StatePending || h.Status.Workflow != "" {
		t.Fatalf("%+v", h.Status)
	}
	r.must(r.e.Accept(r.ctx, h.Meta.UID, ""))
	if h = u.record(); h.Status.State != hardware.StateProvisioning || h.Status.Workflow == "" || h.Status.Rule != "" {
		t.Errorf("%+v", h.Status)
	}
	first := h.Status.Workflow
	r.must(r.e.Accept(r.ctx, h.Meta.UID, "again"))
	if h = u.record(); h.Status.Workflow != first {
		t.Error("accepted twice, provisioned twice")
	}
}

// TestWorkerOfNobody: a worker whose record was deleted, or that reports nothing, is sent
// away by itself.
func TestWorkerOfNobody(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	silent, deleted := r.unknown(1), r.unknown(2)
	silent.netboot()
	quiet := silent.connect()
	deleted.enrol().Detach()
	orphan := deleted.connect()
	told(t, quiet)
	told(t, orphan)
	r.must(r.db.DeleteHardware(r.ctx, deleted.record().Meta.Name, 0))
	r.pass(10 * time.Minute)
	for name, s := range map[string]*workflow.Session{"silent": quiet, "orphan": orphan} {
		var f *workflow.Finish
		for end := time.Now().Add(30 * time.Second); f == nil && time.Now().Before(end); r.pass(10 * time.Second) {
			select {
			case <-s.Wake():
			case <-time.After(time.Second):
			}
			f, _ = told(t, s)
		}
		if f == nil || f.What != workflow.FinishReboot {
			t.Errorf("%s: told %+v", name, f)
		}
	}
}

// TestConflictIsAcceptedOnce: the next report of the machine that a human vouched for
// says the same, and is not a new question.
func TestConflictIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	r := newSite(t)
	a, b := r.unknown(1), r.unknown(2)
	s := a.enrol()
	s.Detach()
	s = a.connect()
	b.facts.UUID = a.facts.UUID
	b.enrol()
	uid := a.record().Meta.UID
	r.must(r.e.Accept(r.ctx, uid, ""))
	r.pass(time.Minute)
	f := a.facts
	r.must(s.Facts(r.ctx, &f))
	if h := a.record(); h.Status.Disputed() || len(h.Status.Conflicts) != 1 {
		t.Errorf("%+v", h.Status.Conflicts)
	}
	a.connect()
	if err := s.Facts(r.ctx, &f); err == nil {
		t.Error("a session that was replaced wrote facts")
	}
	// the script again, after the acceptance: who was let in to report stays that
	_, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: a.record().Meta.Name, Template: "install", Params: map[string]any{"image": "x"}})
	r.must(err)
	_, err = r.e.Script(r.ctx, uid, a.addr)
	r.must(err)
	if _, err := a.dial(); err != nil { // dial checks the scope
		t.Error(err)
	}
}
