package appliance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/api/client"
)

const (
	// tedious is how long somebody waited in vain for whom others need not do the same.
	tedious = 3 * time.Second
	// spared is how long they need not; then one of them finds out.
	spared = 15 * time.Second
)

// silence is what is known of an appliance that takes connections, or packets, and does
// not answer: who waits for it has no time for other appliances.
type silence struct {
	mu    sync.Mutex
	err   error
	until time.Time
}

// Spared is the error with which somebody lately waited in vain for the appliance; nil:
// ask it, and say with Waited what came of it.
func (a *Appliance) Spared() error { return a.silence.spared(time.Now()) }

// Waited says what came of a question that took so long.
func (a *Appliance) Waited(err error, took time.Duration) { a.silence.waited(time.Now(), err, took) }

func (s *silence) spared(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil && !now.Before(s.until) {
		s.until = now.Add(spared)
		return nil // the caller finds out, the others still do not wait
	}
	return s.err
}

func (s *silence) waited(now time.Time, err error, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var down *client.Unreachable
	if took < tedious || !errors.As(err, &down) && !errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	s.err, s.until = err, now.Add(spared)
}
