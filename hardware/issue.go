package hardware

import (
	"slices"
	"time"
)

// IssueKind is one way in which a machine does not get on. The set is closed; each
// has a heading with its fix in deploy/docs/issues.md.
type IssueKind string

// The issues.
const (
	// IssueNeverSeen: the machine should netboot, and no packet of it came.
	IssueNeverSeen IssueKind = "never-seen"
	// IssuePowerFailed: the BMC refused, or did not answer.
	IssuePowerFailed IssueKind = "power-failed"
	// IssueBootStuck: a boot began and its worker does not come.
	IssueBootStuck IssueKind = "boot-stuck"
	// IssueWorkerLost: a workflow runs and its worker is gone.
	IssueWorkerLost IssueKind = "worker-lost"
	// IssueNetbootDenied: a workflow waits, and the record's switches forbid it to begin.
	IssueNetbootDenied IssueKind = "netboot-denied"
	// IssueNoAddress: a workflow waits, and DHCP cannot answer the machine.
	IssueNoAddress IssueKind = "no-address"
	// IssueOverdue: the state's deadline has passed.
	IssueOverdue IssueKind = "overdue"
	// IssueProvisionFailed: an install failed.
	IssueProvisionFailed IssueKind = "provision-failed"
	// IssueReleaseFailed: a wipe failed; what was on the disks may still be there.
	IssueReleaseFailed IssueKind = "release-failed"
	// IssueQuarantined: several installs or wipes failed in a row.
	IssueQuarantined IssueKind = "quarantined"
	// IssueHeld: the machine is on hold.
	IssueHeld IssueKind = "on-hold"
	// IssueNotStopped: a claim ended, and it is not known that its system runs no more.
	IssueNotStopped IssueKind = "not-stopped"
	// IssueTokenStolen: a second key came with the machine's boot token.
	IssueTokenStolen IssueKind = "token-stolen"
	// IssueOSNotUp: the installed system does not phone home.
	IssueOSNotUp IssueKind = "os-not-up"
	// IssueActionRetrying: an action failed, or the machine restarted again and again
	// during it, and it is tried again.
	IssueActionRetrying IssueKind = "action-retrying"
	// IssueWorkflowFailed: the last workflow failed and left the machine in its state.
	IssueWorkflowFailed IssueKind = "workflow-failed"
	// IssuePending: a discovered machine waits to be accepted.
	IssuePending IssueKind = "pending"
	// IssueBootLoop: the machine boots from the network again and again.
	IssueBootLoop IssueKind = "boot-loop"
	// IssueConflict: the machine may not be the one that its record means.
	IssueConflict IssueKind = "identity-conflict"
)

// Severity says how much an issue matters.
type Severity string

// The severities.
const (
	// SeverityError: the machine does not get on without help.
	SeverityError Severity = "error"
	// SeverityWarning: it is slower than it should be, and may yet get on.
	SeverityWarning Severity = "warning"
	// SeverityInfo: it waits for a human, as it should.
	SeverityInfo Severity = "info"
)

// Issue is one thing that keeps one machine from getting on.
type Issue struct {
	Kind     IssueKind `json:"kind"`
	Severity Severity  `json:"severity"`
	Since    time.Time `json:"since"`
	// Detail says what was seen, in words.
	Detail string `json:"detail"`
	// Fix is what to do or type.
	Fix string `json:"fix"`
}

// issueTitles has the sentence of every kind.
func issueTitles() map[IssueKind]string {
	return map[IssueKind]string{
		IssueNeverSeen:       "the machine should netboot and was not seen on the network",
		IssuePowerFailed:     "the machine's power cannot be controlled",
		IssueBootStuck:       "a boot began and does not reach the worker",
		IssueWorkerLost:      "a workflow runs and its worker is gone",
		IssueNetbootDenied:   "a workflow waits, and the record forbids it to begin",
		IssueNoAddress:       "a workflow waits, and DHCP has no address for the machine",
		IssueOverdue:         "the machine is longer in its state than it should be",
		IssueProvisionFailed: "the install failed",
		IssueReleaseFailed:   "the wipe failed: what was on the disks may still be there",
		IssueQuarantined:     "too much failed in a row: the machine is not picked any more",
		IssueHeld:            "the machine is on hold and waits for a human",
		IssueNotStopped:      "the last owner's system may still run: the machine is on hold",
		IssueTokenStolen:     "somebody else used the machine's boot token",
		IssueOSNotUp:         "the installed system does not phone home",
		IssueActionRetrying:  "an action fails and is tried again",
		IssueWorkflowFailed:  "the last workflow failed; the machine is in the state it had before",
		IssuePending:         "a machine was discovered and waits to be accepted",
		IssueBootLoop:        "the machine boots from the network again and again and gets nowhere",
		IssueConflict:        "the machine may not be the one that its record means",
	}
}

// Title is the issue in one sentence.
func (k IssueKind) Title() string {
	if t, ok := issueTitles()[k]; ok {
		return t
	}
	return string(k)
}

// IssueKinds lists the closed set, sorted.
func IssueKinds() []IssueKind {
	var out []IssueKind
	for k := range issueTitles() {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
