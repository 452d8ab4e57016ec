package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// kept is a machine whose claim has ended, kept with what is on its disks.
func kept(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.switched(new(bmc).do)
	r.provisioned("c1")
	r.release("c1", workflow.ReleaseInput{Reserve: &hardware.Reserve{For: "capi/web", KeepDisks: true}})
	r.stops("c1", hardware.StoppedByPowerOff)
	return r
}

// TestKeptOnAnotherDisk: an install leaves no system of before on another disk of a kept
// machine, where firmware may find it first.
func TestKeptOnAnotherDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	wipe := workflow.ActionSpec{Name: "wipe", Kind: workflow.KindDiskWipe, With: map[string]any{"disk": "${disk}"}}
	write := workflow.ActionSpec{Name: "write", Kind: workflow.KindImageWrite, With: map[string]any{"image": "debian", "disk": "${disk}"}}
	all := workflow.ActionSpec{Name: "all", Kind: workflow.KindDiskWipe, With: map[string]any{"disk": "all"}}
	old := workflow.ActionSpec{Name: "old", Kind: workflow.KindDiskWipe, With: map[string]any{"disk": "serial=A"}}
	for name, actions := range map[string][]workflow.ActionSpec{"to": {wipe, write}, "to-wipes-all": {all, write}, "to-wipes-old": {old, write}} {
		r.must(r.db.CreateTemplate(r.ctx, &workflow.Template{Meta: hardware.Meta{Name: name}, Spec: workflow.TemplateSpec{
			Parameters: []workflow.Parameter{{Name: "disk", Default: ""}},
			Actions:    append(actions, workflow.ActionSpec{Name: "restart", Kind: workflow.KindReboot}),
		}}))
	}
	r.switched(new(bmc).do)
	facts := &hardware.Facts{CPUs: 2, Disks: []hardware.DiskFact{
		{Path: "/dev/sda", Serial: "A", Bytes: 1 << 30}, {Path: "/dev/sdb", Serial: "B", Bytes: 2 << 30}, {Path: "/dev/sr0", Removable: true, Bytes: 1 << 20},
	}}
	report := func(s *workflow.Session, f *hardware.Facts, disk string) {
		r.must(s.Facts(r.ctx, f))
		r.work(s, func(a *workflow.Assign) workflow.Report {
			rep := fine(a)
			rep.Result.Disk = disk
			return rep
		})
	}
	ask := func(template, disk string, dry bool) error {
		e := r.e
		if dry {
			var err error
			e, err = r.e.Dry(r.ctx, r.db.Dry(), func(_ context.Context, _ *hardware.Hardware, _ *workflow.Workflow, a *workflow.Action) (json.RawMessage, error) {
				return a.With, nil
			})
			r.must(err)
		}
		_, err := e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: template, Claim: "c2", Params: map[string]any{"disk": disk}})
		return err
	}
	r.must(r.claims("c1"))
	_, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "to", Claim: "c1", Params: map[string]any{"disk": "smallest"}})
	r.must(err)
	_, tok := r.boot(1)
	report(r.attach(tok, newKey(), nil), facts, "/dev/sda")
	if s := r.status(); s.State != hardware.StateProvisioned || len(s.Install.Disks) != 1 || s.Install.Disks[0] != (hardware.DiskRef{Path: "/dev/sda", Serial: "A"}) {
		t.Fatalf("installed: %+v", s)
	}
	r.release("c1", workflow.ReleaseInput{Reserve: &hardware.Reserve{For: "capi/web", KeepDisks: true}})
	r.stops("c1", hardware.StoppedByPowerOff)
	r.must(r.claims("c2"))
	for _, disk := range []string{"/dev/sdb", "largest", "serial=B", "/dev/sdc", ""} {
		err := ask("to", disk, false)
		var bad *hardware.Invalid
		if !errors.As(err, &bad) {
			t.Errorf("disk %q: %v", disk, err)
			continue
		}
		for _, want := range []string{"spec.params.disk", "/dev/sda (serial A)", "disk: serial=A", "rackstrap release m1"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("disk %q: %q is not in: %v", disk, want, err)
			}
		}
		if disk == "largest" && !strings.Contains(err.Error(), "/dev/sdb (serial B)") {
			t.Errorf("disk %q: where it wants to go is not in: %v", disk, err)
		}
	}
	r.next(hardware.TargetHalt, hardware.ReasonReserved) // and nothing of the old one starts
	r.must(ask("to-wipes-all", "/dev/sdb", true))
	r.must(ask("to-wipes-old", "largest", true))
	r.must(ask("to", "serial=A", true))
	r.must(ask("to", "/dev/sda", true))
	r.must(ask("to", "smallest", false))
	_, tok = r.boot(2)
	report(r.attach(tok, newKey(), nil), facts, "/dev/sda")
	if s := r.status(); s.State != hardware.StateProvisioned || s.Reserved != nil {
		t.Errorf("installed again: %+v", s)
	}
}

func other(s *hardware.ClaimSpec) { s.Reuse = "" }

// TestKeptWithItsDisks: off, not wiped, nobody's, and nothing on it starts until the group
// installs over it, which needs no leave to reinstall.
func TestKeptWithItsDisks(t *testing.T) {
	t.Parallel()
	r := kept(t)
	s := r.status()
	if s.State != hardware.StateProvisioned || s.Claim != nil || s.Reserved == nil || len(s.Dirty) == 0 || s.Power.State != hardware.PowerOff {
		t.Fatalf("kept: %+v", s)
	}
	if want := r.clock().Add(time.Hour); s.Reserved.Until.After(want) || s.Reserved.For != "capi/web" {
		t.Errorf("kept: %+v", s.Reserved)
	}
	if asked := r.asked(); asked[len(asked)-1] != "m1 status" {
		t.Errorf("it was started again: %q", asked)
	}
	r.next(hardware.TargetHalt, hardware.ReasonReserved)
	var none *hardware.NoCandidate
	if err := r.claims("c2", other); !errors.As(err, &none) || none.Against[hardware.AgainstReserved] != 1 {
		t.Errorf("somebody else claims it: %v", err)
	}
	if _, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "install", Reinstall: true, Params: map[string]any{"image": "x"}}); err == nil || !strings.Contains(err.Error(), "kept for claims of capi/web") {
		t.Errorf("somebody installs it: %v", err)
	}
	r.must(r.claims("c2"))
	r.next(hardware.TargetHalt, hardware.ReasonReserved) // not its old system, before it is installed
	r.installs("c2")
	r.run(3, fine)
	if s := r.status(); s.State != hardware.StateProvisioned || s.Claim.ID != "c2" || s.Reserved != nil || s.Stopping != nil {
		t.Errorf("installed by the group: %+v", s)
	}
	r.next(hardware.TargetDisk, hardware.ReasonProvisioned)
	if w := r.told(hardware.ReasonReserved); len(w) != 1 || !strings.Contains(w[0], "for claims of capi/web until 2026-11-21 04:00 UTC, with what is on its disks") {
		t.Errorf("the timeline says %q", w)
	}
	// now that it is another's, a reinstall is a reinstall
	if _, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "install", Claim: "c2", Params: map[string]any{"image": "x"}}); err == nil {
		t.Error("a machine in use was installed over")
	}
}

// TestKeptIsGivenBackUnused: the group took it and installed nothing. What was kept is
// wiped then.
func TestKeptIsGivenBackUnused(t *testing.T) {
	t.Parallel()
	r := kept(t)
	r.must(r.claims("c2"))
	r.release("c2", workflow.ReleaseInput{})
	r.stops("c2", hardware.StoppedNeverRan)
	r.run(3, proven)
	if s := r.status(); s.State != hardware.StateAvailable || s.Reserved != nil {
		t.Errorf("%+v", s)
	}
	r.next(hardware.TargetDisk, hardware.ReasonNothingToDo)
}

// TestAnInstallOverIt: one that breaks off before it wrote leaves it kept, one that broke
// off later leaves it failed, and either way its old system does not start.
func TestAnInstallOverIt(t *testing.T) {
	t.Parallel()
	r := kept(t)
	r.must(r.claims("c2"))
	r.installs("c2")
	_, err := r.e.CancelWorkflow(r.ctx, r.status().Workflow, "not now")
	r.must(err)
	if s := r.status(); s.State != hardware.StateProvisioned || s.Reserved == nil {
		t.Fatalf("cancelled before it began: %+v", s)
	}
	r.next(hardware.TargetHalt, hardware.ReasonReserved)
	r.installs("c2")
	r.run(3, func(a *workflow.Assign) workflow.Report {
		if a.Kind == workflow.KindImageWrite {
			return broken(a)
		}
		return fine(a)
	})
	if s := r.status(); s.State != hardware.StateFailed || s.Reserved != nil {
		t.Errorf("broken off: %+v", s)
	}
}

// TestAnInstallOverItIsRefused: by the worker, before it wrote anything. What was kept is
// kept still, and may be installed over again; what was written once is gone.
func TestAnInstallOverItIsRefused(t *testing.T) {
	t.Parallel()
	refuses := func(a *workflow.Assign) workflow.Report {
		rep := broken(a)
		rep.Untouched = true
		return rep
	}
	r := kept(t)
	r.must(r.claims("c2"))
	was := r.status()
	r.installs("c2")
	r.run(3, refuses)
	s := r.status()
	if s.State != hardware.StateProvisioned || !reflect.DeepEqual(s.Reserved, was.Reserved) || !s.Installed || !reflect.DeepEqual(s.Install, was.Install) || s.Failures != 1 {
		t.Errorf("refused: %+v", s)
	}
	r.next(hardware.TargetHalt, hardware.ReasonReserved)
	r.installs("c2")
	r.run(4, func(a *workflow.Assign) workflow.Report {
		if a.Kind == workflow.KindImageWrite {
			return refuses(a)
		}
		return fine(a) // its disk was wiped before
	})
	if s := r.status(); s.State != hardware.StateFailed || s.Reserved != nil || s.Installed {
		t.Errorf("refused after its disk was wiped: %+v", s)
	}
	// a machine that is not kept is failed as ever: nobody halts it
	r = newRig(t)
	r.install(false)
	r.run(1, refuses)
	if s := r.status(); s.State != hardware.StateFailed {
		t.Errorf("not kept: %+v", s)
	}
}

// TestAReservationEnds: by its time, also across a restart of the daemon, and by a human.
func TestAReservationEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig){
		"time": func(r *rig) { r.pass(time.Hour) },
		"time, while the daemon is down": func(r *rig) {
			r.must(r.kv.Close())
			r.pass(2 * time.Hour)
			r.open()
		},
		"human": func(r *rig) { r.release("", workflow.ReleaseInput{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := kept(t)
			end(r)
			r.await(func(s hardware.Status) bool { return s.State == hardware.StateReleasing && s.Reserved == nil })
			r.run(3, proven)
			if s := r.status(); s.State != hardware.StateAvailable || s.Wiped == nil {
				t.Errorf("%+v", s)
			}
			if w := r.told(hardware.ReasonReservationEnded); len(w) != 1 {
				t.Errorf("the timeline says %q", w)
			}
			r.must(r.claims("c3", other))
		})
	}
}

// TestKeptClean: wiped as always, and then for the group alone, until the time is over.
func TestKeptClean(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provisioned("c1")
	r.release("c1", workflow.ReleaseInput{Reserve: &hardware.Reserve{For: "capi/web", Within: hardware.Duration(2 * time.Hour)}})
	if s := r.status(); s.State != hardware.StateReleasing || s.Reserved == nil {
		t.Fatalf("%+v", s)
	}
	if r.claims("c2") == nil {
		t.Fatal("it is claimed before it is wiped")
	}
	r.run(2, proven)
	r.stops("c1", hardware.StoppedByWorker)
	if r.claims("c2", other) == nil {
		t.Fatal("somebody else got it")
	}
	r.must(r.claims("c2"))
	if s := r.status(); s.Claim == nil || s.Reserved != nil {
		t.Errorf("claimed: %+v", s)
	}
	r.release("c2", workflow.ReleaseInput{Reserve: &hardware.Reserve{For: "capi/web"}})
	r.stops("c2", hardware.StoppedNeverRan)
	if s := r.status(); s.State != hardware.StateAvailable || s.Reserved == nil {
		t.Fatalf("given back unused: %+v", s)
	}
	r.pass(2 * time.Hour)
	r.await(func(s hardware.Status) bool { return s.Reserved == nil })
	r.must(r.claims("c3", other))
}

// TestKeptByHand: nobody can switch it, so the worker of its next boot is the proof; it
// is given nothing to do, and waits.
func TestKeptByHand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provisioned("c1")
	r.release("c1", workflow.ReleaseInput{Reserve: &hardware.Reserve{For: "capi/web", KeepDisks: true}})
	r.running("c1")
	if err := r.claims("c2"); err == nil {
		t.Fatal("it is claimed while its last system may run")
	}
	r.next(hardware.TargetWorker, hardware.ReasonReserved)
	r.pass(time.Minute)
	_, tok := r.boot(2)
	s := r.attach(tok, newKey(), nil)
	r.stops("c1", hardware.StoppedByWorker)
	if cmds := s.Take(); len(cmds) != 1 || cmds[0].Finish == nil || cmds[0].Finish.What != workflow.FinishWait {
		t.Errorf("its worker is told %+v, want to wait", cmds)
	}
	r.must(r.claims("c2"))
	r.installs("c2")
	s.Detach()
	r.run(3, fine)
	if s := r.status(); s.State != hardware.StateProvisioned || s.Claim == nil {
		t.Errorf("%+v", s)
	}
}

// TestAnIdleWorkerRestartsForItsWorkflow: a worker that was let in to wait is given no
// action; also one that lost its connection meanwhile.
func TestAnIdleWorkerRestartsForItsWorkflow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provisioned("c1")
	r.release("c1", workflow.ReleaseInput{Reserve: &hardware.Reserve{For: "capi/web", KeepDisks: true}})
	r.pass(time.Minute)
	_, tok := r.boot(2)
	key := newKey()
	s := r.attach(tok, key, nil)
	r.stops("c1", hardware.StoppedByWorker)
	s.Take()
	r.must(r.claims("c2"))
	r.installs("c2")
	for _, s := range []*workflow.Session{s, r.attach(tok, key, nil)} {
		cmds := s.Take()
		if len(cmds) == 0 || cmds[0].Finish == nil || cmds[0].Finish.What != workflow.FinishReboot {
			t.Errorf("the idle worker is told %+v, want to restart", cmds)
		}
	}
}

// TestKeptBeforeItsSystemCalled: an install that waits for its system has none to wait for
// any more, and the group gets the machine.
func TestKeptBeforeItsSystemCalled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.switched(new(bmc).do)
	r.must(r.claims("c1"))
	_, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "install", Claim: "c1", WaitForPhoneHome: true, Params: map[string]any{"image": "debian"}})
	r.must(err)
	r.run(1, fine)
	r.release("c1", workflow.ReleaseInput{Reserve: &hardware.Reserve{For: "capi/web", KeepDisks: true}})
	r.stops("c1", hardware.StoppedByPowerOff)
	if s := r.status(); s.State != hardware.StateProvisioned || s.AwaitOS || !s.Deadline.IsZero() {
		t.Errorf("%+v", s)
	}
	r.must(r.claims("c2"))
}

// TestKeptWasStarted: what is kept may have run since, once the machine was started.
func TestKeptWasStarted(t *testing.T) {
	t.Parallel()
	r := kept(t)
	r.must(r.claims("c2"))
	r.installs("c2")
	r.await(func(s hardware.Status) bool { return s.Power.Asked == "on" })
	r.release("c2", workflow.ReleaseInput{})
	r.stops("c2", hardware.StoppedByPowerOff)
}

// TestKeptWhoStoppedLate: a human who takes it off hold has not ended its reservation.
func TestKeptWhoStoppedLate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.must(r.claims("c1"))
	r.installs("c1")
	r.run(1, func(a *workflow.Assign) workflow.Report {
		if a.Kind == workflow.KindImageWrite {
			return broken(a)
		}
		return fine(a)
	})
	r.release("c1", workflow.ReleaseInput{Reserve: &hardware.Reserve{For: "capi/web", KeepDisks: true}})
	r.pass(workflow.StopWithin)
	r.stops("c1", hardware.StoppedByHold)
	r.must(r.e.SetHold(r.ctx, r.hw.Meta.UID, false))
	if s := r.status(); s.State != hardware.StateFailed || !s.KeptUnwiped() || s.Hold {
		t.Errorf("%+v", s)
	}
}

// TestAnInstallIsCancelledToBeKept: what it wrote is kept, and its worker waits.
func TestAnInstallIsCancelledToBeKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.must(r.claims("c1"))
	r.installs("c1")
	_, tok := r.boot(1)
	s := r.attach(tok, newKey(), nil)
	r.report(s, assigned(t, s).Assignment, workflow.StateSucceeded)
	a := assigned(t, s)
	r.release("c1", workflow.ReleaseInput{Reserve: &hardware.Reserve{For: "capi/web", KeepDisks: true}})
	r.stops("c1", hardware.StoppedByWorker)
	r.must(s.Report(r.ctx, workflow.Report{Assignment: a.Assignment, Outcome: workflow.StateCancelled}))
	if s := r.status(); s.State != hardware.StateFailed || s.Reserved == nil || s.Failures != 0 {
		t.Fatalf("kept: %+v", s)
	}
	r.next(hardware.TargetHalt, hardware.ReasonReserved)
	r.must(r.claims("c2"))
	r.installs("c2")
	r.work(s, fine)
	if s := r.status(); s.State != hardware.StateProvisioned || s.Reserved != nil {
		t.Errorf("%+v", s)
	}
}

// TestUnhealthy: wiped, and not picked until a human accepts it; its owner's words are
// there to read.
func TestUnhealthy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provisioned("c1")
	r.release("c1", workflow.ReleaseInput{Unhealthy: "its node never became ready\x1b[2J"})
	r.run(2, proven)
	s := r.status()
	if s.State != hardware.StateAvailable || !s.Quarantined() || s.Unhealthy != "its node never became ready [2J" {
		t.Fatalf("%+v", s)
	}
	r.await(func(s hardware.Status) bool {
		return slices.ContainsFunc(s.Issues, func(i hardware.Issue) bool {
			return i.Kind == hardware.IssueQuarantined && strings.Contains(i.Detail, "its node never became ready")
		})
	})
	var none *hardware.NoCandidate
	if err := r.claims("c2"); !errors.As(err, &none) || none.Against[hardware.AgainstQuarantine] != 1 {
		t.Errorf("it is claimed: %v", err)
	}
	r.must(r.e.Accept(r.ctx, r.hw.Meta.UID, "new cable"))
	r.must(r.claims("c2"))
	if s := r.status(); s.Unhealthy != "" {
		t.Errorf("%+v", s)
	}
}

// TestAdoptedIsReleased: an adopted machine has an owner that never claimed here.
func TestAdoptedIsReleased(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.switched((&bmc{on: true}).do)
	mc, err := r.db.Machine(r.ctx, r.hw.Meta.UID)
	r.must(err)
	mc.Status.State, mc.Status.Claim = hardware.StateProvisioned, &hardware.ClaimRef{ID: "adopted", Owner: "adopted"}
	r.must(r.db.Commit(r.ctx, &workflow.Change{Machine: mc}))
	r.release("", workflow.ReleaseInput{})
	r.await(func(s hardware.Status) bool { return s.Stopping != nil && s.Stopping.Stopped != nil })
	if by := r.status().Stopping.Stopped.By; by != hardware.StoppedByPowerOff {
		t.Errorf("stopped by %s", by)
	}
	r.run(2, proven)
	if s := r.status(); s.State != hardware.StateAvailable {
		t.Errorf("%+v", s)
	}
}

// TestAFailedWipeLeavesNothingToStart: the system of an owner who is gone.
func TestAFailedWipeLeavesNothingToStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provisioned("c1")
	r.release("c1", workflow.ReleaseInput{})
	r.run(2, broken)
	if s := r.status(); s.State != hardware.StateFailed {
		t.Fatalf("%+v", s)
	}
	r.next(hardware.TargetHalt, hardware.ReasonLeftover)
	// an operator's own install puts another system there
	r.install(false)
	r.run(3, fine)
	r.next(hardware.TargetDisk, hardware.ReasonProvisioned)
}
