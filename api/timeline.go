package api

import (
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Event is a line of a timeline with its sentence.
type Event struct {
	workflow.Event
	Sentence string `json:"text"`
}

// NewEvent adds the sentence.
func NewEvent(e workflow.Event) Event { return Event{Event: e, Sentence: e.Text()} }

// ReasonText is what a Reason means.
type ReasonText struct {
	Reason hardware.Reason `json:"reason"`
	// Sentence is the Reason in words, as the timeline has it.
	Sentence string `json:"sentence"`
	// About is what the troubleshooting guide says of it, and what to do, in Markdown.
	About string `json:"about,omitempty"`
}

// Timeline is everything that is known of one machine, boot by boot, the oldest
// first.
type Timeline struct {
	Hardware string         `json:"hardware"` // name
	Boots    []BootTimeline `json:"boots"`
}

// BootTimeline is one boot. What happened before the first boot is in one without
// a Boot.
type BootTimeline struct {
	Boot string `json:"boot,omitempty"`
	// Started is the first packet's time, or when the machine was switched on for it.
	Started time.Time      `json:"started"`
	Lines   []TimelineLine `json:"lines"`
	// Ended says why it ended without a worker, where one was wanted; Fix what to do.
	Ended string `json:"ended,omitempty"`
	Fix   string `json:"fix,omitempty"`
	// Split says where the time went, in order.
	Split []Span `json:"split,omitempty"`
}

// TimelineLine is an event with its time since the boot's start.
type TimelineLine struct {
	At hardware.Duration `json:"at"`
	Event
}

// Span is one part of a boot.
type Span struct {
	Name string `json:"name"`
	// At is when it began, since the boot's start.
	At   hardware.Duration `json:"at"`
	Took hardware.Duration `json:"took"`
	// Bytes that moved in it, where that is known.
	Bytes int64 `json:"bytes,omitempty"`
	// Ended false: it is the part that runs now, Took is so far.
	Ended bool `json:"ended"`
}
