package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

// log commits one event per text, each with its text as detail.
func logEvents(t testing.TB, db *store.DB, ev workflow.Event, texts ...string) {
	t.Helper()
	for _, s := range texts {
		e := ev
		e.Reason, e.Detail = hardware.ReasonStateChanged, s
		if err := db.Commit(t.Context(), &workflow.Change{Events: []workflow.Event{e}}); err != nil {
			t.Fatal(err)
		}
	}
}

func details(events []workflow.Event) string {
	var s []string
	for _, e := range events {
		s = append(s, e.Detail)
	}
	return strings.Join(s, " ")
}

func query(t testing.TB, db *store.DB, q workflow.EventQuery) []workflow.Event {
	t.Helper()
	events, err := db.Events(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestEvents(t *testing.T) {
	t.Parallel()
	db, _ := openDB(t, store.Options{})
	logEvents(t, db, workflow.Event{Hardware: "A", Boot: "B1"}, "a1", "a2")
	logEvents(t, db, workflow.Event{Hardware: "B"}, "b1")
	logEvents(t, db, workflow.Event{Hardware: "A", Boot: "B2", Workflow: "w"}, "a3")
	logEvents(t, db, workflow.Event{Hardware: "A"}, "a4")
	logEvents(t, db, workflow.Event{}, "x1")
	w := &workflow.Workflow{Meta: hardware.Meta{Name: "w"}, Status: workflow.Status{HardwareUID: "A"}}
	if err := db.Commit(t.Context(), &workflow.Change{Workflow: w}); err != nil {
		t.Fatal(err)
	}
	third := query(t, db, workflow.EventQuery{Boot: "B2"})[0]
	if third.Cursor == 0 || third.Count != 1 || third.ID == "" || third.First.IsZero() {
		t.Errorf("event: %+v", third)
	}
	for _, tc := range []struct {
		q    workflow.EventQuery
		want string
	}{
		{workflow.EventQuery{}, "a1 a2 b1 a3 a4 x1"},
		{workflow.EventQuery{Limit: 2}, "a4 x1"},
		{workflow.EventQuery{Hardware: "A"}, "a1 a2 a3 a4"},
		{workflow.EventQuery{Hardware: "A", Limit: 3}, "a2 a3 a4"},
		{workflow.EventQuery{Hardware: "A", Boot: "B1"}, "a1 a2"},
		{workflow.EventQuery{Hardware: "B"}, "b1"},
		{workflow.EventQuery{Workflow: "w"}, "a3"},
		{workflow.EventQuery{Workflow: "never"}, ""},
		{workflow.EventQuery{After: third.Cursor}, "a4 x1"},
		{workflow.EventQuery{Hardware: "A", After: third.Cursor}, "a4"},
		{workflow.EventQuery{Hardware: "C"}, ""},
		{workflow.EventQuery{Before: third.ID}, "a1 a2 b1"},
		{workflow.EventQuery{Before: third.ID, Limit: 2}, "a2 b1"},
		{workflow.EventQuery{Hardware: "A", Before: third.ID, Limit: 1}, "a2"},
	} {
		if got := details(query(t, db, tc.q)); got != tc.want {
			t.Errorf("%+v: %q, wanted %q", tc.q, got, tc.want)
		}
	}
	now := time.Now()
	var at []workflow.Event
	for i := range 20 { // as the engine makes them
		at = append(at, workflow.Event{ID: workflow.NewID(now), First: now, Hardware: "O", Reason: hardware.ReasonAcked, Detail: fmt.Sprint(i)})
	}
	if err := db.Commit(t.Context(), &workflow.Change{Events: at}); err != nil {
		t.Fatal(err)
	}
	if got := details(query(t, db, workflow.EventQuery{Hardware: "O"})); got != details(at) {
		t.Errorf("events of one moment are out of order: %s", got)
	}
	long := strings.Repeat("line\n", 1000)
	logEvents(t, db, workflow.Event{Hardware: "L"}, long)
	if got := query(t, db, workflow.EventQuery{Hardware: "L"})[0].Detail; len(got) > 1024 || strings.Contains(got, "\n") {
		t.Errorf("a machine's text is kept as it came: %d bytes", len(got))
	}
}

func TestWatchEvents(t *testing.T) {
	t.Parallel()
	db, _ := openDB(t, store.Options{})
	logEvents(t, db, workflow.Event{Hardware: "A"}, "old")
	cursor, err := db.Cursor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	three := []workflow.Event{{Reason: hardware.ReasonAcked, Detail: "1"}, {Reason: hardware.ReasonAcked, Detail: "2"}, {Reason: hardware.ReasonAcked, Detail: "3"}}
	if err := db.Commit(t.Context(), &workflow.Change{Events: three}); err != nil {
		t.Fatal(err)
	}
	create(t, db, 1) // keys that are no events are not shown
	// Whoever leaves after any event and resumes from its cursor misses none.
	for leave := 1; leave <= 4; leave++ {
		seen := map[string]bool{}
		at, n := cursor, 0
		for ev, err := range db.WatchEvents(t.Context(), cursor) {
			if err != nil {
				t.Fatal(err)
			}
			seen[ev.ID] = true
			at = ev.Cursor
			if n++; n == leave {
				break
			}
		}
		for len(seen) < 4 {
			for ev, err := range db.WatchEvents(t.Context(), at) {
				if err != nil {
					t.Fatal(err)
				}
				seen[ev.ID] = true
				if len(seen) == 4 {
					break
				}
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	for _, err := range db.WatchEvents(ctx, cursor) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 4 {
			cancel()
		}
	}
	if n != 4 {
		t.Errorf("%d events before the cancel", n)
	}
	cancel()
}

func TestWatchEventsCompacted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kv, err := bolt.Open(filepath.Join(dir, "rackstrap.db"), bolt.Options{LogRevisions: 5})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kv.Close() })
	db, err := store.Open(t.Context(), kv, filepath.Join(dir, "seal.key"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		logEvents(t, db, workflow.Event{}, fmt.Sprint(i))
	}
	next, stop := iter.Pull2(db.WatchEvents(t.Context(), 3))
	defer stop()
	if _, err, ok := next(); !ok || !errors.Is(err, workflow.ErrCompacted) {
		t.Errorf("%v, %v", err, ok)
	}
	if _, _, ok := next(); ok {
		t.Error("goes on after ErrCompacted")
	}
	if got := query(t, db, workflow.EventQuery{After: 3}); len(got) < 17 {
		t.Errorf("listing gives %d events", len(got))
	}
}
