package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/store"
)

func session(t testing.TB, kv store.KV, ttl time.Duration) store.Session {
	t.Helper()
	s, err := kv.Session(t.Context(), ttl)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func own(t testing.TB, kv store.KV, s store.Session, key string) uint64 {
	t.Helper()
	return txn(t, kv, store.Txn{Puts: []store.Put{{Key: key, Value: []byte("mine"), Session: s.ID()}}})
}

func testSessionClose(t *testing.T, kv store.KV) {
	a, b := session(t, kv, patience), session(t, kv, patience)
	own(t, kv, a, "a")
	last := own(t, kv, b, "b")
	if e := get(t, kv, "a"); e.Session != a.ID() || a.ID() == b.ID() || a.ID() == 0 {
		t.Errorf("owner %d, sessions %d and %d", e.Session, a.ID(), b.ID())
	}
	if err := a.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-a.Done()
	if get(t, kv, "a").Revision != 0 || get(t, kv, "b").Revision != last {
		t.Error("the wrong keys went")
	}
	if got := text(watch(t, kv, "", last+1).batch()); got != "-a " {
		t.Errorf("watch: %s", got)
	}
	if err := a.Renew(t.Context()); !errors.Is(err, store.ErrSessionExpired) {
		t.Errorf("renew of a closed session: %v", err)
	}
	_, err := kv.Txn(t.Context(), store.Txn{Puts: []store.Put{{Key: "c"}, {Key: "a", Session: a.ID()}}})
	if !errors.Is(err, store.ErrSessionExpired) || get(t, kv, "c").Revision != 0 {
		t.Errorf("put with a closed session: %v", err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// testSessionTakeover: a key goes with its last owner only.
func testSessionTakeover(t *testing.T, kv store.KV) {
	a, b := session(t, kv, patience), session(t, kv, patience)
	own(t, kv, a, "passed")
	own(t, kv, a, "kept")
	own(t, kv, a, "again")
	txn(t, kv, store.Txn{Deletes: []string{"again"}})
	own(t, kv, b, "passed")
	put(t, kv, "kept", "nobody's")
	put(t, kv, "again", "nobody's")
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := list(t, kv, store.Range{}); keys(p) != "again kept passed " {
		t.Errorf("after the first owner: %s", keys(p))
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := list(t, kv, store.Range{}); keys(p) != "again kept " {
		t.Errorf("after the second owner: %s", keys(p))
	}
}

// testSessionManyKeys: more than one transaction takes.
func testSessionManyKeys(t *testing.T, kv store.KV) {
	s := session(t, kv, patience)
	for i := range 3 {
		var x store.Txn
		for j := range store.MaxOps {
			x.Puts = append(x.Puts, store.Put{Key: fmt.Sprintf("k%d-%d", i, j), Session: s.ID()})
		}
		txn(t, kv, x)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := list(t, kv, store.Range{}); len(p.Entries) != 0 {
		t.Errorf("%d keys are left", len(p.Entries))
	}
}

// SessionExpiry proves that a session that is not renewed ends, and one that is
// does not. It is exported so that a backend that lives in one process can run it
// in a testing/synctest bubble, where it takes no time.
func SessionExpiry(t *testing.T, kv store.KV) {
	const ttl = 2 * time.Second // etcd counts in seconds
	quiet, busy := session(t, kv, ttl), session(t, kv, ttl)
	own(t, kv, busy, "busy")
	rev := own(t, kv, quiet, "quiet")
	tick := time.NewTicker(ttl / 4)
	defer tick.Stop()
	for expired := false; !expired; {
		select {
		case <-quiet.Done():
			expired = true
		case <-tick.C:
			if err := busy.Renew(t.Context()); err != nil {
				t.Fatalf("renew in time: %v", err)
			}
		}
	}
	if got := text(watch(t, kv, "", rev+1).batch()); got != "-quiet " {
		t.Errorf("watch: %s", got)
	}
	if get(t, kv, "quiet").Revision != 0 || get(t, kv, "busy").Revision == 0 {
		t.Error("the wrong key went")
	}
	if err := quiet.Renew(t.Context()); !errors.Is(err, store.ErrSessionExpired) {
		t.Errorf("renew after the end: %v", err)
	}
	if err := busy.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	if err := busy.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
