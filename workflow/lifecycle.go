package workflow

import (
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strings"
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

// image is what the workflow installs, to be shown: the name of an image, or a URL
// without what may let somebody in there. Empty where it installs none, or that is a
// secret.
func (w *Workflow) image() string {
	i := slices.IndexFunc(w.Status.Actions, func(a Action) bool { return a.Kind == KindImageWrite })
	if i < 0 {
		return ""
	}
	var o ImageWrite
	if json.Unmarshal(w.Status.Actions[i].With, &o) != nil {
		return ""
	}
	if !strings.Contains(o.Image, "/") {
		return o.Image
	}
	open := len(w.Status.SecretParams) == 0
	for name, v := range w.Spec.Params {
		open = open || v == o.Image && !slices.Contains(w.Status.SecretParams, name)
	}
	if !open {
		return ""
	}
	u, err := url.Parse(o.Image)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment = nil, "", false, ""
	return u.String()
}

// releases reports whether the workflow makes the machine available again.
func (w *Workflow) releases() bool { return w.Spec.Purpose == PurposeRelease }

// destroys reports whether the workflow overwrites disks.
func (w *Workflow) destroys() bool {
	return slices.ContainsFunc(w.Status.Actions, func(a Action) bool { return a.Kind.destroys() })
}

// writesDisk reports whether any action touches a disk.
func (w *Workflow) writesDisk() bool {
	return slices.ContainsFunc(w.Status.Actions, func(a Action) bool { return a.Kind.writesDisk() })
}

func (w *Workflow) has(k Kind) bool {
	return slices.ContainsFunc(w.Status.Actions, func(a Action) bool { return a.Kind == k })
}

// begun reports whether an action of a kind that destroys has been started.
func (w *Workflow) begun() bool {
	return slices.ContainsFunc(w.Status.Actions, func(a Action) bool {
		return a.Kind.destroys() && len(a.Attempts) > 0
	})
}

// overwrote reports whether an action of a kind that destroys has ended after it may have
// written.
func (w *Workflow) overwrote() bool {
	return slices.ContainsFunc(w.Status.Actions, func(a Action) bool {
		return a.Kind.destroys() && slices.ContainsFunc(a.Attempts, func(t Attempt) bool { return t.State.Ended() && !t.Untouched })
	})
}

// over reports whether what the workflow found on the disks is to be taken for gone.
// Whatever is begun counts, but on a machine that is kept with its disks: that is halted
// until it is known that its system cannot start any more.
func (w *Workflow) over(s *hardware.Status) bool {
	return w.begun() && (!s.KeptUnwiped() || w.overwrote())
}

// wrote reports whether an action that leaves something on a disk has been started.
func (w *Workflow) wrote() bool {
	return slices.ContainsFunc(w.Status.Actions, func(a Action) bool {
		return a.Kind.writesDisk() && a.Kind != KindDiskWipe && len(a.Attempts) > 0
	})
}

// soil adds to the dirty disks those that the workflow may have written: every fixed
// disk of the facts, and the one that a worker named, be it removable.
func soil(dirty []hardware.DiskRef, w *Workflow, f *hardware.Facts) []hardware.DiskRef {
	out := slices.Clone(dirty)
	add := func(d hardware.DiskRef) {
		if d.Path != "" && !slices.ContainsFunc(out, d.Is) && len(out) < maxDirty {
			out = append(out, d)
		}
	}
	serial := map[string]string{}
	if f != nil {
		for _, d := range f.Disks {
			serial[d.Path] = d.Serial
			if fixed(d) {
				add(hardware.DiskRef{Path: d.Path, Serial: d.Serial})
			}
		}
	}
	for _, a := range w.Status.Actions {
		for _, t := range a.Attempts {
			if a.Kind.writesDisk() && a.Kind != KindDiskWipe {
				add(hardware.DiskRef{Path: t.Result.Disk, Serial: serial[t.Result.Disk]})
			}
		}
	}
	return out
}

// maxDirty bounds what is kept of a machine whose disks change names all the time.
const maxDirty = 256

// proof is what a workflow that succeeded wiped and read back, if that is every fixed
// disk that the machine's facts name and every dirty one; else nil, and missing names
// those that are not. A workflow that also writes proves nothing.
func (w *Workflow) proof(f *hardware.Facts, dirty []hardware.DiskRef) (out *hardware.Wiped, missing []hardware.DiskRef) {
	if w.Status.State != StateSucceeded || w.wrote() || f == nil {
		return nil, dirty // a worker reports facts before it takes an action
	}
	out = &hardware.Wiped{At: w.Status.Finished, Workflow: w.Meta.Name}
	wipes := false
	for _, a := range w.Status.Actions {
		if n := len(a.Attempts); a.Kind == KindDiskWipe && n > 0 && a.Attempts[n-1].State == StateSucceeded {
			out.Disks = append(out.Disks, a.Attempts[n-1].Result.Wiped...)
			wipes = true
		}
	}
	need := slices.Clone(dirty)
	for _, d := range f.Disks {
		if ref := (hardware.DiskRef{Path: d.Path, Serial: d.Serial}); fixed(d) && !slices.ContainsFunc(need, ref.Is) {
			need = append(need, ref)
		}
	}
	for _, d := range need {
		read := func(x hardware.WipedDisk) bool {
			return x.Verified > 0 && d.Is(hardware.DiskRef{Path: x.Path, Serial: x.Serial})
		}
		if !slices.ContainsFunc(out.Disks, read) {
			missing = append(missing, d)
		}
	}
	if len(missing) > 0 || !wipes {
		return nil, missing
	}
	return out, nil
}

// follow brings the machine's lifecycle state to where its workflow is, and
// reports whether it changed. It is the table of DESIGN's lifecycle.
func follow(m *Machine, w *Workflow, f *hardware.Facts, now time.Time) bool {
	s := m.Status
	if s.State == hardware.StateRetired {
		return false
	}
	over := w.over(&s)
	if over {
		s.Installed, s.Install, s.AwaitOS, s.OSUp = false, nil, false, time.Time{}
	}
	if w.begun() || w.wrote() {
		s.Wiped = nil
	}
	if over && !givenBack(&s) && (w.installs() || s.Claim != nil) {
		s.Reserved, s.Stopping = nil, nil // from here on what is on the disks is another's
	}
	if w.wrote() {
		s.Dirty = soil(s.Dirty, w, f)
	}
	s.Installing = w.image()
	if w.Status.State.Ended() {
		s.Installing = ""
		ended(&s, w, f, now)
	} else {
		moving(&s, w)
	}
	if !s.State.Moving() {
		s.Deadline, s.Before = time.Time{}, ""
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
	to := hardware.StateProvisioning
	switch {
	case w.releases():
		to = hardware.StateReleasing
	case s.State == hardware.StateReleasing:
		return // an install is being cancelled, because the machine was released
	case !w.installs():
		return
	}
	if !s.State.Moving() {
		s.Before = s.State
	}
	s.State = to
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
	case !w.installs() && !w.begun():
		// it neither installed nor wiped, so the machine is what it was
	case ok && w.installs() && w.Spec.WaitForPhoneHome:
		s.State, s.Installed, s.AwaitOS = hardware.StateProvisioning, true, true
		s.Install = &hardware.InstallRef{Workflow: w.Meta.Name, UID: w.Meta.UID, Image: w.image(), Disks: w.systemDisks(f)}
		s.Deadline = now.Add(PhoneHomeWithin)
	case ok && w.installs():
		s.State, s.Installed, s.Failures = hardware.StateProvisioned, true, 0
		s.Install = &hardware.InstallRef{Workflow: w.Meta.Name, UID: w.Meta.UID, Image: w.image(), Disks: w.systemDisks(f)}
	case ok:
		wiped(s, w, f)
	case w.over(s):
		s.State = hardware.StateFailed
		s.Failures += w.failure()
	case s.State == hardware.StateProvisioning:
		s.State = standing(s) // ended before anything was touched
		s.Failures += w.failure()
	}
}

// standing is the state from which the machine began to move; a record of the first
// release does not say.
func standing(s *hardware.Status) hardware.State {
	switch {
	case s.Before != "" && !s.Before.Moving():
		return s.Before
	case s.Installed:
		return hardware.StateProvisioned
	case len(s.Dirty) > 0:
		return hardware.StateFailed
	}
	return hardware.StateAvailable
}

// released is the end of a release. Only a proof leads to available. What failed
// before still counts: a disk that can be wiped may not take an image.
func released(s *hardware.Status, w *Workflow, f *hardware.Facts) {
	if p, _ := w.proof(f, s.Dirty); p != nil {
		s.State, s.Wiped, s.Dirty = hardware.StateAvailable, p, nil
		if s.Stopping.Awaited() {
			// a worker that was thought to be on its way out did it
			prove(s, hardware.StoppedByWorker, p.At)
		}
		return
	}
	s.State = hardware.StateFailed
	s.Failures += w.failure()
}

// wiped is the end of an operator's own wipe. One that proves nothing leaves a
// machine available that was so before, and no other.
func wiped(s *hardware.Status, w *Workflow, f *hardware.Facts) {
	p, _ := w.proof(f, s.Dirty)
	if p == nil && s.State != hardware.StateAvailable {
		s.State = hardware.StateFailed
		return
	}
	if s.Wiped = p; p != nil {
		s.Dirty = nil
	}
	s.State = hardware.StateAvailable
}

// failure is 1 for an end that speaks against the machine.
func (w *Workflow) failure() int {
	if w.Status.State == StateCancelled || w.Status.State == StateSucceeded && !w.releases() {
		return 0
	}
	return 1
}
