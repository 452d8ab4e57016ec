package bolt

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/storetest"
)

// open opens a store in dir and closes it when the test ends.
func open(t testing.TB, dir string, opts Options) *KV {
	t.Helper()
	kv, err := Open(filepath.Join(dir, "rackstrap.db"), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kv.Close(); err != nil {
			t.Error(err)
		}
	})
	return kv
}

func put(t testing.TB, kv *KV, key, value string) uint64 {
	t.Helper()
	rev, err := kv.Txn(t.Context(), store.Txn{Puts: []store.Put{{Key: key, Value: []byte(value)}}})
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func get(t testing.TB, kv *KV, key string) string {
	t.Helper()
	e, err := kv.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(e.Value)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) store.KV {
		return open(t, t.TempDir(), Options{LogRevisions: storetest.Kept})
	})
}

// TestSessionTime has the expiry to the millisecond.
func TestSessionTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kv := open(t, t.TempDir(), Options{})
		storetest.SessionExpiry(t, kv)
		start := time.Now()
		s, err := kv.Session(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(9999 * time.Millisecond)
		if err := s.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-s.Done()
		if got := time.Since(start); got != 19999*time.Millisecond {
			t.Errorf("expired after %v", got)
		}
		if err := kv.Close(); err != nil { // within the bubble: its goroutines must end
			t.Error(err)
		}
	})
}
