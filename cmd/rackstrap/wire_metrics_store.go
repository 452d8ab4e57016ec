package main

import (
	"context"
	"errors"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

// meteredEngineStore counts attempts when their end is written.
type meteredEngineStore struct {
	workflow.Store
	m *meters
}

// Commit implements workflow.Store.
func (s meteredEngineStore) Commit(ctx context.Context, c *workflow.Change) error {
	ended := endedBy(c)
	if err := s.Store.Commit(ctx, c); err != nil {
		return err
	}
	for _, e := range ended {
		s.m.attempts.WithLabelValues(e.kind, e.outcome).Inc()
		s.m.attemptBytes.WithLabelValues(e.kind, "source").Add(float64(max(e.result.SourceBytes, 0)))
		s.m.attemptBytes.WithLabelValues(e.kind, "written").Add(float64(max(e.result.WrittenBytes, 0)))
	}
	return nil
}

type endedAttempt struct {
	kind, outcome string
	result        workflow.Result
}

// endedBy lists the attempts that a change ends: it has an event of that moment.
func endedBy(c *workflow.Change) []endedAttempt {
	if c.Workflow == nil || len(c.Events) == 0 {
		return nil
	}
	now := c.Events[0].First
	var out []endedAttempt
	for _, a := range c.Workflow.Status.Actions {
		for _, t := range a.Attempts {
			if !t.State.Ended() || !t.Finished.Equal(now) {
				continue
			}
			e := endedAttempt{string(a.Kind), string(t.State), t.Result}
			if !a.Kind.Known() {
				e.kind = "unknown"
			}
			if t.Interrupted {
				e.outcome = "interrupted"
			}
			out = append(out, e)
		}
	}
	return out
}

// meteredKV counts the writes of records and events that fail. It embeds the store
// itself, because that can do more than a store.KV.
type meteredKV struct {
	*bolt.KV
	m *meters
}

// Txn implements store.KV.
func (k meteredKV) Txn(ctx context.Context, t store.Txn) (uint64, error) {
	rev, err := k.KV.Txn(ctx, t)
	k.m.wrote("records", err)
	return rev, err
}

// meteredLeases counts the leases that cannot be written.
type meteredLeases struct {
	store.Leases
	m *meters
}

// Put implements store.Leases.
func (l meteredLeases) Put(ctx context.Context, x hardware.Lease) error {
	err := l.Leases.Put(ctx, x)
	l.m.wrote("leases", err)
	return err
}

// Delete implements store.Leases.
func (l meteredLeases) Delete(ctx context.Context, subnet string, mac hardware.MAC) error {
	err := l.Leases.Delete(ctx, subnet, mac)
	l.m.wrote("leases", err)
	return err
}

// wrote counts err unless the write was refused for what it is, or given up.
func (m *meters) wrote(what string, err error) {
	switch {
	case err == nil, errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrLimit), errors.Is(err, store.ErrSessionExpired),
		errors.Is(err, store.ErrClosed), errors.Is(err, context.Canceled):
	case errors.Is(err, store.ErrNoSpace):
		m.writeErrors.WithLabelValues(what, "no-space").Inc()
	case errors.Is(err, context.DeadlineExceeded):
		m.writeErrors.WithLabelValues(what, "timeout").Inc()
	default:
		m.writeErrors.WithLabelValues(what, "other").Inc()
	}
}
