package workflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// sweepEvery is how often every machine is looked at: for issues, for deadlines that
// no workflow keeps, for machines that a power cycle may help.
const sweepEvery = 10 * time.Second

func (e *Engine) sweep(ctx context.Context) {
	if e.c.Machines == nil {
		return
	}
	e.enrolSweep(ctx)
	for _, h := range e.c.Machines() {
		if ctx.Err() != nil {
			return
		}
		if err := errors.Join(e.late(ctx, h), e.look(ctx, h)); err != nil && ctx.Err() == nil && !errors.Is(err, ErrNotFound) {
			e.c.Log.Error("machine not looked at", "hardware", h.Meta.Name, "err", err)
		}
	}
}

// late ends what no workflow ends: a system that does not phone home, a reservation
// that nobody claimed. It also starts a wipe that could not be started before, and goes
// on with a machine that is to be stopped.
func (e *Engine) late(ctx context.Context, h *hardware.Hardware) error {
	back := givenBack(&h.Status)
	if !back && !h.Status.AwaitOS {
		return nil // nearly always: decided on the shared value, without a lock
	}
	m := e.machine(h.Meta.UID)
	m.mu.Lock()
	defer m.mu.Unlock()
	if back {
		return errors.Join(e.stopNext(ctx, m), e.reservationOver(ctx, m), e.makeWay(ctx, m))
	}
	return e.change(ctx, m.uid, func(h *hardware.Hardware, mc *Machine) (*Event, error) {
		s := &mc.Status
		if !s.AwaitOS || e.c.Now().Before(s.Deadline) {
			return nil, nil
		}
		s.AwaitOS, s.State = false, hardware.StateFailed
		s.Failures++
		return e.told(h, hardware.ReasonOSNotUp, fmt.Sprintf("it did not phone home within %v", PhoneHomeWithin)), nil
	})
}

// reservationOver ends a reservation whose time has passed: what is on the disks is
// wiped then. The caller holds m.mu.
func (e *Engine) reservationOver(ctx context.Context, m *machine) error {
	return e.changes(ctx, m.uid, func(h *hardware.Hardware, mc *Machine) ([]Event, error) {
		s := &mc.Status
		r := s.Reserved
		restored := s.Hold && s.HoldReason == hardware.ReasonRestored // it may be somebody's since
		if r == nil || s.Claim != nil || restored || e.c.Now().Before(r.Until) {
			return nil, nil
		}
		s.Reserved = nil
		if r.KeepDisks && Unwiped(s) {
			s.State, s.Deadline = hardware.StateReleasing, e.c.Now().Add(StartWithin)
		}
		return []Event{*e.told(h, hardware.ReasonReservationEnded, "nobody of "+r.For+" claimed it until "+clock(r.Until))}, nil
	})
}
