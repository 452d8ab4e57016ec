package api

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Version is the apiVersion of every record.
const Version = "rackstrap/v1"

// Base is the path under which all routes are.
const Base = "/api/v1"

// Kind is what a record is, as its `kind:` says.
type Kind string

// The kinds that people write.
const (
	KindHardware Kind = "Hardware"
	KindSubnet   Kind = "Subnet"
	KindTemplate Kind = "Template"
	KindImage    Kind = "Image"
	KindRule     Kind = "Rule"
	KindWorkflow Kind = "Workflow"
)

// Kinds lists them in the order in which apply writes them: what others name
// comes first.
func Kinds() []Kind {
	return []Kind{KindSubnet, KindTemplate, KindImage, KindRule, KindHardware, KindWorkflow}
}

// Known reports whether k is one of Kinds.
func (k Kind) Known() bool { return slices.Contains(Kinds(), k) }

// Word is the kind as the command line and sentences have it: hardware.
func (k Kind) Word() string { return strings.ToLower(string(k)) }

// Path is the kind's segment in a URL: hardware, subnets.
func (k Kind) Path() string {
	if k == KindHardware {
		return "hardware"
	}
	return k.Word() + "s"
}

// Workflow is a workflow with how far its running attempt is.
type Workflow struct {
	workflow.Workflow
	Progress *workflow.Progress `json:"progress,omitempty"`
}

// Image is an image with how far the appliance is with it.
type Image struct {
	workflow.Image
	Progress *workflow.ImageProgress `json:"progress,omitempty"`
}

// List is the answer to a GET of a collection.
type List[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []T    `json:"items"`
	// Continue, where not empty, gets the next page: `?continue=`, with all else as it
	// was asked.
	Continue string `json:"continue,omitempty"`
	// Total is how many records match in all; Remaining how many come after this page.
	Total     int `json:"total,omitempty"`
	Remaining int `json:"remaining,omitempty"`
	// Cursor, of events and of records, is where to read on: `GET /events?after=`. What
	// the list does not show comes after it; something that it shows may come again.
	Cursor uint64 `json:"cursor,omitempty"`
}

// Hold is the body of POST /hardware/{name}/hold.
type Hold struct {
	// Hold false takes the machine off hold; true where it is missing.
	Hold *bool `json:"hold,omitempty"`
}

// Cancel is the body of POST /workflows/{name}/cancel.
type Cancel struct {
	// Reason is what the timeline shows.
	Reason string `json:"reason,omitempty"`
}

// Headers of the answer that is an attempt's log.
const (
	// LogOffset is the byte of the log at which the answer begins; with the bytes of the
	// answer it is the offset to go on from.
	LogOffset = "Rackstrap-Log-Offset"
	// LogSize is how many bytes the log had when the answer began.
	LogSize = "Rackstrap-Log-Size"
)

// VersionInfo says what the daemon is.
type VersionInfo struct {
	// Installation is the id of this installation, made at its first start; it is the
	// host of every providerID.
	Installation string `json:"installation,omitempty"`
	Version      string `json:"version"`
	// Fingerprint is the SHA-256 of the certificate of the HTTPS listener, in hex;
	// empty where there is none.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// Marshal is record as JSON with apiVersion and kind in front.
func Marshal(k Kind, record any) (json.RawMessage, error) {
	raw, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	head, err := json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       Kind   `json:"kind"`
	}{Version, k})
	if err != nil {
		return nil, err
	}
	if bytes.Equal(raw, []byte("{}")) {
		return head, nil
	}
	return append(append(head[:len(head)-1], ','), raw[1:]...), nil
}

// Applied says what apply did with one document, or a bulk verb with one machine.
type Applied struct {
	// Index counts the documents from 0; Line is where it starts in what was sent.
	Index  int     `json:"index"`
	Line   int     `json:"line,omitempty"`
	Kind   Kind    `json:"kind,omitempty"`
	Name   string  `json:"name,omitempty"`
	Result Outcome `json:"result"`
	// State is that of the machine before, of a bulk verb.
	State hardware.State `json:"state,omitempty"`
	// Changes are the fields that differ, of a dry run and of labels; secrets are
	// redacted.
	Changes []Change `json:"changes,omitempty"`
	// Skipped names what a forced delete leaves undone.
	Skipped []string `json:"skipped,omitempty"`
	// Detail and Errors say what is wrong, for an error; Detail of a bulk verb what it
	// did.
	Detail string                `json:"detail,omitempty"`
	Errors []hardware.FieldError `json:"errors,omitempty"`
	// Hint, for an error, says what to do next.
	Hint string `json:"hint,omitempty"`
}

// Outcome is what apply did with a document.
type Outcome string

// The outcomes.
const (
	OutcomeCreated   Outcome = "created"
	OutcomeChanged   Outcome = "changed"
	OutcomeUnchanged Outcome = "unchanged"
	OutcomeDeleted   Outcome = "deleted"
	// OutcomeDone: a bulk verb did what changes no state.
	OutcomeDone  Outcome = "done"
	OutcomeError Outcome = "error"
	// OutcomeSkipped: the document is right, but nothing is written while another
	// one is wrong; or a bulk verb was not begun.
	OutcomeSkipped Outcome = "skipped"
)

// ApplyResult is the answer of apply, in the order of the documents.
type ApplyResult struct {
	Results []Applied `json:"results"`
	// DryRun: nothing was written.
	DryRun bool `json:"dryRun,omitempty"`
}
