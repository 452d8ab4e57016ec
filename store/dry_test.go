package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/workflow"
)

// A dry run finds what the real one would find, among its own writes too, and the
// store is as it was.
func TestDry(t *testing.T) {
	t.Parallel()
	db, kv := openDB(t, store.Options{})
	ctx := t.Context()
	one := create(t, db, 1)
	gone := create(t, db, 2)
	before, err := kv.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	dry := db.Dry()
	var invalid *hardware.Invalid
	twin := machine(1)
	twin.Meta.Name = "twin"
	if err := dry.CreateHardware(ctx, twin); !errors.As(err, &invalid) || !strings.Contains(err.Error(), `"m1"`) {
		t.Errorf("a MAC twice: %v", err)
	}
	create(t, dry, 3)
	twin = machine(3)
	twin.Meta.Name = "twin"
	if err := dry.CreateHardware(ctx, twin); !errors.As(err, &invalid) || !strings.Contains(err.Error(), `"m3"`) {
		t.Errorf("a MAC twice, both dry: %v", err)
	}
	if err := dry.DeleteHardware(ctx, "m2", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := dry.HardwareByName(ctx, "m2"); !errors.Is(err, workflow.ErrNotFound) {
		t.Errorf("after the delete: %v", err)
	}
	changed := *one
	changed.Spec.Notes = "dry"
	if err := dry.UpdateHardware(ctx, &changed); err != nil {
		t.Fatal(err)
	}
	stale := *one
	stale.Spec.Notes = "stale"
	if err := dry.UpdateHardware(ctx, &stale); !errors.Is(err, workflow.ErrConflict) {
		t.Errorf("a stale revision: %v", err)
	}
	m := &workflow.Machine{UID: one.Meta.UID, Status: hardware.Status{State: hardware.StateProvisioned}}
	if err := dry.Commit(ctx, &workflow.Change{Machine: m}); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dry); got != "m1 m3" {
		t.Errorf("dry: %s", got)
	}
	h, err := dry.HardwareByName(ctx, "m1")
	if err != nil || h.Spec.Notes != "dry" || h.Status.State != hardware.StateProvisioned {
		t.Errorf("got %+v, %v", h, err)
	}
	// nothing of it is in the store or its View
	if got := names(t, db); got != "m1 m2" {
		t.Errorf("the store: %s", got)
	}
	if _, ok := db.View().HardwareByMAC(gone.Spec.Interfaces[0].MAC); !ok || len(db.View().Hardware()) != 2 {
		t.Error("the View was changed")
	}
	if after, err := kv.Revision(ctx); err != nil || after != before {
		t.Errorf("revision %d, then %d, %v", before, after, err)
	}
}

func names(t *testing.T, db *store.DB) string {
	t.Helper()
	all, err := db.ListHardware(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, h := range all {
		out = append(out, h.Meta.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// Pages of a dry run have what is below and what was written, each key once, in
// order, whatever the size of the pages.
func TestDryPages(t *testing.T) {
	t.Parallel()
	db, _ := openDB(t, store.Options{})
	for n := range 30 {
		create(t, db, n+1)
	}
	dry := db.Dry()
	for n := range 30 {
		if n%4 != 3 {
			if err := dry.DeleteHardware(t.Context(), fmt.Sprintf("m%d", n+1), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range 9 {
		create(t, dry, 100+n)
	}
	if all, err := dry.ListHardware(t.Context()); err != nil || len(all) != 7+9 {
		t.Errorf("got %d, %v", len(all), err)
	}
	for _, limit := range []int{1, 2, 3, 7, 100} {
		events, err := dry.Events(t.Context(), workflow.EventQuery{Limit: limit})
		if err != nil || len(events) != min(limit, 30+23+9) {
			t.Errorf("limit %d: %d events, %v", limit, len(events), err)
		}
	}
}
