package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

// recording runs fn in a bubble with a Recorder that runs.
func recording(t *testing.T, fn func(t *testing.T, db *store.DB, r *store.Recorder, restart func() *store.Recorder)) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		kv, err := bolt.Open(filepath.Join(dir, "rackstrap.db"), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = kv.Close() }()
		db, err := store.Open(t.Context(), kv, filepath.Join(dir, "seal.key"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		stop := func() {}
		restart := func() *store.Recorder {
			stop()
			r := store.NewRecorder(db, nil)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				if err := r.Run(ctx); err != nil {
					t.Error(err)
				}
			}()
			stop = func() { cancel(); <-done }
			return r
		}
		fn(t, db, restart(), restart)
		stop()
	})
}

func acked(uid, boot, detail string) workflow.Event {
	return workflow.Event{Hardware: uid, Boot: boot, Reason: hardware.ReasonAcked, Detail: detail}
}

// counts is what the timeline shows: detail and count of each event.
func counts(t *testing.T, db *store.DB, q workflow.EventQuery) string {
	t.Helper()
	s := ""
	for _, e := range query(t, db, q) {
		s += fmt.Sprintf("%s×%d ", e.Detail, e.Count)
	}
	return s
}

func TestRecorderCounts(t *testing.T) {
	t.Parallel()
	recording(t, func(t *testing.T, db *store.DB, r *store.Recorder, _ func() *store.Recorder) {
		start := time.Now()
		r.Note(acked("A", "B1", "10.0.0.1"))
		time.Sleep(100 * time.Millisecond)
		if got := counts(t, db, workflow.EventQuery{}); got != "10.0.0.1×1 " {
			t.Fatalf("a first note is not written soon: %q", got)
		}
		before, _ := db.Cursor(t.Context())
		for range 89 { // one each 10 ms: all within the first second
			time.Sleep(10 * time.Millisecond)
			r.Note(acked("A", "B1", "10.0.0.1"))
		}
		synctest.Wait()
		if now, _ := db.Cursor(t.Context()); now != before {
			t.Errorf("written %d times within a second", now-before)
		}
		time.Sleep(time.Second)
		if now, _ := db.Cursor(t.Context()); now != before+1 {
			t.Errorf("90 repeats were written in %d transactions", now-before)
		}
		r.Note(acked("A", "B2", "10.0.0.1"))
		r.Note(acked("A", "B1", "10.0.0.2"))
		r.Note(acked("B", "", "10.0.0.1"))
		time.Sleep(2 * time.Second)
		if got := counts(t, db, workflow.EventQuery{Hardware: "A"}); got != "10.0.0.1×90 10.0.0.1×1 10.0.0.2×1 " {
			t.Errorf("timeline: %s", got)
		}
		ev := query(t, db, workflow.EventQuery{Hardware: "A", Boot: "B1"})[0]
		if !ev.First.Equal(start) || ev.Last.Sub(start) != 990*time.Millisecond {
			t.Errorf("first %v, last %v after the start", ev.First.Sub(start), ev.Last.Sub(start))
		}
		if r.Dropped() != 0 {
			t.Errorf("%d dropped", r.Dropped())
		}
	})
}

// TestRecorderBounds: details without end become one event.
func TestRecorderBounds(t *testing.T) {
	t.Parallel()
	recording(t, func(t *testing.T, db *store.DB, r *store.Recorder, _ func() *store.Recorder) {
		for i := range 100 {
			r.Note(workflow.Event{Hardware: "A", Reason: hardware.ReasonFileNotFound, Detail: fmt.Sprintf("file%d", i)})
		}
		time.Sleep(2 * time.Second)
		events := query(t, db, workflow.EventQuery{})
		if n := len(events); n != 9 || events[n-1].Count != 92 || events[n-1].Detail != "file99" {
			t.Errorf("%d events: %s", n, counts(t, db, workflow.EventQuery{}))
		}
		r.Note(workflow.Event{Hardware: string(make([]byte, 1000))})
		if r.Dropped() != 1 {
			t.Error("a note that cannot be a key is not dropped")
		}
	})
}

// TestRecorderRestart: what is noted is written at the end, and counting goes on
// after it.
func TestRecorderRestart(t *testing.T) {
	t.Parallel()
	recording(t, func(t *testing.T, db *store.DB, r *store.Recorder, restart func() *store.Recorder) {
		for range 3 {
			r.Note(acked("A", "B1", "x"))
		}
		r = restart()
		if got := counts(t, db, workflow.EventQuery{}); got != "x×3 " {
			t.Errorf("after the end: %s", got)
		}
		r.Note(acked("A", "B1", "x"))
		r.Note(acked("A", "B2", "x"))
		restart()
		if got := counts(t, db, workflow.EventQuery{}); got != "x×4 x×1 " {
			t.Errorf("after the second end: %s", got)
		}
	})
}

// TestRecorderNeverBlocks: without a writer, notes are dropped and counted.
func TestRecorderNeverBlocks(t *testing.T) {
	t.Parallel()
	db, _ := openDB(t, store.Options{})
	r := store.NewRecorder(db, nil)
	const n = 10_000
	for range n {
		r.Note(acked("A", "B", "x"))
	}
	dropped := int(r.Dropped())
	if dropped == 0 {
		t.Fatal("nothing was dropped")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if ev := query(t, db, workflow.EventQuery{})[0]; ev.Count+dropped != n {
		t.Errorf("%d written, %d dropped of %d", ev.Count, dropped, n)
	}
}

// TestRecorderManyMachines: machines share transactions.
func TestRecorderManyMachines(t *testing.T) {
	t.Parallel()
	recording(t, func(t *testing.T, db *store.DB, r *store.Recorder, _ func() *store.Recorder) {
		const n = 1000
		before, _ := db.Cursor(t.Context())
		for range 3 {
			for i := range n {
				r.Note(acked(fmt.Sprintf("M%d", i), "B", "x"))
			}
			synctest.Wait()
		}
		time.Sleep(3 * time.Second)
		events := query(t, db, workflow.EventQuery{Limit: 5000})
		if len(events) != n {
			t.Errorf("%d events of %d machines", len(events), n)
		}
		for _, e := range events {
			if e.Count != 3 {
				t.Fatalf("%s has count %d", e.Hardware, e.Count)
			}
		}
		if after, _ := db.Cursor(t.Context()); after-before > 3*n/50+10 {
			t.Errorf("%d transactions", after-before)
		}
		if r.Dropped() != 0 {
			t.Errorf("%d dropped", r.Dropped())
		}
	})
}
