package store

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// sick is a KV that does not list workflows as long as it is told so.
type sick struct {
	*memory
	ill   atomic.Bool
	asked atomic.Int64
}

func (s *sick) List(ctx context.Context, r Range) (Page, error) {
	if r.Prefix == prefixWorkflow {
		if s.asked.Add(1); s.ill.Load() {
			return Page{}, errors.New("read error")
		}
	}
	return s.memory.List(ctx, r)
}

// TestInstallsAreReadAgain: a store that did not answer the first time is asked again,
// with pauses, and until it did nobody is told that this is all.
func TestInstallsAreReadAgain(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	kv := &sick{memory: newMemory()}
	open := func() *DB {
		db, err := New(t.Context(), kv, testSeal(1), Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	w := &workflow.Workflow{Meta: hardware.Meta{Name: "w1"}, Status: workflow.Status{
		State: workflow.StateSucceeded, HardwareUID: "u", Finished: now.Add(-time.Hour),
		Actions: []workflow.Action{{Kind: workflow.KindImageWrite, With: []byte(`{}`)}},
	}}
	if err := open().Commit(t.Context(), &workflow.Change{Workflow: w}); err != nil {
		t.Fatal(err)
	}
	kv.keys[prefixWorkflow+"broken"] = Entry{Key: prefixWorkflow + "broken", Value: []byte("not sealed"), Revision: 1}
	db := open()
	kv.ill.Store(true)
	kv.asked.Store(0)
	look := func(n int, whole bool, asked int64) {
		t.Helper()
		all, got := db.Installs(t.Context(), now.Add(-24*time.Hour))
		if len(all) != n || got != whole || kv.asked.Load() != asked {
			t.Errorf("%d installs, whole %t, the store was asked %d times; want %d, %t, %d", len(all), got, kv.asked.Load(), n, whole, asked)
		}
	}
	look(0, false, 1)
	look(0, false, 1) // not at once
	now = now.Add(readAgain)
	look(0, false, 2)
	now = now.Add(readAgain)
	look(0, false, 2) // the pause is longer by now
	kv.ill.Store(false)
	now = now.Add(readAgainMax)
	look(1, true, 3)
	look(1, true, 3)
}
