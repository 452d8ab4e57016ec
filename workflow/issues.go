package workflow

import (
	"cmp"
	"slices"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// How long something may take before it is an issue.
const (
	// NeverSeenAfter: a server's self test takes two to four minutes before its
	// network port asks for an address.
	NeverSeenAfter = 5 * time.Minute
	// NeverSeenByHand: a person has to walk to the machine first.
	NeverSeenByHand = 30 * time.Minute
	// BootStuckAfter: no step of a boot takes longer, not even an initramfs of 50 MB at
	// 10 Mbit/s; a step that fails is repeated within a minute.
	BootStuckAfter = 5 * time.Minute
	// WorkerLostAfter: a worker connects again within seconds. A machine that restarted
	// is longer on its way, and then its boot is looked at.
	WorkerLostAfter = 2 * time.Minute
	// WorkerGoneAfter: no self test is that long; it will not come by itself.
	WorkerGoneAfter = 15 * time.Minute
	// OSUpAfter: a restart and a first start of cloud-init.
	OSUpAfter = 10 * time.Minute
)

// finding is an issue that is one from a moment on. Of several of one kind the one
// that counts is the worst whose moment has come.
type finding struct {
	kind      hardware.IssueKind
	severity  hardware.Severity
	since, at time.Time
	// text makes detail and fix; they must not change by the passing of time.
	text func() (detail, fix string)
}

// Issues is what keeps a machine from getting on, the worst first. The same snapshot
// at another time gives the same Since, Detail and Fix.
func Issues(s Snapshot) []hardware.Issue {
	var best []finding
	for _, f := range s.findings() {
		if f.at.After(s.Now) {
			continue
		}
		i := slices.IndexFunc(best, func(b finding) bool { return b.kind == f.kind })
		switch {
		case i < 0:
			best = append(best, f)
		case rank(f.severity) < rank(best[i].severity):
			best[i] = f
		}
	}
	slices.SortStableFunc(best, func(a, b finding) int { return cmp.Compare(rank(a.severity), rank(b.severity)) })
	var out []hardware.Issue
	for _, f := range best {
		detail, fix := f.text()
		out = append(out, hardware.Issue{Kind: f.kind, Severity: f.severity, Since: f.since, Detail: detail, Fix: fix})
	}
	return out
}

// NextIssueAt is the next moment at which Issues changes if nothing but time happens;
// zero is never.
func NextIssueAt(s Snapshot) time.Time {
	var next time.Time
	for _, f := range s.findings() {
		if f.at.After(s.Now) && (next.IsZero() || f.at.Before(next)) {
			next = f.at
		}
	}
	return next
}

func rank(s hardware.Severity) int {
	switch s {
	case hardware.SeverityError:
		return 0
	case hardware.SeverityWarning:
		return 1
	}
	return 2
}

// findings are all issues that a machine has or will have, the more telling first
// among those of one severity. They do not depend on s.Now.
func (s *Snapshot) findings() []finding {
	st := &s.hw().Status
	if s.state() == hardware.StateRetired {
		return nil
	}
	var out []finding
	add := func(fs ...finding) { out = append(out, fs...) }
	if st.Hold {
		add(s.held())
	}
	if s.looping() {
		add(s.diskLoop())
	}
	if st.Disputed() {
		add(s.disputed())
	}
	if s.state() == hardware.StatePending {
		add(s.pending())
	}
	if st.Quarantined() {
		add(s.quarantined())
	}
	if s.state() == hardware.StateFailed {
		add(s.failed())
	}
	if st.Power.Error != "" {
		add(s.powerFailed())
	}
	if s.active() != nil && (s.byHand() || !st.Stopping.Awaited()) { // else it is switched off first
		add(s.waiting()...)
	}
	if st.AwaitOS {
		add(s.noOS()...)
	}
	if !st.Deadline.IsZero() && !st.AwaitOS && s.state().Moving() {
		add(s.overdue())
	}
	if w := s.Workflow; w != nil && s.active() == nil && s.state() != hardware.StateFailed {
		add(s.lastFailed()...)
	}
	if st.Maintenance {
		// somebody is at it, and knows
		out = slices.DeleteFunc(out, func(f finding) bool { return f.severity != hardware.SeverityInfo })
	}
	return out
}

// waiting is what keeps an active workflow from getting on.
func (s *Snapshot) waiting() []finding {
	n := s.hw().Spec.Netboot
	switch {
	case s.hw().Status.Hold || s.state() == hardware.StatePending:
		return nil // said already
	case !n.PXE() || !n.Workflow() || n.IPXE != nil:
		return []finding{s.denied()}
	case s.WorkerConnected:
		return s.retrying()
	}
	out := s.retrying()
	b := s.boot()
	switch {
	case b != nil && b.Phase >= hardware.PhaseWorker:
		out = append(s.lost(b), out...)
	case b != nil:
		out = append(out, s.stuck(b))
	case s.active().Status.State == StateRunning:
		out = append(s.lost(nil), out...)
	}
	if b == nil || b.Phase < hardware.PhaseAddress {
		if f, ok := s.noAddress(); ok {
			return append([]finding{f}, out...)
		}
	}
	return append(out, s.neverSeen(b)...)
}

// neverSeen is a machine of which no boot began since it should have.
func (s *Snapshot) neverSeen(b *hardware.Boot) []finding {
	w, on := s.active(), s.poweredOn()
	f := finding{kind: hardware.IssueNeverSeen, since: w.Meta.Created, text: s.neverSeenText}
	warn := f
	switch {
	case b != nil && !b.Started.Before(on):
		return nil
	case b == nil && w.Status.State == StateRunning && on.IsZero():
		return nil // its worker is lost
	case !on.Before(w.Meta.Created):
		f.since = on
		fallthrough
	case !s.byHand():
		f.severity, f.at = hardware.SeverityError, f.since.Add(NeverSeenAfter)
		return []finding{f}
	}
	f.severity, f.at = hardware.SeverityInfo, f.since.Add(NeverSeenAfter)
	warn.severity, warn.at = hardware.SeverityWarning, f.since.Add(NeverSeenByHand)
	return []finding{f, warn}
}

// stuck is a boot that does not reach its worker.
func (s *Snapshot) stuck(b *hardware.Boot) finding {
	since := b.LastMoved()
	return finding{
		kind: hardware.IssueBootStuck, severity: hardware.SeverityError, since: since, at: since.Add(BootStuckAfter),
		text: func() (string, string) {
			return "its last step was: " + b.Phase.Name(), s.bootAdvice(b) + " (" + typeExplain(s.name()) + ")"
		},
	}
}

// lost is a worker that is gone while its workflow needs it.
func (s *Snapshot) lost(b *hardware.Boot) []finding {
	w := s.active()
	since := latest(s.WorkerLeft, w.Status.Started, w.Meta.Created)
	if b != nil {
		since = latest(since, b.LastMoved())
	}
	a, _ := s.action()
	if t := a.last(); t != nil {
		since = latest(since, t.Started, t.Finished)
	}
	f := finding{
		kind: hardware.IssueWorkerLost, severity: hardware.SeverityWarning, since: since, at: since.Add(WorkerLostAfter),
		text: s.lostText,
	}
	gone := f
	gone.severity, gone.at = hardware.SeverityError, since.Add(WorkerGoneAfter)
	return []finding{f, gone}
}

// noOS is a system that was installed and does not phone home.
func (s *Snapshot) noOS() []finding {
	st := &s.hw().Status
	since := s.since()
	if w := s.Workflow; w != nil {
		since = latest(since, w.Status.Finished)
	}
	f := finding{
		kind: hardware.IssueOSNotUp, severity: hardware.SeverityWarning, since: since, at: since.Add(OSUpAfter),
		text: s.noOSText,
	}
	if st.Deadline.IsZero() {
		return []finding{f}
	}
	over := f
	over.severity, over.at = hardware.SeverityError, st.Deadline
	return []finding{f, over}
}
