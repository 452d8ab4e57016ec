package bolt

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
)

func records(n int) (recs []leaseRecord, file []byte, ends []int) {
	file = []byte(journalMagic)
	for i := range n {
		r := leaseRecord{Lease: lease(i), Gone: i%5 == 4}
		file, _ = appendRecord(file, &r)
		recs, ends = append(recs, r), append(ends, len(file))
	}
	return recs, file, ends
}

// TestTornTail: wherever a journal is cut, the records before the cut are read.
func TestTornTail(t *testing.T) {
	t.Parallel()
	recs, file, ends := records(6)
	for cut := range len(file) + 1 {
		whole := 0
		for whole < len(ends) && ends[whole] <= cut {
			whole++
		}
		for name, tail := range map[string][]byte{"cut": nil, "zeros": make([]byte, 50), "rubbish": bytes.Repeat([]byte{0xa5}, 50)} {
			var got []leaseRecord
			n, err := readJournal(append(slices.Clone(file[:cut]), tail...), func(r leaseRecord) { got = append(got, r) })
			if cut < len(journalMagic) {
				if name == "cut" && (err != nil || n != 0) {
					t.Errorf("cut at %d: %d, %v", cut, n, err)
				}
				continue
			}
			if err != nil || !slices.Equal(got, recs[:whole]) {
				t.Fatalf("cut at %d, then %s: %d records of %d, %v", cut, name, len(got), whole, err)
			}
		}
	}
}

// FuzzJournal: whatever a journal holds, what is read of it is what its first bytes
// say, written anew they are the same, and a flipped bit is never a record.
func FuzzJournal(f *testing.F) {
	_, file, _ := records(3)
	f.Add(file, uint16(30))
	f.Add(file[:len(file)-3], uint16(0))
	f.Add([]byte(journalMagic), uint16(2))
	f.Fuzz(func(t *testing.T, b []byte, flip uint16) {
		var got []leaseRecord
		n, err := readJournal(b, func(r leaseRecord) { got = append(got, r) })
		if err != nil || n < len(journalMagic) {
			return
		}
		if n > len(b) {
			t.Fatalf("read %d bytes of %d", n, len(b))
		}
		again := []byte(journalMagic)
		for i := range got {
			if again, err = appendRecord(again, &got[i]); err != nil {
				t.Skip() // a record that is larger once written our way
			}
		}
		var second []leaseRecord
		if m, err := readJournal(again, func(r leaseRecord) { second = append(second, r) }); m != len(again) || err != nil || len(second) != len(got) {
			t.Fatalf("written anew: %d of %d records, %v", len(second), len(got), err)
		}
		if i := int(flip) / 8; i >= len(journalMagic) && i < n {
			bad := slices.Clone(b[:n])
			bad[i] ^= 1 << (flip % 8)
			kept := 0
			if m, _ := readJournal(bad, func(leaseRecord) { kept++ }); m > i {
				t.Fatalf("bit %d of byte %d flipped: still read %d bytes", flip%8, i, m)
			}
		}
	})
}

func TestLeases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx := t.Context()
	kv, err := Open(filepath.Join(dir, "rackstrap.db"), Options{JournalBytes: 4000})
	if err != nil {
		t.Fatal(err)
	}
	l := kv.Leases()
	const n = 300 // several folds
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := l.Put(ctx, lease(i)); err != nil {
				t.Error(err)
			}
			if got, ok := l.Get("lan", lease(i).MAC); !ok || got != lease(i) {
				t.Errorf("lease %d is not what was put", i)
			}
		})
	}
	wg.Wait()
	changed := lease(5)
	changed.Hostname = "changed"
	if err := l.Put(ctx, changed); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := l.Delete(ctx, "lan", lease(100+i).MAC); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Delete(ctx, "lan", hardware.MAC{1}); err != nil {
		t.Errorf("delete of an absent lease: %v", err)
	}
	big := lease(1)
	big.Hostname = string(make([]byte, maxLease))
	if err := l.Put(ctx, big); !isLimit(err) {
		t.Errorf("huge lease: %v", err)
	}
	before := l.List()
	if len(before) != n-10 || !slices.Contains(before, changed) {
		t.Errorf("%d leases", len(before))
	}
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Put(ctx, lease(1)); err != store.ErrClosed {
		t.Errorf("put after close: %v", err)
	}
	if gens, err := journalFiles(kv.path); len(gens) != 0 || err != nil {
		t.Errorf("journal files after close: %v, %v", gens, err)
	}
	if got := open(t, dir, Options{}).Leases().List(); !slices.Equal(got, before) {
		t.Errorf("%d leases after the restart, %d before", len(got), len(before))
	}
}

func isLimit(err error) bool {
	_, ok := err.(*store.LimitError)
	return ok
}

// TestJournalReplay: what only the journal files have is read at start, in order,
// and a torn tail does no harm, not even in a file that is not the last.
func TestJournalReplay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "rackstrap.db")
	_, first, _ := records(3)
	newer := lease(1)
	newer.Hostname = "newer"
	second := []byte(journalMagic)
	for _, r := range []leaseRecord{{Lease: newer}, {Lease: lease(0), Gone: true}} {
		second, _ = appendRecord(second, &r)
	}
	for gen, b := range map[uint64][]byte{9: append(first, 1, 2, 3), 10: second, 11: []byte("RSL")} {
		if err := os.WriteFile(journalName(path, gen), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kv := open(t, dir, Options{})
	got := fmt.Sprint(kv.Leases().List())
	if want := fmt.Sprint([]hardware.Lease{newer, lease(2)}); got != want {
		t.Errorf("leases %s, wanted %s", got, want)
	}
	if err := kv.Leases().Put(t.Context(), lease(3)); err != nil {
		t.Fatal(err)
	}
	if gens, _ := journalFiles(path); len(gens) != 1 || gens[0] != 12 {
		t.Errorf("journal files: %v", gens)
	}
}

// FuzzChanges: a change log entry that is accepted is what it was made of.
func FuzzChanges(f *testing.F) {
	f.Add(appendDelete(appendPut(nil, "a/b", []byte("value")), "c"))
	f.Add([]byte{'p', 200})
	f.Fuzz(func(t *testing.T, b []byte) {
		changes, err := readChanges(b)
		if err != nil {
			return
		}
		var again []byte
		for _, c := range changes {
			if c.Deleted {
				again = appendDelete(again, c.Key)
			} else {
				again = appendPut(again, c.Key, c.Value)
			}
		}
		if second, err := readChanges(again); err != nil || fmt.Sprint(second) != fmt.Sprint(changes) {
			t.Fatalf("%q became %q", b, again)
		}
	})
}
