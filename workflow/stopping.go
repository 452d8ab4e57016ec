package workflow

import (
	"context"
	"fmt"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

const (
	// StopWithin is how long after the end of a claim its machine has to be known to have
	// stopped, where the configuration does not say.
	StopWithin = 15 * time.Minute
	// stopTime bounds one errand that switches a machine off and asks whether it is.
	stopTime = 2 * time.Minute
	// stopPause is the first pause before the next one; it doubles up to stopPauseMax.
	stopPause    = 2 * time.Second
	stopPauseMax = 30 * time.Second
)

// mayRun reports whether a system may run on the machine that was installed under its
// claim, or under none; wrote says that its workflow wrote to a disk. What was kept on
// its disks for the claim's group did not run as long as the machine stayed off: once it
// was started, its firmware may have gone on to the disk while nobody answered it.
func mayRun(h *hardware.Hardware, s *hardware.Status, wrote bool) bool {
	p := &s.Power
	switch {
	case s.KeptUnwiped() && p.Asked == "off" && p.State == hardware.PowerOff:
		return false
	case h.Spec.Netboot.IPXE != nil:
		return true // a system of the operator's that needs no disk
	case s.Installed || s.AwaitOS || len(s.Dirty) > 0 || s.State == hardware.StateProvisioned:
		return true
	}
	return wrote && s.State != hardware.StateAvailable
}

// wrote reports whether the machine's workflow, the active or the last one, may have
// written to a disk.
func (e *Engine) wrote(ctx context.Context, s *hardware.Status) bool {
	if s.Workflow == "" {
		return false
	}
	w, err := e.c.Store.Workflow(ctx, s.Workflow)
	return err != nil || w.wrote()
}

// endClaim ends the machine's claim in its value, and says what is known of its system:
// given, where it is not empty, is how that is known where it may run. The store ends
// the claim's record in the same transaction. The caller holds m.mu.
func (e *Engine) endClaim(ctx context.Context, m *machine, h *hardware.Hardware, s *hardware.Status, given hardware.StoppedBy) []Event {
	if s.Claim == nil {
		return nil
	}
	now := e.c.Now()
	s.Stopping = &hardware.Stopping{Claim: s.Claim.ID, Since: now, Until: now.Add(e.stopWithin())}
	by := given
	switch {
	case !mayRun(h, s, e.wrote(ctx, s)) && !(m.switches && s.KeptUnwiped()):
		by = hardware.StoppedNeverRan
	case by == "" && m.session != nil && !m.session.leaving && !m.switches:
		by = hardware.StoppedByWorker
	}
	s.Claim, s.AwaitOS = nil, false
	if by == "" {
		return nil
	}
	if by != hardware.StoppedByHold {
		m.stops++
	}
	return e.proven(h, s, by, "")
}

func (e *Engine) stopWithin() time.Duration {
	if e.c.StopWithin > 0 {
		return e.c.StopWithin
	}
	return StopWithin
}

// prove notes how it is known that the machine's last system runs no more.
func prove(s *hardware.Status, by hardware.StoppedBy, at time.Time) {
	st := *s.Stopping
	st.Stopped = &hardware.Stopped{At: at, By: by}
	s.Stopping = &st
}

// proven is prove where a proof is awaited, and what the timeline says of it.
func (e *Engine) proven(h *hardware.Hardware, s *hardware.Status, by hardware.StoppedBy, note string) []Event {
	if !s.Stopping.Awaited() {
		return nil
	}
	prove(s, by, e.c.Now())
	r := hardware.ReasonStopped
	if by == hardware.StoppedByHold {
		r = hardware.ReasonNotStopped
	}
	detail := fmt.Sprintf("claim %s: %s", s.Stopping.Claim, stoppedWords(by))
	if note != "" {
		detail += "; " + note
	}
	return []Event{*e.told(h, r, detail)}
}

// stoppedWords is a proof in words.
func stoppedWords(by hardware.StoppedBy) string {
	switch by {
	case hardware.StoppedNeverRan:
		return "nothing of it ran (never-ran)"
	case hardware.StoppedByPowerOff:
		return "the power controller says that the machine is off (power-off)"
	case hardware.StoppedByWorker:
		return "the worker runs in the machine (worker)"
	case hardware.StoppedByHold:
		return "nobody knows, and it is refused its disk (hold)"
	}
	return string(by)
}

// switched reports whether the machine's power can be controlled without a person.
func (e *Engine) switched(h *hardware.Hardware) bool {
	p := h.Spec.Power
	return e.c.Power != nil && p != nil && p.Driver != "" && p.Driver != hardware.PowerManual
}

// stopped writes a proof that came by itself. The caller holds m.mu.
func (e *Engine) stopped(ctx context.Context, m *machine, by hardware.StoppedBy) error {
	return e.changes(ctx, m.uid, func(h *hardware.Hardware, mc *Machine) ([]Event, error) {
		ev := e.proven(h, &mc.Status, by, "")
		if len(ev) > 0 {
			m.stops++
		}
		return ev, nil
	})
}

// stopNext does what is next to know that the last system of a machine runs no more, by
// what is stored, and sets when it wants to be called again: until then the machine is
// left alone. It begins nothing that waits. The caller holds m.mu.
func (e *Engine) stopNext(ctx context.Context, m *machine) error {
	m.stopWake = time.Time{}
	h, mc, err := e.load(ctx, m.uid)
	if err != nil {
		return err
	}
	st, now := mc.Status.Stopping, e.c.Now()
	switch {
	case st == nil, mc.Status.Hold && mc.Status.HoldReason == hardware.ReasonRestored:
		return nil // what the backup says may be long over
	case st.Stopped != nil:
		e.powerBack(m, &mc.Status)
		return nil
	case !now.Before(st.Until):
		return e.holdRunning(ctx, m)
	}
	m.stopWake = st.Until
	if !e.switched(h) || mc.Status.Maintenance || m.stopping {
		return nil // the worker's coming is the proof; in maintenance a human is at the machine
	}
	if now.Before(m.stopAgain) {
		m.stopWake = earlier(m.stopWake, m.stopAgain)
		return nil
	}
	e.switchOff(m, h)
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// powerBack starts a machine that was switched off for its proof, for the workflow that
// waits for it. The caller holds m.mu.
func (e *Engine) powerBack(m *machine, s *hardware.Status) {
	p, proof := &s.Power, s.Stopping.Stopped
	if proof.By == hardware.StoppedByPowerOff && m.active != "" && m.session == nil && p.Asked == "off" && !p.AskedAt.After(proof.At) {
		e.netboot(m.uid, m.active)
	}
}

// holdRunning ends the wait: the machine waits for a human, and is refused its disk.
func (e *Engine) holdRunning(ctx context.Context, m *machine) error {
	return e.changes(ctx, m.uid, func(h *hardware.Hardware, mc *Machine) ([]Event, error) {
		s := &mc.Status
		ev := e.proven(h, s, hardware.StoppedByHold, fmt.Sprintf("no proof within %v; on hold", s.Stopping.Until.Sub(s.Stopping.Since)))
		if len(ev) > 0 && !s.Hold {
			s.Hold, s.HoldReason, s.HoldSince = true, hardware.ReasonNotStopped, e.c.Now()
		}
		return ev, nil
	})
}

// switchOff has the machine switched off, in the background, and asks its controller
// whether it is: that it was told so proves nothing. The caller holds m.mu.
func (e *Engine) switchOff(m *machine, h *hardware.Hardware) {
	ctx, done, ok := e.errand()
	if !ok {
		return
	}
	m.stopping = true
	go func() {
		defer done()
		off, end := e.off(ctx, m, h)
		defer end()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.stopping = false
		m.stopAgain = e.c.Now().Add(min(stopPause<<min(m.stopTries, 8), stopPauseMax))
		m.stopTries++
		if err := e.isOff(ctx, m, off); err != nil && ctx.Err() == nil {
			e.c.Log.Error("a machine that was given back is not seen to be off", "hardware", h.Meta.Name, "err", err)
		}
	}()
}

// off asks for the power off, and whether it is. Until end is called nobody else asks the
// controller for anything: what waits for its turn must not switch the machine on again
// between the answer and the proof that is made of it.
func (e *Engine) off(ctx context.Context, m *machine, h *hardware.Hardware) (off bool, end func()) {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	end, err := m.turn(ctx)
	if err != nil {
		return false, func() {}
	}
	if _, err := e.ask(ctx, m, h, powerCall{action: "off"}); err != nil {
		return false, end // it is in the timeline and an issue
	}
	out, err := e.ask(ctx, m, h, powerCall{action: "status"})
	return err == nil && out.Driver != hardware.PowerManual && out.State == hardware.PowerOff, end
}

// isOff goes on after an errand that switched the machine off, or did not. The caller
// holds m.mu.
func (e *Engine) isOff(ctx context.Context, m *machine, off bool) error {
	if !off {
		m.stopWake = m.stopAgain
		if m.session != nil && !m.session.leaving { // it came while the controller was asked
			return e.stopped(ctx, m, hardware.StoppedByWorker)
		}
		return nil
	}
	if m.session != nil { // it died with the power
		m.session.close("the machine was switched off")
		m.session, m.left = nil, e.c.Now()
	}
	if err := e.stopped(ctx, m, hardware.StoppedByPowerOff); err != nil {
		m.stopWake = m.stopAgain
		return err
	}
	m.stopWake, m.stopAgain, m.stopTries = time.Time{}, time.Time{}, 0
	if m.active != "" {
		e.netboot(m.uid, m.active)
	}
	return nil
}

// errand is a call to a controller that outlives its caller; done is called at its end.
// ok is false where the engine does not run, or has no controller.
func (e *Engine) errand() (ctx context.Context, done func(), ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running == nil || e.c.Power == nil || e.running.Err() != nil {
		return nil, nil, false
	}
	e.errands.Add(1)
	return e.running, e.errands.Done, true
}
