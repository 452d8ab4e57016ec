package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
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
			{Compare: Compare{Key: "d"}, ended: day(8), stopped: true},
			{Compare: Compare{Key: "old"}, ended: day(2)},
			{Compare: Compare{Key: "running"}, ended: day(4)},
			{Compare: Compare{Key: "b"}, ended: day(5), stopped: true},
			{Compare: Compare{Key: "c"}, ended: day(6), stopped: true},
		}
		var got []string
		for _, g := range forgotten(ended, day(3), tt.most, 0) {
			got = append(got, g.Key)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: forgets %q, wanted %q", name, got, tt.want)
		}
	}
}

// TestForgottenTenants: whatever one tenant claims and has refused, under however many
// owners, it pushes out its own, the oldest of an owner first, and none of another's.
func TestForgottenTenants(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		loud func(n int) string // the owner of its nth claim
		// quiet is another tenant's owner, and neighbour one of the loud tenant's.
		quiet, neighbour string
		refused          bool
	}{
		"one owner refuses":    {func(int) string { return "loud/a" }, "quiet/a", "loud/b", true},
		"many owners refuse":   {func(n int) string { return fmt.Sprint("loud/a/", n) }, "quiet/a", "loud/b", true},
		"a prefix with a dash": {func(n int) string { return fmt.Sprint("team-loud-", n) }, "team-quiet", "team", true},
		"within one prefix":    {func(n int) string { return fmt.Sprint("capi/prod/", n) }, "capi/prod-2", "capi/test", true},
		"one owner claims":     {func(int) string { return "loud/a" }, "quiet/a", "loud/b", false},
		"many owners claim":    {func(n int) string { return fmt.Sprint("loud/a/", n) }, "quiet/a", "loud/b", false},
	} {
		ended := []gone{
			{Compare: Compare{Key: "quiet"}, owner: tt.quiet, ended: begin, stopped: true, refused: tt.refused},
			{Compare: Compare{Key: "had"}, owner: tt.quiet, ended: begin, stopped: true},
			{Compare: Compare{Key: "neighbour"}, owner: tt.neighbour, ended: begin, stopped: true, refused: tt.refused},
		}
		for n := range 1000 {
			ended = append(ended, gone{
				Compare: Compare{Key: fmt.Sprintf("loud-%04d", n)}, owner: tt.loud(n),
				ended: begin.Add(time.Duration(n+1) * time.Second), stopped: true, refused: tt.refused,
			})
		}
		left := map[string]bool{}
		for _, g := range ended {
			left[g.Key] = true
		}
		for _, g := range forgotten(ended, begin.Add(-time.Hour), 100, 100) {
			delete(left, g.Key)
		}
		if !left["quiet"] || !left["had"] || !left["neighbour"] {
			t.Errorf("%s: others are forgotten: %v", name, left)
		}
		if n := len(left); n < 97 || n > 101 {
			t.Errorf("%s: %d are left", name, n)
		}
		if tt.loud(0) == tt.loud(1) && (!left["loud-0999"] || left["loud-0000"]) {
			t.Errorf("%s: not the oldest are forgotten: %v", name, left)
		}
	}
}

// TestRefusedAreTrimmed: who has ids refused without end is trimmed before the hour is
// over, and what another tenant had refused, and had, is still known.
func TestRefusedAreTrimmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, err := New(t.Context(), newMemory(), testSeal(1), Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go db.trimLoop(ctx)
		refuse := func(id, owner string) {
			if _, err := db.RefuseClaim(t.Context(), id, owner); err != nil {
				t.Fatal(err)
			}
		}
		refuse("quiet", "quiet/x")
		for n := range maxRefused + trimClaimsAfter {
			time.Sleep(time.Millisecond)
			refuse(fmt.Sprintf("loud-%05d", n), "loud/x")
		}
		time.Sleep(2 * trimEvery)
		synctest.Wait()
		all, err := db.ListClaims(t.Context())
		if err != nil || len(all) != maxRefused {
			t.Errorf("%d claims are left, wanted %d, %v", len(all), maxRefused, err)
		}
		if _, err := db.ClaimByID(t.Context(), "quiet"); err != nil {
			t.Errorf("another tenant's: %v", err)
		}
		if _, err := db.ClaimByID(t.Context(), "loud-00000"); !errors.Is(err, workflow.ErrNotFound) {
			t.Errorf("the oldest of the one who has most is still there, %v", err)
		}
	})
}

// counts is a KV that counts how often the workflows are read.
type counts struct {
	*memory
	read atomic.Int64
}

func (c *counts) List(ctx context.Context, r Range) (Page, error) {
	if r.Prefix == prefixWorkflow {
		c.read.Add(1)
	}
	return c.memory.List(ctx, r)
}

// TestClaimsAreTrimmedAlone: whoever ends claims in a loop does not have every workflow
// read each time.
func TestClaimsAreTrimmedAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kv := &counts{memory: newMemory()}
		db, err := New(t.Context(), kv, testSeal(1), Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		kv.read.Store(0)
		go db.trimLoop(ctx)
		for round := range 5 {
			for n := range trimClaimsAfter {
				if _, err := db.RefuseClaim(t.Context(), fmt.Sprintf("c-%d-%04d", round, n), "loud/x"); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * trimEvery)
		}
		if n := kv.read.Load(); n != 1 {
			t.Errorf("the workflows are read %d times while 2,500 claims end, want once", n)
		}
		if all, err := db.ListClaims(t.Context()); err != nil || len(all) != maxRefused {
			t.Errorf("%d claims are left, wanted %d, %v", len(all), maxRefused, err)
		}
		time.Sleep(trimEndedEvery)
		if n := kv.read.Load(); n != 2 {
			t.Errorf("an hour later they are read %d times, want twice", n)
		}
	})
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
