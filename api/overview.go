package api

import (
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Overview says how the machines are that the caller sees, and how installs went.
type Overview struct {
	// Machines counts them; States has how many are in each state.
	Machines    int                    `json:"machines"`
	States      map[hardware.State]int `json:"states"`
	Hold        int                    `json:"hold"`
	Maintenance int                    `json:"maintenance"`
	Claimed     int                    `json:"claimed"`
	// Issues are what keeps machines from getting on, by kind: the worst first, then what
	// most have.
	Issues []IssueCount `json:"issues"`
	// Now is what is being written.
	Now Throughput `json:"now"`
	// Days are those on which an install ended, the oldest first; none for a claimer. Days
	// are UTC's.
	Days []InstallDay `json:"days"`
	// Partial: the installs of the past are still being read; ask again.
	Partial bool `json:"partial,omitempty"`
	// Cursor is where to read on: `GET /events?after=`.
	Cursor uint64 `json:"cursor"`
}

// IssueCount is one kind of issue and how many machines have it.
type IssueCount struct {
	Kind  hardware.IssueKind `json:"kind"`
	Title string             `json:"title"`
	// Severity is the worst; Since is when the first began.
	Severity hardware.Severity `json:"severity"`
	Since    time.Time         `json:"since"`
	Count    int               `json:"count"`
	// Hardware names the machine that has had it for longest, and Fix is its.
	Hardware string `json:"hardware"`
	Fix      string `json:"fix"`
}

// Throughput is what goes to disks now.
type Throughput struct {
	// Writing counts the workflows that report progress.
	Writing int `json:"writing"`
	// BytesPerSecond is the sum of their rates, as they travel over the network.
	BytesPerSecond int64 `json:"bytesPerSecond"`
}

// InstallDay is how installs went that ended on one day.
type InstallDay struct {
	Day       string `json:"day"` // 2026-11-21
	Succeeded int    `json:"succeeded"`
	Failed    int    `json:"failed"` // timed out too; cancelled ones count nowhere
	// P50 and P95 are how long those took that succeeded, from the request to the end.
	P50 hardware.Duration `json:"p50,omitzero"`
	P95 hardware.Duration `json:"p95,omitzero"`
	// Parts are the parts of a boot, in order, as timelines have them, with their mean
	// time; Sampled is of how many of those that succeeded, the day's last ones.
	Parts   []MeanSpan `json:"parts,omitempty"`
	Sampled int        `json:"sampled,omitempty"`
	// Bytes were written to disks, BytesPerSecond on each while it was written.
	Bytes          int64 `json:"bytes"`
	BytesPerSecond int64 `json:"bytesPerSecond"`
}

// MeanSpan is one part of a boot. An install without it counts as none of the time.
type MeanSpan struct {
	Name string            `json:"name"`
	Mean hardware.Duration `json:"mean"`
}
