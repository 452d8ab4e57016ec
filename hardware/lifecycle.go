package hardware

import (
	"fmt"
	"time"
)

// ClaimRef says who has a machine. It is in the machine's own value, so that
// taking it and the machine's state change in one transaction.
type ClaimRef struct {
	// ID is the claimer's own: the same id asked again gives the same machine.
	ID    string    `json:"id"`
	Owner string    `json:"owner"`
	Since time.Time `json:"since,omitzero"`
}

// Wiped says what the last verified wipe of a machine did. A machine that was
// never wiped by us has none.
type Wiped struct {
	At       time.Time   `json:"at"`
	Workflow string      `json:"workflow"` // name
	Disks    []WipedDisk `json:"disks"`
}

// DiskRef names one disk of a machine. Serial is compared where both sides have one:
// a path may be another disk's at the next boot.
type DiskRef struct {
	Path   string `json:"path"`
	Serial string `json:"serial,omitempty"`
}

// Is reports whether two names may mean one disk.
func (d DiskRef) Is(o DiskRef) bool {
	if d.Serial != "" && o.Serial != "" {
		return d.Serial == o.Serial
	}
	return d.Path == o.Path
}

// WipedDisk is one disk that was wiped and read back.
type WipedDisk struct {
	Path   string `json:"path"`
	Serial string `json:"serial,omitempty"`
	Bytes  int64  `json:"bytes"`
	// Method is discard (and every sample read zero) or overwrite.
	Method string `json:"method"`
	// Verified is how many bytes were read back from the disk itself and were zero.
	Verified int64 `json:"verified"`
}

// How a disk was wiped.
const (
	WipedByDiscard   = "discard"
	WipedByOverwrite = "overwrite"
)

// PowerState is what a BMC says of a machine, or what follows from what was seen.
type PowerState string

// The power states.
const (
	PowerUnknown PowerState = ""
	PowerOn      PowerState = "on"
	PowerOff     PowerState = "off"
)

// Power is what the engine knows and wants of a machine's power.
type Power struct {
	State PowerState `json:"state,omitempty"`
	// Checked is when State was learnt.
	Checked time.Time `json:"checked,omitzero"`
	// Asked is the last thing that was asked for (on, off, cycle), and when; with the
	// manual driver it was asked of a person.
	Asked   string    `json:"asked,omitempty"`
	AskedAt time.Time `json:"askedAt,omitzero"`
	// Tries counts what the appliance asked for by itself since the workflow began.
	Tries int `json:"tries,omitempty"`
	// Error is why the last call failed; empty after one that succeeded.
	Error string `json:"error,omitempty"`
}

// Quarantine is how many installs or wipes may fail without an install that succeeded before a machine is
// not picked for anything any more until a human accepts it again.
const Quarantine = 3

// Moving reports whether the state has a deadline: somebody or something must end it.
func (s State) Moving() bool { return s == StateProvisioning || s == StateReleasing }

// States lists all states in the order of a machine's life.
func States() []State {
	return []State{StatePending, StateAvailable, StateProvisioning, StateProvisioned, StateReleasing, StateFailed, StateRetired}
}

// Quarantined reports whether the machine is not picked, because it failed so often or
// its last owner said that it is not healthy.
func (s *Status) Quarantined() bool { return s.Failures >= Quarantine || s.Unhealthy != "" }

// QuarantinedFor is why, in words.
func (s *Status) QuarantinedFor() string {
	if s.Unhealthy != "" {
		return "its last owner said: " + s.Unhealthy
	}
	return fmt.Sprintf("%d installs or wipes failed in a row", s.Failures)
}
