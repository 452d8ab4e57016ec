package hardware

import "time"

// Claim is somebody's right to one machine. Its name is the claimer's own id: the
// same id asked again is the same claim. A claim that has ended stays for a while,
// so that a late retry does not take another machine.
type Claim struct {
	Meta   Meta        `json:"metadata"`
	Spec   ClaimSpec   `json:"spec"`
	Status ClaimStatus `json:"status,omitzero"`
}

// ClaimSpec says who wants what. It is written once.
type ClaimSpec struct {
	// Owner is who claims, for example capi/prod/web-1; a claimer's token is limited
	// to owners with a prefix.
	Owner string `json:"owner"`
	// Hardware names one machine; empty is any that fits.
	Hardware string `json:"hardware,omitempty"`
	// Selector are the labels that the machine must have, as `key=value,key!=value,
	// key,!key,key in (a,b),key notin (a,b)`.
	Selector string `json:"selector,omitempty"`
	// Requirements are what must be in the machine.
	Requirements Requirements `json:"requirements,omitzero"`
	// FailureDomain is the value that the machine's FailureDomainLabel must have.
	FailureDomain string `json:"failureDomain,omitempty"`
	// FailureDomainLabel is `rack` where empty.
	FailureDomainLabel string `json:"failureDomainLabel,omitempty"`
	// FailureDomainPreferred: a machine of another failure domain will do where there is
	// none in this one.
	FailureDomainPreferred bool `json:"failureDomainPreferred,omitempty"`
	// Reuse is the group, an owner or the beginning of owners, whose machines are kept
	// for it: see Reserve. One of them that fits is taken before any other.
	Reuse string `json:"reuse,omitempty"`
	// Prefer weighs the machines that fit: the one with the largest sum is taken.
	Prefer []Preference `json:"prefer,omitempty"`
}

// Preference adds Weight (-100 to 100) to machines that match Selector.
type Preference struct {
	// Selector picks machines by their labels: rack=a1,tier!=test.
	Selector string `json:"selector"`
	// Weight is added to their sum, -100 to 100.
	Weight int `json:"weight"`
}

// Requirements are what must be in a machine, by its facts. Empty fields ask for
// nothing.
type Requirements struct {
	// Arch is the CPU architecture: amd64 or arm64.
	Arch string `json:"arch,omitempty"`
	// CPUs is the least number of logical CPUs.
	CPUs int `json:"cpus,omitempty"`
	// Memory is the least memory: 64Gi, 512Mi, 256G.
	Memory Quantity `json:"memory,omitempty"`
	// Disks must all be there, each another disk.
	Disks []DiskRequirement `json:"disks,omitempty"`
	// NICs must all be there, each another one.
	NICs []NICRequirement `json:"nics,omitempty"`
}

// DiskRequirement asks for Count disks (1 where 0) of a kind.
type DiskRequirement struct {
	// Count is how many there must be; 1 where 0.
	Count int `json:"count,omitempty"`
	// Size is the least size of each.
	Size Quantity `json:"size,omitempty"`
	// Transport is nvme, sata, sas, virtio, …; empty is any.
	Transport string `json:"transport,omitempty"`
	// Rotational false asks for flash, true for spinning disks; any where nil.
	Rotational *bool `json:"rotational,omitempty"`
}

// NICRequirement asks for Count NICs (1 where 0) of a kind.
type NICRequirement struct {
	// Count is how many there must be; 1 where 0.
	Count int `json:"count,omitempty"`
	// Mbps is the least link speed.
	Mbps int `json:"mbps,omitempty"`
}

// ClaimStatus says which machine a claim got.
type ClaimStatus struct {
	// Hardware and UID name the machine.
	Hardware string    `json:"hardware,omitempty"`
	UID      string    `json:"uid,omitempty"`
	Claimed  time.Time `json:"claimed,omitzero"`
	// Ended is when it was released; zero while it is held.
	Ended time.Time `json:"ended,omitzero"`
	// Stopped says that after the release the machine's system is known to run no more;
	// nil before that.
	Stopped *Stopped `json:"stopped,omitempty"`
	// ProviderID is rackstrap://<installation>/<hardware uid>/<claim id>.
	ProviderID string `json:"providerID,omitempty"`
}

// ProviderID names a claimed machine to the world: what Kubernetes knows a node by.
// It has the claim, so that a machine that was given back and taken again is another
// node.
func ProviderID(installation, uid, claim string) string {
	return "rackstrap://" + installation + "/" + uid + "/" + claim
}

// Candidate says whether one machine fits a claim, and if not, everything that
// speaks against it, in sentences.
type Candidate struct {
	Hardware string   `json:"hardware"`
	Fits     bool     `json:"fits"`
	Score    int      `json:"score,omitempty"`
	Against  []string `json:"against,omitempty"`
	// Note says what besides the score places a machine that fits before or after others.
	Note string `json:"note,omitempty"`
	rank rank
}

// ClaimAnswer says what a claim would be given, and why.
type ClaimAnswer struct {
	// Picked is the machine that the claim has, or would be given; empty for none.
	Picked string
	// Candidates are all machines, the picked one and others that fit first.
	Candidates []Candidate
	// Against counts those that do not fit, each by the first thing against it.
	Against map[Against]int
}

// Stopped says how it is known that what its last owner installed on a machine runs no
// more. Whoever replaces a machine waits for it: two must not think that they are one.
type Stopped struct {
	At time.Time `json:"at"`
	By StoppedBy `json:"by"`
}

// StoppedBy is a proof that a machine's system runs no more.
type StoppedBy string

// The proofs.
const (
	// StoppedNeverRan: nothing was installed under the claim, or it was not started.
	StoppedNeverRan StoppedBy = "never-ran"
	// StoppedByPowerOff: the power controller says that the machine is off.
	StoppedByPowerOff StoppedBy = "power-off"
	// StoppedByWorker: the worker runs in the machine, so nothing else does.
	StoppedByWorker StoppedBy = "worker"
	// StoppedByHold: it is not known. The deadline passed, or somebody gave the machine
	// up; it is on hold or retired, and is refused its disk when it next boots from the
	// network.
	StoppedByHold StoppedBy = "hold"
)

// Reserve keeps the machine of a claim that ends for the next claim of a group.
type Reserve struct {
	// For is the group; claims name it in Spec.Reuse. It lies within the owner prefix of
	// whoever asks.
	For string `json:"for"`
	// KeepDisks: nothing is wiped while it is kept. An install of the group then writes
	// the disk that it installs to, and no other. When the time is over the machine is
	// wiped like any other.
	KeepDisks bool `json:"keepDisks,omitempty"`
	// Within is how long it is kept, a day at most; an hour where zero.
	Within Duration `json:"within,omitzero"`
}

// Reservation is a machine that is kept for a group.
type Reservation struct {
	For       string    `json:"for"`
	KeepDisks bool      `json:"keepDisks,omitempty"`
	Until     time.Time `json:"until"`
}
