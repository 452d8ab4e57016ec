package workflow

import (
	"fmt"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Snapshot is everything that is known of one machine at one moment. Issues, Explain
// and Validate are functions of it and of nothing else.
type Snapshot struct {
	Now time.Time
	// Hardware has spec, status and facts.
	Hardware *hardware.Hardware
	// Boot is the newest; nil where the machine was never seen to boot.
	Boot *hardware.Boot
	// Workflow is the active one, or the last; nil where there was none.
	Workflow *Workflow
	// Progress of the running attempt; nil where none was reported.
	Progress        *Progress
	WorkerConnected bool
	// WorkerLeft is when the last worker's connection ended; see Engine.WorkerLeft.
	// Zero is unknown.
	WorkerLeft time.Time
	Subnets    []*hardware.Subnet
	// Events are those of the newest boot and what came after it, the oldest first.
	// Issues reads none.
	Events []Event
	// Power is the driver; the record's where empty.
	Power string
}

// hw is the record, never nil.
func (s *Snapshot) hw() *hardware.Hardware {
	if s.Hardware == nil {
		return &hardware.Hardware{}
	}
	return s.Hardware
}

func (s *Snapshot) name() string { return s.hw().Meta.Name }

// state is the lifecycle state; the engine writes none before it has to.
func (s *Snapshot) state() hardware.State {
	if st := s.hw().Status.State; st != "" {
		return st
	}
	return hardware.StateAvailable
}

// since is when the state began.
func (s *Snapshot) since() time.Time {
	if t := s.hw().Status.Since; !t.IsZero() {
		return t
	}
	return s.hw().Meta.Created
}

// active is the workflow that has not ended, nil where there is none.
func (s *Snapshot) active() *Workflow {
	if s.Workflow == nil || s.Workflow.Status.State.Ended() {
		return nil
	}
	return s.Workflow
}

func (s *Snapshot) next() hardware.Next {
	return NextBoot(s.hw(), Circumstances{Active: s.active() != nil, Discovery: s.Boot != nil && s.Boot.Discovery})
}

// byHand reports whether a person switches the machine.
func (s *Snapshot) byHand() bool {
	driver := s.Power
	if p := s.hw().Spec.Power; driver == "" && p != nil {
		driver = p.Driver
	}
	return driver == "" || driver == hardware.PowerManual
}

// boot is the newest boot if it can be the one that runs the active workflow: not
// one that went to the disk before there was a workflow.
func (s *Snapshot) boot() *hardware.Boot {
	w, b := s.active(), s.Boot
	if w == nil || b == nil || b.Closed {
		return nil
	}
	if b.Started.Before(w.Meta.Created) && b.Next.Target != hardware.TargetWorker {
		return nil
	}
	return b
}

// poweredOn is when the machine was last told to start, by something that can do
// it; zero where it was not.
func (s *Snapshot) poweredOn() time.Time {
	p := &s.hw().Status.Power
	if s.byHand() || (p.Asked != "on" && p.Asked != "cycle") {
		return time.Time{}
	}
	return p.AskedAt
}

// action is the active workflow's current action and its number from 1; nil before
// the first or without a workflow.
func (s *Snapshot) action() (*Action, int) {
	w := s.active()
	if w == nil || w.Status.State != StateRunning || w.Status.Current < 0 || w.Status.Current >= len(w.Status.Actions) {
		return nil, 0
	}
	return &w.Status.Actions[w.Status.Current], w.Status.Current + 1
}

// last is the last attempt of an action, nil before the first.
func (a *Action) last() *Attempt {
	if a == nil || len(a.Attempts) == 0 {
		return nil
	}
	return &a.Attempts[len(a.Attempts)-1]
}

// failures are the attempts that failed by themselves, and those that a restart of
// the machine ended.
func (a *Action) failures() (failed, interrupted []Attempt) {
	for _, t := range a.Attempts {
		switch {
		case t.Interrupted:
			interrupted = append(interrupted, t)
		case t.State == StateFailed || t.State == StateTimedOut:
			failed = append(failed, t)
		}
	}
	return failed, interrupted
}

// ago is how long before now t was, in words.
func ago(t, now time.Time) string {
	switch {
	case t.IsZero():
		return "at an unknown time"
	case t.After(now):
		return "in " + lasting(t.Sub(now))
	}
	return lasting(now.Sub(t)) + " ago"
}

// lasts is how long something is so, in words.
func lasts(since, now time.Time) string {
	if since.IsZero() {
		return "for an unknown time"
	}
	return "for " + lasting(max(now.Sub(since), 0))
}

// lasting is a duration as people say it: 40 s, 12 min, 3 h 5 min, 4 d.
func lasting(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		if m := int(d.Minutes()) % 60; m > 0 {
			return fmt.Sprintf("%d h %d min", int(d.Hours()), m)
		}
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// latest is the latest of some times.
func latest(ts ...time.Time) time.Time {
	var out time.Time
	for _, t := range ts {
		if t.After(out) {
			out = t
		}
	}
	return out
}
