package workflow

import (
	"context"
	"fmt"
	"slices"

	"github.com/rackstrap/rackstrap/hardware"
)

// look finds a machine's issues anew and writes them where they changed.
func (e *Engine) look(ctx context.Context, h *hardware.Hardware) error {
	m := e.machine(h.Meta.UID)
	m.mu.Lock()
	defer m.mu.Unlock()
	if quiet(h) && m.active == "" && !m.ended && len(h.Status.Issues) == 0 {
		return nil // nearly always
	}
	s, err := e.snapshot(ctx, m)
	if err != nil {
		return err
	}
	found := Issues(s)
	if !slices.EqualFunc(found, s.Hardware.Status.Issues, sameIssue) {
		err = e.change(ctx, m.uid, func(h *hardware.Hardware, mc *Machine) (*Event, error) {
			was := mc.Status.Issues
			mc.Status.Issues = found
			return e.issueEvent(h, was, found), nil
		})
	}
	if err == nil {
		m.ended = false
		e.help(m, s, found)
	}
	return err
}

func sameIssue(a, b hardware.Issue) bool {
	return a.Kind == b.Kind && a.Severity == b.Severity && a.Since.Equal(b.Since) && a.Detail == b.Detail && a.Fix == b.Fix
}

// quiet reports whether nothing about the machine can be an issue.
func quiet(h *hardware.Hardware) bool {
	s := &h.Status
	return !s.State.Moving() && s.State != hardware.StateFailed && s.State != hardware.StatePending && !s.Hold && s.Failures == 0 && s.Unhealthy == "" && s.Power.Error == "" &&
		!s.Disputed() && !s.Netboots.Looping()
}

// snapshot is what is known of a machine. The caller holds m.mu.
func (e *Engine) snapshot(ctx context.Context, m *machine) (Snapshot, error) {
	h, mc, err := e.load(ctx, m.uid)
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{Now: e.c.Now(), Hardware: h, Boot: mc.Boot, WorkerConnected: m.session != nil, WorkerLeft: e.workerLeft(m)}
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

// help cycles the power of a machine that did not come, or hangs on its way, if
// its controller can do that without a person.
func (e *Engine) help(m *machine, s Snapshot, found []hardware.Issue) {
	p, c := s.Hardware.Status.Power, s.Hardware.Spec.Power
	if c == nil || c.Driver == hardware.PowerManual || m.active == "" || m.session != nil || s.Hardware.Status.Maintenance ||
		p.Tries >= powerTries || s.Now.Sub(p.AskedAt) < powerAgain {
		return
	}
	for _, i := range found {
		if i.Severity != hardware.SeverityError {
			continue // a machine in its self test comes back by itself, if it is left alone
		}
		switch i.Kind {
		case hardware.IssueNeverSeen, hardware.IssueBootStuck, hardware.IssueWorkerLost, hardware.IssuePowerFailed:
			e.netboot(m.uid, m.active)
			return
		}
	}
}
