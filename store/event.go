package store

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// maxDetail bounds an event's detail, in bytes; it may come from a machine.
const maxDetail = 1024

// Cursor is the newest revision: WatchEvents from it shows what happens next.
func (db *DB) Cursor(ctx context.Context) (uint64, error) { return db.kv.Revision(ctx) }

// note adds the event that a record other than a Hardware was changed.
func (db *DB) note(ctx context.Context, t *Txn, why hardware.Reason, kind, name string) {
	db.mustAppend(t, &workflow.Event{Reason: why, Detail: kind + " " + name, By: workflow.By(ctx)})
}

func (db *DB) noteHardware(ctx context.Context, t *Txn, why hardware.Reason, h *hardware.Hardware) {
	db.mustAppend(t, &workflow.Event{Reason: why, Hardware: h.Meta.UID, Machine: h.Meta.Name, By: workflow.By(ctx)})
}

// mustAppend is for events of our own making, which always fit.
func (db *DB) mustAppend(t *Txn, ev *workflow.Event) {
	if err := db.appendEvent(t, ev); err != nil {
		panic("store: an event of ours does not fit: " + err.Error())
	}
}

// appendEvent fills in what the event lacks and adds it to the transaction.
func (db *DB) appendEvent(t *Txn, ev *workflow.Event) error {
	now := db.opts.Now()
	if ev.First.IsZero() {
		ev.First = now
	}
	if ev.Last.IsZero() {
		ev.Last = ev.First
	}
	if ev.ID == "" {
		ev.ID = db.ids.next(ev.First)
	}
	ev.Count = max(ev.Count, 1)
	if err := db.putEvent(t, ev); err != nil {
		return err
	}
	if ev.Hardware != "" {
		t.Puts = append(t.Puts, Put{Key: keyInBoot(ev.Hardware, ev.Boot, ev.ID)})
	}
	return nil
}

// AppendEvent writes one event that belongs to no other change.
func (db *DB) AppendEvent(ctx context.Context, ev workflow.Event) error {
	var t Txn
	if err := db.appendEvent(&t, &ev); err != nil {
		return err
	}
	_, err := db.txn(ctx, t)
	return err
}

// putEvent adds the event itself; its place in the timeline is there already.
func (db *DB) putEvent(t *Txn, ev *workflow.Event) error {
	ev.Detail = hardware.PlainText(ev.Detail, maxDetail)
	plain := *ev
	plain.Cursor = 0 // is the key's revision
	b, err := db.encode(keyEvent(ev.ID), &plain)
	if err != nil {
		return err
	}
	t.Puts = append(t.Puts, Put{Key: keyEvent(ev.ID), Value: b})
	db.written.Add(1)
	return nil
}

// Event limits of one answer.
const (
	defaultEvents = 1000
	maxEvents     = 10_000
)

// Events lists the newest q.Limit events that match q, oldest first.
func (db *DB) Events(ctx context.Context, q workflow.EventQuery) ([]workflow.Event, error) {
	if q.Limit <= 0 {
		q.Limit = defaultEvents
	}
	q.Limit = min(q.Limit, maxEvents)
	if q.Hardware == "" && q.Workflow != "" {
		// The machine's timeline is shorter than the log.
		var w workflow.Workflow
		rev, err := db.get(ctx, keyWorkflow(q.Workflow), &w)
		if err != nil {
			return nil, err
		}
		if rev != 0 {
			q.Hardware = w.Status.HardwareUID
		}
	}
	var out []workflow.Event
	newest := db.allEvents(ctx, q)
	if q.Hardware != "" {
		newest = db.timeline(ctx, q)
	}
	for ev, err := range newest {
		if err != nil {
			return nil, err
		}
		if q.Matches(&ev) {
			out = append(out, ev)
		}
		if len(out) == q.Limit {
			break
		}
	}
	slices.SortFunc(out, func(a, b workflow.Event) int {
		return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// inOrder makes the ids of events that are written at once sort as the events do:
// ids of one millisecond are random.
func inOrder(events []workflow.Event) {
	var ids []string
	for i := range events {
		if events[i].ID == "" || i > 0 && events[i].First.Before(events[i-1].First) {
			return
		}
		ids = append(ids, events[i].ID)
	}
	slices.Sort(ids)
	for i := range events {
		events[i].ID = ids[i]
	}
}

// allEvents yields the log, newest first.
func (db *DB) allEvents(ctx context.Context, q workflow.EventQuery) iter.Seq2[workflow.Event, error] {
	return func(yield func(workflow.Event, error) bool) {
		stop := errors.New("stop")
		r := Range{Prefix: prefixEvent, Descend: true, Limit: min(q.Limit, DefaultPage)}
		if q.Before != "" {
			r.After = keyEvent(q.Before)
		}
		err := db.each(ctx, r, func(e Entry) error {
			if e.Revision <= q.After {
				return nil // spares reading it
			}
			ev, err := db.event(e)
			if err != nil {
				return err
			}
			if !yield(ev, nil) {
				return stop
			}
			return nil
		})
		if err != nil && err != stop {
			yield(workflow.Event{}, err)
		}
	}
}

// timeline yields the events of a machine, or of one of its boots, newest first.
// Boots are in the order of their start; what belongs to no boot is sorted in by
// its own time.
func (db *DB) timeline(ctx context.Context, q workflow.EventQuery) iter.Seq2[workflow.Event, error] {
	return func(yield func(workflow.Event, error) bool) {
		prefix := keyTimeline(q.Hardware)
		if q.Boot != "" {
			prefix = keyBoot(q.Hardware, q.Boot)
		}
		var ids []string
		err := db.each(ctx, Range{Prefix: prefix, KeysOnly: true, Limit: MaxPage}, func(e Entry) error {
			ids = append(ids, e.Key[strings.LastIndexByte(e.Key, '/')+1:])
			return nil
		})
		if err != nil {
			yield(workflow.Event{}, err)
			return
		}
		slices.Sort(ids)
		for _, id := range slices.Backward(ids) {
			if q.Before != "" && id >= q.Before {
				continue
			}
			e, err := db.kv.Get(ctx, keyEvent(id))
			if err == nil && e.Revision == 0 {
				continue // trimmed since
			}
			var ev workflow.Event
			if err == nil {
				ev, err = db.event(e)
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

func (db *DB) event(e Entry) (workflow.Event, error) {
	var ev workflow.Event
	err := db.decode(e.Key, e.Value, &ev)
	ev.Cursor = e.Revision
	return ev, err
}

// WatchEvents yields every event written after the cursor, in order, and blocks
// for more until ctx is done. An event that repeats is yielded again with its new
// count. ErrCompacted ends it: list, and go on from a fresh Cursor.
//
// Event.Cursor is safe to resume from even where several events were written at
// once: only the last of them moves it on, so one may be seen twice, none is lost.
func (db *DB) WatchEvents(ctx context.Context, after uint64) iter.Seq2[workflow.Event, error] {
	return func(yield func(workflow.Event, error) bool) {
		for events, err := range db.WatchEventBatches(ctx, after) {
			if err != nil {
				yield(workflow.Event{}, err)
				return
			}
			for _, ev := range events {
				if !yield(ev, nil) {
					return
				}
			}
		}
	}
}

// WatchEventBatches is WatchEvents with what was written at once in one slice, which
// is never empty; the Cursor of its last event is their revision.
func (db *DB) WatchEventBatches(ctx context.Context, after uint64) iter.Seq2[[]workflow.Event, error] {
	return func(yield func([]workflow.Event, error) bool) {
		for b, err := range db.kv.Watch(ctx, prefixEvent, after+1) {
			if err != nil {
				yield(nil, err)
				return
			}
			var events []workflow.Event
			for _, c := range b.Changes {
				if c.Deleted {
					continue
				}
				ev, err := db.event(Entry{Key: c.Key, Value: c.Value, Revision: b.Revision})
				if err != nil {
					yield(nil, err)
					return
				}
				ev.Cursor--
				events = append(events, ev)
			}
			if len(events) == 0 {
				continue
			}
			events[len(events)-1].Cursor = b.Revision
			if !yield(events, nil) {
				return
			}
		}
	}
}
