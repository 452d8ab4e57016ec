package hardware

import "time"

// Stopping is what is known of the system that ran under the claim which ended last on
// a machine. The claim's record says the same, for the claimer to read.
type Stopping struct {
	// Claim is the id of that claim.
	Claim string `json:"claim"`
	// Since is when it ended. Until is how long the machine has to be known to have
	// stopped; then it is on hold.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Stopped is the proof; nil while there is none.
	Stopped *Stopped `json:"stopped,omitempty"`
}

// Awaited reports whether a system may still run whose claim has ended, and whether it
// does is being found out.
func (s *Stopping) Awaited() bool { return s != nil && s.Stopped == nil }

// Leftover reports whether the disks may hold the system of an owner who is gone. It
// must not run any more.
func (s *Status) Leftover() bool {
	st := s.Stopping
	switch {
	case st == nil || s.Claim != nil:
		return false
	case s.Installed || len(s.Dirty) > 0:
		return true
	case s.State == StateRetired: // an adopted machine, of whose disks nothing is known
		return st.Stopped != nil && st.Stopped.By == StoppedByHold
	}
	return s.State != StateAvailable
}

// KeptUnwiped reports whether what the last owner left is kept on the disks for a group
// of claims.
func (s *Status) KeptUnwiped() bool { return s.Reserved != nil && s.Reserved.KeepDisks }

// MaxReserve is how long a machine is kept for a group at most, and DefaultReserve how
// long where nothing is said.
const (
	MaxReserve     = 24 * time.Hour
	DefaultReserve = time.Hour
)

// Validate says what is wrong with the wish, as an *Invalid.
func (r *Reserve) Validate() error {
	k := NewChecker("release", "")
	k.Add("reserve.for", ValidOwner(r.For))
	if d := time.Duration(r.Within); d < 0 || d > MaxReserve {
		k.Addf("reserve.within", "is %v, wanted up to %v (say how long the machine is kept, as 30m or 2h)", d, MaxReserve)
	}
	return k.Err()
}

// From is the reservation that begins at now.
func (r *Reserve) From(now time.Time) *Reservation {
	d := time.Duration(r.Within)
	if d == 0 {
		d = DefaultReserve
	}
	return &Reservation{For: r.For, KeepDisks: r.KeepDisks, Until: now.Add(d)}
}
