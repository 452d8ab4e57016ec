package workflow

import (
	"reflect"
	"slices"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Deadlines of moving states.
const (
	// StartWithin is how long a workflow waits for its machine to netboot. It is long:
	// with the manual power driver a person has to walk to the rack.
	StartWithin = 24 * time.Hour
	// NoTimeout is the deadline of a workflow whose template names none.
	NoTimeout = 24 * time.Hour
	// PhoneHomeWithin is how long an installed system has to phone home, where the
	// workflow waits for it.
	PhoneHomeWithin = 30 * time.Minute
)

// installs reports whether the workflow writes an operating system.
func (w *Workflow) installs() bool { return w.has(KindImageWrite) }

// releases reports whether the workflow makes the machine available again.
func (w *Workflow) releases() bool { return w.Spec.Purpose == PurposeRelease }

// destroys reports whether the workflow overwrites disks.
func (w *Workflow) destroys() bool { return w.has(KindImageWrite) || w.has(KindDiskWipe) }

// writesDisk reports whether any action touches a disk.
func (w *Workflow) writesDisk() bool {
	return slices.ContainsFunc(w.Status.Actions, func(a Action) bool { return a.writesDisk() })
}

func (a *Action) writesDisk() bool { return a.Kind != KindReboot && a.Kind != KindPowerOff }

func (w *Workflow) has(k Kind) bool {
	return slices.ContainsFunc(w.Status.Actions, func(a Action) bool { return a.Kind == k })
}

// begun reports whether an action of a kind that destroys has been started.
func (w *Workflow) begun() bool {
	return slices.ContainsFunc(w.Status.Actions, func(a Action) bool {
		return (a.Kind == KindImageWrite || a.Kind == KindDiskWipe) && len(a.Attempts) > 0
	})
}

// proof is what a workflow that succeeded wiped and read back, if that is every
// fixed disk that the machine's facts name; else nil. What an image was written to
// afterwards proves nothing.
func (w *Workflow) proof(f *hardware.Facts) *hardware.Wiped {
	if w.Status.State != StateSucceeded || w.installs() {
		return nil
	}
	out := &hardware.Wiped{At: w.Status.Finished, Workflow: w.Meta.Name}
	for _, a := range w.Status.Actions {
		if n := len(a.Attempts); a.Kind == KindDiskWipe && n > 0 && a.Attempts[n-1].State == StateSucceeded {
			out.Disks = append(out.Disks, a.Attempts[n-1].Result.Wiped...)
		}
	}
	if f == nil {
		return nil // the worker reports facts before it takes an action
	}
	for _, d := range f.Disks {
		if !fixed(d) {
			continue
		}
		wiped := func(x hardware.WipedDisk) bool {
			return x.Path == d.Path && x.Verified > 0 && (x.Serial == d.Serial || x.Serial == "" || d.Serial == "")
		}
		if !slices.ContainsFunc(out.Disks, wiped) {
			return nil
		}
	}
	return out
}

// follow brings the machine's lifecycle state to where its workflow is, and
// reports whether it changed. It is the table of DESIGN's lifecycle.
func follow(m *Machine, w *Workflow, f *hardware.Facts, now time.Time) bool {
	s := m.Status
	if w.begun() {
		s.Installed, s.Install, s.Wiped, s.AwaitOS, s.OSUp = false, nil, nil, false, time.Time{}
	}
	if w.Status.State.Ended() {
		ended(&s, w, f, now)
	} else {
		moving(&s, w)
	}
	if !s.State.Moving() {
		s.Deadline = time.Time{}
	}
	closed := false
	if w.Status.State.Ended() && m.Boot != nil && !m.Boot.Closed {
		// the next DISCOVER of this machine is another power-on
		b := *m.Boot
		b.Closed = true
		m.Boot, closed = &b, true
	}
	if reflect.DeepEqual(s, m.Status) {
		return closed
	}
	if s.State != m.Status.State {
		s.Since = now
	}
	m.Status = s
	return true
}

// moving is the state of a machine whose workflow has not ended.
func moving(s *hardware.Status, w *Workflow) {
	switch {
	case w.releases():
		s.State = hardware.StateReleasing
	case s.State == hardware.StateReleasing:
		return // an install is being cancelled, because the machine was released
	case w.installs():
		s.State = hardware.StateProvisioning
	default:
		return
	}
	s.Deadline = w.deadline()
}

// deadline is when the workflow must have ended.
func (w *Workflow) deadline() time.Time {
	st := &w.Status
	switch {
	case st.Started.IsZero():
		return w.Meta.Created.Add(StartWithin)
	case st.Timeout > 0:
		return st.Started.Add(time.Duration(st.Timeout))
	default:
		return st.Started.Add(NoTimeout)
	}
}

// ended is the state of a machine after its workflow.
func ended(s *hardware.Status, w *Workflow, f *hardware.Facts, now time.Time) {
	ok := w.Status.State == StateSucceeded
	switch {
	case w.releases():
		released(s, w, f)
	case s.State == hardware.StateReleasing:
		// an install that ended because the machine was released: the wipe comes next
	case ok && w.installs() && w.Spec.WaitForPhoneHome:
		s.State, s.Installed, s.AwaitOS = hardware.StateProvisioning, true, true
		s.Install = &hardware.InstallRef{Workflow: w.Meta.Name, UID: w.Meta.UID}
		s.Deadline = now.Add(PhoneHomeWithin)
	case ok && w.installs():
		s.State, s.Installed, s.Failures = hardware.StateProvisioned, true, 0
		s.Install = &hardware.InstallRef{Workflow: w.Meta.Name, UID: w.Meta.UID}
	case ok && w.destroys():
		wiped(s, w, f)
	case w.begun():
		s.State = hardware.StateFailed
		s.Failures += w.failure()
	case s.State == hardware.StateProvisioning && s.Installed:
		s.State = hardware.StateProvisioned // ended before anything was touched
		s.Failures += w.failure()
	case s.State == hardware.StateProvisioning:
		s.State = hardware.StateAvailable
		s.Failures += w.failure()
	}
}

// released is the end of a release. Only a proof leads to available.
func released(s *hardware.Status, w *Workflow, f *hardware.Facts) {
	if p := w.proof(f); p != nil {
		s.State, s.Wiped, s.Failures = hardware.StateAvailable, p, 0
		return
	}
	s.State = hardware.StateFailed
	s.Failures += w.failure()
}

// wiped is the end of an operator's own wipe. One that proves nothing leaves a
// machine available that was so before, and no other.
func wiped(s *hardware.Status, w *Workflow, f *hardware.Facts) {
	s.Wiped = w.proof(f)
	if s.State != hardware.StateAvailable && s.Wiped == nil {
		s.State = hardware.StateFailed
		return
	}
	s.State = hardware.StateAvailable
}

// failure is 1 for an end that speaks against the machine.
func (w *Workflow) failure() int {
	if w.Status.State == StateCancelled {
		return 0
	}
	return 1
}
