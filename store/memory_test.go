package store

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// memory is the least KV that tests inside the package need; the real backend
// imports the package.
type memory struct {
	mu   sync.Mutex
	rev  uint64
	keys map[string]Entry
}

func newMemory() *memory { return &memory{keys: map[string]Entry{}} }

func (m *memory) Get(_ context.Context, key string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keys[key], nil
}

func (m *memory) List(_ context.Context, r Range) (Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := Page{Revision: m.rev}
	keys := slices.Sorted(maps.Keys(m.keys))
	if r.Descend {
		slices.Reverse(keys)
	}
	for _, k := range keys {
		past := r.After == "" || (k > r.After && !r.Descend) || (k < r.After && r.Descend)
		if !strings.HasPrefix(k, r.Prefix) || !past {
			continue
		}
		if r.Limit > 0 && len(p.Entries) == r.Limit {
			p.More = true
			break
		}
		p.Entries = append(p.Entries, m.keys[k])
	}
	return p, nil
}

func (m *memory) Txn(_ context.Context, t Txn) (uint64, error) {
	if err := t.Check(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range t.If {
		if have := m.keys[c.Key].Revision; have != c.Revision {
			return 0, &ConflictError{c.Key, c.Revision, have}
		}
	}
	m.rev++
	for _, p := range t.Puts {
		m.keys[p.Key] = Entry{Key: p.Key, Value: p.Value, Revision: m.rev}
	}
	for _, k := range t.Deletes {
		delete(m.keys, k)
	}
	return m.rev, nil
}

func (m *memory) Revision(context.Context) (uint64, error) { return m.rev, nil }
func (m *memory) Close() error                             { return nil }

func (m *memory) Watch(context.Context, string, uint64) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) { yield(Batch{}, ErrClosed) }
}

func (m *memory) Session(context.Context, time.Duration) (Session, error) { return nil, ErrClosed }
