package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// trimmed fills a DB with events and trims it.
func trimmed(t *testing.T, kv KV, opts Options, events []workflow.Event) *DB {
	t.Helper()
	db, err := New(t.Context(), kv, testSeal(1), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		if err := db.Commit(t.Context(), &workflow.Change{Events: []workflow.Event{ev}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// TestTrim runs over a KV in memory: what is trimmed does not depend on the backend.
func TestTrim(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var events []workflow.Event
	for hour := range 10 { // ten boots each, an hour apart, with a note between boots
		at := start.Add(time.Duration(hour) * time.Hour)
		for _, uid := range []string{"A", "AB"} {
			boot := workflow.NewID(at)
			for i := range 3 {
				events = append(events, workflow.Event{Hardware: uid, Boot: boot, First: at, Reason: hardware.ReasonAcked, Detail: fmt.Sprintf("%d.%d", hour, i)})
			}
			events = append(events, workflow.Event{Hardware: uid, First: at.Add(time.Minute), Reason: hardware.ReasonAcked, Detail: fmt.Sprintf("%d.-", hour)})
		}
	}
	events = append(events, workflow.Event{Hardware: "C", First: start, Reason: hardware.ReasonAcked, Detail: "few boots"})
	count := func(db *DB, prefix string) int {
		n := 0
		if err := db.each(context.Background(), Range{Prefix: prefix, KeysOnly: true}, func(Entry) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}

	db := trimmed(t, newMemory(), Options{KeepBoots: 4}, events)
	for _, uid := range []string{"A", "AB"} {
		got, err := db.Events(t.Context(), workflow.EventQuery{Hardware: uid})
		if err != nil || len(got) != 4*4 || got[0].Detail[:1] != "6" {
			t.Errorf("%s: %d events from %+v, %v", uid, len(got), got, err)
		}
	}
	if n, m := count(db, prefixEvent), count(db, prefixTimeline); n != 33 || m != 33 {
		t.Errorf("%d events, %d in timelines", n, m)
	}

	db = trimmed(t, newMemory(), Options{MaxEvents: 12}, events)
	got, err := db.Events(t.Context(), workflow.EventQuery{})
	if err != nil || len(got) != 12 || got[0].Detail[:1] != "8" {
		t.Errorf("%d events from %s, %v", len(got), got[0].Detail, err)
	}
	if n := count(db, prefixTimeline); n != 12 {
		t.Errorf("%d in timelines", n)
	}
}
