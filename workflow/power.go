package workflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Power switches machines. It may take long and is called without a lock.
type Power interface {
	// Do asks a machine's controller for on, off, cycle or status; nextBoot is
	// network, disk, or empty for the firmware's own order. Its error says in words
	// what the controller said.
	Do(ctx context.Context, h *hardware.Hardware, action, nextBoot string) (PowerOutcome, error)
}

// PowerOutcome is what a controller did.
type PowerOutcome struct {
	// Driver is the driver's name.
	Driver string
	State  hardware.PowerState
	// Message is for people. With the driver manual nothing happened yet, and it is
	// what somebody has to do; with others it is what their controller said.
	Message string
}

const (
	// powerTime bounds one errand to a controller, with its retries, which have their
	// own end, and the wait for its turn where a whole rack is switched at once.
	powerTime = 10 * time.Minute
	// powerAgain is the least time between two things that the appliance asks of a
	// machine's power by itself, and powerTries how often it does for one workflow.
	powerAgain = 10 * time.Minute
	powerTries = 3
	// lookAfter is how long after a controller's answer a worker that was connected then
	// is looked at again: many answer first and switch then.
	lookAfter = 30 * time.Second
)

// powerCall is something that is asked of a machine's power.
type powerCall struct {
	action, nextBoot string
	workflow         string // the one that waits for it, if one does
	stops            uint64 // the machine's, when it was asked
}

// Power does what a person asked of a machine's power, and notes it. ErrConflict: it was
// not done, because the machine was given back and seen to have stopped meanwhile.
func (e *Engine) Power(ctx context.Context, uid, action, nextBoot string) (PowerOutcome, error) {
	m := e.machine(uid)
	m.mu.Lock()
	c := powerCall{action: action, nextBoot: nextBoot, stops: m.stops}
	m.mu.Unlock()
	h, err := e.c.Store.Hardware(ctx, uid)
	if err != nil {
		return PowerOutcome{}, err
	}
	return e.power(ctx, m, h, c)
}

// power does it when it is its turn: one after the other in the order of the calls, and
// none that was asked before the machine was seen to have stopped.
func (e *Engine) power(ctx context.Context, m *machine, h *hardware.Hardware, c powerCall) (PowerOutcome, error) {
	ctx, cancel := context.WithTimeout(ctx, powerTime)
	defer cancel()
	done, err := m.turn(ctx)
	if err != nil {
		return PowerOutcome{}, e.asked(ctx, m, c, e.c.Now(), PowerOutcome{}, err)
	}
	defer done()
	m.mu.Lock()
	late := m.stops != c.stops && c.action != "status"
	m.switches = !late && c.action != "status"
	m.mu.Unlock()
	if late {
		return PowerOutcome{}, fmt.Errorf("hardware %q: %s is not done: the machine was given back and seen to have stopped after that was asked (ask again if it is still meant): %w", h.Meta.Name, c.action, ErrConflict)
	}
	defer func() {
		m.mu.Lock()
		m.switches = false
		m.doubted, m.look = m.session, e.c.Now().Add(lookAfter)
		m.mu.Unlock()
	}()
	return e.ask(ctx, m, h, c)
}

// lookAgain ends the connection of a worker that was there while its machine was being
// switched, where it is to be known whether the last system runs: whoever lives comes
// back at once, and that is the proof which its first coming could not be. The caller
// holds m.mu.
func (e *Engine) lookAgain(ctx context.Context, m *machine, now time.Time) error {
	s := m.doubted
	if s == nil || now.Before(m.look) {
		return nil
	}
	if m.session != s || s.leaving {
		m.doubted = nil
		return nil
	}
	mc, err := e.c.Store.Machine(ctx, m.uid)
	if err != nil && !errors.Is(err, ErrNotFound) {
		m.look = now.Add(lookAfter) // the doubt stays until it can be read
		return err
	}
	m.doubted = nil
	if err != nil || !mc.Status.Stopping.Awaited() {
		return nil // gone, or nobody waits for a proof
	}
	s.close("the machine was being switched when this worker came: connect again")
	m.session, m.left = nil, now
	return nil
}

// turn waits until nobody else asks the machine's controller for something; done lets the
// next one in. What holds it between two calls sees to it that nothing comes in between.
func (m *machine) turn(ctx context.Context) (done func(), err error) {
	select {
	case m.controller <- struct{}{}:
		return func() { <-m.controller }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("another request to its power controller is under way: %w", ctx.Err())
	}
}

// ask asks the controller, whose turn the caller has, and notes what it said.
func (e *Engine) ask(ctx context.Context, m *machine, h *hardware.Hardware, c powerCall) (PowerOutcome, error) {
	at := e.c.Now()
	out, err := e.c.Power.Do(ctx, h, c.action, c.nextBoot)
	return out, e.asked(ctx, m, c, at, out, err)
}

// asked notes what came of a call that began at asked; it returns err, or the store's.
func (e *Engine) asked(ctx context.Context, m *machine, c powerCall, asked time.Time, out PowerOutcome, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	werr := e.change(context.WithoutCancel(ctx), m.uid, func(h *hardware.Hardware, mc *Machine) (*Event, error) {
		p := &mc.Status.Power
		was := *p
		p.Error = ""
		r, detail := hardware.ReasonPowerDone, c.action
		if c.nextBoot != "" {
			detail += ", next boot from " + c.nextBoot
		}
		switch {
		case err != nil:
			p.Error = hardware.PlainText(err.Error(), 512)
			r, detail = hardware.ReasonPowerFailed, detail+": "+p.Error
		case out.Driver == hardware.PowerManual:
			r, detail = hardware.ReasonPowerByHand, out.Message
		default:
			if out.State != hardware.PowerUnknown {
				p.State, p.Checked = out.State, e.c.Now()
			}
			if out.Message != "" {
				detail += ": " + out.Message
			}
		}
		if c.action == "status" {
			if p.State == was.State && p.Error == was.Error {
				return nil, nil // asked often, and nothing new
			}
			if err == nil {
				detail += ": " + string(p.State)
			}
		} else {
			p.Asked, p.AskedAt = c.action, asked
		}
		if c.workflow != "" {
			p.Tries++
		}
		if err == nil && out.Driver != hardware.PowerManual && (c.action == "cycle" || c.action == "off") && mc.Boot != nil && mc.Boot.Started.Before(asked) {
			// whatever it was doing ended with the power: its next DISCOVER is another boot
			b := *mc.Boot
			b.Closed = true
			mc.Boot = &b
		}
		ev := e.event(h, "", r, detail)
		ev.Workflow = c.workflow
		ev.Took = hardware.Duration(e.c.Now().Sub(asked))
		return &ev, nil
	})
	if err == nil {
		err = werr
	}
	return err
}

// netboot makes a machine netboot for its workflow, in the background. A machine
// that would not be given the worker is left alone, and so is one whose controller
// is still at it for this workflow: another cycle would cut the boot short. The
// caller holds m.mu.
func (e *Engine) netboot(uid, workflow string) {
	m := e.machine(uid)
	if m.switching == workflow {
		return
	}
	ctx, done, ok := e.errand()
	if !ok {
		return
	}
	m.switching = workflow
	go func() {
		defer done()
		for {
			h, stops := e.needsSwitch(ctx, m, workflow)
			if h == nil {
				return
			}
			c := powerCall{action: "cycle", nextBoot: "network", workflow: workflow, stops: stops}
			if p := &h.Status.Power; p.State == hardware.PowerOff && (p.Asked == "off" || p.Asked == "on" && p.Error != "") {
				c.action = "on" // not every controller cycles a machine that is off
			}
			// what went wrong is in the timeline and an issue
			if _, err := e.power(ctx, m, h, c); !errors.Is(err, ErrConflict) {
				break
			}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.switching == workflow {
			m.switching = ""
		}
	}()
}

// needsSwitch is the machine, if it would be given the worker and has none, and its
// stops; else nil, and whoever asks next is not in the way of anybody.
func (e *Engine) needsSwitch(ctx context.Context, m *machine, workflow string) (*hardware.Hardware, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, mc, err := e.load(ctx, m.uid)
	off := err == nil && h.Status.Stopping.Awaited() && e.switched(h) // it is switched off first
	if err != nil || off || m.session != nil || h.Status.Maintenance || e.next(ctx, h, mc).Target != hardware.TargetWorker {
		if m.switching == workflow {
			m.switching = ""
		}
		return nil, 0
	}
	return h, m.stops
}
