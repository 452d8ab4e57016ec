package store

import (
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// maxRecall bounds what is read of an earlier boot's notes.
const maxRecall = 256

// noteKey is what makes two notes the same.
type noteKey struct {
	boot, workflow, action string
	by                     string
	attempt                int
	reason                 hardware.Reason
	detail                 string
	// others: the detail is one of too many.
	others bool
}

func keyOfNote(ev *workflow.Event) noteKey {
	return noteKey{
		boot: ev.Boot, workflow: ev.Workflow, action: ev.Action, attempt: ev.Attempt,
		by: ev.By, reason: ev.Reason, detail: hardware.PlainText(ev.Detail, maxDetail),
	}
}

// note is one event and whether the store has it.
type note struct {
	event  workflow.Event
	stored bool
}

// noted is what a Recorder remembers of one machine.
type noted struct {
	next    time.Time // it is not written before
	boots   map[string]bool
	notes   map[noteKey]*note
	pending map[noteKey]*note // to be written
}

func newNoted() *noted {
	return &noted{boots: map[string]bool{}, notes: map[noteKey]*note{}, pending: map[noteKey]*note{}}
}

// place is the key under which ev is counted.
func (m *noted) place(ev *workflow.Event) noteKey {
	k := keyOfNote(ev)
	if m.notes[k] != nil {
		return k
	}
	n := 0
	for o := range m.notes {
		o.detail = k.detail
		if o == k {
			n++
		}
	}
	if n >= maxDetails {
		k.detail, k.others = "", true
	}
	return k
}

func (m *noted) knows(ev *workflow.Event) bool { return m.notes[m.place(ev)] != nil }

// add counts ev and says by how many the notes have grown.
func (m *noted) add(ev workflow.Event) int {
	k := m.place(&ev)
	n := m.notes[k]
	if n == nil {
		n = &note{event: ev}
		m.notes[k], m.pending[k] = n, n
		return 1
	}
	e := &n.event
	e.Count += ev.Count
	if ev.Last.After(e.Last) {
		e.Last = ev.Last
	}
	e.Detail, e.Bytes, e.Took = ev.Detail, ev.Bytes, ev.Took
	m.pending[k] = n
	return 0
}

// recall adds an event that the store has.
func (m *noted) recall(ev workflow.Event) int {
	k := keyOfNote(&ev)
	if m.notes[k] != nil {
		return 0
	}
	m.notes[k] = &note{event: ev, stored: true}
	return 1
}

// forget drops the notes of other boots, less those to be written: a machine is in
// one boot at a time. It says how many.
func (m *noted) forget() int {
	n := len(m.notes)
	clear(m.boots)
	clear(m.notes)
	for k, p := range m.pending {
		m.notes[k] = p
	}
	return n - len(m.notes)
}
