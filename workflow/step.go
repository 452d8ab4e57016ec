package workflow

import (
	"fmt"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Assignment names one attempt of one action of one workflow.
type Assignment struct {
	Workflow string // uid
	Action   int
	Attempt  int
}

// Outcome is how an attempt ended on the worker: StateSucceeded, StateFailed,
// StateCancelled or StateTimedOut.
type Outcome = State

// Report is what a worker says of an ended attempt.
type Report struct {
	Assignment
	Outcome   Outcome
	Message   string
	Permanent bool
	// Untouched: nothing was written to a disk. A worker of a former release does not say.
	Untouched bool
	Result    Result
}

// Input is one thing that happened to a workflow; exactly one field is set, or
// none for the passing of time.
type Input struct {
	Worker *WorkerInput
	Report *Report
	Cancel *string // why
	// Abort ends the workflow at once: nobody waits for the worker to stop.
	Abort *string // why
}

// WorkerInput says that the worker of a boot is there, busy with Running or idle.
type WorkerInput struct {
	Boot    string
	Running *Assignment
}

// Context is what a step must know besides the workflow.
type Context struct {
	Now time.Time
	// Boot of the connected worker; empty when none is connected.
	Boot string
	// Paused, if not empty, is why no attempt may be started now: NextBoot would not
	// boot this machine into the worker (a hold, a switch of the record).
	Paused hardware.Reason
}

// Step is what follows from an input.
type Step struct {
	Changed bool
	Start   *Assignment // hand this attempt to the worker
	Stop    *Assignment // tell the worker to stop it
	Events  []Event
	// Wake is when the passing of time matters next; zero is never.
	Wake time.Time
}

const (
	// stopGrace is how long a worker may take to stop an attempt, and how long the
	// appliance waits beyond an attempt's timeout for the worker's own report of it.
	stopGrace = time.Minute
	// pausedPoll is how often a paused workflow looks whether it may go on.
	pausedPoll = 3 * time.Second
	// maxInterrupted bounds the restarts of a machine within one action.
	maxInterrupted = 10
	// maxMessage bounds what a worker can make us keep per attempt, in bytes.
	maxMessage = 2 << 10
)

// Next is the state machine: it changes w by one input and says what follows. It
// is pure but for w. A state never moves backwards; an input that tells nothing
// new changes nothing.
func (w *Workflow) Next(in Input, c Context) Step {
	s := stepper{w: w, c: c}
	if !w.Status.State.Ended() {
		switch {
		case in.Worker != nil:
			s.worker(*in.Worker)
		case in.Report != nil:
			s.report(*in.Report)
		case in.Cancel != nil:
			s.cancel(*in.Cancel)
		case in.Abort != nil:
			s.end(StateCancelled, hardware.ReasonWorkflowCancelled, hardware.PlainText(*in.Abort, 256))
		case w.Status.State == StatePending && c.Boot != "":
			// the store refused when the workflow came to a worker that waits
			s.worker(WorkerInput{Boot: c.Boot})
		}
		s.time()
	}
	return s.out
}

// Backoff is the pause before attempt number n (from 1) is tried again: 5 s
// doubling up to 5 min.
func Backoff(n int) time.Duration {
	return min(5*time.Second<<min(max(n-1, 0), 10), 5*time.Minute)
}

type stepper struct {
	w   *Workflow
	c   Context
	out Step
}

func (s *stepper) action() *Action { return &s.w.Status.Actions[s.w.Status.Current] }

// attempt is the last try of the current action, nil before the first.
func (s *stepper) attempt() *Attempt {
	a := s.action()
	if len(a.Attempts) == 0 {
		return nil
	}
	return &a.Attempts[len(a.Attempts)-1]
}

func (s *stepper) assignment() *Assignment {
	return &Assignment{Workflow: s.w.Meta.UID, Action: s.w.Status.Current, Attempt: len(s.action().Attempts) - 1}
}

func (s *stepper) event(r hardware.Reason, detail string) *Event {
	e := Event{Reason: r, Workflow: s.w.Meta.Name, Hardware: s.w.Status.HardwareUID, Machine: s.w.Spec.Hardware, Boot: s.c.Boot, Detail: detail, Count: 1, First: s.c.Now, Last: s.c.Now}
	if s.w.Status.State == StateRunning && s.w.Status.Current < len(s.w.Status.Actions) {
		e.Action = s.action().Name
		e.Attempt = len(s.action().Attempts)
	}
	s.out.Changed = true
	s.out.Events = append(s.out.Events, e)
	return &s.out.Events[len(s.out.Events)-1]
}

func (s *stepper) worker(in WorkerInput) {
	if s.w.Status.State == StatePending {
		s.w.Status.State = StateRunning
		s.w.Status.Started, s.w.Status.Message = s.c.Now, ""
		e := s.event(hardware.ReasonWorkflowStarted, "")
		e.Action, e.Attempt = "", 0
	}
	if s.w.Status.Cancelling {
		s.end(StateCancelled, hardware.ReasonWorkflowCancelled, s.w.Status.Message)
		return
	}
	t := s.attempt()
	switch {
	case t == nil || t.State != StateRunning:
		// time() starts the next attempt when its pause is over
	case t.Boot == in.Boot && in.Running != nil && *in.Running == *s.assignment():
		// it goes on
	case t.Boot == in.Boot && s.c.Paused == "":
		// the assignment was lost on the way, or its report is about to be repeated
		s.out.Start = s.assignment()
	default:
		s.interrupted(t)
	}
}

// interrupted ends an attempt whose machine restarted under it.
func (s *stepper) interrupted(t *Attempt) {
	t.State, t.Finished, t.Interrupted = StateFailed, s.c.Now, true
	t.Message = "the machine restarted"
	s.event(hardware.ReasonActionInterrupted, "")
	if n := s.count(func(t Attempt) bool { return t.Interrupted }); n >= maxInterrupted {
		s.endAction(StateFailed, fmt.Sprintf("the machine restarted %d times during it", n))
	}
}

func (s *stepper) count(f func(Attempt) bool) int {
	n := 0
	for _, t := range s.action().Attempts {
		if f(t) {
			n++
		}
	}
	return n
}

func (s *stepper) report(r Report) {
	if s.w.Status.State != StateRunning {
		return
	}
	t := s.attempt()
	if t == nil || t.State != StateRunning || r.Assignment != *s.assignment() {
		return // a repeat, or of an attempt that has ended otherwise
	}
	t.Finished, t.Message, t.Result = s.c.Now, hardware.PlainText(r.Message, maxMessage), r.Result
	t.Result.Disk, t.Result.Checksum = hardware.PlainText(r.Result.Disk, 256), hardware.PlainText(r.Result.Checksum, 256)
	t.Result.Compared = hardware.PlainText(r.Result.Compared, 256)
	t.Permanent, t.Untouched = r.Permanent, r.Untouched && r.Outcome != StateSucceeded
	took := hardware.Duration(t.Finished.Sub(t.Started))
	switch {
	case r.Outcome == StateSucceeded:
		t.State = StateSucceeded
		e := s.event(hardware.ReasonActionSucceeded, t.Message)
		e.Took, e.Bytes = took, max(r.Result.WrittenBytes, r.Result.SourceBytes)
		if WeakChecksum(t.Result.Compared) {
			s.event(hardware.ReasonWeakChecksum, fmt.Sprintf("it has %s, as wanted; from now on use %s", t.Result.Compared, t.Result.Checksum))
		}
		s.endAction(StateSucceeded, "")
	case r.Outcome == StateCancelled && s.w.Status.Cancelling:
		t.State = StateCancelled
	case r.Outcome == StateTimedOut:
		t.State = StateTimedOut
		s.failed(t, hardware.ReasonActionTimeout)
	default:
		t.State = StateFailed
		s.failed(t, hardware.ReasonActionFailed)
	}
	if s.w.Status.Cancelling && !s.w.Status.State.Ended() {
		s.end(StateCancelled, hardware.ReasonWorkflowCancelled, s.w.Status.Message)
	}
}

// failed decides between another attempt and the end.
func (s *stepper) failed(t *Attempt, r hardware.Reason) {
	e := s.event(r, t.Message)
	e.Took = hardware.Duration(t.Finished.Sub(t.Started))
	used := s.count(func(t Attempt) bool { return !t.Interrupted && t.State != StateRunning })
	if left := s.action().Retries + 1 - used; left > 0 && !t.Permanent && !s.w.Status.Cancelling {
		s.event(hardware.ReasonActionRetry, fmt.Sprintf("in %v, %d left", Backoff(used), left))
		return
	}
	if !s.w.Status.Cancelling {
		s.endAction(t.State, t.Message)
	}
}

// endAction closes the current action and goes on to the next one or to the end.
func (s *stepper) endAction(st State, message string) {
	a := s.action()
	a.State = st
	switch {
	case st == StateSucceeded && s.w.Status.Current+1 < len(s.w.Status.Actions):
		s.w.Status.Current++
	case st == StateSucceeded:
		s.end(StateSucceeded, hardware.ReasonWorkflowSucceeded, "")
	default:
		s.end(StateFailed, hardware.ReasonWorkflowFailed, fmt.Sprintf("action %q: %s", a.Name, message))
	}
}

func (s *stepper) end(st State, r hardware.Reason, message string) {
	if t := s.attempt(); t != nil && t.State == StateRunning {
		t.State, t.Finished = st, s.c.Now
		s.out.Stop = s.assignment()
	}
	if a := s.action(); !a.State.Ended() && a.State != StatePending {
		a.State = st
	}
	s.w.Status.State, s.w.Status.Finished = st, s.c.Now
	s.w.Status.Message = message
	s.w.Status.Cancelling = false
	s.out.Start = nil
	e := s.event(r, message)
	if !s.w.Status.Started.IsZero() {
		e.Took = hardware.Duration(s.c.Now.Sub(s.w.Status.Started))
	}
}

func (s *stepper) cancel(why string) {
	if s.w.Status.Cancelling {
		return
	}
	why = hardware.PlainText(why, 256)
	t := s.attempt()
	if t == nil || t.State != StateRunning || s.c.Boot == "" || s.c.Boot != t.Boot {
		s.end(StateCancelled, hardware.ReasonWorkflowCancelled, why)
		return
	}
	s.w.Status.Cancelling, s.w.Status.CancelRequested = true, s.c.Now
	s.w.Status.Message = why
	s.out.Changed = true
	s.out.Stop = s.assignment()
}

// time does what the clock asks for: timeouts, and the start of the next attempt.
func (s *stepper) time() {
	st := &s.w.Status
	if st.State == StatePending && !s.w.Meta.Created.IsZero() {
		end := s.w.Meta.Created.Add(StartWithin)
		if !s.c.Now.Before(end) {
			s.end(StateTimedOut, hardware.ReasonWorkflowTimeout, fmt.Sprintf("the machine did not netboot within %v", StartWithin))
			return
		}
		s.wake(end)
	}
	if st.State != StateRunning {
		return
	}
	if st.Timeout > 0 {
		end := st.Started.Add(time.Duration(st.Timeout))
		if !s.c.Now.Before(end) {
			s.end(StateTimedOut, hardware.ReasonWorkflowTimeout, fmt.Sprintf("not done after %v", time.Duration(st.Timeout)))
			return
		}
		s.wake(end)
	}
	if st.Cancelling {
		if end := st.CancelRequested.Add(stopGrace); s.c.Now.Before(end) {
			s.wake(end)
		} else {
			s.end(StateCancelled, hardware.ReasonWorkflowCancelled, st.Message)
		}
		return
	}
	t := s.attempt()
	if t != nil && t.State == StateRunning {
		s.running(t)
		return
	}
	if s.c.Boot == "" {
		return // the next worker starts it
	}
	if at := s.due(t); s.c.Now.Before(at) {
		s.wake(at)
		return
	}
	if s.c.Paused != "" {
		if m := "waits: " + s.c.Paused.Sentence(); st.Message != m {
			st.Message, s.out.Changed = m, true
		}
		s.wake(s.c.Now.Add(pausedPoll))
		return
	}
	st.Message = ""
	a := s.action()
	a.State = StateRunning
	a.Attempts = append(a.Attempts, Attempt{Boot: s.c.Boot, State: StateRunning, Started: s.c.Now})
	s.event(hardware.ReasonActionStarted, "")
	s.out.Start = s.assignment()
	s.running(s.attempt())
}

// due is when the action may be tried again after its last attempt t.
func (s *stepper) due(t *Attempt) time.Time {
	if t == nil || t.Interrupted {
		return time.Time{}
	}
	return t.Finished.Add(Backoff(s.count(func(t Attempt) bool { return !t.Interrupted })))
}

// running ends the current attempt when its time is over. The worker keeps the
// time itself; this is for a worker that is gone or does not stop.
func (s *stepper) running(t *Attempt) {
	limit := time.Duration(s.action().Timeout)
	if limit == 0 {
		return
	}
	end := t.Started.Add(limit + stopGrace)
	if s.c.Now.Before(end) {
		s.wake(end)
		return
	}
	stop := s.assignment()
	t.State, t.Finished = StateTimedOut, s.c.Now
	t.Message = fmt.Sprintf("no end after %v", limit)
	s.failed(t, hardware.ReasonActionTimeout)
	s.out.Stop = stop
	s.time()
}

func (s *stepper) wake(at time.Time) {
	if s.out.Wake.IsZero() || at.Before(s.out.Wake) {
		s.out.Wake = at
	}
}
