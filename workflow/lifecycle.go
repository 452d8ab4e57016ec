package workflow

import (
	"reflect"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// installs reports whether the workflow writes an operating system.
func (w *Workflow) installs() bool { return w.has(KindImageWrite) }

// destroys reports whether the workflow overwrites disks.
func (w *Workflow) destroys() bool { return w.has(KindImageWrite) || w.has(KindDiskWipe) }

// writesDisk reports whether any action touches a disk.
func (w *Workflow) writesDisk() bool {
	for _, a := range w.Status.Actions {
		if a.writesDisk() {
			return true
		}
	}
	return false
}

func (a *Action) writesDisk() bool { return a.Kind != KindReboot && a.Kind != KindPowerOff }

func (w *Workflow) has(k Kind) bool {
	for _, a := range w.Status.Actions {
		if a.Kind == k {
			return true
		}
	}
	return false
}

// begun reports whether an action of a kind that destroys has been started.
func (w *Workflow) begun() bool {
	for _, a := range w.Status.Actions {
		if (a.Kind == KindImageWrite || a.Kind == KindDiskWipe) && len(a.Attempts) > 0 {
			return true
		}
	}
	return false
}

// follow brings the machine's lifecycle state to where its workflow is, and
// reports whether it changed.
func follow(m *Machine, w *Workflow, now time.Time) bool {
	s := m.Status
	if w.begun() {
		s.Installed = false
	}
	switch {
	case !w.Status.State.Ended() && w.installs():
		s.State = hardware.StateProvisioning
	case !w.Status.State.Ended():
	case w.Status.State == StateSucceeded && w.installs():
		s.State, s.Installed = hardware.StateProvisioned, true
	case w.Status.State == StateSucceeded && w.destroys():
		s.State = hardware.StateAvailable
	case w.Status.State != StateSucceeded && w.begun():
		s.State = hardware.StateFailed
	case s.State == hardware.StateProvisioning && s.Installed:
		s.State = hardware.StateProvisioned // ended before anything was touched
	case s.State == hardware.StateProvisioning:
		s.State = hardware.StateAvailable
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
