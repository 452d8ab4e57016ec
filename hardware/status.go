package hardware

import (
	"net/netip"
	"time"
)

// State is where a machine is in its life. It moves
// pending → available → provisioning → provisioned → releasing → available,
// to failed from each moving state, and ends at retired.
type State string

// The states.
const (
	StatePending      State = "pending"
	StateAvailable    State = "available"
	StateProvisioning State = "provisioning"
	StateProvisioned  State = "provisioned"
	StateReleasing    State = "releasing"
	StateFailed       State = "failed"
	StateRetired      State = "retired"
)

// Status is what the engine knows of a machine; nobody else writes it.
type Status struct {
	State State     `json:"state,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Hold: the machine waits for a human; HoldReason says why, HoldSince how long.
	Hold       bool      `json:"hold,omitempty"`
	HoldReason Reason    `json:"holdReason,omitempty"`
	HoldSince  time.Time `json:"holdSince,omitzero"`
	// Installed: we wrote an operating system to its disk and it is still there.
	Installed bool `json:"installed,omitempty"`
	// Install names the workflow that wrote that system; nil where none of ours did.
	Install *InstallRef `json:"install,omitempty"`
	// Installing is the image that the active workflow writes; empty where none does.
	Installing string `json:"installing,omitempty"`
	// Workflow is the name of the active workflow, or of the last one.
	Workflow string `json:"workflow,omitempty"`
	// Deadline is when a moving state must have ended; zero in the others.
	Deadline time.Time `json:"deadline,omitzero"`
	// Maintenance: a human works on the machine. It is not picked for a claim, and
	// nothing is said about its being late. MaintenanceNote is that human's.
	Maintenance     bool   `json:"maintenance,omitempty"`
	MaintenanceNote string `json:"maintenanceNote,omitempty"`
	// Claim says who has the machine; nil is free.
	Claim *ClaimRef `json:"claim,omitempty"`
	// Stopping is whether what the last owner installed still runs; nil where the machine
	// was never given back, or is somebody's or has another system since.
	Stopping *Stopping `json:"stopping,omitempty"`
	// Reserved keeps the machine for a group of claims; nil is nobody. With KeepDisks it
	// stays until the group's install begins to write, so that what is on the disks does
	// not run before.
	Reserved *Reservation `json:"reserved,omitempty"`
	// Before is the state from which the machine began to move; it goes back there when
	// nothing was touched.
	Before State `json:"before,omitempty"`
	// Dirty are the disks that may hold what a workflow wrote; only a verified wipe of
	// them all, or a human's accept, empties it.
	Dirty []DiskRef `json:"dirty,omitempty"`
	// Failures counts the installs and wipes that failed since the last install that
	// succeeded; see Quarantine. A wipe that succeeds proves nothing of the next install.
	Failures int `json:"failures,omitempty"`
	// Unhealthy is why the last owner does not want the machine any more; it is in
	// quarantine until a human accepts it.
	Unhealthy string `json:"unhealthy,omitempty"`
	// Wiped proves the last verified wipe; nil after an install.
	Wiped *Wiped `json:"wiped,omitempty"`
	Power Power  `json:"power,omitzero"`
	// AwaitOS: everything is written and the machine restarts; it is provisioned when
	// the installed system phones home.
	AwaitOS bool `json:"awaitOS,omitempty"`
	// OSUp is when the installed system phoned home, or asked for its address; zero
	// before that.
	OSUp time.Time `json:"osUp,omitzero"`
	// Netboots are the boots from the network since the machine last made progress.
	Netboots Netboots `json:"netboots,omitzero"`
	// Discovered is when the machine was found by discovery; zero where a person made
	// its record.
	Discovered time.Time `json:"discovered,omitzero"`
	// Rule is the name of the rule that accepted the machine and whose workflow is to be
	// created; empty when that is done.
	Rule string `json:"rule,omitempty"`
	// Conflicts are what speaks against the machine being the one of its record.
	Conflicts []IdentityConflict `json:"conflicts,omitempty"`
	// Issues are what keeps the machine from getting on, the worst first.
	Issues []Issue `json:"issues,omitempty"`
}

// InstallRef names the workflow that installed a system. Later workflows that
// write no system (an inspection) leave it alone: cloud-init's instance id is UID,
// and a new one would make the system's next start its first.
type InstallRef struct {
	Workflow string `json:"workflow"` // name
	UID      string `json:"uid"`
	// Image is the name or the URL of what it wrote.
	Image string `json:"image,omitempty"`
	// Disks are those that it wrote it to; empty for an install of a former release.
	Disks []DiskRef `json:"disks,omitempty"`
}

// IdentityConflict says that a machine may not be the one its record means, or that two
// records may mean one machine. It is shown and stops nothing.
type IdentityConflict struct {
	// Kind is what is in conflict.
	Kind ConflictKind `json:"kind"`
	// With names the other record; empty where the machine differs from its own past.
	With string `json:"with,omitempty"`
	// Detail says what was found, in words.
	Detail string    `json:"detail"`
	Since  time.Time `json:"since"`
	// Accepted is when a human vouched for the machine in spite of it; zero: nobody did.
	Accepted time.Time `json:"accepted,omitzero"`
	// Was is what the machine was known by before, with ConflictReplaced.
	Was *Identity `json:"was,omitempty"`
}

// ConflictKind is one way in which identities do not agree.
type ConflictKind string

// The conflicts.
const (
	// ConflictUUID: another machine has the same system UUID.
	ConflictUUID ConflictKind = "duplicate-uuid"
	// ConflictSerial: another machine of the same vendor has the same serial number.
	ConflictSerial ConflictKind = "duplicate-serial"
	// ConflictMAC: a NIC of this machine is in another record.
	ConflictMAC ConflictKind = "mac-elsewhere"
	// ConflictReplaced: UUID or serial are not those that were there before.
	ConflictReplaced ConflictKind = "machine-replaced"
	// ConflictNIC: none of the NICs of the record is in the machine any more but the one
	// it booted from, or one was changed.
	ConflictNIC ConflictKind = "nic-changed"
)

// BMCFact is the out-of-band controller as the machine's own system sees it (IPMI,
// Get LAN Configuration Parameters).
type BMCFact struct {
	Address netip.Addr `json:"address,omitzero"`
	MAC     MAC        `json:"mac,omitzero"`
	// VLAN is its 802.1Q tag; 0 is none.
	VLAN int `json:"vlan,omitempty"`
	// Firmware is its revision.
	Firmware string `json:"firmware,omitempty"`
}

// Facts are what the worker found in the machine.
type Facts struct {
	Collected time.Time `json:"collected,omitzero"`
	Firmware  string    `json:"firmware,omitempty"` // bios or uefi
	// SecureBoot is "on", "off" or "" where the firmware does not say.
	SecureBoot  string `json:"secureBoot,omitempty"`
	Arch        string `json:"arch,omitempty"`
	CPUModel    string `json:"cpuModel,omitempty"`
	CPUs        int    `json:"cpus,omitempty"` // logical
	MemoryBytes uint64 `json:"memoryBytes,omitempty"`
	Vendor      string `json:"vendor,omitempty"`
	Product     string `json:"product,omitempty"`
	Serial      string `json:"serial,omitempty"`
	UUID        string `json:"uuid,omitempty"`
	// BoardSerial, ChassisSerial and AssetTag are SMBIOS's, without the fillers that
	// vendors leave there.
	BoardSerial   string `json:"boardSerial,omitempty"`
	ChassisSerial string `json:"chassisSerial,omitempty"`
	AssetTag      string `json:"assetTag,omitempty"`
	// BIOS is the firmware's vendor, version and date.
	BIOS string `json:"bios,omitempty"`
	// BMC is nil where the machine has none that could be asked.
	BMC   *BMCFact   `json:"bmc,omitempty"`
	Disks []DiskFact `json:"disks,omitempty"`
	NICs  []NICFact  `json:"nics,omitempty"`
	// Kernel is the worker's kernel release; Worker its version.
	Kernel string `json:"kernel,omitempty"`
	Worker string `json:"worker,omitempty"`
}

// DiskFact is one disk as the worker's kernel sees it.
type DiskFact struct {
	Path       string `json:"path"`
	Bytes      uint64 `json:"bytes"`
	Serial     string `json:"serial,omitempty"`
	WWN        string `json:"wwn,omitempty"`
	Model      string `json:"model,omitempty"`
	Transport  string `json:"transport,omitempty"` // nvme, sata, sas, virtio, usb, …
	Rotational bool   `json:"rotational,omitempty"`
	// ReadOnly: no action can write it, because it is write-protected or its zones are
	// managed by the host.
	ReadOnly  bool `json:"readOnly,omitempty"`
	Removable bool `json:"removable,omitempty"`
	// Layout is what was on it; nil where the worker did not look: it is older than that.
	Layout *Layout `json:"layout,omitempty"`
}

// NICFact is one network interface as the worker's kernel sees it.
type NICFact struct {
	Name   string `json:"name"`
	MAC    MAC    `json:"mac"`
	Driver string `json:"driver,omitempty"`
	// Permanent is the address that the card was made with, where MAC is another.
	Permanent MAC  `json:"permanent,omitzero"`
	Link      bool `json:"link"`
	Mbps      int  `json:"mbps,omitempty"`
}

// Limits on facts: they come from a machine we do not trust.
const (
	maxFactText  = 128
	maxFactDisks = 256
	maxFactNICs  = 64
	maxVLAN      = 4095 // 12 bits (802.1Q)
)

// Cap cuts the facts to sizes that any record can hold and drops control
// characters; what a hostile machine sends becomes short plain text.
func (f *Facts) Cap() {
	for _, s := range []*string{&f.Firmware, &f.SecureBoot, &f.Arch, &f.CPUModel, &f.Vendor, &f.Product, &f.Serial, &f.UUID, &f.BoardSerial, &f.ChassisSerial, &f.AssetTag, &f.BIOS, &f.Kernel, &f.Worker} {
		*s = FactText(*s)
	}
	if f.BMC != nil {
		f.BMC.Firmware = FactText(f.BMC.Firmware)
		f.BMC.Address = f.BMC.Address.WithZone("") // of any length, and any text
		if f.BMC.VLAN < 0 || f.BMC.VLAN > maxVLAN {
			f.BMC.VLAN = 0
		}
	}
	f.Disks = f.Disks[:min(len(f.Disks), maxFactDisks)]
	room := maxFactPartitions
	for i := range f.Disks {
		d := &f.Disks[i]
		for _, s := range []*string{&d.Path, &d.Serial, &d.WWN, &d.Model, &d.Transport} {
			*s = FactText(*s)
		}
		room -= d.Layout.cap(room)
	}
	f.NICs = f.NICs[:min(len(f.NICs), maxFactNICs)]
	for i := range f.NICs {
		n := &f.NICs[i]
		n.Name, n.Driver = FactText(n.Name), FactText(n.Driver)
	}
}

// FactText is s as facts hold it: [PlainText], and short.
func FactText(s string) string { return PlainText(s, maxFactText) }

// PlainText makes s valid UTF-8 without control characters, of at most limit bytes.
func PlainText(s string, limit int) string {
	out := make([]rune, 0, min(len(s), limit))
	n := 0
	for _, r := range s {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			r = ' '
		}
		if n += len(string(r)); n > limit {
			break
		}
		out = append(out, r)
	}
	return string(out)
}
