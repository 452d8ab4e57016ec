package workflow_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// powerOn switches the machine on two minutes later.
func (r *rig) powerOn(xid uint32) hardware.Boot {
	r.t.Helper()
	r.pass(2 * time.Minute)
	b, _ := r.boot(xid)
	return b
}

// mention are the details of the events of a Reason.
func (r *rig) mention(reason hardware.Reason) []string {
	r.t.Helper()
	events, err := r.db.Events(r.ctx, workflow.EventQuery{Reason: reason})
	r.must(err)
	var out []string
	for _, e := range events {
		out = append(out, e.Detail)
	}
	return out
}

// A machine whose worker never gets anywhere is stopped at the sixth boot, is not
// switched any more, and goes on when a human says so.
func TestBootLoopIsStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("debian")
	for i := range uint32(hardware.NetbootLimit) {
		b := r.powerOn(10 + i)
		if b.Next.Target != hardware.TargetWorker {
			t.Fatalf("boot %d: %+v", i+1, b.Next)
		}
		if again, _ := r.boot(10 + i); again.ID != b.ID {
			t.Fatal("a retransmission is another boot")
		}
		r.must(r.e.Reached(r.ctx, r.hw.Meta.UID, b.ID, hardware.PhaseProgram))
	}
	b := r.powerOn(20)
	if b.Next.Target != hardware.TargetNone || b.Next.Reason != hardware.ReasonBootLoop {
		t.Fatalf("the sixth boot: %+v", b.Next)
	}
	s := r.status()
	if !s.Hold || s.HoldReason != hardware.ReasonBootLoop || s.HoldSince.IsZero() {
		t.Fatalf("status %+v", s)
	}
	if told := r.mention(hardware.ReasonBootLoop); len(told) != 1 || !strings.Contains(told[0], `none got past "boot program"`) {
		t.Errorf("told %q", told)
	}
	if b := r.powerOn(22); b.Next.Target != hardware.TargetNone || r.status().Netboots != s.Netboots {
		t.Errorf("held, it boots %+v, and what it is held for is %+v", b.Next, r.status().Netboots)
	}
	r.must(r.e.SetHold(r.ctx, r.hw.Meta.UID, false))
	if b := r.powerOn(21); b.Next.Target != hardware.TargetWorker || r.status().Hold || r.status().Netboots.Count != 0 {
		t.Errorf("after unhold: %+v, %+v", b.Next, r.status().Netboots)
	}
}

// An action that succeeds in each boot is progress, however often the machine restarts.
func TestProgressIsNoBootLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("debian")
	for i := range uint32(2) {
		for j := range uint32(hardware.NetbootLimit - 1) {
			r.powerOn(10*i + j + 1)
		}
		r.pass(2 * time.Minute)
		_, tok := r.boot(100 + i)
		s := r.attach(tok, newKey(), nil)
		r.report(s, assigned(t, s).Assignment, workflow.StateSucceeded)
		if n := r.status().Netboots; n.Count != 0 {
			t.Fatalf("after an action: %+v", n)
		}
	}
	if b := r.powerOn(200); b.Next.Target != hardware.TargetWorker || r.status().Netboots.Count != 0 {
		t.Errorf("the boot that brought something is counted: %+v", r.status().Netboots)
	}
}

// A machine whose disk does not start is told of and not held; that its system asks for
// an address ends it.
func TestDiskLoopIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("debian")
	r.run(1, fine)
	for i := range uint32(hardware.NetbootLimit + 1) {
		if b := r.powerOn(10 + i); b.Next.Target != hardware.TargetDisk {
			t.Fatalf("boots %+v", b.Next)
		}
	}
	r.await(func(s hardware.Status) bool {
		return slices.ContainsFunc(s.Issues, func(i hardware.Issue) bool {
			return i.Kind == hardware.IssueBootLoop && i.Severity == hardware.SeverityWarning
		})
	})
	if r.status().Hold {
		t.Fatal("it is on hold")
	}
	h, err := r.db.HardwareByName(r.ctx, "m1")
	r.must(err)
	r.must(r.e.OSSeen(r.ctx, h, "b"))
	r.pass(time.Minute)
	r.await(func(s hardware.Status) bool { return len(s.Issues) == 0 })
}

// Whoever forges first packets with the MAC of a machine that is being installed neither
// stops it nor makes us write without end.
func TestForgedBootsAreNoLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("debian")
	_, tok := r.boot(1)
	s := r.attach(tok, newKey(), nil)
	before, err := r.db.Cursor(r.ctx)
	r.must(err)
	forge := func(n int, every time.Duration) {
		for i := range n {
			r.pass(every)
			b, err := r.e.FirstPacket(r.ctx, workflow.FirstPacket{
				Hardware: r.hw.Meta.UID, MAC: r.hw.Spec.Interfaces[0].MAC, XID: uint32(100 + i),
				Firmware: []hardware.Firmware{hardware.FirmwareUEFI, hardware.FirmwareHTTP}[i%2],
			})
			r.must(err)
			r.must(r.e.Acked(r.ctx, r.hw.Meta.UID, b.ID, client, client.Next(), true))
		}
	}
	forge(1000, 10*time.Millisecond)
	if now, err := r.db.Cursor(r.ctx); err != nil || now-before > 100 {
		t.Errorf("%d changes were written for a thousand packets, %v", now-before, err)
	}
	forge(20, time.Minute)
	if r.status().Hold {
		t.Fatal("a machine whose worker is connected is on hold")
	}
	r.report(s, assigned(t, s).Assignment, workflow.StateSucceeded)
	s.Detach()
	forge(500, 10*time.Millisecond)
	if st := r.status(); st.Hold || st.Netboots.Count > 1 {
		t.Errorf("after five seconds: %+v", st.Netboots)
	}
}

// Firmware that goes from one entry of its boot order to the next has booted once.
func TestBootOrderIsOneBoot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("debian")
	r.await(func(s hardware.Status) bool { return s.Power.Asked == "cycle" }) // which ends a boot
	for range hardware.NetbootLimit - 1 {
		first := r.powerOn(7)
		r.pass(time.Second)
		if again, tok := r.boot(8); again.ID != first.ID || tok == "" {
			t.Fatalf("a second later it has the boot %s, had %s", again.ID, first.ID)
		}
		r.pass(10 * time.Second)
		if next, tok := r.boot(9); next.ID == first.ID || tok == "" {
			t.Fatal("ten seconds later it has the same boot")
		}
	}
	if n := r.status().Netboots; n.Count != hardware.NetbootLimit-1 || r.status().Hold {
		t.Errorf("%+v", n)
	}
}

// A machine without a record that never reports itself is given nothing for an hour.
func TestStrangerLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mac := hardware.MAC{0x52, 0x54, 0, 9, 9, 9}
	uid := hardware.StrangerUID(mac)
	boot := func(xid uint32) hardware.Next {
		r.pass(2 * time.Minute)
		b, err := r.e.FirstPacket(r.ctx, workflow.FirstPacket{Hardware: uid, MAC: mac, XID: xid, Firmware: hardware.FirmwareBIOS, Subnet: "lan", Discovery: true})
		r.must(err)
		r.must(r.e.Acked(r.ctx, uid, b.ID, client, client.Next(), false))
		return b.Next
	}
	for i := range uint32(hardware.NetbootLimit) {
		if n := boot(i + 1); n.Target != hardware.TargetWorker {
			t.Fatalf("boot %d: %+v", i+1, n)
		}
	}
	for i := range uint32(3) {
		if n := boot(10 + i); n.Target != hardware.TargetNone || n.Reason != hardware.ReasonBootLoop {
			t.Fatalf("it goes on: %+v", n)
		}
	}
	r.pass(time.Hour)
	if n := boot(20); n.Target != hardware.TargetWorker {
		t.Errorf("after an hour: %+v", n)
	}
}

// An available machine with an empty disk asks the network for ever: that is normal.
func TestEmptyDiskIsNoLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range uint32(2 * hardware.NetbootLimit) {
		r.powerOn(10 + i)
	}
	if s := r.status(); s.Hold || s.Netboots.Count != 0 {
		t.Errorf("status %+v", s)
	}
}

// Whatever happens, a machine is held exactly when its last five boots to the worker
// came to nothing, and a held one is given nothing and not switched.
func TestBootLoopRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		r := newRig(t)
		rnd := rand.New(rand.NewPCG(seed, 4))
		// asked waits until its power was asked for, which ends the boot that it was in
		asked := func() {
			at := r.clock()
			r.await(func(s hardware.Status) bool { return !s.Power.AskedAt.Before(at) })
		}
		r.start("debian")
		asked()
		vain, open := 0, false // boots in vain; the newest boot counts when the next begins
		var tok string
		for step := range uint32(60) {
			switch rnd.IntN(12) {
			case 0:
				held := r.status().Hold
				r.pass(time.Second)
				r.must(r.e.SetHold(r.ctx, r.hw.Meta.UID, false))
				if held {
					asked()
					vain = 0
				}
			case 1:
				if tok == "" {
					continue
				}
				s := r.attach(tok, newKey(), nil)
				tok = ""
				if cmds := s.Take(); len(cmds) > 0 && cmds[0].Assign != nil && cmds[0].Assign.Action < 2 {
					r.report(s, cmds[0].Assign.Assignment, workflow.StateSucceeded)
					vain, open = 0, false
				}
				s.Detach()
			default:
				if open {
					vain++
				}
				r.pass(time.Duration(rnd.IntN(40)+2) * time.Minute / 4)
				var b hardware.Boot
				b, tok = r.boot(1000*uint32(seed) + step + 1)
				open = b.Next.Target == hardware.TargetWorker
				if held := r.status().Hold; held != (vain >= hardware.NetbootLimit) || open == held || (tok == "") != held {
					t.Fatalf("seed %d, step %d: %d boots in vain, held is %v, boots %+v", seed, step, vain, held, b.Next)
				}
			}
		}
	}
}
