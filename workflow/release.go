package workflow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// ReleaseTemplate is the template that wipes a machine when it is given back.
const ReleaseTemplate = "release"

// ReleaseInput says how a machine is given back.
type ReleaseInput struct {
	// Claim, where not empty, must be the one that holds the machine.
	Claim string
	// Force gives it up without a wipe: the machine is failed and on hold.
	Force bool
	// Why is what the timeline shows.
	Why string
	// Reserve, where not nil, keeps the machine for the next claim of a group. It needs a
	// claim that ends.
	Reserve *hardware.Reserve
	// Unhealthy, where not empty, is why the machine is in quarantine from now on.
	Unhealthy string
}

// Release gives a machine back: its claim ends at once, a running install is
// cancelled, what was installed is made sure to run no more, every disk is wiped and
// read back, and then it is available. A machine that is kept for a group with what is
// on its disks is not wiped, and a reservation that nobody claimed ends. It returns the
// workflow that wipes, empty while a cancelled one still ends, or where nothing has to
// be wiped. Asked again it changes nothing. ErrNotFound, ErrConflict (the claim does
// not hold the machine), *hardware.Invalid.
func (e *Engine) Release(ctx context.Context, uid string, in ReleaseInput) (workflow string, skipped []string, err error) {
	m := e.machine(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	if in.Force {
		return e.giveUp(ctx, m, in)
	}
	var dirty bool
	err = e.changes(ctx, uid, func(h *hardware.Hardware, mc *Machine) ([]Event, error) {
		s := &mc.Status
		if err := mayRelease(h, s, in); err != nil {
			return nil, err
		}
		dirty = Unwiped(s)
		if s.State == hardware.StateReleasing {
			return e.unreserve(h, s, in), nil
		}
		if s.Claim == nil && !dirty && s.Reserved == nil {
			return nil, nil
		}
		return e.giveBack(ctx, m, h, s, in), nil
	})
	if err != nil {
		return "", nil, err
	}
	if err := e.stopNext(ctx, m); err != nil {
		return "", nil, err
	}
	if !dirty {
		return "", nil, nil
	}
	if err := e.makeWay(ctx, m); err != nil {
		return "", nil, err
	}
	if m.active != "" && e.releasing(ctx, m.active) {
		workflow = m.active
	}
	return workflow, nil, nil
}

// giveBack ends the claim, or the reservation, in the machine's value. The caller holds
// m.mu.
func (e *Engine) giveBack(ctx context.Context, m *machine, h *hardware.Hardware, s *hardware.Status, in ReleaseInput) []Event {
	ev := []Event{*e.told(h, hardware.ReasonReleaseAsked, in.Why)}
	claimed, was, awaited := s.Claim != nil, s.Reserved, s.AwaitOS
	ev = append(ev, e.endClaim(ctx, m, h, s, "")...)
	// who calls home from now on is not awaited any more, claimed or not
	s.Reserved, s.AwaitOS = nil, false
	if r := in.Reserve; r != nil && claimed {
		s.Reserved = r.From(e.c.Now())
		ev = append(ev, *e.told(h, hardware.ReasonReserved, reservedWords(s.Reserved)))
	} else if was != nil && !claimed {
		ev = append(ev, *e.told(h, hardware.ReasonReservationEnded, "released by a human"))
	}
	if in.Unhealthy != "" {
		s.Unhealthy = hardware.PlainText(in.Unhealthy, 512)
		ev = append(ev, *e.told(h, hardware.ReasonUnhealthy, s.Unhealthy))
	}
	switch {
	case Unwiped(s) && !s.KeptUnwiped():
		s.State, s.Deadline = hardware.StateReleasing, e.c.Now().Add(StartWithin)
	case awaited:
		s.State = hardware.StateProvisioned // nothing else ends its install
	}
	return ev
}

// unreserve is a release of a machine that is being released already: an operator ends
// the reservation that comes after the wipe, and nobody else changes anything.
func (e *Engine) unreserve(h *hardware.Hardware, s *hardware.Status, in ReleaseInput) []Event {
	if s.Reserved == nil || in.Claim != "" {
		return nil
	}
	s.Reserved = nil
	return []Event{*e.told(h, hardware.ReasonReservationEnded, in.Why)}
}

// reservedWords is a reservation in words.
func reservedWords(r *hardware.Reservation) string {
	s := "for claims of " + r.For + " until " + clock(r.Until)
	if r.KeepDisks {
		s += ", with what is on its disks"
	}
	return s
}

// clock is a moment in words that do not change as time passes.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// giveUp is a release without a wipe. The workflow ends first, so that a stop of the
// daemon in between leaves a machine that its claim still holds.
func (e *Engine) giveUp(ctx context.Context, m *machine, in ReleaseInput) (string, []string, error) {
	h, mc, err := e.load(ctx, m.uid)
	if err != nil {
		return "", nil, err
	}
	if err := mayRelease(h, &mc.Status, in); err != nil {
		return "", nil, err
	}
	skipped := left(h, &mc.Status, m.active)
	if m.active != "" {
		why := "the machine was given up"
		if err := e.step(ctx, m, Input{Abort: &why}); err != nil {
			return "", nil, err
		}
	}
	dirty := Unwiped(&mc.Status)
	err = e.changes(ctx, m.uid, func(h *hardware.Hardware, mc *Machine) ([]Event, error) {
		s := &mc.Status
		if !dirty && s.Claim == nil && s.Reserved == nil {
			return nil, nil
		}
		ev := []Event{*e.told(h, hardware.ReasonReleaseAsked, in.Why)}
		ev = append(ev, e.endClaim(ctx, m, h, s, hardware.StoppedByHold)...)
		ev = append(ev, e.proven(h, s, hardware.StoppedByHold, "")...) // one that was awaited
		s.Reserved = nil
		if dirty {
			s.State, s.AwaitOS = hardware.StateFailed, false
			s.Hold, s.HoldReason, s.HoldSince = true, hardware.ReasonReleasedUnwiped, e.c.Now()
		}
		return ev, nil
	})
	if err != nil || !dirty {
		return "", nil, err
	}
	// the end of an install that was being cancelled for a release may have begun a wipe
	if m.active != "" {
		why := "the machine was given up"
		if err := e.step(ctx, m, Input{Abort: &why}); err != nil {
			return "", nil, err
		}
	}
	return "", append(skipped, "nothing was verified: it stays on hold"), nil
}

// makeWay cancels what runs on a machine that is being released, and begins its wipe
// when nothing does. The caller holds m.mu.
func (e *Engine) makeWay(ctx context.Context, m *machine) error {
	mc, err := e.c.Store.Machine(ctx, m.uid)
	if err != nil || !givenBack(&mc.Status) {
		return err
	}
	if m.active != "" && !e.releasing(ctx, m.active) {
		why := "the machine was released"
		if err := e.step(ctx, m, Input{Cancel: &why}); err != nil {
			return err
		}
	}
	return e.wipeNext(ctx, m)
}

// mayRelease says why a machine cannot be given back.
func mayRelease(h *hardware.Hardware, s *hardware.Status, in ReleaseInput) error {
	switch {
	case in.Claim != "" && (s.Claim == nil || s.Claim.ID != in.Claim) && s.State != hardware.StateReleasing:
		return fmt.Errorf("hardware %q is not held by claim %q: %w", h.Meta.Name, in.Claim, ErrConflict)
	case s.State == hardware.StateRetired:
		return cannot(h, "release", "the machine is retired")
	case s.State == hardware.StatePending:
		return cannot(h, "release", "the machine is pending (accept it first: rackstrap hardware accept %s)", h.Meta.Name)
	case h.Spec.Protect && !in.Force && Unwiped(s):
		return cannot(h, "release", "the record says protect: true, so its disks cannot be wiped (set it to false, or give it up without a wipe: rackstrap release %s --force)", h.Meta.Name)
	}
	return nil
}

// releasing reports whether the workflow is the one that wipes.
func (e *Engine) releasing(ctx context.Context, name string) bool {
	w, err := e.c.Store.Workflow(ctx, name)
	return err == nil && w.releases()
}

// wipeNext starts the wipe of a machine that is being released, once nothing else
// runs on it. The caller holds m.mu.
func (e *Engine) wipeNext(ctx context.Context, m *machine) error {
	if m.active != "" {
		return nil
	}
	h, mc, err := e.load(ctx, m.uid)
	if err != nil || mc.Status.State != hardware.StateReleasing || e.isActive(ctx, mc) || mc.Status.Maintenance {
		return err // in maintenance a human is at the machine: the sweep asks again
	}
	id := strings.ToLower(NewID(e.c.Now()))
	name := ReleaseTemplate + "-" + h.Meta.Name[:min(len(h.Meta.Name), 40)] + "-" + id[len(id)-8:]
	w, err := e.prepare(ctx, name, WorkflowSpec{Hardware: h.Meta.Name, Template: ReleaseTemplate, Purpose: PurposeRelease})
	if err == nil {
		err = e.start(ctx, m, w)
	}
	var bad *hardware.Invalid
	if errors.As(err, &bad) {
		// an edited template, a record that was protected since: this ends here, in words
		return e.change(ctx, m.uid, func(h *hardware.Hardware, mc *Machine) (*Event, error) {
			mc.Status.State = hardware.StateFailed
			mc.Status.Failures++
			return e.told(h, hardware.ReasonNotWiped, bad.Error()), nil
		})
	}
	return err
}

// releaseNext is makeWay where nobody waits for the answer: after a workflow's end and
// at start. What fails now is tried again by the sweep. The caller holds m.mu.
func (e *Engine) releaseNext(ctx context.Context, m *machine) {
	if err := e.makeWay(context.WithoutCancel(ctx), m); err != nil {
		e.c.Log.Error("the wipe of a released machine is not started", "hardware", m.uid, "err", err)
	}
}

// givenBack reports whether something is to be done for a machine that nobody has any
// more: its system is to be stopped, its disks are to be wiped, it is kept for a group.
func givenBack(s *hardware.Status) bool {
	return s.State == hardware.StateReleasing || s.Claim == nil && (s.Stopping.Awaited() || s.Reserved != nil)
}

// resume goes on with releases that a stop of the daemon left between two workflows.
func (e *Engine) resume(ctx context.Context) {
	if e.c.Machines == nil {
		return
	}
	for _, h := range e.c.Machines() {
		if !givenBack(&h.Status) {
			continue
		}
		m := e.machine(h.Meta.UID)
		m.mu.Lock()
		if err := e.stopNext(ctx, m); err != nil {
			e.c.Log.Error("a machine that was given back is not stopped", "hardware", h.Meta.Name, "err", err)
		}
		e.releaseNext(ctx, m)
		m.mu.Unlock()
	}
}
