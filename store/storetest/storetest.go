// Package storetest proves that a store.KV keeps its contract. Every backend runs
// the same suite.
package storetest

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/store"
)

// Kept is how many transactions the stores under test may keep for watches at
// most, so that compaction can be seen without a million writes.
const Kept = 500

// patience is how long something that must happen may take on a loaded machine.
const patience = 30 * time.Second

// Open makes a new, empty store that keeps at most Kept transactions in its change
// log, and closes it when the test ends.
type Open func(t testing.TB) store.KV

// Run runs the suite; each test has a store of its own.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, store.KV){
		"empty":              testEmpty,
		"put and get":        testPutGet,
		"copies":             testCopies,
		"list":               testList,
		"list pages":         testPages,
		"compare":            testCompare,
		"all or nothing":     testAllOrNothing,
		"no change":          testNoChange,
		"limits":             testLimits,
		"bad keys":           testBadKeys,
		"cancelled":          testCancelled,
		"counters":           testCounters,
		"unique":             testUnique,
		"linear":             testLinear,
		"watch order":        testWatchOrder,
		"watch prefix":       testWatchPrefix,
		"watch resume":       testWatchResume,
		"watch now":          testWatchNow,
		"watch many":         testWatchMany,
		"watch compacted":    testWatchCompacted,
		"watch other life":   testWatchFuture,
		"watch cancel":       testWatchCancel,
		"session close":      testSessionClose,
		"session takeover":   testSessionTakeover,
		"session many keys":  testSessionManyKeys,
		"session expiry":     SessionExpiry,
		"close":              testClose,
		"close ends watches": testCloseWatch,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// put writes one key whatever it is, and returns the revision.
func put(t testing.TB, kv store.KV, key, value string) uint64 {
	t.Helper()
	return txn(t, kv, store.Txn{Puts: []store.Put{{Key: key, Value: []byte(value)}}})
}

func txn(t testing.TB, kv store.KV, x store.Txn) uint64 {
	t.Helper()
	rev, err := kv.Txn(t.Context(), x)
	if err != nil {
		t.Fatalf("txn: %v", err)
	}
	return rev
}

func get(t testing.TB, kv store.KV, key string) store.Entry {
	t.Helper()
	e, err := kv.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	return e
}

func list(t testing.TB, kv store.KV, r store.Range) store.Page {
	t.Helper()
	p, err := kv.List(t.Context(), r)
	if err != nil {
		t.Fatalf("list %+v: %v", r, err)
	}
	return p
}

func keys(p store.Page) string {
	s := ""
	for _, e := range p.Entries {
		s += e.Key + " "
	}
	return s
}

// watcher pulls from a watch, with patience.
type watcher struct {
	t    testing.TB
	next func() (store.Batch, error, bool)
}

func watch(t testing.TB, kv store.KV, prefix string, from uint64) *watcher {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	next, stop := iter.Pull2(kv.Watch(ctx, prefix, from))
	t.Cleanup(func() { cancel(); stop() })
	return &watcher{t: t, next: next}
}

// batch is the next one.
func (w *watcher) batch() store.Batch {
	w.t.Helper()
	b, err, ok := w.next()
	if err != nil || !ok {
		w.t.Fatalf("watch ended: %v, %v", err, ok)
	}
	return b
}

// text is a batch as the tests compare it: key=value, or -key.
func text(b store.Batch) string {
	s := ""
	for _, c := range b.Changes {
		if c.Deleted {
			s += "-" + c.Key + " "
		} else {
			s += fmt.Sprintf("%s=%s ", c.Key, c.Value)
		}
	}
	return s
}
