package store

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/workflow"
)

const (
	// keepInstalls is how long an install that ended is told of.
	keepInstalls = 90 * 24 * time.Hour
	// maxInstalls bounds them, at some 200 bytes each.
	maxInstalls = 50_000
	// readAgain is the pause after a read that failed, doubled up to readAgainMax.
	readAgain    = time.Second
	readAgainMax = time.Minute
)

// history are the installs that ended. It is read from the store when it is asked for
// first, and kept up by what is committed here from then on. A read that fails is begun
// again by who asks after a pause.
type history struct {
	mu       sync.Mutex
	reading  chan struct{} // closed when the read that goes on is over; nil: none was begun
	whole    bool          // all is read
	failures int           // reads in a row
	again    time.Time     // when the next may begin
	installs map[string]workflow.Install
}

// ended takes note of a workflow that was written.
func (h *history) ended(w *workflow.Workflow, now time.Time) {
	i, ok := w.Install()
	if !ok || now.Sub(i.Finished) > keepInstalls {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.installs == nil {
		h.installs = map[string]workflow.Install{}
	}
	h.installs[i.UID] = i
	if len(h.installs) > maxInstalls+maxInstalls/20 {
		all := h.sorted(time.Time{})
		for _, old := range all[:len(all)-maxInstalls] {
			delete(h.installs, old.UID)
		}
	}
}

// sorted are those that finished since a time, the oldest first; mu is held.
func (h *history) sorted(since time.Time) []workflow.Install {
	var out []workflow.Install
	for _, i := range h.installs {
		if !i.Finished.Before(since) {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b workflow.Install) int {
		return cmp.Or(a.Finished.Compare(b.Finished), cmp.Compare(a.UID, b.UID))
	})
	return out
}

// Installs are the installs that ended since a time, the oldest first, from memory: of
// the last 90 days, and 50,000 at most. The first time they are read from the store;
// whole is false where ctx ended before that was done, or the store did not answer.
func (db *DB) Installs(ctx context.Context, since time.Time) (_ []workflow.Install, whole bool) {
	h := &db.history
	h.mu.Lock()
	if h.reading == nil && !db.opts.Now().Before(h.again) {
		h.reading = make(chan struct{})
		go db.readInstalls(context.WithoutCancel(ctx), h.reading)
	}
	reading := h.reading
	h.mu.Unlock()
	if reading != nil {
		select {
		case <-reading:
		case <-ctx.Done():
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sorted(since), h.whole
}

// readInstalls reads those of the past. One that cannot be read is left out: it would
// not be better the next time.
func (db *DB) readInstalls(ctx context.Context, done chan<- struct{}) {
	h, now := &db.history, db.opts.Now()
	left := 0
	err := db.each(ctx, Range{Prefix: prefixWorkflow}, func(e Entry) error {
		w, err := workflows().read(db, e)
		if err != nil {
			if left++; left == 1 {
				db.opts.Log.Warn("an install of the past is not told of", "err", err)
			}
			return nil
		}
		h.ended(w, now)
		return nil
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	defer close(done)
	if err == nil {
		h.whole = true
		return
	}
	pause := min(readAgain<<min(h.failures, 8), readAgainMax)
	h.reading, h.again = nil, db.opts.Now().Add(pause)
	h.failures++
	db.opts.Log.Warn("the installs of the past are not read; tried again", "err", err, "pause", pause)
}
