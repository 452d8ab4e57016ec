package storetest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/rackstrap/rackstrap/store"
)

func testEmpty(t *testing.T, kv store.KV) {
	if e := get(t, kv, "a"); e.Revision != 0 || e.Value != nil || e.Key != "a" {
		t.Errorf("absent key: %+v", e)
	}
	if p := list(t, kv, store.Range{}); len(p.Entries) != 0 || p.More || p.Revision != 0 {
		t.Errorf("empty list: %+v", p)
	}
	if rev, err := kv.Revision(t.Context()); rev != 0 || err != nil {
		t.Errorf("revision %d, %v", rev, err)
	}
}

func testPutGet(t *testing.T, kv store.KV) {
	r1 := put(t, kv, "a", "1")
	r2 := put(t, kv, "b", "")
	r3 := put(t, kv, "a", "2")
	if r1 == 0 || r2 <= r1 || r3 <= r2 {
		t.Fatalf("revisions do not grow: %d %d %d", r1, r2, r3)
	}
	if e := get(t, kv, "a"); string(e.Value) != "2" || e.Revision != r3 {
		t.Errorf("a: %+v", e)
	}
	if e := get(t, kv, "b"); len(e.Value) != 0 || e.Revision != r2 {
		t.Errorf("b: %+v", e)
	}
	r4 := txn(t, kv, store.Txn{Deletes: []string{"a", "never-was"}})
	if e := get(t, kv, "a"); e.Revision != 0 {
		t.Errorf("deleted key: %+v", e)
	}
	if r5 := put(t, kv, "a", "3"); r5 <= r4 || r4 <= r3 {
		t.Errorf("a key put again has revision %d after %d", r5, r4)
	}
}

// testCopies: neither what goes in nor what comes out is shared.
func testCopies(t *testing.T, kv store.KV) {
	in := []byte("value")
	txn(t, kv, store.Txn{Puts: []store.Put{{Key: "a", Value: in}}})
	copy(in, "XXXXX")
	e := get(t, kv, "a")
	copy(e.Value, "YYYYY")
	p := list(t, kv, store.Range{Prefix: "a"})
	if string(p.Entries[0].Value) != "value" {
		t.Errorf("a reader's change shows: %q", p.Entries[0].Value)
	}
	copy(p.Entries[0].Value, "ZZZZZ")
	b := watch(t, kv, "a", 1).batch()
	if text(b) != "a=value " {
		t.Errorf("watch: %s", text(b))
	}
	copy(b.Changes[0].Value, "WWWWW")
	if b = watch(t, kv, "a", 1).batch(); text(b) != "a=value " {
		t.Errorf("second watch: %s", text(b))
	}
	// Later writes must not reach into values that were read before.
	old := get(t, kv, "a")
	for i := range 50 {
		put(t, kv, fmt.Sprintf("x%d", i), string(bytes.Repeat([]byte{byte(i)}, 500)))
	}
	if string(old.Value) != "value" {
		t.Errorf("a value changed in the reader's hands: %q", old.Value)
	}
}

func testList(t *testing.T, kv store.KV) {
	for _, k := range []string{"a", "b/1", "b/2", "b/3", "b0", "c"} {
		put(t, kv, k, k)
	}
	rev, err := kv.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		r    store.Range
		want string
		more bool
	}{
		{store.Range{}, "a b/1 b/2 b/3 b0 c ", false},
		{store.Range{Prefix: "b/"}, "b/1 b/2 b/3 ", false},
		{store.Range{Prefix: "b/2"}, "b/2 ", false},
		{store.Range{Prefix: "b/", After: "b/1"}, "b/2 b/3 ", false},
		{store.Range{Prefix: "b/", After: "b/10"}, "b/2 b/3 ", false},
		{store.Range{Prefix: "b/", After: "a"}, "b/1 b/2 b/3 ", false},
		{store.Range{Prefix: "b/", After: "b/3"}, "", false},
		{store.Range{Prefix: "b/", After: "c"}, "", false},
		{store.Range{Prefix: "b/", Limit: 2}, "b/1 b/2 ", true},
		{store.Range{Prefix: "b/", Limit: 3}, "b/1 b/2 b/3 ", false},
		{store.Range{Prefix: "b/", Descend: true}, "b/3 b/2 b/1 ", false},
		{store.Range{Prefix: "b/", Descend: true, Limit: 2}, "b/3 b/2 ", true},
		{store.Range{Prefix: "b/", Descend: true, After: "b/2"}, "b/1 ", false},
		{store.Range{Prefix: "b/", Descend: true, After: "b/25"}, "b/2 b/1 ", false},
		{store.Range{Prefix: "b/", Descend: true, After: "z"}, "b/3 b/2 b/1 ", false},
		{store.Range{Descend: true}, "c b0 b/3 b/2 b/1 a ", false},
		{store.Range{Descend: true, After: "a"}, "", false},
		{store.Range{Prefix: "none"}, "", false},
	} {
		p := list(t, kv, tc.r)
		if keys(p) != tc.want || p.More != tc.more || p.Revision != rev {
			t.Errorf("%+v: %q, more %v, revision %d; wanted %q, %v, %d", tc.r, keys(p), p.More, p.Revision, tc.want, tc.more, rev)
		}
		for _, e := range p.Entries {
			if string(e.Value) != e.Key {
				t.Errorf("%+v: %s has value %q", tc.r, e.Key, e.Value)
			}
		}
	}
	for _, e := range list(t, kv, store.Range{KeysOnly: true}).Entries {
		if e.Value != nil || e.Revision == 0 {
			t.Errorf("keys only: %+v", e)
		}
	}
}

// testPages: following After gives every key once, whatever ends a page.
func testPages(t *testing.T, kv store.KV) {
	const n, size = 12, store.MaxPageBytes / 10
	for i := range n {
		put(t, kv, fmt.Sprintf("k%02d", i), string(make([]byte, size)))
	}
	for _, descend := range []bool{false, true} {
		seen := map[string]bool{}
		r := store.Range{Prefix: "k", Limit: 11, Descend: descend}
		for pages := 0; ; pages++ {
			p := list(t, kv, r)
			if len(p.Entries) == 0 || pages > n {
				t.Fatalf("page %d has %d entries", pages, len(p.Entries))
			}
			bytes := 0
			for _, e := range p.Entries {
				if seen[e.Key] {
					t.Fatalf("%s twice", e.Key)
				}
				seen[e.Key] = true
				bytes += len(e.Value)
			}
			if bytes > store.MaxPageBytes+store.MaxValue {
				t.Errorf("a page of %d bytes", bytes)
			}
			if !p.More {
				break
			}
			r.After = p.Entries[len(p.Entries)-1].Key
		}
		if len(seen) != n {
			t.Errorf("descend %v: %d keys of %d", descend, len(seen), n)
		}
	}
	if p := list(t, kv, store.Range{Prefix: "k", KeysOnly: true}); len(p.Entries) != n {
		t.Errorf("keys only: %d of %d on one page", len(p.Entries), n)
	}
}
