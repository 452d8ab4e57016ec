package api

import (
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Provision is the body of POST /hardware/{name}/provision: install an operating
// system in one request.
type Provision struct {
	// Image is the name of an image, or an http(s) URL. Where it is empty it is the one
	// image that has OS, OSVersion and KubernetesVersion, as far as they are given, and
	// the machine's architecture.
	Image             string `json:"image,omitempty"`
	OS                string `json:"os,omitempty"`
	OSVersion         string `json:"osVersion,omitempty"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Checksum of an image by URL: sha256:<hex>, sha512:<hex>, md5:<hex> with a warning in
	// the timeline, or the http(s) URL of a list of checksums that names the image's file,
	// which is read once, now.
	Checksum string `json:"checksum,omitempty"`
	// Format of UserData: cloud-config (the default), ignition or talos.
	Format string `json:"format,omitempty"`
	// UserData is UTF-8 text and reaches the machine byte by byte.
	UserData string `json:"userData,omitempty" secret:"true"`
	// Network is a cloud-init network-config version 2 in YAML; made from the record
	// where empty.
	Network string `json:"network,omitempty"`
	// Static, instead of Network, changes what is made from the record.
	Static *hardware.StaticNetwork `json:"static,omitempty"`
	// MetaData are more keys of the NoCloud meta-data, as YAML `key: value` lines.
	MetaData string `json:"metaData,omitempty"`
	// Disk is smallest, largest, /dev/… or serial=…; empty is the only one.
	Disk string `json:"disk,omitempty"`
	// Template is used instead of the built-in one of the format; Params are its
	// further parameters.
	Template string         `json:"template,omitempty"`
	Params   map[string]any `json:"params,omitempty"`
	// Reinstall allows it on a machine that is provisioned.
	Reinstall bool `json:"reinstall,omitempty"`
	// WaitForPhoneHome: the machine is provisioned when its system phones home. Refused
	// for Ignition and Talos, which call nobody.
	WaitForPhoneHome bool `json:"waitForPhoneHome,omitempty"`
	// Claim is the claim under which it is done; needed by a claimer, and where the
	// machine is claimed by the same.
	Claim string `json:"claim,omitempty"`
	// Name of the workflow; made where empty. The same name again with the same spec
	// is no second install, also after the first has ended.
	Name string `json:"name,omitempty"`
	// DryRun renders, refuses what would be refused, and starts nothing; ?dryRun=true is
	// the same.
	DryRun bool `json:"dryRun,omitempty"`
}

// Provisioned is the answer: the workflow, with its rendered actions, secrets
// redacted. For a dry run it has no uid.
type Provisioned struct {
	Hardware string   `json:"hardware"`
	Workflow Workflow `json:"workflow"`
	DryRun   bool     `json:"dryRun,omitempty"`
	// Erases, of a dry run, are the disks that would be overwritten.
	Erases []Erasure `json:"erases,omitempty"`
	// Checks, of a dry run, are what validate finds of this install: it may begin and
	// not get to its end.
	Checks []Check `json:"checks,omitempty"`
}

// Erasure is a disk that an install overwrites.
type Erasure = workflow.Erasure

// Release is the body of POST /hardware/{name}/release.
type Release struct {
	// Claim, where given, must be the one that holds the machine.
	Claim string `json:"claim,omitempty"`
	// Force gives the machine up without a wipe: it goes on hold as failed, is not
	// available, and the answer names what was skipped.
	Force bool `json:"force,omitempty"`
	// Reason is what the timeline shows.
	Reason string `json:"reason,omitempty"`
}

// Released is the answer.
type Released struct {
	Hardware hardware.Hardware `json:"hardware"`
	// Workflow wipes the machine; empty where nothing had to be, or was, wiped.
	Workflow string `json:"workflow,omitempty"`
	// Skipped names what force left out.
	Skipped []string `json:"skipped,omitempty"`
}

// Note is the body of accept, maintenance and retire.
type Note struct {
	// Note is what the timeline shows.
	Note string `json:"note,omitempty"`
	// Off, of maintenance, ends it.
	Off bool `json:"off,omitempty"`
	// Force, of retire, also takes a machine that has data on it or an owner; the
	// answer names what was skipped.
	Force bool `json:"force,omitempty"`
}

// Retired is the answer of retire, and of deleting with force.
type Retired struct {
	Hardware string   `json:"hardware"`
	Skipped  []string `json:"skipped,omitempty"`
}

// PowerAction is what is asked of a machine's power.
type PowerAction string

// The power actions.
const (
	PowerActionOn     PowerAction = "on"
	PowerActionOff    PowerAction = "off"
	PowerActionCycle  PowerAction = "cycle"
	PowerActionStatus PowerAction = "status"
)

// Power is the body of POST /hardware/{name}/power.
type Power struct {
	Action PowerAction `json:"action"`
	// NextBoot, of on and cycle: disk or network; empty leaves the firmware's order.
	NextBoot string `json:"nextBoot,omitempty"`
}

// PowerResult is the answer.
type PowerResult struct {
	Hardware string              `json:"hardware"`
	Driver   string              `json:"driver"`
	State    hardware.PowerState `json:"state"`
	// Message says what a person must do, with the manual driver.
	Message string `json:"message,omitempty"`
}

// Backup is the body of POST /backup.
type Backup struct {
	// Passphrase, where given, locks a copy of the key file in the archive.
	Passphrase string `json:"passphrase,omitempty" secret:"true"`
}

// MachineIssue is one issue of one machine.
type MachineIssue struct {
	Hardware string         `json:"hardware"`
	State    hardware.State `json:"state"`
	Title    string         `json:"title"`
	hardware.Issue
}

// Explanation says why a machine is where it is, and what to type.
type Explanation = workflow.Explanation

// ClaimExplanation says of each machine why it was, or would be, picked or not.
type ClaimExplanation struct {
	Claim      string               `json:"claim,omitempty"`
	Picked     string               `json:"picked,omitempty"`
	Summary    string               `json:"summary"`
	Candidates []hardware.Candidate `json:"candidates"`
}

// Validation says what is missing before a machine can be installed.
type Validation struct {
	Hardware string  `json:"hardware"`
	Ready    bool    `json:"ready"`
	Checks   []Check `json:"checks"`
}

// Check is one thing that was looked at.
type Check = workflow.Check

// WorkflowOf is the workflow of an answer with what is known of its progress.
func WorkflowOf(w *workflow.Workflow, p *workflow.Progress) Workflow {
	return Workflow{Workflow: *w, Progress: p}
}
