package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rackstrap/rackstrap/store"
)

// testCounters: read, decide, compare, retry loses no increment.
func testCounters(t *testing.T, kv store.KV) {
	const workers, each, counters = 32, 20, 3
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				key := fmt.Sprintf("counter%d", (w+i)%counters)
				for {
					e, err := kv.Get(t.Context(), key)
					if err != nil {
						t.Error(err)
						return
					}
					n, _ := strconv.Atoi(string(e.Value))
					_, err = kv.Txn(t.Context(), store.Txn{
						If:   []store.Compare{{Key: key, Revision: e.Revision}},
						Puts: []store.Put{{Key: key, Value: []byte(strconv.Itoa(n + 1))}},
					})
					if err == nil {
						break
					}
					if !errors.Is(err, store.ErrConflict) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for i := range counters {
		n, _ := strconv.Atoi(string(get(t, kv, fmt.Sprintf("counter%d", i)).Value))
		sum += n
	}
	if sum != workers*each {
		t.Errorf("%d increments of %d", sum, workers*each)
	}
}

// testUnique: of many that create one key, one does; a neighbour's conflict in the
// same moment harms nobody; each transaction has a revision of its own.
func testUnique(t *testing.T, kv store.KV) {
	const workers = 64
	var won atomic.Int32
	var wg sync.WaitGroup
	revs := make([]uint64, workers)
	for w := range workers {
		wg.Go(func() {
			_, err := kv.Txn(t.Context(), store.Txn{
				If:   []store.Compare{{Key: "name"}},
				Puts: []store.Put{{Key: "name", Value: []byte(strconv.Itoa(w))}},
			})
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, store.ErrConflict):
				t.Error(err)
			}
			revs[w], err = kv.Txn(t.Context(), store.Txn{Puts: []store.Put{{Key: fmt.Sprintf("own%d", w)}}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d winners", won.Load())
	}
	seen := map[uint64]bool{}
	for w, rev := range revs {
		if seen[rev] {
			t.Errorf("revision %d was given twice", rev)
		}
		seen[rev] = true
		if e := get(t, kv, fmt.Sprintf("own%d", w)); e.Revision != rev {
			t.Errorf("own%d has revision %d, its transaction %d", w, e.Revision, rev)
		}
	}
}

// testLinear: what was acknowledged is read at once, by others too, and revisions
// that are read never go back.
func testLinear(t *testing.T, kv store.KV) {
	var acked atomic.Uint64
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			last := uint64(0)
			for {
				select {
				case <-done:
					return
				default:
				}
				floor := acked.Load()
				e, err := kv.Get(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				if e.Revision < floor || e.Revision < last {
					t.Errorf("read revision %d after %d was acknowledged and %d was read", e.Revision, floor, last)
					return
				}
				last = e.Revision
			}
		})
	}
	for i := range 50 {
		acked.Store(put(t, kv, "a", strconv.Itoa(i)))
	}
	close(done)
	wg.Wait()
}
