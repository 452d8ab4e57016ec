package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// bmc is a controller that does as it is told, unless the test says otherwise.
type bmc struct {
	mu sync.Mutex
	on bool
}

func (b *bmc) do(_ context.Context, action string) (hardware.PowerState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if action != "status" {
		b.on = action != "off"
	}
	if b.on {
		return hardware.PowerOn, nil
	}
	return hardware.PowerOff, nil
}

// switched gives the machine a power controller.
func (r *rig) switched(do func(ctx context.Context, action string) (hardware.PowerState, error)) {
	r.t.Helper()
	h, err := r.db.HardwareByName(r.ctx, "m1")
	r.must(err)
	h.Spec.Power = &hardware.PowerControl{Driver: hardware.PowerWebhook, URL: "http://10.0.0.9/power", Secret: strings.Repeat("s", 16)}
	r.must(r.db.UpdateHardware(r.ctx, h))
	r.controller(do)
}

func (r *rig) controller(do func(ctx context.Context, action string) (hardware.PowerState, error)) {
	r.power.mu.Lock()
	defer r.power.mu.Unlock()
	r.power.do = do
}

func (r *rig) asked() []string {
	r.power.mu.Lock()
	defer r.power.mu.Unlock()
	return slices.Clone(r.power.asked)
}

func (r *rig) claims(id string, change ...func(*hardware.ClaimSpec)) error {
	c := &hardware.Claim{Meta: hardware.Meta{Name: id}, Spec: hardware.ClaimSpec{Owner: "capi/web", Reuse: "capi/web"}}
	for _, f := range change {
		f(&c.Spec)
	}
	// claims pick by what the View shows, which comes a moment after the write
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if seen, ok := r.db.View().HardwareByName("m1"); ok && reflect.DeepEqual(seen.Status, r.status()) {
			break
		}
	}
	_, _, err := r.db.Claim(r.ctx, c, hardware.Selector{})
	return err
}

func (r *rig) claim(id string) hardware.ClaimStatus {
	r.t.Helper()
	c, err := r.db.ClaimByID(r.ctx, id)
	r.must(err)
	return c.Status
}

// installs is an install under a claim.
func (r *rig) installs(claim string) {
	r.t.Helper()
	_, err := r.e.CreateWorkflow(r.ctx, "", workflow.WorkflowSpec{Hardware: "m1", Template: "install", Claim: claim, Params: map[string]any{"image": "debian"}})
	r.must(err)
}

// provisioned is a machine that a claim has and whose install is done.
func (r *rig) provisioned(claim string) {
	r.t.Helper()
	r.must(r.claims(claim))
	r.installs(claim)
	r.run(1, fine)
	if s := r.status(); s.State != hardware.StateProvisioned {
		r.t.Fatalf("installed: %+v", s)
	}
}

func (r *rig) release(claim string, in workflow.ReleaseInput) {
	r.t.Helper()
	in.Claim = claim
	_, _, err := r.e.Release(r.ctx, r.hw.Meta.UID, in)
	r.must(err)
}

// stops waits until the claim says how it is known that its system runs no more.
func (r *rig) stops(claim string, want hardware.StoppedBy) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := r.db.ClaimByID(r.ctx, claim)
		r.must(err)
		switch got := c.Status.Stopped; {
		case got != nil && got.By == want && !got.At.IsZero():
			if c.Status.Ended.IsZero() {
				r.t.Errorf("claim %s is stopped and has not ended", claim)
			}
			return
		case got != nil:
			r.t.Fatalf("claim %s is stopped by %s, want %s", claim, got.By, want)
		case time.Now().After(deadline):
			r.t.Fatalf("claim %s has no proof; the power was asked %q, machine %+v", claim, r.asked(), r.status())
		}
	}
}

func (r *rig) running(claim string) {
	r.t.Helper()
	if c := r.claim(claim); c.Ended.IsZero() || c.Stopped != nil {
		r.t.Fatalf("claim %s: %+v, want one that has ended and has no proof yet", claim, c)
	}
}

// TestAClaimEnds: in every state of its machine, with what is known there and then.
func TestAClaimEnds(t *testing.T) {
	t.Parallel()
	// wrote installs until after the image was written; the worker is still there.
	wrote := func(r *rig) *workflow.Session {
		r.installs("c1")
		_, tok := r.boot(1)
		s := r.attach(tok, newKey(), nil)
		for range 2 {
			a := assigned(r.t, s)
			r.report(s, a.Assignment, workflow.StateSucceeded)
		}
		return s
	}
	end := func(r *rig) { r.release("c1", workflow.ReleaseInput{}) }
	for _, tc := range []struct {
		name  string
		life  func(r *rig)
		end   func(r *rig)
		want  hardware.StoppedBy // empty: it is found out
		state hardware.State
	}{
		{"nothing was installed", func(*rig) {}, end, hardware.StoppedNeverRan, hardware.StateAvailable},
		{"its install waits for the machine", func(r *rig) { r.installs("c1") }, end, hardware.StoppedNeverRan, hardware.StateReleasing},
		{"its install is about to wipe", func(r *rig) {
			r.installs("c1")
			_, tok := r.boot(1)
			r.attach(tok, newKey(), nil)
		}, end, hardware.StoppedNeverRan, hardware.StateReleasing},
		{"its install has written, and the worker is there", func(r *rig) { wrote(r) }, end, hardware.StoppedByWorker, hardware.StateReleasing},
		{"its install has written, and the worker is gone", func(r *rig) { wrote(r).Detach() }, end, "", hardware.StateReleasing},
		{"its install failed, and the worker waits", func(r *rig) {
			s := wrote(r)
			a := assigned(r.t, s)
			r.must(s.Report(r.ctx, workflow.Report{Assignment: a.Assignment, Outcome: workflow.StateFailed, Permanent: true}))
		}, end, hardware.StoppedByWorker, hardware.StateReleasing},
		{"installed, and the worker is on its way out", func(r *rig) {
			s := wrote(r)
			a := assigned(r.t, s)
			r.report(s, a.Assignment, workflow.StateSucceeded)
		}, end, "", hardware.StateReleasing},
		{"installed", func(r *rig) { wrote(r); r.provisions() }, end, "", hardware.StateReleasing},
		{"installed and on hold", func(r *rig) {
			wrote(r)
			r.provisions()
			r.must(r.e.SetHold(r.ctx, r.hw.Meta.UID, true))
		}, end, "", hardware.StateReleasing},
		{"installed and in maintenance", func(r *rig) {
			wrote(r)
			r.provisions()
			r.must(r.e.SetMaintenance(r.ctx, r.hw.Meta.UID, true, "new disk"))
		}, end, "", hardware.StateReleasing},
		{"given up", func(r *rig) { wrote(r); r.provisions() }, func(r *rig) {
			r.release("c1", workflow.ReleaseInput{Force: true})
		}, hardware.StoppedByHold, hardware.StateFailed},
		{"given up, nothing was installed", func(*rig) {}, func(r *rig) {
			r.release("c1", workflow.ReleaseInput{Force: true})
		}, hardware.StoppedNeverRan, hardware.StateAvailable},
		{"given up while it is being stopped", func(r *rig) { wrote(r); r.provisions(); end(r) }, func(r *rig) {
			_, _, err := r.e.Release(r.ctx, r.hw.Meta.UID, workflow.ReleaseInput{Force: true})
			r.must(err)
		}, hardware.StoppedByHold, hardware.StateFailed},
		{"retired", func(r *rig) { wrote(r); r.provisions() }, func(r *rig) {
			_, err := r.e.Retire(r.ctx, r.hw.Meta.UID, true, "")
			r.must(err)
		}, hardware.StoppedByHold, hardware.StateRetired},
		{"dropped while it is being stopped", func(r *rig) { wrote(r); r.provisions(); end(r) }, func(r *rig) {
			_, err := r.e.Drop(r.ctx, r.hw.Meta.UID, "")
			r.must(err)
			r.must(r.db.DeleteHardware(r.ctx, "m1", 0))
		}, hardware.StoppedByHold, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.must(r.claims("c1"))
			tc.life(r)
			tc.end(r)
			if tc.want == "" {
				r.running("c1")
				if err := r.db.DeleteHardware(r.ctx, "m1", 0); !errors.Is(err, workflow.ErrInUse) {
					t.Errorf("its record can be deleted meanwhile: %v", err)
				}
			} else {
				r.stops("c1", tc.want)
			}
			if tc.state == "" {
				return
			}
			if s := r.status(); s.State != tc.state || s.Claim != nil {
				t.Errorf("machine: %+v, want it %s and nobody's", s, tc.state)
			}
			if tc.want == "" {
				end(r) // the same again
				r.running("c1")
			}
		})
	}
}

// provisions ends the last action of an install and lets its worker restart.
func (r *rig) provisions() {
	r.t.Helper()
	_, tok := r.boot(9)
	r.work(r.attach(tok, newKey(), nil), fine)
	if s := r.status(); s.State != hardware.StateProvisioned {
		r.t.Fatalf("installed: %+v", s)
	}
}

// TestItIsSwitchedOffFirst: the power goes off, its controller is asked, and only then
// the machine starts for its wipe.
func TestItIsSwitchedOffFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.switched(new(bmc).do)
	r.provisioned("c1")
	before := len(r.asked())
	r.release("c1", workflow.ReleaseInput{})
	r.stops("c1", hardware.StoppedByPowerOff)
	r.await(func(s hardware.Status) bool { return s.Power.Asked == "on" })
	if got, want := r.asked()[before:], []string{"m1 off", "m1 status", "m1 on network"}; !slices.Equal(got, want) {
		t.Errorf("the power was asked %q, want %q", got, want)
	}
	r.next(hardware.TargetWorker, hardware.ReasonWorkflowActive)
	r.run(2, proven)
	if s := r.status(); s.State != hardware.StateAvailable || s.Wiped == nil {
		t.Errorf("after the wipe: %+v", s)
	}
	r.next(hardware.TargetDisk, hardware.ReasonNothingToDo)
	if words := r.told(hardware.ReasonStopped); len(words) != 1 || !strings.Contains(words[0], "claim c1") || !strings.Contains(words[0], "power-off") {
		t.Errorf("the timeline says %q", words)
	}
}

// told are the details of the machine's events of a Reason.
func (r *rig) told(reason hardware.Reason) []string {
	r.t.Helper()
	all, err := r.db.Events(r.ctx, workflow.EventQuery{Hardware: r.hw.Meta.UID})
	r.must(err)
	var out []string
	for _, ev := range all {
		if ev.Reason == reason {
			out = append(out, ev.Detail)
		}
	}
	return out
}

// TestStoppedAcrossRestarts: the daemon dies at any call to the controller, before the
// call's end is written, and goes on by what is stored.
func TestStoppedAcrossRestarts(t *testing.T) {
	t.Parallel()
	for n := range 3 { // off, status, on
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.switched(new(bmc).do)
			r.provisioned("c1")
			real := new(bmc)
			real.on = true
			died := make(chan struct{})
			calls := 0
			var mu sync.Mutex
			r.controller(func(ctx context.Context, action string) (hardware.PowerState, error) {
				state, err := real.do(ctx, action)
				mu.Lock()
				defer mu.Unlock()
				if calls == n {
					_ = r.kv.Close()
					close(died)
				}
				calls++
				return state, err
			})
			// its answer may be lost with the daemon
			_, _, _ = r.e.Release(r.ctx, r.hw.Meta.UID, workflow.ReleaseInput{Claim: "c1"})
			<-died
			r.open()
			r.stops("c1", hardware.StoppedByPowerOff)
			for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				real.mu.Lock()
				on := real.on
				real.mu.Unlock()
				if on {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("the machine stays off: asked %q", r.asked())
				}
			}
			r.run(2, proven)
			if s := r.status(); s.State != hardware.StateAvailable {
				t.Errorf("after the wipe: %+v", s)
			}
		})
	}
}

// asking is a context that tells when somebody begins to wait by it.
type asking struct {
	context.Context
	once  sync.Once
	begun chan struct{}
}

func (a *asking) Done() <-chan struct{} {
	a.once.Do(func() { close(a.begun) })
	return a.Context.Done()
}

// TestWhatWasAskedBefore: what an owner asked of its machine's power is not done after the
// machine was given back and seen to be off, however long it had to wait for its turn.
func TestWhatWasAskedBefore(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"cycle", "on"} {
		r := newRig(t)
		real := new(bmc)
		r.switched(real.do)
		r.provisioned("c1")
		looks, goOn := make(chan struct{}), make(chan struct{})
		var turn sync.Mutex // a real controller's driver does one thing at a time
		var once sync.Once
		r.controller(func(ctx context.Context, what string) (hardware.PowerState, error) {
			turn.Lock()
			defer turn.Unlock()
			if what == "status" {
				once.Do(func() { close(looks); <-goOn })
			}
			return real.do(ctx, what)
		})
		before := len(r.asked())
		r.release("c1", workflow.ReleaseInput{Reserve: &hardware.Reserve{For: "capi/web", KeepDisks: true}})
		<-looks // it was switched off, and its controller is about to say so
		ctx, out := &asking{Context: t.Context(), begun: make(chan struct{})}, make(chan error, 1)
		go func() {
			_, err := r.e.Power(ctx, r.hw.Meta.UID, action, "disk")
			out <- err
		}()
		<-ctx.begun
		close(goOn)
		r.stops("c1", hardware.StoppedByPowerOff)
		if err := <-out; !errors.Is(err, workflow.ErrConflict) || !strings.Contains(err.Error(), action+" is not done") {
			t.Errorf("%s: who asked is told %v", action, err)
		}
		if got, want := r.asked()[before:], []string{"m1 off", "m1 status"}; !slices.Equal(got, want) {
			t.Errorf("%s: the power was asked %q, want %q", action, got, want)
		}
		if s := r.status(); s.Power.Asked != "off" || s.Power.Error != "" {
			t.Errorf("%s: the machine says of its power %+v", action, s.Power)
		}
		_, err := r.e.Power(r.ctx, r.hw.Meta.UID, action, "disk") // asked after it
		r.must(err)
	}
}

// TestAWorkerThatIsBeingSwitched: it is no proof as long as a call that was asked before may
// end it, and start what is on the disk.
func TestAWorkerThatIsBeingSwitched(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	real := new(bmc)
	r.switched(real.do)
	r.provisioned("c1")
	r.must(r.e.SetMaintenance(r.ctx, r.hw.Meta.UID, true, "new disk"))
	begun, goOn, out := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	r.controller(func(ctx context.Context, what string) (hardware.PowerState, error) {
		if what == "cycle" {
			close(begun)
			<-goOn
		}
		return real.do(ctx, what)
	})
	go func() {
		_, err := r.e.Power(r.ctx, r.hw.Meta.UID, "cycle", "disk")
		out <- err
	}()
	<-begun
	r.release("c1", workflow.ReleaseInput{Reserve: &hardware.Reserve{For: "capi/web", KeepDisks: true}})
	_, tok := r.boot(3)
	s := r.attach(tok, newKey(), nil)
	r.running("c1")
	close(goOn)
	r.must(<-out)
	s.Detach()
	r.running("c1")
	_, tok = r.boot(4)
	r.attach(tok, newKey(), nil)
	r.stops("c1", hardware.StoppedByWorker)
}

// TestAWorkerThatOutlivesTheCall: one that came while the controller was being asked is
// looked at again afterwards. Who lives comes back, and is the proof; of one that died
// with the power nothing is heard, and there is none.
func TestAWorkerThatOutlivesTheCall(t *testing.T) {
	t.Parallel()
	for _, lives := range []bool{true, false} {
		r := newRig(t)
		real := new(bmc)
		r.switched(real.do)
		r.provisioned("c1")
		r.must(r.e.SetMaintenance(r.ctx, r.hw.Meta.UID, true, "new disk"))
		begun, goOn, out := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		r.controller(func(ctx context.Context, what string) (hardware.PowerState, error) {
			if what == "on" {
				close(begun)
				<-goOn
			}
			return real.do(ctx, what)
		})
		go func() {
			_, err := r.e.Power(r.ctx, r.hw.Meta.UID, "on", "")
			out <- err
		}()
		<-begun
		r.release("c1", workflow.ReleaseInput{Reserve: &hardware.Reserve{For: "capi/web", KeepDisks: true}})
		_, tok := r.boot(3)
		key := newKey()
		s := r.attach(tok, key, nil)
		r.running("c1")
		close(goOn)
		r.must(<-out)
		r.running("c1")
		s.Take()
		r.pass(time.Minute)
		deadline := time.After(20 * time.Second)
		for closed := false; !closed; {
			select {
			case <-s.Wake():
				closed = slices.ContainsFunc(s.Take(), func(c workflow.Command) bool { return c.Close != "" })
			case <-deadline:
				t.Fatal("the worker is not looked at again")
			}
		}
		s.Detach()
		r.running("c1")
		if lives {
			r.attach(tok, key, nil)
			r.stops("c1", hardware.StoppedByWorker)
		}
	}
}

// TestAControllerThatProvesNothing: one that lies, one that fails and one that hangs. The
// machine is on hold when the time is over, is refused its disk, and is wiped when a
// human ends that.
func TestAControllerThatProvesNothing(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(ctx context.Context, action string) (hardware.PowerState, error){
		"lies":  func(context.Context, string) (hardware.PowerState, error) { return hardware.PowerOn, nil },
		"fails": func(context.Context, string) (hardware.PowerState, error) { return "", errors.New("no route") },
		"hangs": func(ctx context.Context, _ string) (hardware.PowerState, error) { <-ctx.Done(); return "", ctx.Err() },
	} {
		for by, end := range map[string]func(r *rig) error{
			"unhold": func(r *rig) error { return r.e.SetHold(r.ctx, r.hw.Meta.UID, false) },
			"accept": func(r *rig) error { return r.e.Accept(r.ctx, r.hw.Meta.UID, "it is off") },
		} {
			t.Run(name+" "+by, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				r.switched(new(bmc).do)
				r.provisioned("c1")
				r.controller(do)
				r.release("c1", workflow.ReleaseInput{})
				r.pass(10 * time.Second)
				r.running("c1")
				r.pass(workflow.StopWithin)
				r.stops("c1", hardware.StoppedByHold)
				if s := r.status(); !s.Hold || s.HoldReason != hardware.ReasonNotStopped || s.State != hardware.StateReleasing {
					t.Errorf("after the deadline: %+v", s)
				}
				b := r.powerOn(7)
				if b.Next.Target != hardware.TargetHalt || b.Next.Reason != hardware.ReasonNotStopped {
					t.Errorf("it boots %+v, want nothing of its disk", b.Next)
				}
				if words := r.told(hardware.ReasonBootStarted); !strings.Contains(words[len(words)-1], "next: halt (it is not known") {
					t.Errorf("the timeline says of the boot: %q", words[len(words)-1])
				}
				if words := r.told(hardware.ReasonNotStopped); len(words) != 1 || !strings.Contains(words[0], "no proof within 15m0s") {
					t.Errorf("the timeline says %q", words)
				}
				r.await(func(s hardware.Status) bool {
					return slices.ContainsFunc(s.Issues, func(i hardware.Issue) bool { return i.Kind == hardware.IssueNotStopped })
				})
				if slices.ContainsFunc(r.asked()[1:], func(a string) bool { return strings.Contains(a, "network") }) {
					t.Errorf("it was started before it was known to be off: %q", r.asked())
				}
				r.must(end(r))
				r.pass(time.Minute)
				r.run(8, proven)
				if s := r.status(); s.State != hardware.StateAvailable || s.Hold {
					t.Errorf("after the hold: %+v", s)
				}
			})
		}
	}
}

// TestAHumanIsAwaitedForDays: the wipe of a machine that was on hold until it was given
// up goes on all the same.
func TestAHumanIsAwaitedForDays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provisioned("c1")
	r.release("c1", workflow.ReleaseInput{})
	r.pass(workflow.StopWithin)
	r.stops("c1", hardware.StoppedByHold)
	r.pass(workflow.StartWithin)
	r.await(func(s hardware.Status) bool { return s.State == hardware.StateFailed })
	r.must(r.e.SetHold(r.ctx, r.hw.Meta.UID, false))
	r.run(2, proven)
	if s := r.status(); s.State != hardware.StateAvailable {
		t.Errorf("%+v", s)
	}
}

// TestTheWorkerIsTheProof: of a machine without a controller, and of one whose
// controller fails.
func TestTheWorkerIsTheProof(t *testing.T) {
	t.Parallel()
	for _, broken := range []bool{false, true} {
		r := newRig(t)
		if broken {
			r.switched(new(bmc).do)
		}
		r.provisioned("c1")
		if broken {
			r.controller(func(context.Context, string) (hardware.PowerState, error) { return "", errors.New("no route") })
		}
		r.release("c1", workflow.ReleaseInput{})
		r.running("c1")
		r.run(2, proven)
		r.stops("c1", hardware.StoppedByWorker)
		if s := r.status(); s.State != hardware.StateAvailable {
			t.Errorf("%+v", s)
		}
	}
}

// TestTheWorkerComesDuringAnErrand: as long as the controller may still switch the machine
// off nobody gets it, for it would be switched off under its next owner.
func TestTheWorkerComesDuringAnErrand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.switched(new(bmc).do)
	r.provisioned("c1")
	begun, end := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.controller(func(context.Context, string) (hardware.PowerState, error) {
		once.Do(func() { close(begun) })
		<-end
		return "", errors.New("no route")
	})
	r.release("c1", workflow.ReleaseInput{Reserve: &hardware.Reserve{For: "capi/web", KeepDisks: true}})
	<-begun
	_, tok := r.boot(2)
	r.attach(tok, newKey(), nil)
	r.running("c1")
	if r.claims("c2") == nil {
		t.Error("it is claimed while it is being switched off")
	}
	close(end)
	r.stops("c1", hardware.StoppedByWorker)
	r.must(r.claims("c2"))
}

// TestItIsStartedAgain: a controller that failed to start it may not be able to cycle a
// machine that is off.
func TestItIsStartedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := new(bmc)
	r.switched(b.do)
	r.provisioned("c1")
	before, failed := len(r.asked()), false
	r.controller(func(ctx context.Context, action string) (hardware.PowerState, error) {
		if action == "on" && !failed {
			failed = true
			return "", errors.New("busy")
		}
		return b.do(ctx, action)
	})
	r.release("c1", workflow.ReleaseInput{})
	r.await(func(s hardware.Status) bool { return s.Power.Asked == "on" && s.Power.Error != "" })
	r.pass(11 * time.Minute)
	r.await(func(s hardware.Status) bool { return s.Power.State == hardware.PowerOn })
	if got, want := r.asked()[before:], []string{"m1 off", "m1 status", "m1 on network", "m1 on network"}; !slices.Equal(got, want) {
		t.Errorf("the power was asked %q, want %q", got, want)
	}
}

// TestMaintenanceIsNotSwitched: a human is at the machine.
func TestMaintenanceIsNotSwitched(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.switched(new(bmc).do)
	r.provisioned("c1")
	before := len(r.asked())
	r.must(r.e.SetMaintenance(r.ctx, r.hw.Meta.UID, true, "new disk"))
	r.release("c1", workflow.ReleaseInput{})
	r.pass(workflow.StopWithin)
	r.stops("c1", hardware.StoppedByHold)
	if got := r.asked()[before:]; len(got) > 0 {
		t.Errorf("the power was asked %q", got)
	}
}
