package bolt

import (
	"context"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/store"
)

// A group is what one sync of the disk makes durable.
const (
	maxGroup      = 1024
	maxGroupBytes = 8 << 20
	// company is how long the committer waits for more when it had company last
	// time: woken callers need about that long to come back with their next
	// request. A lone caller never waits.
	company = 300 * time.Microsecond
)

// pending is one request that waits for its group.
type pending[R any] struct {
	req  R
	size int // bytes, roughly
	err  error
	done chan struct{}
}

// committer hands requests, in groups, to the one goroutine that writes.
type committer[R any] struct {
	requests chan *pending[R]
	quit     chan struct{}
	stopped  chan struct{}
	once     sync.Once
}

func newCommitter[R any]() *committer[R] {
	return &committer[R]{
		requests: make(chan *pending[R], maxGroup),
		quit:     make(chan struct{}),
		stopped:  make(chan struct{}),
	}
}

// submit waits for the outcome of a request. Once it is handed over, the outcome
// is awaited whatever ctx says, so the answer is never in doubt.
func (c *committer[R]) submit(ctx context.Context, req R, size int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.closed() { // else a closed store would take requests while its queue has room
		return store.ErrClosed
	}
	p := &pending[R]{req: req, size: size, done: make(chan struct{})}
	select {
	case c.requests <- p:
	case <-c.quit:
		return store.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-p.done:
	case <-c.stopped:
		select {
		case <-p.done:
		default:
			return store.ErrClosed
		}
	}
	return p.err
}

func (c *committer[R]) closed() bool {
	select {
	case <-c.quit:
		return true
	default:
		return false
	}
}

// close ends run, after the group in its hands.
func (c *committer[R]) close() {
	c.once.Do(func() { close(c.quit) })
	<-c.stopped
}

// run is the writing goroutine. commit sets err of each request that failed.
func (c *committer[R]) run(commit func([]*pending[R])) {
	defer close(c.stopped)
	var group []*pending[R]
	last := 0
	for {
		select {
		case <-c.quit:
			return
		case p := <-c.requests:
			group = append(group[:0], p)
		}
		group = c.gather(group, last)
		last = len(group)
		commit(group)
		for i, p := range group {
			close(p.done)
			group[i] = nil
		}
	}
}

// gather adds to the group what waits already, and what comes soon if the last
// group was not alone.
func (c *committer[R]) gather(group []*pending[R], last int) []*pending[R] {
	size := group[0].size
	var soon <-chan time.Time
	for len(group) < maxGroup && size < maxGroupBytes {
		select {
		case p := <-c.requests:
			group = append(group, p)
			size += p.size
			continue
		default:
		}
		if last <= 1 || len(group) >= last {
			return group
		}
		if soon == nil {
			t := time.NewTimer(company)
			defer t.Stop()
			soon = t.C
		}
		select {
		case p := <-c.requests:
			group = append(group, p)
			size += p.size
		case <-soon:
			return group
		case <-c.quit:
			return group
		}
	}
	return group
}
