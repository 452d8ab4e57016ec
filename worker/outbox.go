package worker

import (
	"sync"

	"github.com/rackstrap/rackstrap/api/workerpb"
)

// Limits on what waits for a connection.
const (
	maxLogWaiting = 256 << 10 // bytes of log; the oldest go first
	maxLogPiece   = 16 << 10  // bytes of one message
)

// outbox holds what is to be told to the appliance, across connections: numbered
// messages until they are acknowledged, the latest progress, the end of the log.
type outbox struct {
	mu       sync.Mutex
	seq      uint64
	pending  []*workerpb.Up
	progress *workerpb.Progress
	log      []*workerpb.Log
	logSize  int
	lost     int           // bytes of log that were dropped
	acked    chan struct{} // closed and replaced at each acknowledgement
	wake     chan struct{}
}

func newOutbox() *outbox {
	return &outbox{acked: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// Add numbers a message and keeps it until its number is acknowledged.
func (o *outbox) Add(m *workerpb.Up) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seq++
	m.Seq = o.seq
	o.pending = append(o.pending, m)
	o.signal()
	return m.Seq
}

// Ack forgets the message with that number; a number that is not known changes nothing.
func (o *outbox) Ack(seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, m := range o.pending {
		if m.Seq == seq {
			o.pending = append(o.pending[:i:i], o.pending[i+1:]...)
			close(o.acked)
			o.acked = make(chan struct{})
			return
		}
	}
}

// Waiting reports whether the message is not acknowledged yet, and gives a channel
// that is closed at the next acknowledgement.
func (o *outbox) Waiting(seq uint64) (bool, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.pending {
		if m.Seq == seq {
			return true, o.acked
		}
	}
	return false, o.acked
}

// Progress replaces the progress that was not sent yet.
func (o *outbox) Progress(p *workerpb.Progress) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.progress = p
	o.signal()
}

// Log appends a piece of log.
func (o *outbox) Log(a *workerpb.Assignment, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(text) > 0 {
		n := min(len(text), maxLogPiece)
		o.log = append(o.log, &workerpb.Log{Assignment: a, Text: append([]byte(nil), text[:n]...)})
		o.logSize += n
		text = text[n:]
	}
	for o.logSize > maxLogWaiting {
		n := len(o.log[0].GetText())
		o.logSize -= n
		o.lost += n
		o.log = o.log[1:]
	}
	o.signal()
}

// Take returns what is to be sent after the numbered message last: the log first,
// so that a report ends what was said before it; progress only if asked for. more
// says that progress stayed behind.
func (o *outbox) Take(last uint64, withProgress bool) (msgs []*workerpb.Up, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost > 0 && len(o.log) > 0 {
		o.log[0].Text = append([]byte("[log lost while the appliance was away]\n"), o.log[0].GetText()...)
		o.lost = 0
	}
	for _, l := range o.log {
		msgs = append(msgs, &workerpb.Up{Body: &workerpb.Up_Log{Log: l}})
	}
	o.log, o.logSize = nil, 0
	for _, m := range o.pending {
		if m.GetSeq() > last {
			msgs = append(msgs, m)
		}
	}
	if o.progress != nil && withProgress {
		msgs = append(msgs, &workerpb.Up{Body: &workerpb.Up_Progress{Progress: o.progress}})
		o.progress = nil
	}
	return msgs, o.progress != nil
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}
