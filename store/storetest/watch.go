package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/rackstrap/rackstrap/store"
)

// testWatchOrder: while many write, a watch shows every transaction once, whole and
// in order; two watches show the same.
func testWatchOrder(t *testing.T, kv store.KV) {
	const workers, each = 8, 25
	a, b := watch(t, kv, "", 1), watch(t, kv, "", 1)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				v := []byte(fmt.Sprint(i))
				_, err := kv.Txn(t.Context(), store.Txn{Puts: []store.Put{
					{Key: fmt.Sprintf("x%d", w), Value: v}, {Key: fmt.Sprintf("y%d", w), Value: v},
				}})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	last := uint64(0)
	next := map[string]int{}
	for range workers * each {
		got, same := a.batch(), b.batch()
		if got.Revision <= last {
			t.Fatalf("revision %d after %d", got.Revision, last)
		}
		last = got.Revision
		if text(got) != text(same) || got.Revision != same.Revision {
			t.Fatalf("two watches differ: %d %s, %d %s", got.Revision, text(got), same.Revision, text(same))
		}
		if len(got.Changes) != 2 || string(got.Changes[0].Value) != string(got.Changes[1].Value) {
			t.Fatalf("a transaction in parts: %s", text(got))
		}
		k := got.Changes[0].Key
		if string(got.Changes[0].Value) != fmt.Sprint(next[k]) {
			t.Fatalf("%s: wanted value %d", text(got), next[k])
		}
		next[k]++
	}
	wg.Wait()
}

func testWatchPrefix(t *testing.T, kv store.KV) {
	w := watch(t, kv, "b/", 1)
	put(t, kv, "a", "1")
	txn(t, kv, store.Txn{Puts: []store.Put{{Key: "a", Value: []byte("2")}, {Key: "b/1", Value: []byte("x")}, {Key: "b0"}}})
	txn(t, kv, store.Txn{Deletes: []string{"a"}})
	txn(t, kv, store.Txn{Deletes: []string{"b/1", "b/never"}})
	for _, want := range []string{"b/1=x ", "-b/1 "} {
		if got := text(w.batch()); got != want {
			t.Errorf("%q, wanted %q", got, want)
		}
	}
}

// testWatchResume: a watch from the revision after the last one seen goes on there.
func testWatchResume(t *testing.T, kv store.KV) {
	var revs []uint64
	for i := range 10 {
		revs = append(revs, put(t, kv, "k", fmt.Sprint(i)))
	}
	for i := range revs {
		if got := watch(t, kv, "", revs[i]).batch(); got.Revision != revs[i] || text(got) != fmt.Sprintf("k=%d ", i) {
			t.Errorf("from %d: %d %s", revs[i], got.Revision, text(got))
		}
	}
	w := watch(t, kv, "", revs[9]+1)
	put(t, kv, "k", "new")
	if got := text(w.batch()); got != "k=new " {
		t.Errorf("after the last: %s", got)
	}
	// The list and the watch after it miss nothing and show nothing twice.
	p := list(t, kv, store.Range{})
	w = watch(t, kv, "", p.Revision+1)
	put(t, kv, "k", "newest")
	if got := text(w.batch()); got != "k=newest " {
		t.Errorf("after the list: %s", got)
	}
}

// testWatchNow: "from now" is decided when Watch is called.
func testWatchNow(t *testing.T, kv store.KV) {
	put(t, kv, "a", "before")
	w := watch(t, kv, "", 0)
	put(t, kv, "a", "after")
	if got := text(w.batch()); got != "a=after " {
		t.Error(got)
	}
}

// testWatchMany: more changes than any step of the implementation.
func testWatchMany(t *testing.T, kv store.KV) {
	const n = Kept - 50
	w := watch(t, kv, "k", 1)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := kv.Txn(t.Context(), store.Txn{Puts: []store.Put{{Key: fmt.Sprintf("k%d", i), Value: make([]byte, 10_000)}}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	last := uint64(0)
	for range n {
		b := w.batch()
		if b.Revision <= last {
			t.Fatalf("revision %d after %d", b.Revision, last)
		}
		last = b.Revision
	}
}

func testWatchCompacted(t *testing.T, kv store.KV) {
	slow := watch(t, kv, "", 1)
	put(t, kv, "k", "first")
	slow.batch()
	var wg sync.WaitGroup
	for range 2 * Kept {
		wg.Go(func() {
			if _, err := kv.Txn(t.Context(), store.Txn{Puts: []store.Put{{Key: "k"}}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for name, w := range map[string]*watcher{"a slow watch": slow, "a new watch": watch(t, kv, "", 1), "a prefix without changes": watch(t, kv, "x", 1)} {
		var err error
		for err == nil { // it may show what it has read before
			var ok bool
			if _, err, ok = w.next(); !ok {
				break
			}
		}
		if !errors.Is(err, store.ErrCompacted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := list(t, kv, store.Range{})
	w := watch(t, kv, "", p.Revision+1)
	put(t, kv, "k", "on")
	if got := text(w.batch()); got != "k=on " {
		t.Errorf("after listing again: %s", got)
	}
}

// testWatchFuture: a revision that was never given is a cursor from another life of
// the store, before a backup was restored; to wait for it would be silence.
func testWatchFuture(t *testing.T, kv store.KV) {
	rev := put(t, kv, "a", "1")
	if _, err, _ := watch(t, kv, "", rev+2).next(); !errors.Is(err, store.ErrCompacted) {
		t.Error(err)
	}
}

func testWatchCancel(t *testing.T, kv store.KV) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	put(t, kv, "a", "1")
	n := 0
	for b, err := range kv.Watch(ctx, "", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if text(b) != "a=1 " {
			t.Error(text(b))
		}
		n++
		cancel()
	}
	if n != 1 {
		t.Errorf("%d batches", n)
	}
}

func testCloseWatch(t *testing.T, kv store.KV) {
	ended := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		var last error
		for b, err := range kv.Watch(t.Context(), "", 1) {
			if b.Revision != 0 {
				close(started)
			}
			last = err
		}
		ended <- last
	}()
	put(t, kv, "a", "1")
	<-started
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		t.Errorf("watch ended with %v", err)
	}
}
