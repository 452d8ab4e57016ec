package bmc

import (
	"context"
	"sync"
)

// gates lets at most limit callers of one key in at a time. It remembers only the
// keys that somebody is in or waits for.
type gates struct {
	limit int

	mu sync.Mutex
	by map[string]*gate
}

type gate struct {
	slots chan struct{}
	users int // in it or waiting
}

func newGates(limit int) *gates { return &gates{limit: limit, by: map[string]*gate{}} }

// enter waits for a place, in the order of the calls. It returns the error of ctx
// where that ends first; otherwise leave must be called, once.
func (g *gates) enter(ctx context.Context, key string) (leave func(), err error) {
	g.mu.Lock()
	one := g.by[key]
	if one == nil {
		one = &gate{slots: make(chan struct{}, g.limit)}
		g.by[key] = one
	}
	one.users++
	g.mu.Unlock()
	done := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(g.by, key)
		}
	}
	select {
	case one.slots <- struct{}{}:
		return func() { <-one.slots; done() }, nil
	case <-ctx.Done():
		done()
		return nil, ctx.Err()
	}
}
