package rest

import (
	"context"
	"errors"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/workflow"
)

const (
	// feedSize is how many of the newest events the feed keeps in memory: between this
	// and twice as many. A stream that falls further behind is cut off.
	feedSize = 2048
	// feedHistory is how many revisions before its start the feed asks the store for, so
	// that clients who come back, for example after a restart, need no watch of their own.
	feedHistory = 4096
)

// feed is the newest part of the event log, and the progress of what runs, for all
// streams together: one watch of the store fills it while anybody listens.
type feed struct {
	deps Deps
	mu   sync.Mutex
	live *broadcast // nil: nobody listens
}

// broadcast is the feed from its first listener to its last.
type broadcast struct {
	deps   Deps
	cancel context.CancelFunc
	ended  chan struct{}
	users  int // guarded by feed.mu

	mu sync.Mutex
	// entries are never changed, only added to, or copied into a new list.
	entries []feedEntry
	dropped int    // how many came before entries[0]
	from    uint64 // everything later than this revision is here, or will be
	latest  map[string]feedProgress
	step    int // of progress
	err     error
	over    bool
	wake    chan struct{} // closed when there is more
}

// feedEntry is one event as it is sent.
type feedEntry struct {
	rev   uint64
	event workflow.Event
	frame []byte
}

// feedProgress is the latest progress of one workflow.
type feedProgress struct {
	step  int
	at    workflow.Progress
	frame []byte
}

// listener is one stream's place in a broadcast.
type listener struct {
	f    *feed
	b    *broadcast
	next int // entry, counted from the first of all
	step int // of progress
	// after: entries up to this revision were sent before.
	after uint64
}

// news is what a listener has not seen.
type news struct {
	entries  []feedEntry
	progress []feedProgress
	// more is closed when there is more.
	more <-chan struct{}
}

// errBehind: the listener was so slow that what it wants is gone.
var errBehind = errors.New("too far behind")

// listen joins the feed after a revision; false where the feed does not reach back so
// far. Leave must be called.
func (f *feed) listen(ctx context.Context, after uint64) (*listener, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.live == nil || f.live.isOver() {
		b, err := f.start(ctx)
		if err != nil {
			return nil, false, err
		}
		f.live = b
	}
	b := f.live
	b.users++
	l := &listener{f: f, b: b, after: after}
	b.mu.Lock()
	ok := after >= b.from
	l.next = b.dropped + sort.Search(len(b.entries), func(i int) bool { return b.entries[i].rev > after })
	b.mu.Unlock()
	return l, ok, nil
}

// leave ends the broadcast with its last listener, and waits for that end.
func (l *listener) leave() {
	l.f.mu.Lock()
	l.b.users--
	last := l.b.users == 0
	if last && l.f.live == l.b {
		l.f.live = nil
	}
	l.f.mu.Unlock()
	if last {
		l.b.cancel()
		<-l.b.ended
	}
}

// news is what came since the last call: errBehind, or the error that ended the feed.
func (l *listener) news() (news, error) {
	b := l.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.next < b.dropped {
		return news{}, errBehind
	}
	out := news{entries: b.entries[l.next-b.dropped:], more: b.wake}
	l.next = b.dropped + len(b.entries)
	for len(out.entries) > 0 && out.entries[0].rev <= l.after {
		out.entries = out.entries[1:]
	}
	for _, p := range b.latest {
		if p.step > l.step {
			out.progress = append(out.progress, p)
		}
	}
	l.step = b.step
	if b.over && len(out.entries) == 0 {
		return out, b.err
	}
	return out, nil
}

// start begins a broadcast. Its context is no request's: it ends with its last
// listener, and every listener with its request.
func (f *feed) start(ctx context.Context) (*broadcast, error) {
	cursor, err := f.deps.Records.Cursor(ctx)
	if err != nil {
		return nil, err
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b := &broadcast{deps: f.deps, cancel: cancel, ended: make(chan struct{}), from: cursor, latest: map[string]feedProgress{}, wake: make(chan struct{})}
	go func() {
		defer close(b.ended)
		defer cancel()
		b.run(own, cursor)
	}()
	return b, nil
}

func (b *broadcast) isOver() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}

// run fills the broadcast until ctx ends or the store fails. What came shortly before
// the cursor is there for those who come back, if the store still has it.
func (b *broadcast) run(ctx context.Context, cursor uint64) {
	history := cursor - min(cursor, feedHistory)
	err := survive(func() error { return b.fill(ctx, history, cursor) })
	if errors.Is(err, workflow.ErrCompacted) && b.empty() && history < cursor {
		err = survive(func() error { return b.fill(ctx, cursor, cursor) })
	}
	if err == nil {
		err = errors.New("the event log ended")
	}
	if ctx.Err() == nil {
		b.deps.Log.Error("event streams ended", "err", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err, b.over = err, true
	close(b.wake)
}

func (b *broadcast) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries)+b.dropped == 0
}

func (b *broadcast) fill(ctx context.Context, after, cursor uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	batches := pump(ctx, b.deps.Records.WatchEventBatches(ctx, after))
	defer func() {
		cancel()
		for range batches { // until it has ended
		}
	}()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case batch, ok := <-batches:
			if !ok {
				return ctx.Err()
			}
			if batch.err != nil {
				return batch.err
			}
			if err := b.add(batch.value, after, cursor); err != nil {
				return err
			}
		case <-tick.C:
			if err := b.addProgress(); err != nil {
				return err
			}
		}
	}
}

// add appends what was written at once.
func (b *broadcast) add(events []workflow.Event, after, cursor uint64) error {
	rev := events[len(events)-1].Cursor
	add := make([]feedEntry, len(events))
	for i, e := range events {
		frame, err := sseEvent("event", strconv.FormatUint(e.Cursor, 10), api.NewEvent(e))
		if err != nil {
			return err
		}
		add[i] = feedEntry{rev, e, frame}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if rev <= cursor && b.dropped == 0 {
		b.from = min(b.from, after) // the store had the history
	}
	b.entries = append(b.entries, add...)
	if extra := len(b.entries) - feedSize; extra >= feedSize {
		b.from = b.entries[extra-1].rev
		b.entries = append(make([]feedEntry, 0, 2*feedSize), b.entries[extra:]...)
		b.dropped += extra
	}
	b.tell()
	return nil
}

// addProgress takes what has moved.
func (b *broadcast) addProgress() error {
	now := activeProgress(b.deps)
	b.mu.Lock()
	defer b.mu.Unlock()
	latest := make(map[string]feedProgress, len(now))
	moved := false
	for _, p := range now {
		was, ok := b.latest[p.Workflow]
		if ok && was.at.At.Equal(p.At) {
			latest[p.Workflow] = was
			continue
		}
		frame, err := sseEvent("progress", "", p)
		if err != nil {
			return err
		}
		latest[p.Workflow] = feedProgress{b.step + 1, p, frame}
		moved = true
	}
	b.latest = latest
	if moved {
		b.step++
		b.tell()
	}
	return nil
}

// tell wakes the listeners; mu is held.
func (b *broadcast) tell() {
	close(b.wake)
	b.wake = make(chan struct{})
}
