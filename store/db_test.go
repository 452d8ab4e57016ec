package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

// openDB opens a DB over a new file.
func openDB(t testing.TB, opts store.Options) (*store.DB, *bolt.KV) {
	t.Helper()
	return openAt(t, t.TempDir(), opts)
}

func openAt(t testing.TB, dir string, opts store.Options) (*store.DB, *bolt.KV) {
	t.Helper()
	kv, err := bolt.Open(filepath.Join(dir, "rackstrap.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kv.Close() })
	opts.Leases = kv.Leases()
	db, err := store.Open(t.Context(), kv, filepath.Join(dir, "seal.key"), opts)
	if err != nil {
		t.Fatal(err)
	}
	return db, kv
}

// machine is a valid record: number n has MAC 52:54:00:00:00:n and 10.0.0.n.
func machine(n int) *hardware.Hardware {
	return &hardware.Hardware{
		Meta: hardware.Meta{Name: fmt.Sprintf("m%d", n)},
		Spec: hardware.Spec{Interfaces: []hardware.NIC{{
			MAC:       hardware.MAC{0x52, 0x54, 0, byte(n >> 16), byte(n >> 8), byte(n)},
			Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), 8)},
		}}},
	}
}

func create(t testing.TB, db *store.DB, n int) *hardware.Hardware {
	t.Helper()
	h := machine(n)
	if err := db.CreateHardware(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHardwareLife(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, _ := openDB(t, store.Options{})
	h := create(t, db, 1)
	if h.Meta.UID == "" || h.Meta.Revision == 0 || h.Meta.Created.IsZero() {
		t.Fatalf("create did not fill in the record: %+v", h.Meta)
	}
	if got, ok := db.View().HardwareByMAC(h.Spec.Interfaces[0].MAC); !ok || got.Meta.UID != h.Meta.UID {
		t.Fatal("the view does not show the record at once")
	}
	if err := db.CreateHardware(ctx, machine(1)); !errors.Is(err, workflow.ErrExists) {
		t.Errorf("second create: %v", err)
	}
	stale := h.Meta.Revision
	h.Spec.Notes = "changed"
	if err := db.UpdateHardware(ctx, h); err != nil || h.Meta.Revision <= stale {
		t.Fatalf("update: %v, revision %d", err, h.Meta.Revision)
	}
	again := h.Meta.Revision
	if err := db.UpdateHardware(ctx, h); err != nil || h.Meta.Revision != again {
		t.Errorf("the same again: %v, revision %d, wanted %d", err, h.Meta.Revision, again)
	}
	old := machine(1)
	old.Meta.Revision = stale
	old.Spec.Notes = "too late"
	if err := db.UpdateHardware(ctx, old); !errors.Is(err, workflow.ErrConflict) {
		t.Errorf("stale update: %v", err)
	}
	if err := db.DeleteHardware(ctx, "m1", stale); !errors.Is(err, workflow.ErrConflict) {
		t.Errorf("stale delete: %v", err)
	}
	if err := db.DeleteHardware(ctx, "m1", 0); err != nil {
		t.Fatal(err)
	}
	if _, ok := db.View().HardwareByMAC(h.Spec.Interfaces[0].MAC); ok {
		t.Error("the view still shows a deleted record")
	}
	for name, err := range map[string]error{
		"by name": second(db.HardwareByName(ctx, "m1")), "by uid": second(db.Hardware(ctx, h.Meta.UID)),
		"machine": second(db.Machine(ctx, h.Meta.UID)), "delete": db.DeleteHardware(ctx, "m1", 0),
		"update": db.UpdateHardware(ctx, machine(1)),
	} {
		if !errors.Is(err, workflow.ErrNotFound) {
			t.Errorf("%s after the delete: %v", name, err)
		}
	}
	create(t, db, 1) // name, MAC and address are free again
	var reasons []string
	events, err := db.Events(ctx, workflow.EventQuery{Hardware: h.Meta.UID})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		reasons = append(reasons, string(e.Reason))
	}
	if got := strings.Join(reasons, " "); got != "record-created record-changed record-deleted" {
		t.Errorf("timeline: %s", got)
	}
}

func second[T any](_ T, err error) error { return err }

func TestUniqueClaims(t *testing.T) {
	t.Parallel()
	db, _ := openDB(t, store.Options{})
	create(t, db, 1)
	create(t, db, 2)
	for name, tc := range map[string]struct {
		change func(h *hardware.Hardware)
		want   string
	}{
		"mac": {
			func(h *hardware.Hardware) { h.Spec.Interfaces[0].MAC = machine(1).Spec.Interfaces[0].MAC },
			`spec.interfaces[0].mac: 52:54:00:00:00:01 belongs to hardware "m1"`,
		},
		"address with another prefix length": {
			func(h *hardware.Hardware) {
				h.Spec.Interfaces[0].Addresses = append(h.Spec.Interfaces[0].Addresses, netip.MustParsePrefix("10.0.0.2/24"))
			},
			`spec.interfaces[0].addresses[1]: 10.0.0.2 belongs to hardware "m2"`,
		},
	} {
		h := machine(3)
		tc.change(h)
		err := db.CreateHardware(t.Context(), h)
		var invalid *hardware.Invalid
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, wanted %s", name, err, tc.want)
		}
		if h.Meta.UID != "" {
			t.Errorf("%s: a refused record got a uid", name)
		}
	}
	h, err := db.HardwareByName(t.Context(), "m1")
	if err != nil {
		t.Fatal(err)
	}
	h.Spec.Interfaces[0].Addresses = machine(7).Spec.Interfaces[0].Addresses
	if err := db.UpdateHardware(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	h = machine(3)
	h.Spec.Interfaces[0].Addresses = machine(1).Spec.Interfaces[0].Addresses
	if err := db.CreateHardware(t.Context(), h); err != nil {
		t.Errorf("an address that was given up is still taken: %v", err)
	}
}

func TestCommit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db, _ := openDB(t, store.Options{})
	h := create(t, db, 1)
	m, err := db.Machine(ctx, h.Meta.UID)
	if err != nil || m.Revision != 0 {
		t.Fatalf("machine: %+v, %v", m, err)
	}
	m.Status.State = hardware.StateProvisioning
	w := &workflow.Workflow{
		Meta:   hardware.Meta{Name: "w1"},
		Status: workflow.Status{State: workflow.StatePending, HardwareUID: h.Meta.UID},
	}
	c := &workflow.Change{
		Machine: m, Workflow: w, Facts: &hardware.Facts{CPUs: 4},
		Events: []workflow.Event{{Hardware: h.Meta.UID, Reason: hardware.ReasonWorkflowCreated, Workflow: "w1"}},
	}
	if err := db.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
	if m.Revision == 0 || w.Meta.Revision != m.Revision || w.Meta.UID == "" || c.Events[0].Cursor != m.Revision {
		t.Fatalf("commit did not fill in the change: %+v", c)
	}
	got, err := db.Hardware(ctx, h.Meta.UID)
	if err != nil || got.Status.State != hardware.StateProvisioning || got.Facts.CPUs != 4 || got.Meta.Revision != h.Meta.Revision {
		t.Fatalf("hardware after commit: %+v, %v", got, err)
	}
	if v, ok := db.View().HardwareByUID(h.Meta.UID); !ok || v.Status.State != hardware.StateProvisioning {
		t.Error("the view does not show the new state")
	}
	if err := db.DeleteHardware(ctx, "m1", 0); !errors.Is(err, workflow.ErrInUse) {
		t.Errorf("delete with an active workflow: %v", err)
	}
	if err := db.DeleteWorkflow(ctx, "w1", 0); !errors.Is(err, workflow.ErrInUse) {
		t.Errorf("delete of an active workflow: %v", err)
	}
	if err := db.Commit(ctx, &workflow.Change{Workflow: &workflow.Workflow{Meta: hardware.Meta{Name: "w1"}}}); !errors.Is(err, workflow.ErrExists) {
		t.Errorf("second workflow of that name: %v", err)
	}
	stale := *m
	m.Status.Hold = true
	if err := db.Commit(ctx, &workflow.Change{Machine: m}); err != nil {
		t.Fatal(err)
	}
	before, _ := db.Cursor(ctx)
	other := *w
	other.Status.State = workflow.StateRunning
	err = db.Commit(ctx, &workflow.Change{Machine: &stale, Workflow: &other, Events: []workflow.Event{{Reason: hardware.ReasonStateChanged}}})
	if after, _ := db.Cursor(ctx); !errors.Is(err, workflow.ErrConflict) || after != before {
		t.Errorf("half stale commit: %v, revision %d to %d", err, before, after)
	}
	active, err := db.ActiveWorkflows(ctx)
	if err != nil || len(active) != 1 || active[0].Status.State != workflow.StatePending {
		t.Fatalf("active: %v, %v", active, err)
	}
	w.Status.State = workflow.StateSucceeded
	if err := db.Commit(ctx, &workflow.Change{Workflow: w}); err != nil {
		t.Fatal(err)
	}
	if active, _ := db.ActiveWorkflows(ctx); len(active) != 0 {
		t.Errorf("active after the end: %v", active)
	}
	if err := db.DeleteHardware(ctx, "m1", 0); err != nil {
		t.Error(err)
	}
	if err := db.Commit(ctx, &workflow.Change{Machine: &workflow.Machine{UID: h.Meta.UID}}); !errors.Is(err, workflow.ErrNotFound) {
		t.Errorf("machine of a deleted record: %v", err)
	}
	if err := db.DeleteWorkflow(ctx, "w1", w.Meta.Revision); err != nil {
		t.Error(err)
	}
}

// TestCommitRecord: discovery writes the record with the rest, or nothing.
func TestCommitRecord(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db, _ := openDB(t, store.Options{})
	taken := create(t, db, 1)
	mac := hardware.MAC{2, 9, 9, 9, 9, 9}
	change := func(name string, macs ...hardware.MAC) *workflow.Change {
		h := &hardware.Hardware{Meta: hardware.Meta{Name: name, UID: workflow.NewID(time.Now()), Created: time.Now()}}
		for _, m := range macs {
			h.Spec.Interfaces = append(h.Spec.Interfaces, hardware.NIC{MAC: m})
		}
		c := &workflow.Change{
			Hardware: h, Machine: &workflow.Machine{UID: h.Meta.UID, Status: hardware.Status{State: hardware.StatePending}}, Facts: &hardware.Facts{CPUs: 4},
		}
		for range 38 { // more than ever come
			c.Events = append(c.Events, workflow.Event{Hardware: h.Meta.UID, Reason: hardware.ReasonDiscovered})
		}
		return c
	}
	before, _ := db.Cursor(ctx)
	var invalid *hardware.Invalid
	for name, tc := range map[string]struct {
		c    *workflow.Change
		want func(error) bool
	}{
		"name taken":     {change("m1", mac), func(err error) bool { return errors.Is(err, workflow.ErrExists) }},
		"MAC taken":      {change("d1", mac, taken.Spec.Interfaces[0].MAC), func(err error) bool { return errors.As(err, &invalid) }},
		"no NIC":         {change("d1"), func(err error) bool { return errors.As(err, &invalid) }},
		"no name":        {change("", mac), func(err error) bool { return errors.As(err, &invalid) }},
		"of another uid": {&workflow.Change{Hardware: change("d1", mac).Hardware, Machine: &workflow.Machine{UID: "x"}}, func(err error) bool { return err != nil }},
	} {
		if err := db.Commit(ctx, tc.c); !tc.want(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after, _ := db.Cursor(ctx); after != before {
		t.Error("something was written")
	}
	c := change("d1", mac)
	if err := db.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
	got, err := db.HardwareByName(ctx, "d1")
	if err != nil || got.Status.State != hardware.StatePending || got.Facts.CPUs != 4 || got.Meta.Revision != c.Hardware.Meta.Revision {
		t.Fatalf("%+v, %v", got, err)
	}
	if v, ok := db.View().HardwareByMAC(mac); !ok || v.Meta.Name != "d1" {
		t.Error("the view does not show it")
	}
	stale := *got
	got.Meta.Labels = map[string]string{"a": "b"}
	if err := db.Commit(ctx, &workflow.Change{Hardware: got, Machine: c.Machine}); err != nil {
		t.Fatal(err)
	}
	if err := db.Commit(ctx, &workflow.Change{Hardware: &stale, Machine: c.Machine}); !errors.Is(err, workflow.ErrConflict) {
		t.Errorf("a stale record: %v", err)
	}
	if err := db.DeleteHardware(ctx, "d1", 0); err != nil {
		t.Fatal(err)
	}
	if err := db.Commit(ctx, change("d1", mac)); err != nil {
		t.Errorf("again after it was deleted: %v", err)
	}
}
