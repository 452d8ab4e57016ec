package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/store"
)

func testCompare(t *testing.T, kv store.KV) {
	rev := put(t, kv, "a", "1")
	w := []store.Put{{Key: "a", Value: []byte("2")}}
	for name, c := range map[string]store.Compare{
		"wanted absent":  {Key: "a", Revision: 0},
		"other revision": {Key: "a", Revision: rev + 1},
		"wanted present": {Key: "b", Revision: rev},
	} {
		_, err := kv.Txn(t.Context(), store.Txn{If: []store.Compare{{Key: "a", Revision: rev}, c}, Puts: w})
		var conflict *store.ConflictError
		if !errors.Is(err, store.ErrConflict) || !errors.As(err, &conflict) {
			t.Fatalf("%s: %v", name, err)
		}
		have := rev
		if c.Key == "b" {
			have = 0
		}
		if conflict.Key != c.Key || conflict.Want != c.Revision || conflict.Have != have {
			t.Errorf("%s: %+v", name, conflict)
		}
	}
	if e := get(t, kv, "a"); string(e.Value) != "1" {
		t.Fatalf("a refused transaction wrote: %+v", e)
	}
	next := txn(t, kv, store.Txn{If: []store.Compare{{Key: "a", Revision: rev}, {Key: "b"}}, Puts: w})
	if e := get(t, kv, "a"); string(e.Value) != "2" || e.Revision != next {
		t.Errorf("a: %+v after revision %d", e, next)
	}
	txn(t, kv, store.Txn{If: []store.Compare{{Key: "a", Revision: next}}, Deletes: []string{"a"}})
	if _, err := kv.Txn(t.Context(), store.Txn{If: []store.Compare{{Key: "a", Revision: next}}, Puts: w}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("compare with a deleted key: %v", err)
	}
}

func testAllOrNothing(t *testing.T, kv store.KV) {
	put(t, kv, "old", "x")
	rev := txn(t, kv, store.Txn{
		Puts:    []store.Put{{Key: "a", Value: []byte("1")}, {Key: "b", Value: []byte("2")}},
		Deletes: []string{"old"},
	})
	for _, k := range []string{"a", "b"} {
		if e := get(t, kv, k); e.Revision != rev {
			t.Errorf("%s has revision %d, its transaction %d", k, e.Revision, rev)
		}
	}
	if text(watch(t, kv, "", rev).batch()) != "a=1 b=2 -old " {
		t.Error("a watch shows the transaction in parts")
	}
}

// testNoChange: what changes nothing gets no revision and wakes no watch.
func testNoChange(t *testing.T, kv store.KV) {
	rev := put(t, kv, "a", "1")
	for name, x := range map[string]store.Txn{
		"empty":          {},
		"only compares":  {If: []store.Compare{{Key: "a", Revision: rev}}},
		"absent deletes": {Deletes: []string{"b", "c"}},
	} {
		if got := txn(t, kv, x); got != rev {
			t.Errorf("%s: revision %d, wanted %d", name, got, rev)
		}
	}
	w := watch(t, kv, "", rev+1)
	put(t, kv, "b", "2")
	if got := text(w.batch()); got != "b=2 " {
		t.Errorf("watch: %s", got)
	}
}

func testLimits(t *testing.T, kv store.KV) {
	many := func(n int) (out []store.Put) {
		for i := range n {
			out = append(out, store.Put{Key: fmt.Sprintf("k%d", i), Value: []byte("v")})
		}
		return out
	}
	compares := make([]store.Compare, store.MaxOps+1)
	for i := range compares {
		compares[i].Key = fmt.Sprintf("c%d", i)
	}
	full := make([]byte, store.MaxValue)
	for name, x := range map[string]store.Txn{
		"operations":       {Puts: many(store.MaxOps + 1)},
		"puts and deletes": {Puts: many(store.MaxOps), Deletes: []string{"x"}},
		"compares":         {If: compares, Puts: many(1)},
		"value":            {Puts: append(many(1), store.Put{Key: "big", Value: make([]byte, store.MaxValue+1)})},
		"transaction":      {Puts: append(many(1), store.Put{Key: "x", Value: full}, store.Put{Key: "y", Value: full[:store.MaxValue/2]})},
		"key":              {Puts: append(many(1), store.Put{Key: strings.Repeat("k", store.MaxKey+1)})},
	} {
		_, err := kv.Txn(t.Context(), x)
		var limit *store.LimitError
		if !errors.Is(err, store.ErrLimit) || !errors.As(err, &limit) || limit.Have <= limit.Limit {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p := list(t, kv, store.Range{}); len(p.Entries) != 0 || p.Revision != 0 {
		t.Fatalf("a refused transaction wrote: %s", keys(p))
	}
	txn(t, kv, store.Txn{If: compares[:store.MaxOps], Puts: many(store.MaxOps)})
	txn(t, kv, store.Txn{Puts: []store.Put{{Key: strings.Repeat("k", store.MaxKey), Value: full}}})
}

func testBadKeys(t *testing.T, kv store.KV) {
	for name, x := range map[string]store.Txn{
		"empty put":       {Puts: []store.Put{{}}},
		"empty delete":    {Deletes: []string{""}},
		"empty compare":   {If: []store.Compare{{}}, Puts: []store.Put{{Key: "a"}}},
		"not UTF-8":       {Puts: []store.Put{{Key: "a\xff"}}},
		"put twice":       {Puts: []store.Put{{Key: "a"}, {Key: "a"}}},
		"put and deleted": {Puts: []store.Put{{Key: "a"}}, Deletes: []string{"a"}},
	} {
		if _, err := kv.Txn(t.Context(), x); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if e := get(t, kv, ""); e.Revision != 0 {
		t.Errorf("the empty key: %+v", e)
	}
}

func testCancelled(t *testing.T, kv store.KV) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, get := kv.Get(ctx, "a")
	_, list := kv.List(ctx, store.Range{})
	_, txn := kv.Txn(ctx, store.Txn{Puts: []store.Put{{Key: "a"}}})
	_, rev := kv.Revision(ctx)
	_, session := kv.Session(ctx, patience)
	for name, err := range map[string]error{"get": get, "list": list, "txn": txn, "revision": rev, "session": session} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if rev, err := kv.Revision(t.Context()); rev != 0 || err != nil {
		t.Errorf("a cancelled transaction was done: revision %d, %v", rev, err)
	}
}

func testClose(t *testing.T, kv store.KV) {
	put(t, kv, "a", "1")
	s, err := kv.Session(t.Context(), patience)
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	ctx := t.Context()
	_, get := kv.Get(ctx, "a")
	_, list := kv.List(ctx, store.Range{})
	_, txn := kv.Txn(ctx, store.Txn{Puts: []store.Put{{Key: "a"}}})
	_, rev := kv.Revision(ctx)
	_, session := kv.Session(ctx, patience)
	for name, err := range map[string]error{"get": get, "list": list, "txn": txn, "revision": rev, "session": session} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := kv.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}
