package workflow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// sweepEvery is how often every machine is looked at: for issues, for deadlines
// that no workflow keeps, for machines that a power cycle may help.
const sweepEvery = 10 * time.Second

func (e *Engine) sweep(ctx context.Context) {
	if e.c.Machines == nil {
		return
	}
	for _, h := range e.c.Machines() {
		if ctx.Err() != nil {
			return
		}
		if err := e.look(ctx, h); err != nil {
			e.c.Log.Error("machine not looked at", "hardware", h.Meta.Name, "err", err)
		}
	}
}

// look finds a machine's issues anew and writes them where they changed. Nearly
// always nothing did, so the decision is made on shared values without a lock, and
// made again under it.
func (e *Engine) look(ctx context.Context, h *hardware.Hardware) error {
	if h.Status.State == hardware.StateReleasing || h.Status.AwaitOS {
		if err := e.late(ctx, h); err != nil {
			return err
		}
	}
	if quiet(h) && len(h.Status.Issues) == 0 {
		return nil
	}
	m := e.machine(h.Meta.UID)
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := e.snapshot(ctx, m)
	if err != nil {
		return err
	}
	found := Issues(s)
	if slices.Equal(found, s.Hardware.Status.Issues) {
		e.help(m, s, found)
		return nil
	}
	err = e.change(ctx, m.uid, func(h *hardware.Hardware, mc *Machine) (*Event, error) {
		was := mc.Status.Issues
		mc.Status.Issues = found
		return e.issueEvent(h, was, found), nil
	})
	if err == nil {
		e.help(m, s, found)
	}
	return err
}

// quiet reports whether nothing about the machine can be an issue.
func quiet(h *hardware.Hardware) bool {
	s := &h.Status
	return !s.State.Moving() && s.State != hardware.StateFailed && s.State != hardware.StatePending && !s.Hold && s.Failures == 0 && s.Power.Error == ""
}

// snapshot is what is known of a machine. The caller holds m.mu.
func (e *Engine) snapshot(ctx context.Context, m *machine) (Snapshot, error) {
	h, mc, err := e.load(ctx, m.uid)
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{Now: e.c.Now(), Hardware: h, Boot: mc.Boot, WorkerConnected: m.session != nil}
	if e.c.Subnets != nil {
		s.Subnets = e.c.Subnets()
	}
	if name := mc.Status.Workflow; name != "" {
		if w, err := e.c.Store.Workflow(ctx, name); err == nil && w.Status.HardwareUID == m.uid {
			s.Workflow = w
		}
	}
	return s, nil
}

// issueEvent is the one event of a change of issues, nil where only words changed.
func (e *Engine) issueEvent(h *hardware.Hardware, was, is []hardware.Issue) *Event {
	has := func(l []hardware.Issue, k hardware.IssueKind) bool {
		return slices.ContainsFunc(l, func(i hardware.Issue) bool { return i.Kind == k })
	}
	for _, i := range is {
		if !has(was, i.Kind) {
			return e.told(h, hardware.ReasonIssueOpened, fmt.Sprintf("%s: %s", i.Kind, i.Detail))
		}
	}
	for _, i := range was {
		if !has(is, i.Kind) {
			return e.told(h, hardware.ReasonIssueClosed, string(i.Kind))
		}
	}
	return e.told(h, hardware.ReasonIssueChanged, "")
}

// late ends what no workflow ends: a system that does not phone home. It also
// starts a wipe that could not be started before.
func (e *Engine) late(ctx context.Context, h *hardware.Hardware) error {
	m := e.machine(h.Meta.UID)
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.Status.State == hardware.StateReleasing {
		return e.wipeNext(ctx, m)
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

// help cycles the power of a machine that did not come, or hangs on its way, if
// its controller can do that without a person.
func (e *Engine) help(m *machine, s Snapshot, found []hardware.Issue) {
	p, c := s.Hardware.Status.Power, s.Hardware.Spec.Power
	if c == nil || c.Driver == hardware.PowerManual || m.active == "" || m.session != nil || s.Hardware.Status.Maintenance ||
		p.Tries >= powerTries || s.Now.Sub(p.AskedAt) < powerAgain {
		return
	}
	for _, i := range found {
		switch i.Kind {
		case hardware.IssueNeverSeen, hardware.IssueBootStuck, hardware.IssueWorkerLost, hardware.IssuePowerFailed:
			e.netboot(m.uid, m.active)
			return
		}
	}
}
