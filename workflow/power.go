package workflow

import (
	"context"
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
)

// Power does what a person asked of a machine's power, and notes it.
func (e *Engine) Power(ctx context.Context, uid, action, nextBoot string) (PowerOutcome, error) {
	h, err := e.c.Store.Hardware(ctx, uid)
	if err != nil {
		return PowerOutcome{}, err
	}
	return e.power(ctx, h, action, nextBoot, "")
}

func (e *Engine) power(ctx context.Context, h *hardware.Hardware, action, nextBoot, workflow string) (PowerOutcome, error) {
	ctx, cancel := context.WithTimeout(ctx, powerTime)
	defer cancel()
	asked := e.c.Now()
	out, err := e.c.Power.Do(ctx, h, action, nextBoot)
	m := e.machine(h.Meta.UID)
	m.mu.Lock()
	defer m.mu.Unlock()
	werr := e.change(context.WithoutCancel(ctx), m.uid, func(h *hardware.Hardware, mc *Machine) (*Event, error) {
		p := &mc.Status.Power
		was := *p
		p.Error = ""
		r, detail := hardware.ReasonPowerDone, action
		if nextBoot != "" {
			detail += ", next boot from " + nextBoot
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
		if action == "status" {
			if p.State == was.State && p.Error == was.Error {
				return nil, nil // asked often, and nothing new
			}
			if err == nil {
				detail += ": " + string(p.State)
			}
		} else {
			p.Asked, p.AskedAt = action, asked
		}
		if workflow != "" {
			p.Tries++
		}
		if err == nil && out.Driver != hardware.PowerManual && (action == "cycle" || action == "off") && mc.Boot != nil && mc.Boot.Started.Before(asked) {
			// whatever it was doing ended with the power: its next DISCOVER is another boot
			b := *mc.Boot
			b.Closed = true
			mc.Boot = &b
		}
		ev := e.event(h, "", r, detail)
		ev.Workflow = workflow
		ev.Took = hardware.Duration(e.c.Now().Sub(asked))
		return &ev, nil
	})
	if err == nil {
		err = werr
	}
	return out, err
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
		if h := e.needsSwitch(ctx, m, workflow); h != nil {
			action := "cycle"
			if p := &h.Status.Power; p.State == hardware.PowerOff && (p.Asked == "off" || p.Asked == "on" && p.Error != "") {
				action = "on" // not every controller cycles a machine that is off
			}
			// what went wrong is in the timeline and an issue
			_, _ = e.power(ctx, h, action, "network", workflow)
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.switching == workflow {
				m.switching = ""
			}
		}
	}()
}

// needsSwitch is the machine, if it would be given the worker and has none; else nil,
// and whoever asks next is not in the way of anybody.
func (e *Engine) needsSwitch(ctx context.Context, m *machine, workflow string) *hardware.Hardware {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, mc, err := e.load(ctx, m.uid)
	off := err == nil && h.Status.Stopping.Awaited() && e.switched(h) // it is switched off first
	if err != nil || off || m.session != nil || h.Status.Maintenance || e.next(ctx, h, mc).Target != hardware.TargetWorker {
		if m.switching == workflow {
			m.switching = ""
		}
		return nil
	}
	return h
}
