package workflow

import (
	"fmt"
	"slices"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Explanation says why a machine is where it is, and what to type.
type Explanation struct {
	Hardware string         `json:"hardware"`
	State    hardware.State `json:"state"`
	// Since is when that state began.
	Since time.Time `json:"since,omitzero"`
	// Summary is the answer in one sentence.
	Summary string `json:"summary"`
	// Next is what the machine boots next, and why.
	Next hardware.Next `json:"next"`
	// Lines are what is known, in the order in which it matters.
	Lines []string `json:"lines,omitempty"`
	// Do are the commands to type, the best first; empty where nothing is to be done.
	Do []string `json:"do,omitempty"`
	// Issues are the machine's issues.
	Issues []hardware.Issue `json:"issues,omitempty"`
}

// Explain says why the machine is where it is, what it waits for, and what to type.
// It has an answer for every snapshot.
func Explain(s Snapshot) Explanation {
	e := Explanation{Hardware: s.name(), State: s.state(), Since: s.since(), Next: s.next(), Issues: Issues(s)}
	v := s.verdict()
	e.Summary, e.Do = s.called()+" "+v.why, v.do
	if v.fix != "" {
		e.Lines = append(e.Lines, "what to do: "+v.fix)
	}
	e.Lines = append(e.Lines, s.lines(e.Next)...)
	for _, i := range e.Issues {
		// the first is often the summary in other words
		if !slices.Contains(e.Lines, "what to do: "+i.Fix) {
			e.Lines = append(e.Lines, fmt.Sprintf("%s %s, %s: %s; %s", i.Severity, i.Kind, lasts(i.Since, s.Now), i.Detail, i.Fix))
		}
	}
	return e
}

// called is the machine's name in a sentence.
func (s *Snapshot) called() string { return orWord(s.name(), "this machine") }

// verdict is why the machine is where it is.
type verdict struct {
	why string // goes on after the machine's name
	fix string
	do  []string
}

// verdict looks from what stops everything down to "all is well".
func (s *Snapshot) verdict() verdict {
	for _, look := range []func() (verdict, bool){
		s.isRetired, s.isHeld, s.isPending, s.isStopping, s.isReleasingIdle, s.isDenied, s.isWorking, s.isBooting, s.isAway,
		s.isCustom, s.isLooping, s.isAwaitingOS, s.isFailed, s.isAdrift, s.isKept, s.isProvisioned,
	} {
		if v, ok := look(); ok {
			return v
		}
	}
	return s.isAvailable()
}

func (s *Snapshot) isRetired() (verdict, bool) {
	return verdict{
		why: "is retired: it gets nothing any more", fix: "delete its record, and register it anew to use it again", do: []string{typeDelete(s.name())},
	}, s.state() == hardware.StateRetired
}

func (s *Snapshot) isHeld() (verdict, bool) {
	st := &s.hw().Status
	if !st.Hold {
		return verdict{}, false
	}
	f := s.held()
	detail, fix := f.text()
	v := verdict{why: fmt.Sprintf("is on hold %s: %s", lasts(f.since, s.Now), detail), fix: fix, do: []string{typeTimeline(s.name()), typeUnhold(s.name())}}
	if s.state() == hardware.StateFailed {
		v.do = append(v.do, typeRelease(s.name()))
	}
	return v, true
}

func (s *Snapshot) isPending() (verdict, bool) {
	_, fix := s.pending().text()
	v := verdict{
		why: "waits to be accepted: nothing is written to its disks before that", fix: fix,
		do: []string{typeGet(s.name()), typeAccept(s.name())},
	}
	if at := s.hw().Status.Discovered; !at.IsZero() {
		v.why = fmt.Sprintf("was discovered %s (%s) and waits to be accepted: nothing is written to its disks before that", ago(at, s.Now), s.made())
		v.do = append(v.do, typeDelete(s.name()))
	}
	switch {
	case s.hw().Status.Disputed():
		v.why += "; its identity is in doubt, so no rule accepts it"
	case s.WorkerConnected:
		v.why += "; its worker is connected and waits"
	}
	return v, s.state() == hardware.StatePending
}

// isReleasingIdle is a machine that was given back and whose wipe has not begun.
func (s *Snapshot) isReleasingIdle() (verdict, bool) {
	if s.state() != hardware.StateReleasing || s.active() != nil {
		return verdict{}, false
	}
	return verdict{
		why: "was given back and its wipe has not started: it boots nothing until its disks are wiped",
		fix: "it is tried again by itself; if it stays so, look at its timeline and release it again",
		do:  []string{typeTimeline(s.name()), typeRelease(s.name())},
	}, true
}

func (s *Snapshot) isDenied() (verdict, bool) {
	n := s.hw().Spec.Netboot
	if s.active() == nil || (n.PXE() && n.Workflow() && n.IPXE == nil) {
		return verdict{}, false
	}
	detail, fix := s.denied().text()
	return verdict{why: "does nothing: " + detail, fix: fix, do: []string{typeGet(s.name()), typeCancel(s.active().Meta.Name)}}, true
}

// isWorking is a worker that is there for the active workflow.
func (s *Snapshot) isWorking() (verdict, bool) {
	w := s.active()
	if w == nil || !s.WorkerConnected {
		return verdict{}, false
	}
	follow := []string{typeFollow(s.name())}
	a, n := s.action()
	if w.Status.Cancelling {
		return verdict{why: fmt.Sprintf("stops workflow %q: %s", w.Meta.Name, orWord(w.Status.Message, "somebody asked for its end")), do: follow}, true
	}
	if a == nil {
		return verdict{why: fmt.Sprintf("has its worker and starts with workflow %q", w.Meta.Name), do: follow}, true
	}
	where := fmt.Sprintf("action %d of %d (%s)", n, len(w.Status.Actions), a.Name)
	t := a.last()
	failed, _ := a.failures()
	switch {
	case t != nil && t.State == StateRunning:
		v := verdict{why: fmt.Sprintf("works on %s %s%s", where, lasts(t.Started, s.Now), s.progressWords()), do: follow}
		if len(failed) > 0 {
			v.why += fmt.Sprintf("; it failed %s before: %s", times(len(failed)), failed[len(failed)-1].Message)
			v.do = []string{typeLogs(w.Meta.Name), typeTimeline(s.name()), typeCancel(w.Meta.Name)}
		}
		return v, true
	case len(failed) > 0 && t != nil && !t.Interrupted:
		return verdict{
			why: fmt.Sprintf("tries %s again %s: it failed %s, the last time with: %s", where, s.retryAt(a), times(len(failed)), orWord(t.Message, string(t.State))),
			fix: "mend what the error names, or give the workflow up", do: []string{typeLogs(w.Meta.Name), typeTimeline(s.name()), typeCancel(w.Meta.Name)},
		}, true
	}
	return verdict{why: "is about to start " + where + paused(w), do: follow}, true
}

func paused(w *Workflow) string {
	if w.Status.Message == "" {
		return ""
	}
	return ", and " + w.Status.Message
}

// retryAt says when a failed action is tried again.
func (s *Snapshot) retryAt(a *Action) string {
	n := 0
	for _, t := range a.Attempts {
		if !t.Interrupted {
			n++
		}
	}
	at := a.last().Finished.Add(Backoff(n))
	if at.After(s.Now) {
		return ago(at, s.Now)
	}
	return "now"
}

// progressWords is how far the running attempt is; what is known may still be of the
// action before.
func (s *Snapshot) progressWords() string {
	p := s.Progress
	a, n := s.action()
	if p == nil || p.Done <= 0 || a == nil || p.Action != n-1 || p.Attempt != len(a.Attempts)-1 {
		return ""
	}
	if p.Total > 0 {
		return fmt.Sprintf(", %d%% of %s", min(100*p.Done/p.Total, 100), megabytes(p.Total))
	}
	return ", " + megabytes(p.Done) + " so far"
}

func megabytes(n int64) string {
	if n < 1e6 {
		return fmt.Sprintf("%d kB", n/1e3)
	}
	if n < 10e9 {
		return fmt.Sprintf("%d MB", n/1e6)
	}
	if n < 10e12 {
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.1f TB", float64(n)/1e12)
}
