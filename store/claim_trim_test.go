package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func claimed(t *testing.T, db *DB, n int) *hardware.Claim {
	t.Helper()
	h := &hardware.Hardware{Meta: hardware.Meta{Name: fmt.Sprintf("m%d", n)}, Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{2, 0, 0, 0, 0, byte(n)}}}}}
	if err := db.CreateHardware(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	c := &hardware.Claim{Meta: hardware.Meta{Name: fmt.Sprintf("c%d", n)}, Spec: hardware.ClaimSpec{Owner: "o"}}
	got, _, err := db.Claim(t.Context(), c, hardware.Selector{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestTrimClaims: what ended 30 days ago is forgotten, what is held never.
func TestTrimClaims(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	db, err := New(t.Context(), newMemory(), testSeal(1), Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		c := claimed(t, db, n)
		if n == 2 {
			break // is held
		}
		m, err := db.Machine(t.Context(), c.Status.UID)
		if err != nil {
			t.Fatal(err)
		}
		m.Status.Claim = nil
		if err := db.Commit(t.Context(), &workflow.Change{Machine: m}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(24 * time.Hour)
	}
	for _, r := range []struct {
		later time.Duration
		left  int
	}{{28*24*time.Hour - 1, 3}, {time.Hour, 2}, {24 * time.Hour, 1}, {1000 * time.Hour, 1}} {
		now = now.Add(r.later)
		if err := db.trimClaims(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all, err := db.ListClaims(t.Context()); err != nil || len(all) != r.left {
			t.Errorf("at %v: %d claims, wanted %d, %v", now, len(all), r.left, err)
		}
	}
}

// TestForgotten: too many ended claims do not push out one whose system may still run.
func TestForgotten(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	for name, tt := range map[string]struct {
		most int
		want []string
	}{
		"few":      {5, []string{"old"}},
		"many":     {3, []string{"old", "b"}},
		"too many": {1, []string{"old", "b", "c", "d"}},
	} {
		ended := []gone{
			{Compare{Key: "d"}, day(8), true},
			{Compare{Key: "old"}, day(2), false},
			{Compare{Key: "running"}, day(4), false},
			{Compare{Key: "b"}, day(5), true},
			{Compare{Key: "c"}, day(6), true},
		}
		var got []string
		for _, g := range forgotten(ended, day(3), tt.most) {
			got = append(got, g.Key)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: forgets %q, wanted %q", name, got, tt.want)
		}
	}
}

// refuses is a KV whose next claim fails as on a full disk, when it is told to.
type refuses struct {
	*memory
	hold chan error
}

func (r *refuses) Txn(ctx context.Context, t Txn) (uint64, error) {
	for _, p := range t.Puts {
		if p.Key == keyClaim("unlucky") {
			return 0, <-r.hold
		}
	}
	return r.memory.Txn(ctx, t)
}

// TestClaimWaits: while the only machine is being taken nobody is told that there
// is none, and when that fails the next one gets it.
func TestClaimWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kv := &refuses{newMemory(), make(chan error)}
		db, err := New(t.Context(), kv, testSeal(1), Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := claimed(t, db, 1)
		m, err := db.Machine(t.Context(), c.Status.UID)
		if err != nil {
			t.Fatal(err)
		}
		m.Status.Claim = nil
		if err := db.Commit(t.Context(), &workflow.Change{Machine: m}); err != nil {
			t.Fatal(err)
		}
		ask := func(ctx context.Context, id string) chan error {
			out := make(chan error, 1)
			go func() {
				_, _, err := db.Claim(ctx, &hardware.Claim{Meta: hardware.Meta{Name: id}, Spec: hardware.ClaimSpec{Owner: "o"}}, hardware.Selector{})
				out <- err
			}()
			synctest.Wait()
			return out
		}
		impatient, cancel := context.WithCancel(t.Context())
		first, second, third := ask(t.Context(), "unlucky"), ask(t.Context(), "lucky"), ask(impatient, "impatient")
		cancel()
		if err := <-third; !errors.Is(err, context.Canceled) {
			t.Errorf("who does not want to wait gets %v", err)
		}
		if len(second) != 0 {
			t.Fatalf("an answer while nobody knows: %v", <-second)
		}
		kv.hold <- ErrNoSpace
		if err := <-first; !errors.Is(err, ErrNoSpace) {
			t.Errorf("the write failed, the claimer gets %v", err)
		}
		if err := <-second; err != nil {
			t.Errorf("the machine is free again, the next one gets %v", err)
		}
		if h, _ := db.view.HardwareByName("m1"); h.Status.Claim == nil || h.Status.Claim.ID != "lucky" {
			t.Errorf("the machine says %+v", h.Status.Claim)
		}
	})
}
