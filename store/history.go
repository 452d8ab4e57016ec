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
)

// history are the installs that ended. It is read from the store when it is asked for
// first, and kept up by what is committed here from then on.
type history struct {
	mu       sync.Mutex
	begun    bool
	done     chan struct{} // closed when all is read
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
// whole is false where ctx ended before that was done.
func (db *DB) Installs(ctx context.Context, since time.Time) (_ []workflow.Install, whole bool) {
	h := &db.history
	h.mu.Lock()
	if !h.begun {
		h.begun, h.done = true, make(chan struct{})
		go db.readInstalls(context.WithoutCancel(ctx), h.done)
	}
	done := h.done
	h.mu.Unlock()
	select {
	case <-done:
		whole = true
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sorted(since), whole
}

func (db *DB) readInstalls(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	now := db.opts.Now()
	err := db.each(ctx, Range{Prefix: prefixWorkflow}, func(e Entry) error {
		w, err := workflows().read(db, e)
		if err == nil {
			db.history.ended(w, now)
		}
		return err
	})
	if err != nil {
		db.opts.Log.Warn("installs of the past are not all told of", "err", err)
	}
}
