package workflow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// A machine whose install broke off is dirty, and stays so through an install that
// never begins: only a wipe makes it available.
func TestAnInstallThatNeverBeginsChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	uid := r.hw.Meta.UID
	r.install(false)
	r.run(1, func(a *workflow.Assign) workflow.Report {
		if a.Kind == workflow.KindImageWrite {
			return broken(a)
		}
		return fine(a)
	})
	if s := r.status(); s.State != hardware.StateFailed || len(s.Dirty) != 1 || s.Dirty[0].Path != "/dev/sda" {
		t.Fatalf("broken off: %+v", s)
	}
	r.install(false)
	_, err := r.e.CancelWorkflow(r.ctx, r.status().Workflow, "not now")
	r.must(err)
	if s := r.status(); s.State != hardware.StateFailed || len(s.Dirty) != 1 {
		t.Fatalf("an install that never began made it %s, dirty %v", s.State, s.Dirty)
	}
	_, _, err = r.e.Release(r.ctx, uid, workflow.ReleaseInput{})
	r.must(err)
	r.run(2, proven)
	if s := r.status(); s.State != hardware.StateAvailable || len(s.Dirty) != 0 || s.Wiped == nil {
		t.Errorf("released: %+v", s)
	}
}

// What writes secrets to a disk makes it dirty, whether it installs or not.
func TestAFileOnADiskMakesItDirty(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.must(r.db.CreateTemplate(r.ctx, &workflow.Template{Meta: hardware.Meta{Name: "key"}, Spec: workflow.TemplateSpec{Actions: []workflow.ActionSpec{
		{Name: "key", Kind: workflow.KindFileWrite, With: map[string]any{"path": "/etc/key", "content": "secret"}},
	}}}))
	_, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "key"})
	r.must(err)
	r.run(1, fine)
	s := r.status()
	if s.State != hardware.StateAvailable || len(s.Dirty) == 0 || !workflow.Unwiped(&s) {
		t.Fatalf("%+v", s)
	}
	h, err := r.db.HardwareByName(r.ctx, "m1")
	r.must(err)
	if c := hardware.Fit(h, false, &hardware.ClaimSpec{Owner: "x"}); c.Fits {
		t.Error("a dirty machine fits a claim")
	}
	w, _, err := r.e.Release(r.ctx, r.hw.Meta.UID, workflow.ReleaseInput{})
	r.must(err)
	if w == "" {
		t.Error("it is released without a wipe")
	}
}

// A disk that was written and is not in the machine any more keeps it from being
// available, until a human says that it was taken out.
func TestADiskThatIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	uid := r.hw.Meta.UID
	r.install(false)
	r.run(1, func(a *workflow.Assign) workflow.Report {
		rep := fine(a)
		if a.Kind == workflow.KindImageWrite {
			rep.Result.Disk = "/dev/sdz" // removable, so that no release looks at it
		}
		return rep
	})
	_, _, err := r.e.Release(r.ctx, uid, workflow.ReleaseInput{})
	r.must(err)
	r.run(2, proven)
	if s := r.status(); s.State != hardware.StateFailed || len(s.Dirty) != 2 {
		t.Fatalf("the disk that the image went to was not wiped, and the machine is %s, dirty %v", s.State, s.Dirty)
	}
	ev, err := r.db.Events(r.ctx, workflow.EventQuery{Hardware: uid})
	r.must(err)
	said := ""
	for _, e := range ev {
		if e.Reason == hardware.ReasonNotWiped {
			said = e.Detail
		}
	}
	if !strings.Contains(said, "/dev/sdz") || !strings.Contains(said, "rackstrap accept m1") {
		t.Errorf("the timeline says %q", said)
	}
	r.must(r.e.Accept(r.ctx, uid, "taken out"))
	_, _, err = r.e.Release(r.ctx, uid, workflow.ReleaseInput{})
	r.must(err)
	r.run(3, proven)
	if s := r.status(); s.State != hardware.StateAvailable {
		t.Errorf("after the human's word: %+v", s)
	}
}

// A template that writes after its wipe proves nothing, and nobody but the engine
// starts a release.
func TestWhatIsNoRelease(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, p := range []workflow.Purpose{workflow.PurposeRelease, "instal"} {
		_, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: workflow.ReleaseTemplate, Purpose: p})
		var bad *hardware.Invalid
		if !errors.As(err, &bad) || bad.Errors[0].Field != "spec.purpose" {
			t.Errorf("purpose %q: %v", p, err)
		}
	}
	rel, err := r.db.TemplateByName(r.ctx, workflow.ReleaseTemplate)
	r.must(err)
	rel.Spec.Actions = append(rel.Spec.Actions[:1], workflow.ActionSpec{Name: "note", Kind: workflow.KindFileWrite, With: map[string]any{"path": "/x", "content": "y"}})
	r.must(r.db.UpdateTemplate(r.ctx, rel))
	r.install(false)
	r.run(1, fine)
	_, _, err = r.e.Release(r.ctx, r.hw.Meta.UID, workflow.ReleaseInput{})
	r.must(err)
	r.run(2, proven)
	if s := r.status(); s.State != hardware.StateFailed {
		t.Errorf("a release that writes ends %s", s.State)
	}
}

// The loop of a controller: claim, install fails, release works. It ends in quarantine.
func TestReleasesDoNotHideFailures(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range hardware.Quarantine {
		r.install(false)
		r.run(uint32(2*i+1), broken)
		_, _, err := r.e.Release(r.ctx, r.hw.Meta.UID, workflow.ReleaseInput{})
		r.must(err)
		r.run(uint32(2*i+2), proven)
		if s := r.status(); s.State != hardware.StateAvailable || s.Failures != i+1 {
			t.Fatalf("round %d: %+v", i, s)
		}
	}
	if s := r.status(); !s.Quarantined() {
		t.Errorf("%+v", s)
	}
}

// Deleting always works, also while an install is being cancelled for a release.
func TestDropInTheMiddleOfARelease(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	uid := r.hw.Meta.UID
	r.install(false)
	_, tok := r.boot(1)
	s := r.attach(tok, newKey(), nil)
	assigned(t, s)
	_, _, err := r.e.Release(r.ctx, uid, workflow.ReleaseInput{})
	r.must(err)
	_, err = r.e.Drop(r.ctx, uid, "scrap")
	r.must(err)
	active, err := r.db.ActiveWorkflows(r.ctx)
	r.must(err)
	if st := r.status(); st.State != hardware.StateRetired || len(active) != 0 {
		t.Errorf("%s, %d workflows", st.State, len(active))
	}
	r.must(r.db.DeleteHardware(r.ctx, "m1", 0))
}

// An inspection leaves a machine that waits for its system to call where it was.
func TestInspectionWhileTheSystemIsAwaited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.must(r.db.CreateTemplate(r.ctx, &workflow.Template{Meta: hardware.Meta{Name: "inspect"}, Spec: workflow.TemplateSpec{Actions: []workflow.ActionSpec{{Name: "off", Kind: workflow.KindPowerOff}}}}))
	_, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "install", WaitForPhoneHome: true, Params: map[string]any{"image": "debian"}})
	r.must(err)
	r.run(1, fine)
	_, err = r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "inspect", Purpose: workflow.PurposeInspect})
	r.must(err)
	r.run(2, fine)
	if s := r.status(); s.State != hardware.StateProvisioning || !s.AwaitOS || s.Failures != 0 || s.Deadline.IsZero() {
		t.Errorf("%+v", s)
	}
}

// A daemon that was killed between a release and the end of the install goes on with
// the cancel at its next start.
func TestReleaseIsTakenUpAfterAKill(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.install(false)
	_, tok := r.boot(1)
	key := newKey()
	a := assigned(t, r.attach(tok, key, nil))
	m, err := r.db.Machine(r.ctx, r.hw.Meta.UID)
	r.must(err)
	m.Status.State = hardware.StateReleasing // what Release writes first
	r.must(r.db.Commit(r.ctx, &workflow.Change{Machine: m}))
	r.must(r.kv.Close())
	r.open()
	s := r.attach(tok, key, &a.Assignment)
	r.must(s.Report(r.ctx, workflow.Report{Assignment: a.Assignment, Outcome: workflow.StateCancelled}))
	if w := assigned(t, s); w.Kind != workflow.KindDiskWipe || w.Workflow == a.Workflow {
		t.Errorf("after the restart the worker got %+v", w)
	}
}

func TestMaintenanceKeepsDisksAndPowerAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	uid := r.hw.Meta.UID
	r.install(false)
	r.run(1, fine)
	r.must(r.e.SetMaintenance(r.ctx, uid, true, "new fan"))
	_, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "install", Reinstall: true, Params: map[string]any{"image": "x"}})
	if err == nil || !strings.Contains(err.Error(), "new fan") {
		t.Errorf("an install in maintenance: %v", err)
	}
	w, _, err := r.e.Release(r.ctx, uid, workflow.ReleaseInput{})
	r.must(err)
	if s := r.status(); w != "" || s.State != hardware.StateReleasing {
		t.Errorf("released in maintenance: %q, %s", w, s.State)
	}
	r.must(r.e.SetMaintenance(r.ctx, uid, false, ""))
	w, _, err = r.e.Release(r.ctx, uid, workflow.ReleaseInput{})
	r.must(err)
	if w == "" {
		t.Error("no wipe after the maintenance")
	}
}
