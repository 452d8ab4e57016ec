package workflow

import (
	"encoding/json"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Workflow is one run of a Template on one Hardware. Spec is written once, when
// it is created; Status is written by the engine only.
type Workflow struct {
	Meta   hardware.Meta `json:"metadata"`
	Spec   WorkflowSpec  `json:"spec"`
	Status Status        `json:"status,omitzero"`
}

// WorkflowSpec names the machine, the template and the values of its parameters.
type WorkflowSpec struct {
	Hardware string `json:"hardware"` // name
	Template string `json:"template"` // name
	// Params are values of the template's parameters, by name.
	Params map[string]any `json:"params,omitempty"`
	// Reinstall allows a workflow that writes disks on a machine that is provisioned.
	Reinstall bool `json:"reinstall,omitempty"`
	// Purpose is what the workflow is for; the lifecycle follows it.
	Purpose Purpose `json:"purpose,omitempty"`
	// WaitForPhoneHome: the machine is provisioned when its system phones home.
	WaitForPhoneHome bool `json:"waitForPhoneHome,omitempty"`
	// Claim is the id of the claim under which it runs; it ends with that claim.
	Claim string `json:"claim,omitempty"`
}

// Purpose is what a workflow is for.
type Purpose string

// The purposes; a workflow without one is an operator's own.
const (
	PurposeNone    Purpose = ""
	PurposeInstall Purpose = "install"
	// PurposeRelease: everything is wiped and verified before the machine is available.
	PurposeRelease Purpose = "release"
	// PurposeInspect: the worker comes, reports the facts, and nothing is written.
	PurposeInspect Purpose = "inspect"
)

// State is how far a workflow or an action is.
type State string

// The states. A state never moves backwards: pending → running → one of the four
// ends. An action that is tried again stays running and gets a new Attempt.
const (
	StatePending   State = "pending"
	StateRunning   State = "running"
	StateSucceeded State = "succeeded"
	StateFailed    State = "failed"
	StateTimedOut  State = "timed-out"
	StateCancelled State = "cancelled"
)

// Ended reports whether s is final.
func (s State) Ended() bool {
	return s == StateSucceeded || s == StateFailed || s == StateTimedOut || s == StateCancelled
}

// Status is how far a workflow is.
type Status struct {
	State State `json:"state,omitempty"`
	// HardwareUID is the machine the name meant when the workflow was created.
	HardwareUID string `json:"hardwareUID,omitempty"`
	// Message says in words why the workflow ended, or what it waits for.
	Message  string            `json:"message,omitempty"`
	Started  time.Time         `json:"started,omitzero"`
	Finished time.Time         `json:"finished,omitzero"`
	Timeout  hardware.Duration `json:"timeout,omitempty"`
	// Cancelling: somebody asked for the end; the running attempt is being stopped.
	Cancelling      bool      `json:"cancelling,omitempty"`
	CancelRequested time.Time `json:"cancelRequested,omitzero"`
	// SecretParams names the parameters that were secret when the workflow was created.
	SecretParams []string `json:"secretParams,omitempty"`
	// Current is the index of the action that runs or comes next.
	Current int      `json:"current"`
	Actions []Action `json:"actions,omitempty"`
}

// Action is one rendered step and its tries.
type Action struct {
	Name    string            `json:"name"`
	Kind    Kind              `json:"kind"`
	Timeout hardware.Duration `json:"timeout,omitempty"` // of one attempt; 0 is none
	Retries int               `json:"retries"`
	// With holds rendered options and may hold secrets; see Redacted.
	With     json.RawMessage `json:"with,omitempty"`
	State    State           `json:"state"`
	Attempts []Attempt       `json:"attempts,omitempty"`
}

// Attempt is one try of an action. A retry is a new Attempt.
type Attempt struct {
	// Boot is the boot whose worker ran it.
	Boot     string    `json:"boot"`
	State    State     `json:"state"`
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
	// Message is the error in words, or what was done.
	Message string `json:"message,omitempty"`
	// Interrupted: the machine restarted during the attempt; such an attempt does
	// not use up a retry.
	Interrupted bool `json:"interrupted,omitempty"`
	// Permanent: the worker says that trying again cannot help.
	Permanent bool `json:"permanent,omitempty"`
	// Untouched: it failed before anything was written to a disk.
	Untouched bool `json:"untouched,omitempty"`
	// Result has the figures of a finished attempt, for example bytes written.
	Result Result `json:"result,omitzero"`
	// LogBytes is the size of its log, 0 where there is none. It is looked up when the
	// workflow is shown, and kept nowhere else.
	LogBytes int64 `json:"logBytes,omitempty"`
}

// Result has the figures of a finished attempt.
type Result struct {
	SourceBytes  int64  `json:"sourceBytes,omitempty"`  // as they came over the network
	WrittenBytes int64  `json:"writtenBytes,omitempty"` // as they went to the disk
	Disk         string `json:"disk,omitempty"`
	Checksum     string `json:"checksum,omitempty"`
	// Compared is what the image was compared with where that is weaker than Checksum,
	// which is its SHA-256 then: md5:<hex>.
	Compared string `json:"compared,omitempty"`
	// Wiped are the disks that were wiped and read back, for a verified wipe.
	Wiped []hardware.WipedDisk `json:"wiped,omitempty"`
}

// Progress is how far a running attempt is; only the latest is kept, in memory.
type Progress struct {
	Workflow string `json:"workflow"`
	Action   int    `json:"action"`
	Attempt  int    `json:"attempt"`
	Done     int64  `json:"done"`            // bytes
	Total    int64  `json:"total,omitempty"` // bytes; 0 is unknown
	Written  int64  `json:"written,omitempty"`
	Note     string `json:"note,omitempty"`
	// Machine and HardwareUID say on which machine.
	Machine     string `json:"-"`
	HardwareUID string `json:"-"`
	// At is when it was reported.
	At time.Time `json:"at,omitzero"`
}
