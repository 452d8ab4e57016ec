package store

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rackstrap/rackstrap/workflow"
)

// Bounds of a Recorder.
const (
	noteQueue = 4096
	// maxNotes bounds the notes it remembers in order to count repeats.
	maxNotes = 50_000
	// maxBoots is how many boots of one machine it remembers.
	maxBoots = 4
	// maxNoteField bounds the fields that become part of a key, in bytes.
	maxNoteField = 100
	// maxDetails is how many details one Reason has within a boot before further
	// ones share one event.
	maxDetails = 8
	// noteEvery is how often the notes of one machine are written.
	noteEvery = time.Second
	// noteGather is how long a first note waits for company.
	noteGather = 20 * time.Millisecond
	// noteFlush bounds the last write at the end.
	noteFlush = 5 * time.Second
)

// Recorder writes notes: events that belong to no change of state, like packets
// answered and files sent. Repeats of one note within a boot become one event with
// a count, the first and the last time; a machine's notes are written at most once
// a second.
type Recorder struct {
	db      *DB
	log     *slog.Logger
	queue   chan workflow.Event
	dropped atomic.Uint64

	machines map[string]*noted // by uid; Run's
	remember int               // notes in machines
}

// NewRecorder makes a Recorder; it writes while Run runs.
func NewRecorder(db *DB, log *slog.Logger) *Recorder {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Recorder{db: db, log: log, queue: make(chan workflow.Event, noteQueue), machines: map[string]*noted{}}
}

// Note takes an event to be written soon. It never blocks: what comes faster than
// it can be counted is dropped, and counted as that. ID and Count are filled in
// where they are empty, First and Last are now where they are zero.
func (r *Recorder) Note(ev workflow.Event) {
	now := r.db.opts.Now()
	if ev.First.IsZero() {
		ev.First = now
	}
	if ev.Last.IsZero() {
		ev.Last = now
	}
	ev.Count = max(ev.Count, 1)
	if max(len(ev.ID), len(ev.Hardware), len(ev.Boot)) > maxNoteField {
		r.dropped.Add(1)
		return
	}
	select {
	case r.queue <- ev:
	default:
		r.dropped.Add(1)
	}
}

// Dropped is how many notes were not written.
func (r *Recorder) Dropped() uint64 { return r.dropped.Load() }

// Run writes until ctx is done, then writes what is left and returns nil.
func (r *Recorder) Run(ctx context.Context) error {
	timer := time.NewTimer(noteGather)
	defer timer.Stop()
	var at time.Time // when the timer fires; zero is "not set"
	arm := func(d time.Duration) {
		if t := time.Now().Add(d); at.IsZero() || t.Before(at) {
			timer.Reset(d)
			at = t
		}
	}
	for {
		select {
		case ev := <-r.queue:
			r.add(context.WithoutCancel(ctx), ev) // else the last ones would not be counted on
			arm(noteGather)
		case <-timer.C:
			at = time.Time{}
			if next, more := r.flush(ctx, time.Now()); more {
				arm(max(next, noteGather))
			}
		case <-ctx.Done():
			r.finish(ctx)
			return nil
		}
	}
}

// finish writes what has come until now.
func (r *Recorder) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteFlush)
	defer cancel()
	for {
		select {
		case ev := <-r.queue:
			r.add(ctx, ev)
			continue
		default:
		}
		break
	}
	for _, m := range r.machines {
		m.next = time.Time{}
	}
	r.flush(ctx, time.Now())
	left := 0
	for _, m := range r.machines {
		left += len(m.pending)
	}
	r.dropped.Add(uint64(left))
}

// add counts one note in memory.
func (r *Recorder) add(ctx context.Context, ev workflow.Event) {
	m := r.machines[ev.Hardware]
	if m == nil {
		m = newNoted()
		r.machines[ev.Hardware] = m
	}
	if !m.boots[ev.Boot] {
		if len(m.boots) >= maxBoots {
			r.remember -= m.forget()
		}
		m.boots[ev.Boot] = true
		r.remember += r.recall(ctx, m, ev.Hardware, ev.Boot)
	}
	if r.remember >= maxNotes && !m.knows(&ev) {
		r.forgetQuiet()
		if r.remember >= maxNotes { // the disk has refused for long
			r.dropped.Add(1)
			return
		}
		m = r.machines[ev.Hardware]
		if m == nil {
			m = newNoted()
			m.boots[ev.Boot] = true
			r.machines[ev.Hardware] = m
		}
	}
	if ev.ID == "" { // now, so that they sort as they came
		ev.ID = r.db.ids.next(ev.First)
	}
	r.remember += m.add(ev)
}

// recall reads the notes of a boot that were written earlier, so that counting goes
// on after a restart.
func (r *Recorder) recall(ctx context.Context, m *noted, uid, boot string) int {
	if uid == "" {
		return 0
	}
	n := 0
	q := workflow.EventQuery{Hardware: uid, Boot: bootPart(boot)}
	for ev, err := range r.db.timeline(ctx, q) {
		if err != nil {
			if ctx.Err() == nil {
				r.log.Warn("earlier events cannot be read; counting begins anew", "hardware", uid, "err", err)
			}
			break
		}
		n += m.recall(ev)
		if n >= maxRecall {
			break
		}
	}
	return n
}

// forgetQuiet drops machines that have nothing to be written.
func (r *Recorder) forgetQuiet() {
	for uid, m := range r.machines {
		if len(m.pending) == 0 {
			r.remember -= len(m.notes)
			delete(r.machines, uid)
		}
	}
}

// flush writes the notes of machines whose turn it is, several machines in one
// transaction. It says when the next turn is, if there is one.
func (r *Recorder) flush(ctx context.Context, now time.Time) (next time.Duration, more bool) {
	var t Txn
	var in []written
	for _, m := range r.machines {
		if len(m.pending) == 0 {
			continue
		}
		if wait := m.next.Sub(now); wait > 0 {
			if !more || wait < next {
				next, more = wait, true
			}
			continue
		}
		m.next = now.Add(noteEvery)
		for key, n := range m.pending {
			if err := r.write(&t, n); err != nil {
				r.log.Warn("a note cannot be written", "reason", n.event.Reason, "err", err)
				r.dropped.Add(1)
				delete(m.pending, key)
				continue
			}
			in = append(in, written{m, key})
			if len(t.Puts) >= MaxOps-1 {
				r.commit(ctx, t, in)
				t, in = Txn{}, in[:0]
			}
		}
	}
	r.commit(ctx, t, in)
	for _, m := range r.machines { // what could not be written waits for its next turn
		if wait := m.next.Sub(now); len(m.pending) > 0 && (!more || wait < next) {
			next, more = wait, true
		}
	}
	return next, more
}

// write adds one note to the transaction.
func (r *Recorder) write(t *Txn, n *note) error {
	if n.stored {
		return r.db.putEvent(t, &n.event)
	}
	return r.db.appendEvent(t, &n.event)
}

// written is a note in a transaction.
type written struct {
	m   *noted
	key noteKey
}

func (r *Recorder) commit(ctx context.Context, t Txn, in []written) {
	if len(t.Puts) == 0 {
		return
	}
	if _, err := r.db.txn(ctx, t); err != nil {
		if ctx.Err() == nil {
			r.log.Warn("notes wait: the store refuses to write", "notes", len(in), "err", err)
		}
		return
	}
	for _, w := range in {
		w.m.pending[w.key].stored = true
		delete(w.m.pending, w.key)
	}
}
