package api

import (
	"net/netip"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// HardwareSummary is a machine as one row of a list of thousands. Whatever changes it
// is an event that names the machine, so whoever shows rows reads those again that an
// event names.
type HardwareSummary struct {
	Name     string            `json:"name"`
	UID      string            `json:"uid"`
	Revision uint64            `json:"revision"` // of spec and labels
	Labels   map[string]string `json:"labels,omitempty"`

	State hardware.State `json:"state"`
	Since time.Time      `json:"since,omitzero"`
	// Deadline is when a moving state must have ended.
	Deadline        time.Time       `json:"deadline,omitzero"`
	Hold            bool            `json:"hold,omitempty"`
	HoldReason      hardware.Reason `json:"holdReason,omitempty"`
	HoldSince       time.Time       `json:"holdSince,omitzero"`
	Maintenance     bool            `json:"maintenance,omitempty"`
	MaintenanceNote string          `json:"maintenanceNote,omitempty"`
	Protect         bool            `json:"protect,omitempty"`
	// PXE and AllowWorkflow are the operator's two switches: false, or absent.
	PXE           *bool               `json:"pxe,omitempty"`
	AllowWorkflow *bool               `json:"allowWorkflow,omitempty"`
	Power         hardware.PowerState `json:"power,omitempty"`
	// PowerDriver switches the machine; a person does where it is absent.
	PowerDriver string `json:"powerDriver,omitempty"`

	// MAC is the first NIC's; MACs are those of all, where there are several.
	MAC  hardware.MAC   `json:"mac,omitzero"`
	MACs []hardware.MAC `json:"macs,omitempty"`
	// Address is the first that is reserved, else the one that DHCP has lent.
	Address  netip.Addr `json:"address,omitzero"`
	Hostname string     `json:"hostname,omitempty"` // where it is not the name
	Rack     string     `json:"rack,omitempty"`
	Position string     `json:"position,omitempty"`
	AssetTag string     `json:"assetTag,omitempty"`

	// Arch is the record's; Firmware and what follows are the facts'.
	Arch        string `json:"arch"`
	Firmware    string `json:"firmware,omitempty"` // bios or uefi
	CPUs        int    `json:"cpus,omitempty"`
	MemoryBytes uint64 `json:"memoryBytes,omitempty"`
	// Disks counts the disks that can be written, DiskBytes is their sum.
	Disks     int    `json:"disks,omitempty"`
	DiskBytes uint64 `json:"diskBytes,omitempty"`
	Vendor    string `json:"vendor,omitempty"`
	Product   string `json:"product,omitempty"`
	Serial    string `json:"serial,omitempty"`

	Owner string `json:"owner,omitempty"`
	Claim string `json:"claim,omitempty"`
	// Workflow is the name of the active workflow (Active), or of the last one.
	Workflow string `json:"workflow,omitempty"`
	Active   bool   `json:"active,omitempty"`
	// Image is the one that is being installed, else the one that is.
	Image     string `json:"image,omitempty"`
	Installed bool   `json:"installed,omitempty"`
	// OSUp is when the installed system was seen to be up.
	OSUp       time.Time `json:"osUp,omitzero"`
	Discovered time.Time `json:"discovered,omitzero"`

	// Issues counts what keeps the machine from getting on; Issue is the worst.
	Issues int             `json:"issues,omitempty"`
	Issue  *hardware.Issue `json:"issue,omitempty"`
}
