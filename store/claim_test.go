package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

func claimOf(id string) *hardware.Claim {
	return &hardware.Claim{Meta: hardware.Meta{Name: id}, Spec: hardware.ClaimSpec{Owner: "test/" + id}}
}

// everything is the selector of a caller without limits.
var everything hardware.Selector

// release ends the claim of a machine as the engine does.
func release(ctx context.Context, db *store.DB, uid string, events ...workflow.Event) error {
	for {
		m, err := db.Machine(ctx, uid)
		if err != nil {
			return err
		}
		m.Status.Claim = nil
		if err := db.Commit(ctx, &workflow.Change{Machine: m, Events: events}); !errors.Is(err, workflow.ErrConflict) {
			return err
		}
	}
}

func TestClaimLife(t *testing.T) {
	t.Parallel()
	ctx := workflow.WithBy(t.Context(), "ci")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	db, _ := openDB(t, store.Options{Now: func() time.Time { return now }})
	h := create(t, db, 1)

	c := claimOf("c1")
	c.Meta.Labels = map[string]string{"cluster": "prod"}
	got, created, err := db.Claim(ctx, c, everything)
	if err != nil || !created {
		t.Fatalf("claim: %v, %v", created, err)
	}
	installation, err := db.Installation(ctx)
	if err != nil || len(installation) != 26 {
		t.Fatalf("installation %q, %v", installation, err)
	}
	if want := "rackstrap://" + installation + "/" + h.Meta.UID + "/c1"; got.Status.ProviderID != want || got.Status.Hardware != "m1" || !got.Status.Claimed.Equal(now) || got.Meta.UID == "" {
		t.Errorf("claim %+v, wanted provider id %s", got, want)
	}
	stored, err := db.ClaimByID(ctx, "c1")
	if err != nil || stored.Meta.Revision != got.Meta.Revision || stored.Meta.Labels["cluster"] != "prod" || stored.Spec.Owner != "test/c1" {
		t.Errorf("stored %+v, %v", stored, err)
	}
	m, err := db.HardwareByName(ctx, "m1")
	if err != nil || m.Status.Claim == nil || m.Status.Claim.ID != "c1" || m.Status.Claim.Owner != "test/c1" || m.Status.State != hardware.StateAvailable {
		t.Errorf("machine %+v, %v", m.Status, err)
	}

	same, created, err := db.Claim(ctx, c, everything)
	if err != nil || created || same.Status != got.Status {
		t.Errorf("the same again: %+v, %v, %v", same, created, err)
	}
	other := claimOf("c1")
	other.Spec.Requirements.CPUs = 4
	var differs *hardware.ClaimDiffers
	if _, _, err := db.Claim(ctx, other, everything); !errors.As(err, &differs) || differs.Field != "spec.requirements.cpus" {
		t.Errorf("the same id with another spec: %v", err)
	}
	var none *hardware.NoCandidate
	if _, _, err := db.Claim(ctx, claimOf("c2"), everything); !errors.As(err, &none) || none.Against[hardware.AgainstClaimed] != 1 || none.Machines != 1 {
		t.Errorf("no machine is left: %v", err)
	}
	if err := db.DeleteHardware(ctx, "m1", 0); !errors.Is(err, workflow.ErrInUse) || !strings.Contains(err.Error(), "test/c1") {
		t.Errorf("delete of a claimed machine: %v", err)
	}

	now = now.Add(time.Hour)
	if err := release(ctx, db, h.Meta.UID); err != nil {
		t.Fatal(err)
	}
	if stored, err = db.ClaimByID(ctx, "c1"); err != nil || !stored.Status.Ended.Equal(now) || stored.Status.Hardware != "m1" {
		t.Errorf("after the release: %+v, %v", stored, err)
	}
	var ended *hardware.ClaimEnded
	if _, _, err := db.Claim(ctx, c, everything); !errors.As(err, &ended) || ended.Hardware != "m1" {
		t.Errorf("a claim that ended gets: %v", err)
	}
	if _, created, err := db.Claim(ctx, claimOf("c2"), everything); err != nil || !created {
		t.Errorf("the next one: %v", err)
	}
	// the engine's own event says it: no second one
	if err := release(ctx, db, h.Meta.UID, workflow.Event{Reason: hardware.ReasonClaimEnded, Hardware: h.Meta.UID, Detail: "engine"}); err != nil {
		t.Fatal(err)
	}
	events, err := db.Events(ctx, workflow.EventQuery{Hardware: h.Meta.UID})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, ev := range events[1:] {
		said = append(said, string(ev.Reason)+" "+ev.Detail+" "+ev.By)
	}
	want := "claimed test/c1 (claim c1) ci; claim-ended test/c1 (claim c1) ci; claimed test/c2 (claim c2) ci; claim-ended engine ci"
	if got := strings.Join(said, "; "); got != want {
		t.Errorf("events: %s\nwanted: %s", got, want)
	}
	if err := db.DeleteHardware(ctx, "m1", 0); err != nil {
		t.Errorf("delete of a free machine: %v", err)
	}
	if all, err := db.ListClaims(ctx); err != nil || len(all) != 2 || all[0].Meta.Name != "c1" {
		t.Errorf("list %+v, %v", all, err)
	}
}

// TestClaimPicks: names, limits, an active workflow, preferences.
func TestClaimPicks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, _ := openDB(t, store.Options{})
	blue, err := hardware.ParseSelector("team=blue")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 9 {
		h := machine(n + 1)
		h.Meta.Labels = map[string]string{"team": []string{"blue", "red"}[n%2], "n": fmt.Sprint(n + 1)}
		if err := db.CreateHardware(ctx, h); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			w := &workflow.Workflow{Meta: hardware.Meta{Name: "w"}, Status: workflow.Status{State: workflow.StatePending, HardwareUID: h.Meta.UID}}
			if err := db.Commit(ctx, &workflow.Change{Workflow: w}); err != nil {
				t.Fatal(err)
			}
		}
	}
	byName := func(id, name string) *hardware.Claim {
		c := claimOf(id)
		c.Spec.Hardware = name
		return c
	}
	if got, _, err := db.Claim(ctx, byName("c1", "m4"), everything); err != nil || got.Status.Hardware != "m4" {
		t.Errorf("by name: %v, %v", got, err)
	}
	if _, _, err := db.Claim(ctx, byName("c2", "m4"), everything); err == nil || err.Error() != `hardware "m4" does not fit: claimed by test/c1 (claim c1)` {
		t.Errorf("by a name that is taken: %v", err)
	}
	if _, _, err := db.Claim(ctx, byName("c3", "nobody"), everything); !errors.Is(err, workflow.ErrNotFound) {
		t.Errorf("by a name that is not there: %v", err)
	}
	if _, _, err := db.Claim(ctx, byName("c4", "m2"), blue); !errors.Is(err, workflow.ErrNotFound) {
		t.Errorf("by a name outside of the limit: %v", err)
	}
	prefers := claimOf("c5")
	prefers.Spec.Prefer = []hardware.Preference{{Selector: "n in (1,2,5)", Weight: 5}, {Selector: "n=7", Weight: 1}}
	if got, _, err := db.Claim(ctx, prefers, blue); err != nil || got.Status.Hardware != "m5" { // m1 is busy, m2 red
		t.Errorf("the preferred one: %+v, %v", got, err)
	}
	for i := range 3 {
		if _, _, err := db.Claim(ctx, claimOf(fmt.Sprintf("d%d", i)), blue); err != nil {
			t.Error(err)
		}
	}
	var none *hardware.NoCandidate
	_, _, err = db.Claim(ctx, claimOf("d9"), blue)
	if !errors.As(err, &none) || none.Error() != "no machine fits; of 5: 4 claimed, 1 with an active workflow" {
		t.Errorf("none left within the limit: %v", err)
	}
	all, err := db.ExplainClaim("c5", &prefers.Spec, blue)
	if err != nil || len(all.Candidates) != 5 || all.Picked != "m5" || all.Candidates[0].Hardware != "m5" || !all.Candidates[0].Fits || all.Candidates[1].Fits {
		t.Errorf("explained: %+v, %v", all, err)
	}
	if _, err := db.ExplainClaim("", &hardware.ClaimSpec{}, blue); err == nil {
		t.Error("a spec that is not valid is explained")
	}
	if _, _, err := db.Claim(ctx, &hardware.Claim{}, everything); err == nil {
		t.Error("an empty claim got a machine")
	}
}

// TestClaimsAtOnce: 200 claimers on 50 machines through two appliances over one
// store, while the engine writes the machines' values and some are given back. Each
// claimer asks several times at once with its id.
func TestClaimsAtOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	kv, err := bolt.Open(filepath.Join(dir, "rackstrap.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kv.Close() })
	var dbs [2]*store.DB
	for i := range dbs {
		if dbs[i], err = store.Open(ctx, kv, filepath.Join(dir, "seal.key"), store.Options{}); err != nil {
			t.Fatal(err)
		}
		run(t, dbs[i].Run)
	}
	const machines, claimers = 50, 200
	var uids []string
	for n := range machines {
		uids = append(uids, create(t, dbs[0], n+1).Meta.UID)
	}
	// claims are asked for where the record is known
	until(t, dbs[0], "the machines", func() bool { return len(dbs[1].View().Hardware()) == machines })

	stop := make(chan struct{})
	var engine, wg sync.WaitGroup
	for w := range 2 { // the engine of each appliance writes boots
		engine.Go(func() {
			for i := w; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				m, err := dbs[w].Machine(ctx, uids[i%machines])
				if err == nil {
					m.Status.Workflow = fmt.Sprint("w", i)
					err = dbs[w].Commit(ctx, &workflow.Change{Machine: m})
				}
				if err != nil && !errors.Is(err, workflow.ErrConflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	got := make([]*hardware.Claim, claimers)
	var mu sync.Mutex
	for i := range claimers {
		for try := range 3 {
			wg.Go(func() {
				c, _, err := dbs[(i+try)%2].Claim(ctx, claimOf(fmt.Sprintf("c%d", i)), everything)
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
				if got[i] != nil && got[i].Status.UID != c.Status.UID {
					t.Errorf("claim %d got two machines", i)
				}
				got[i] = c
			})
		}
	}
	wg.Wait()
	close(stop)
	engine.Wait()
	owners := map[string]string{}
	for i, c := range got {
		if c == nil {
			continue
		}
		if o := owners[c.Status.UID]; o != "" {
			t.Errorf("machine %s was given to %s and to claim %d", c.Status.Hardware, o, i)
		}
		owners[c.Status.UID] = c.Meta.Name
	}
	if len(owners) != machines {
		t.Errorf("%d of %d machines were given away", len(owners), machines)
	}
	consistent(t, dbs[0], owners)
}

// consistent compares the machines, the claims and what was answered.
func consistent(t *testing.T, db *store.DB, owners map[string]string) {
	t.Helper()
	all, err := db.ListHardware(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]string{}
	for _, h := range all {
		if c := h.Status.Claim; c != nil {
			held[h.Meta.UID] = c.ID
		}
	}
	claims, err := db.ListClaims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range claims {
		if !c.Status.Ended.IsZero() {
			continue
		}
		n++
		if held[c.Status.UID] != c.Meta.Name {
			t.Errorf("claim %s says it has %s, and that says %q", c.Meta.Name, c.Status.Hardware, held[c.Status.UID])
		}
	}
	if n != len(held) || len(held) != len(owners) {
		t.Errorf("%d claims, %d machines with an owner, %d answers", n, len(held), len(owners))
	}
	for uid, id := range owners {
		if held[uid] != id {
			t.Errorf("machine %s: answered %s, stored %q", uid, id, held[uid])
		}
	}
}

// TestClaimsAndReleases: machines change hands all the time; nobody is told "none"
// while he waits for one that is being given back, and the records agree in the end.
func TestClaimsAndReleases(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, _ := openDB(t, store.Options{})
	for n := range 5 {
		create(t, db, n+1)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	owner := map[string]string{}
	for w := range 5 { // as many as machines: there is always one free
		wg.Go(func() {
			for i := range 20 {
				id := fmt.Sprintf("w%d-%d", w, i)
				c, created, err := db.Claim(ctx, claimOf(id), everything)
				if err != nil || !created {
					t.Errorf("%s: %v", id, err)
					return
				}
				mu.Lock()
				if o := owner[c.Status.UID]; o != "" {
					t.Errorf("%s and %s have %s", o, id, c.Status.Hardware)
				}
				owner[c.Status.UID] = id
				mu.Unlock()
				if h, err := db.Hardware(ctx, c.Status.UID); err != nil || h.Status.Claim == nil || h.Status.Claim.ID != id {
					t.Errorf("%s was told that it has %s, and that says %+v, %v", id, c.Status.Hardware, h.Status.Claim, err)
				}
				mu.Lock()
				delete(owner, c.Status.UID)
				mu.Unlock()
				if err := release(ctx, db, c.Status.UID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	consistent(t, db, map[string]string{})
	if all, err := db.ListClaims(ctx); err != nil || len(all) != 100 {
		t.Errorf("%d claims, %v", len(all), err)
	}
}

// TestClaimAfterRestart: a store that is opened again knows which machines are free.
func TestClaimAfterRestart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	dir := t.TempDir()
	before, kv := openAt(t, dir, store.Options{})
	create(t, before, 1)
	create(t, before, 2)
	if _, _, err := before.Claim(ctx, claimOf("c1"), everything); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(ctx, kv, filepath.Join(dir, "seal.key"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, created, err := db.Claim(ctx, claimOf("c2"), everything); err != nil || !created {
		t.Fatalf("after a restart: %v, %v", created, err)
	}
	var none *hardware.NoCandidate
	if _, _, err := db.Claim(ctx, claimOf("c3"), everything); !errors.As(err, &none) {
		t.Errorf("both machines are taken: %v", err)
	}
}
