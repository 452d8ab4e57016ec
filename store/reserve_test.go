package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/workflow"
)

// ends writes the end of a machine's claim as the engine does: with how it is known that
// its system stopped, or without.
func ends(t *testing.T, db *store.DB, uid string, by hardware.StoppedBy, r *hardware.Reservation) {
	t.Helper()
	for {
		m, err := db.Machine(t.Context(), uid)
		if err != nil {
			t.Error(err)
			return
		}
		s := &m.Status
		s.Stopping = &hardware.Stopping{Claim: s.Claim.ID, Since: time.Now()}
		if by != "" {
			s.Stopping.Stopped = &hardware.Stopped{By: by, At: time.Now()}
		}
		s.Claim, s.Reserved = nil, r
		if r != nil && r.KeepDisks {
			s.State, s.Dirty = hardware.StateProvisioned, []hardware.DiskRef{{Path: "/dev/sda"}}
		}
		if err := db.Commit(t.Context(), &workflow.Change{Machine: m}); !errors.Is(err, workflow.ErrConflict) {
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

// TestAClaimSaysThatItStopped: in the transaction that says so of the machine, once, and
// of no other claim.
func TestAClaimSaysThatItStopped(t *testing.T) {
	t.Parallel()
	db, _ := openDB(t, store.Options{})
	h := create(t, db, 1)
	take := func(id string) {
		t.Helper()
		if _, _, err := db.Claim(t.Context(), claimOf(id), everything); err != nil {
			t.Fatal(err)
		}
	}
	says := func(id string, want hardware.StoppedBy) {
		t.Helper()
		c, err := db.ClaimByID(t.Context(), id)
		if err != nil || c.Status.Ended.IsZero() || (c.Status.Stopped == nil) != (want == "") || want != "" && c.Status.Stopped.By != want {
			t.Fatalf("claim %s: %+v, %v, want stopped by %q", id, c.Status, err, want)
		}
	}
	take("c1")
	ends(t, db, h.Meta.UID, hardware.StoppedNeverRan, nil)
	says("c1", hardware.StoppedNeverRan)
	take("c2")
	if m, err := db.Machine(t.Context(), h.Meta.UID); err != nil || m.Status.Stopping != nil {
		t.Fatalf("its next owner has %+v, %v", m.Status.Stopping, err)
	}
	ends(t, db, h.Meta.UID, "", nil)
	says("c2", "")
	if _, _, err := db.Claim(t.Context(), claimOf("c3"), everything); err == nil {
		t.Fatal("it is claimed before it stopped")
	}
	if err := db.DeleteHardware(t.Context(), "m1", 0); !errors.Is(err, workflow.ErrInUse) {
		t.Fatalf("its record is deleted before it stopped: %v", err)
	}
	for _, by := range []hardware.StoppedBy{hardware.StoppedByPowerOff, hardware.StoppedByHold} { // the second says nothing new
		m, err := db.Machine(t.Context(), h.Meta.UID)
		if err != nil {
			t.Fatal(err)
		}
		m.Status.Stopping.Stopped = &hardware.Stopped{By: by, At: time.Now()}
		if err := db.Commit(t.Context(), &workflow.Change{Machine: m}); err != nil {
			t.Fatal(err)
		}
		says("c2", hardware.StoppedByPowerOff)
	}
	says("c1", hardware.StoppedNeverRan)
	take("c3")
}

// TestReservationsAtOnce: 200 claimers, half of them of a group, on machines of which
// half are kept for it. Nobody else gets those, the group takes those first, and no
// machine has two owners.
func TestReservationsAtOnce(t *testing.T) {
	t.Parallel()
	const machines, claimers = 40, 200
	db, _ := openDB(t, store.Options{})
	kept := map[string]bool{}
	for n := range machines {
		h := create(t, db, n+1)
		if n%2 == 0 {
			c := claimOf(fmt.Sprint("old", n))
			c.Spec.Hardware = h.Meta.Name
			if _, _, err := db.Claim(t.Context(), c, everything); err != nil {
				t.Fatal(err)
			}
			ends(t, db, h.Meta.UID, hardware.StoppedByPowerOff, &hardware.Reservation{For: "test/group", KeepDisks: n%4 == 0, Until: time.Now().Add(time.Hour)})
			kept[h.Meta.UID] = true
		}
	}
	owners, group := map[string]string{}, map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range claimers {
		c := claimOf(fmt.Sprint("c", i))
		if i%2 == 0 {
			c.Spec.Reuse = "test/group"
		}
		for range 2 {
			wg.Go(func() {
				got, _, err := db.Claim(t.Context(), c, everything)
				var none *hardware.NoCandidate
				if errors.As(err, &none) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if o := owners[got.Status.UID]; o != "" && o != c.Meta.Name {
					t.Errorf("%s and %s have %s", o, c.Meta.Name, got.Status.Hardware)
				}
				owners[got.Status.UID] = c.Meta.Name
				group[got.Status.UID] = c.Spec.Reuse != ""
			})
		}
	}
	wg.Wait()
	for uid := range kept {
		if !group[uid] {
			t.Errorf("a machine that is kept went to %q", owners[uid])
		}
	}
	if len(owners) != machines {
		t.Errorf("%d of %d machines were given away", len(owners), machines)
	}
	consistent(t, db, owners)
}
