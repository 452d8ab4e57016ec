package workflow_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// controller is a power controller that keeps what it was asked.
type controller struct {
	mu    sync.Mutex
	asked []string
	err   error
	done  chan struct{} // told of each call, where not nil
	// do answers instead, where not nil; it may block.
	do func(ctx context.Context, action string) (hardware.PowerState, error)
}

func (c *controller) Do(ctx context.Context, h *hardware.Hardware, action, nextBoot string) (workflow.PowerOutcome, error) {
	c.mu.Lock()
	if do := c.do; do != nil {
		c.asked = append(c.asked, strings.TrimSpace(h.Meta.Name+" "+action+" "+nextBoot))
		c.mu.Unlock()
		state, err := do(ctx, action)
		return workflow.PowerOutcome{Driver: "test", State: state}, err
	}
	defer c.mu.Unlock()
	c.asked = append(c.asked, strings.TrimSpace(h.Meta.Name+" "+action+" "+nextBoot))
	if c.done != nil {
		c.done <- struct{}{}
	}
	return workflow.PowerOutcome{Driver: "test", State: hardware.PowerOn}, c.err
}

func (r *rig) status() hardware.Status {
	r.t.Helper()
	h, err := r.db.HardwareByName(r.ctx, "m1")
	r.must(err)
	return h.Status
}

// run boots the machine and lets its worker end every action as the test says.
func (r *rig) run(xid uint32, report func(*workflow.Assign) workflow.Report) {
	r.t.Helper()
	r.pass(3 * time.Second)
	_, tok := r.boot(xid)
	s := r.attach(tok, newKey(), nil)
	r.must(s.Facts(r.ctx, &hardware.Facts{CPUs: 2, Disks: []hardware.DiskFact{{Path: "/dev/sda", Bytes: 1 << 30}, {Path: "/dev/sr0", Removable: true, Bytes: 1 << 20}}}))
	r.work(s, report)
}

// work ends every action of an attached worker as the test says.
func (r *rig) work(s *workflow.Session, report func(*workflow.Assign) workflow.Report) {
	r.t.Helper()
	for {
		cmds := s.Take()
		i := slices.IndexFunc(cmds, func(c workflow.Command) bool { return c.Assign != nil })
		if i < 0 {
			s.Detach()
			return
		}
		rep := report(cmds[i].Assign)
		rep.Assignment = cmds[i].Assign.Assignment
		r.must(s.Report(r.ctx, rep))
	}
}

func fine(*workflow.Assign) workflow.Report {
	return workflow.Report{Outcome: workflow.StateSucceeded}
}

// proven is a worker that wipes and reads back.
func proven(a *workflow.Assign) workflow.Report {
	rep := fine(a)
	if a.Kind == workflow.KindDiskWipe {
		rep.Result.Wiped = []hardware.WipedDisk{{Path: "/dev/sda", Bytes: 1 << 30, Method: "overwrite", Verified: 1 << 26}}
	}
	return rep
}

func broken(*workflow.Assign) workflow.Report {
	return workflow.Report{Outcome: workflow.StateFailed, Message: "the disk is dead", Permanent: true}
}

func (r *rig) install(reinstall bool) {
	r.t.Helper()
	_, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "install", Reinstall: reinstall, Params: map[string]any{"image": "debian"}})
	r.must(err)
}

func (r *rig) next(want hardware.Target, why hardware.Reason) {
	r.t.Helper()
	n, err := r.e.Next(r.ctx, r.hw.Meta.UID)
	r.must(err)
	if n.Target != want || n.Reason != why {
		r.t.Errorf("boots %s (%s), want %s (%s)", n.Target, n.Reason, want, why)
	}
}

func TestReleaseNeedsAProof(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	uid := r.hw.Meta.UID
	r.install(false)
	r.run(1, fine)
	if s := r.status(); s.State != hardware.StateProvisioned {
		t.Fatalf("installed: %+v", s)
	}
	// a wipe that proves nothing leads nowhere
	_, _, err := r.e.Release(r.ctx, uid, workflow.ReleaseInput{Why: "test"})
	r.must(err)
	if s := r.status(); s.State != hardware.StateReleasing || s.Deadline.IsZero() {
		t.Fatalf("asked to be released: %+v", s)
	}
	again, _, err := r.e.Release(r.ctx, uid, workflow.ReleaseInput{})
	r.must(err)
	if again != r.status().Workflow {
		t.Errorf("released twice: another workflow %q", again)
	}
	r.run(2, fine)
	if s := r.status(); s.State != hardware.StateFailed || s.Wiped != nil {
		t.Fatalf("after a wipe without a proof: %+v", s)
	}
	r.next(hardware.TargetDisk, hardware.ReasonLastFailed)
	_, _, err = r.e.Release(r.ctx, uid, workflow.ReleaseInput{})
	r.must(err)
	r.run(3, proven)
	s := r.status()
	if s.State != hardware.StateAvailable || s.Wiped == nil || s.Installed || len(s.Dirty) > 0 || !s.Deadline.IsZero() {
		t.Errorf("after a proven wipe: %+v", s)
	}
	// nothing was written since, so nothing is wiped again
	w, _, err := r.e.Release(r.ctx, uid, workflow.ReleaseInput{})
	if err != nil || w != "" || r.status().State != hardware.StateAvailable {
		t.Errorf("released while available: %q, %v, %s", w, err, r.status().State)
	}
}

func TestReleaseOfADiskThatWasNotWiped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.install(false)
	r.run(1, fine)
	_, _, err := r.e.Release(r.ctx, r.hw.Meta.UID, workflow.ReleaseInput{})
	r.must(err)
	r.run(2, func(a *workflow.Assign) workflow.Report {
		rep := proven(a)
		for i := range rep.Result.Wiped {
			rep.Result.Wiped[i].Path = "/dev/sdb" // not the one in the facts
		}
		return rep
	})
	if s := r.status(); s.State != hardware.StateFailed {
		t.Errorf("one fixed disk was not wiped, and the machine is %s", s.State)
	}
}

// A machine without a fixed disk has nothing to prove.
func TestReleaseWithoutADisk(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	diskless := &hardware.Facts{CPUs: 2, Disks: []hardware.DiskFact{{Path: "/dev/sdb", Removable: true, Bytes: 1 << 20}}}
	boot := func(xid uint32, report func(*workflow.Assign) workflow.Report) {
		r.pass(3 * time.Second)
		_, tok := r.boot(xid)
		s := r.attach(tok, newKey(), nil)
		r.must(s.Facts(r.ctx, diskless))
		r.work(s, report)
		s.Detach()
	}
	r.install(false)
	boot(1, broken)
	_, _, err := r.e.Release(r.ctx, r.hw.Meta.UID, workflow.ReleaseInput{})
	r.must(err)
	boot(2, fine)
	if s := r.status(); s.State != hardware.StateAvailable || s.Wiped == nil || len(s.Wiped.Disks) > 0 {
		t.Errorf("%+v", s)
	}
}

func TestReleaseCancelsAnInstallAndWipes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.install(false)
	_, tok := r.boot(1)
	key := newKey()
	s := r.attach(tok, key, nil)
	r.must(s.Facts(r.ctx, &hardware.Facts{Disks: []hardware.DiskFact{{Path: "/dev/sda", Bytes: 1 << 30}}}))
	a := assigned(t, s)
	name, _, err := r.e.Release(r.ctx, r.hw.Meta.UID, workflow.ReleaseInput{Why: "not needed"})
	r.must(err)
	if st := r.status(); st.State != hardware.StateReleasing || name != "" {
		t.Fatalf("%s, workflow %q", st.State, name)
	}
	// the worker stops, and is given the wipe in the same boot
	r.must(s.Report(r.ctx, workflow.Report{Assignment: a.Assignment, Outcome: workflow.StateCancelled}))
	wipe := assigned(t, s)
	if wipe.Kind != workflow.KindDiskWipe || wipe.Workflow == a.Workflow {
		t.Fatalf("after the cancel the worker got %+v", wipe)
	}
	rep := proven(wipe)
	rep.Assignment = wipe.Assignment
	r.must(s.Report(r.ctx, rep))
	r.report(s, assigned(t, s).Assignment, workflow.StateSucceeded)
	if st := r.status(); st.State != hardware.StateAvailable {
		t.Errorf("after the wipe: %+v", st)
	}
}

func TestForcedReleaseStaysOnHold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.install(false)
	r.run(1, fine)
	_, skipped, err := r.e.Release(r.ctx, r.hw.Meta.UID, workflow.ReleaseInput{Force: true})
	r.must(err)
	s := r.status()
	if s.State != hardware.StateFailed || !s.Hold || s.HoldReason != hardware.ReasonReleasedUnwiped || !slices.Contains(skipped, "its disks were not wiped") {
		t.Errorf("%+v, skipped %q", s, skipped)
	}
	r.next(hardware.TargetNone, hardware.ReasonOnHold)
}

func TestReleaseGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.install(false)
	_, tok := r.boot(1)
	s := r.attach(tok, newKey(), nil)
	a := assigned(t, s)
	_, _, err := r.e.Release(r.ctx, r.hw.Meta.UID, workflow.ReleaseInput{})
	r.must(err)
	r.must(r.kv.Close()) // killed while the worker was being stopped
	r.open()
	_, tok = r.boot(2)
	s = r.attach(tok, newKey(), nil)
	if w := assigned(t, s); w.Kind != workflow.KindDiskWipe || w.Workflow == a.Workflow {
		t.Errorf("after the restart the worker got %+v", w)
	}
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	uid := r.hw.Meta.UID
	for i := range hardware.Quarantine {
		r.install(true)
		r.run(uint32(i+1), broken)
		if s := r.status(); s.State != hardware.StateFailed || s.Failures != i+1 {
			t.Fatalf("round %d: %+v", i, s)
		}
	}
	_, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "install", Params: map[string]any{"image": "debian"}})
	var bad *hardware.Invalid
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), "rackstrap hardware accept m1") {
		t.Fatalf("a machine in quarantine was installed: %v", err)
	}
	r.must(r.e.Accept(r.ctx, uid, "new disk"))
	r.install(true)
	r.run(9, fine)
	if s := r.status(); s.State != hardware.StateProvisioned || s.Failures != 0 {
		t.Errorf("accepted and installed: %+v", s)
	}
}

func TestPhoneHomeIsAGate(t *testing.T) {
	t.Parallel()
	from := netip.MustParseAddr("10.0.0.5")
	for _, calls := range []bool{true, false} {
		r := newRig(t)
		uid := r.hw.Meta.UID
		w, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "install", WaitForPhoneHome: true, Params: map[string]any{"image": "debian"}})
		r.must(err)
		r.must(r.e.PhoneHome(r.ctx, uid, w.Meta.Name, from))
		if s := r.status(); !s.OSUp.IsZero() {
			t.Error("a system that is not installed yet is up")
		}
		r.run(1, fine)
		s := r.status()
		if s.State != hardware.StateProvisioning || !s.AwaitOS || s.Deadline.IsZero() {
			t.Fatalf("everything is written: %+v", s)
		}
		r.next(hardware.TargetDisk, hardware.ReasonNothingToDo)
		r.must(r.e.PhoneHome(r.ctx, uid, "another", from))
		if calls {
			r.must(r.e.PhoneHome(r.ctx, uid, w.Meta.Name, from))
			r.must(r.e.PhoneHome(r.ctx, uid, w.Meta.Name, from))
			if s := r.status(); s.State != hardware.StateProvisioned || s.OSUp.IsZero() || s.AwaitOS {
				t.Errorf("phoned home: %+v", s)
			}
			continue
		}
		r.pass(workflow.PhoneHomeWithin + time.Second)
		r.await(func(s hardware.Status) bool { return s.State == hardware.StateFailed })
		if s := r.status(); s.AwaitOS || s.Failures != 1 {
			t.Errorf("did not phone home: %+v", s)
		}
	}
}

// TestAReleasedMachineIsNotAwaited: its system may call home before the wipe begins.
func TestAReleasedMachineIsNotAwaited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "install", WaitForPhoneHome: true, Params: map[string]any{"image": "debian"}})
	r.must(err)
	r.run(1, fine)
	r.must(r.e.SetMaintenance(r.ctx, r.hw.Meta.UID, true, "new disk")) // the wipe waits
	r.release("", workflow.ReleaseInput{})
	r.must(r.e.PhoneHome(r.ctx, r.hw.Meta.UID, w.Meta.Name, client))
	if s := r.status(); s.State != hardware.StateReleasing || s.AwaitOS {
		t.Errorf("%+v", s)
	}
}

// await waits for the engine's own loop to bring the machine there.
func (r *rig) await(ok func(hardware.Status) bool) {
	r.t.Helper()
	for range r.db.WatchEvents(r.ctx, 0) {
		if ok(r.status()) {
			return
		}
	}
}

func TestAWorkflowThatNeverStartsEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.install(false)
	r.pass(workflow.StartWithin + time.Second)
	r.await(func(s hardware.Status) bool { return s.State == hardware.StateAvailable })
	_, ws := r.state()
	if s := r.status(); ws != workflow.StateTimedOut || s.Failures != 1 || !s.Deadline.IsZero() {
		t.Errorf("workflow %s, machine %+v", ws, s)
	}
}

func TestRetireAndDrop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	uid := r.hw.Meta.UID
	r.install(false)
	_, tok := r.boot(1)
	s := r.attach(tok, newKey(), nil)
	if _, err := r.e.Retire(r.ctx, uid, false, ""); !errors.Is(err, workflow.ErrInUse) {
		t.Fatalf("a machine in use was retired: %v", err)
	}
	skipped, err := r.e.Drop(r.ctx, uid, "scrap")
	r.must(err)
	if len(skipped) == 0 || !strings.Contains(skipped[0], "runs") {
		t.Errorf("skipped %q", skipped)
	}
	closed := slices.ContainsFunc(s.Take(), func(c workflow.Command) bool { return c.Close != "" })
	if _, ws := r.state(); ws != workflow.StateCancelled || !closed {
		t.Errorf("workflow %s, worker sent away %v", ws, closed)
	}
	r.next(hardware.TargetNone, hardware.ReasonRetired)
	r.must(r.db.DeleteHardware(r.ctx, "m1", 0))
}

// TestPowerEndsABoot: what a machine did before its power was cut is another boot
// than what it does after; a boot that began while the controller was at work stays.
func TestPowerEndsABoot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b, _ := r.boot(7)
	r.pass(time.Second)
	power := func(action string) {
		_, err := r.e.Power(r.ctx, r.hw.Meta.UID, action, "")
		r.must(err)
	}
	closed := func() bool {
		mc, err := r.db.Machine(r.ctx, r.hw.Meta.UID)
		r.must(err)
		return mc.Boot.Closed
	}
	power("status")
	power("on") // it is on: nothing happens
	if closed() {
		t.Errorf("boot %s ended without a reason", b.ID)
	}
	power("cycle")
	if !closed() {
		t.Errorf("boot %s outlives the power", b.ID)
	}
	r.boot(7)
	power("cycle") // at the same moment: it may be this one that the cycle brought
	if closed() {
		t.Error("a new boot ended with the call that brought it")
	}
}

// TestPowerIsAskedOnceAtATime: a controller that is slow is not asked for a second
// cycle, which would cut the boot short that the first one brings.
func TestPowerIsAskedOnceAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	uid := r.hw.Meta.UID
	r.power.mu.Lock() // it is at work until this is given back
	r.install(false)
	r.must(r.e.SetHold(r.ctx, uid, true))
	r.must(r.e.SetHold(r.ctx, uid, false)) // would switch it again
	r.power.mu.Unlock()
	r.await(func(s hardware.Status) bool { return s.Power.Tries == 1 })
	_, err := r.e.Power(r.ctx, uid, "status", "")
	r.must(err)
	r.power.mu.Lock()
	defer r.power.mu.Unlock()
	if want := []string{"m1 cycle network", "m1 status"}; !slices.Equal(r.power.asked, want) {
		t.Errorf("asked for %q", r.power.asked)
	}
}

func TestPowerIsAskedForAWorkflow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.power.mu.Lock()
	r.power.done = make(chan struct{}, 8)
	r.power.mu.Unlock()
	r.install(false)
	<-r.power.done
	r.await(func(s hardware.Status) bool { return s.Power.Asked == "cycle" })
	if s := r.status(); s.Power.State != hardware.PowerOn || s.Power.Tries != 1 {
		t.Errorf("%+v", s.Power)
	}
	out, err := r.e.Power(r.ctx, r.hw.Meta.UID, "off", "")
	if err != nil || out.Driver != "test" {
		t.Errorf("%+v, %v", out, err)
	}
	<-r.power.done
	r.power.mu.Lock()
	r.power.err = errors.New("the controller does not answer")
	r.power.mu.Unlock()
	if _, err := r.e.Power(r.ctx, r.hw.Meta.UID, "on", "network"); err == nil {
		t.Error("a failed call is a success")
	}
	if s := r.status(); s.Power.Error == "" {
		t.Errorf("%+v", s.Power)
	}
	r.power.mu.Lock()
	defer r.power.mu.Unlock()
	if want := []string{"m1 cycle network", "m1 off", "m1 on network"}; !slices.Equal(r.power.asked, want) {
		t.Errorf("asked %q, want %q", r.power.asked, want)
	}
}

func TestMaintenanceAndAccept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	uid := r.hw.Meta.UID
	r.must(r.e.SetMaintenance(r.ctx, uid, true, "new fan"))
	if s := r.status(); !s.Maintenance || s.MaintenanceNote != "new fan" {
		t.Errorf("%+v", s)
	}
	r.must(r.e.SetMaintenance(r.ctx, uid, false, ""))
	r.must(r.e.Accept(r.ctx, uid, "")) // available already
	if s := r.status(); s.Maintenance || s.MaintenanceNote != "" || s.State != hardware.StateAvailable {
		t.Errorf("%+v", s)
	}
}

// A machine that does not come is an issue, its power is cycled by itself a few
// times, and the issue goes when the machine comes.
func TestIssuesComeAndGo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.must(r.db.CreateSubnet(r.ctx, &hardware.Subnet{Meta: hardware.Meta{Name: "lan"}, Spec: hardware.SubnetSpec{Prefix: netip.MustParsePrefix("10.0.0.0/24")}}))
	h, err := r.db.HardwareByName(r.ctx, "m1")
	r.must(err)
	h.Spec.Power = &hardware.PowerControl{Driver: hardware.PowerWebhook, URL: "http://10.0.0.9/", Secret: "0123456789abcdef"}
	r.must(r.db.UpdateHardware(r.ctx, h))
	has := func(s hardware.Status, k hardware.IssueKind) bool {
		return slices.ContainsFunc(s.Issues, func(i hardware.Issue) bool { return i.Kind == k && i.Fix != "" && i.Detail != "" })
	}
	r.install(false)
	for n := range 3 {
		r.await(func(s hardware.Status) bool { return s.Power.Tries == n+1 })
		r.pass(11 * time.Minute)
		r.await(func(s hardware.Status) bool { return has(s, hardware.IssueNeverSeen) })
	}
	_, tok := r.boot(1)
	r.attach(tok, newKey(), nil)
	r.pass(11 * time.Second)
	r.await(func(s hardware.Status) bool { return len(s.Issues) == 0 })
	ev, err := r.db.Events(r.ctx, workflow.EventQuery{Hardware: r.hw.Meta.UID})
	r.must(err)
	opened, closed := 0, 0
	for _, e := range ev {
		switch e.Reason {
		case hardware.ReasonIssueOpened:
			opened++
		case hardware.ReasonIssueClosed:
			closed++
		}
	}
	if opened == 0 || closed == 0 {
		t.Errorf("%d issues opened, %d closed in the timeline", opened, closed)
	}
	r.power.mu.Lock()
	defer r.power.mu.Unlock()
	if len(r.power.asked) != 3 {
		t.Errorf("the power was asked %q, want three times", r.power.asked)
	}
}
