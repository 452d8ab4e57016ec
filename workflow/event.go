package workflow

import (
	"cmp"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Event is one line of a timeline. Repeats of one Reason within a boot are one
// event with a count.
type Event struct {
	// ID is a ULID, unique and sorted by the time of the first occurrence; the store
	// makes it, so that events of one millisecond sort as they were written.
	ID string `json:"id"`
	// Hardware is the uid of the machine; empty for events of the appliance.
	Hardware string          `json:"hardware,omitempty"`
	Machine  string          `json:"machine,omitempty"` // its name then
	Boot     string          `json:"boot,omitempty"`
	Workflow string          `json:"workflow,omitempty"` // name
	Action   string          `json:"action,omitempty"`   // name
	Attempt  int             `json:"attempt,omitempty"`  // from 1
	Reason   hardware.Reason `json:"reason"`
	// Detail is what the Reason's sentence lacks: the file, the address, the error.
	Detail string    `json:"detail,omitempty"`
	Count  int       `json:"count"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	// By names who asked for it, for what came through the API: "socket" or the name
	// of a token.
	By string `json:"by,omitempty"`
	// Bytes and Took are figures where the event has some.
	Bytes int64             `json:"bytes,omitempty"`
	Took  hardware.Duration `json:"took,omitempty"`
	// Cursor is the store's revision of the event; a subscriber reads on after it.
	Cursor uint64 `json:"cursor,omitempty"`
}

// Text is the event in one sentence.
func (e *Event) Text() string {
	s := e.Reason.Sentence()
	if e.Reason == hardware.ReasonSignedIn || e.Reason == hardware.ReasonSignedOut {
		return strings.TrimSpace(strings.Replace(s, "somebody", cmp.Or(e.By, "somebody"), 1) + " " + e.Detail)
	}
	if e.Action != "" {
		s += " · " + e.Action
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// EventQuery selects events; empty fields select all.
type EventQuery struct {
	Hardware string // uid
	Boot     string
	Workflow string // name
	By       string
	Reason   hardware.Reason
	// After leaves out what a subscriber has seen: events up to this cursor.
	After uint64
	// Before leaves out the event with this id and those that began after it: whoever
	// has the newest asks so for older ones.
	Before string
	// Limit is how many of the newest are wanted; the store's default where 0.
	Limit int
}

// Matches reports whether ev is selected. Limit is not looked at.
func (q *EventQuery) Matches(ev *Event) bool {
	return (q.Hardware == "" || q.Hardware == ev.Hardware) && (q.Boot == "" || q.Boot == ev.Boot) &&
		(q.Workflow == "" || q.Workflow == ev.Workflow) && (q.By == "" || q.By == ev.By) &&
		(q.Reason == "" || q.Reason == ev.Reason) && ev.Cursor > q.After && (q.Before == "" || ev.ID < q.Before)
}
