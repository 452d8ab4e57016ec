package sim

import (
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/workflow"
)

// Format is how a system is told what to do at its first boot.
type Format string

// The formats, by the action that wrote the data.
const (
	CloudConfig Format = "cloud-config" // cloudinit
	Ignition    Format = "ignition"     // ignition
	Talos       Format = "talos"        // seed.partition
)

// System is what an install left on a disk. Its data are byte by byte as they reached
// the machine. It is not changed once it is handed out.
type System struct {
	Disk     string // path
	Image    string // URL
	Checksum string // sha256:… as it was verified; empty where there was none
	Format   Format // empty: no such action ran
	UserData []byte
	MetaData []byte
	// NetworkConfig is what network.config or the seed wrote.
	NetworkConfig []byte
	VendorData    []byte
	Files         map[string][]byte // by file.write
	// InstanceID is that of MetaData; Workflow is the uid of the install.
	InstanceID string
	Workflow   string
	Written    time.Time
	// Boots counts how often it was started.
	Boots int
}

// Meta is a value of the meta-data (`key: value` lines), without quotes; empty where
// there is none.
func (s *System) Meta(key string) string {
	for line := range strings.Lines(string(s.MetaData)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.Trim(k, ` "'`) == key {
			return strings.Trim(v, " \"'\r\n")
		}
	}
	return ""
}

// Write is one change of a disk by an action.
type Write struct {
	At      time.Time
	Machine string
	Disk    string // path
	What    workflow.Kind
	// Workflow is the uid of the workflow that wrote.
	Workflow string
	// Over is the system that was on the disk; nil: none.
	Over *System
}
