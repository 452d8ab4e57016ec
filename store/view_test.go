package store_test

import (
	"context"
	"fmt"
	"net/netip"
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

// run runs fn until the test ends.
func run(t testing.TB, fn func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- fn(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestViewOfOthers: a second DB over the same KV, as another appliance would have,
// shows what the first one writes.
func TestViewOfOthers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	kv, err := bolt.Open(filepath.Join(dir, "rackstrap.db"), bolt.Options{LogRevisions: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kv.Close() })
	open := func() *store.DB {
		db, err := store.Open(ctx, kv, filepath.Join(dir, "seal.key"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	writer, reader := open(), open()
	stale := open() // is compacted away before it runs
	run(t, reader.Run)

	h := create(t, writer, 1)
	mac := h.Spec.Interfaces[0].MAC
	until(t, writer, "the record", func() bool { _, ok := reader.View().HardwareByMAC(mac); return ok })
	m := &workflow.Machine{UID: h.Meta.UID, Status: hardware.Status{State: hardware.StateProvisioned}}
	if err := writer.Commit(ctx, &workflow.Change{Machine: m}); err != nil {
		t.Fatal(err)
	}
	until(t, writer, "the state", func() bool {
		v, _ := reader.View().HardwareByUID(h.Meta.UID)
		got, ok := reader.View().Machine(h.Meta.UID)
		return ok && v.Status.State == hardware.StateProvisioned && got.Revision == m.Revision
	})
	address := h.Spec.Interfaces[0].Addresses[0]
	h.Spec.Interfaces[0].Addresses[0] = netip.PrefixFrom(address.Addr().Next(), address.Bits())
	h.Spec.Interfaces[0].MAC = hardware.MAC{2, 2, 2, 2, 2, 2}
	h.Spec.UserData = "not for hot paths"
	if err := writer.UpdateHardware(ctx, h); err != nil {
		t.Fatal(err)
	}
	until(t, writer, "the new MAC", func() bool {
		v, ok := reader.View().HardwareByMAC(h.Spec.Interfaces[0].MAC)
		if at, here := reader.View().HardwareByAddress(h.Spec.Interfaces[0].Addresses[0].Addr()); !here || at != v {
			return false
		}
		_, old := reader.View().HardwareByMAC(mac)
		byName, named := reader.View().HardwareByName("m1")
		return ok && !old && v.Status.State == hardware.StateProvisioned && v.Spec.UserData == hardware.Redacted && named && byName == v
	})
	if err := writer.CreateSubnet(ctx, subnet("lan", "10.0.0.0/8")); err != nil {
		t.Fatal(err)
	}
	until(t, writer, "the subnet", func() bool { return len(reader.View().Subnets()) == 1 })
	for _, name := range []string{"b", "a", "c"} {
		r := &hardware.Rule{Meta: hardware.Meta{Name: name}, Spec: hardware.RuleSpec{Match: hardware.RuleMatch{All: true}, Accept: true}}
		if err := writer.CreateRule(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.DeleteRule(ctx, "c", 0); err != nil {
		t.Fatal(err)
	}
	until(t, writer, "the rules", func() bool {
		r := reader.View().Rules()
		return len(r) == 2 && r[0].Meta.Name == "a" && r[1].Meta.Name == "b" && r[0].Meta.Revision > r[1].Meta.Revision
	})
	if err := writer.DeleteHardware(ctx, "m1", 0); err != nil {
		t.Fatal(err)
	}
	until(t, writer, "the delete", func() bool {
		_, byMAC := reader.View().HardwareByMAC(h.Spec.Interfaces[0].MAC)
		_, byUID := reader.View().HardwareByUID(h.Meta.UID)
		_, machine := reader.View().Machine(h.Meta.UID)
		_, byAddress := reader.View().HardwareByAddress(h.Spec.Interfaces[0].Addresses[0].Addr())
		_, byOldAddress := reader.View().HardwareByAddress(address.Addr())
		return !byMAC && !byUID && !machine && !byAddress && !byOldAddress
	})
	for n := range 30 {
		create(t, writer, 10+n)
	}
	run(t, stale.Run)
	until(t, writer, "a view that was compacted away", func() bool {
		_, ok := stale.View().HardwareByMAC(machine(39).Spec.Interfaces[0].MAC)
		return ok && len(stale.View().Subnets()) == 1 && len(stale.View().Rules()) == 2
	})
}

// until waits for a view that follows; each look is paced by a commit of its own.
func until(t *testing.T, db *store.DB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("the view does not show %s", what)
		}
		if err := db.Commit(t.Context(), &workflow.Change{Events: []workflow.Event{{Reason: hardware.ReasonStateChanged}}}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestViewReadsYourWrites: whoever has committed sees it, while the view also
// follows the watch and others write.
func TestViewReadsYourWrites(t *testing.T) {
	t.Parallel()
	db, _ := openDB(t, store.Options{})
	run(t, db.Run)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 12 {
				h := machine(1000 + w)
				mac := h.Spec.Interfaces[0].MAC
				if err := db.CreateHardware(t.Context(), h); err != nil {
					t.Error(err)
					return
				}
				if v, ok := db.View().HardwareByMAC(mac); !ok || v.Meta.UID != h.Meta.UID {
					t.Errorf("%d: a created record is not shown", i)
				}
				m := &workflow.Machine{UID: h.Meta.UID, Status: hardware.Status{Workflow: fmt.Sprint(i)}}
				if err := db.Commit(t.Context(), &workflow.Change{Machine: m}); err != nil {
					t.Error(err)
				}
				if v, _ := db.View().HardwareByUID(h.Meta.UID); v == nil || v.Status.Workflow != fmt.Sprint(i) {
					t.Errorf("%d: a committed state is not shown", i)
				}
				if err := db.DeleteHardware(t.Context(), h.Meta.Name, 0); err != nil {
					t.Error(err)
				}
				if _, ok := db.View().HardwareByMAC(mac); ok {
					t.Errorf("%d: a deleted record is shown", i)
				}
			}
		})
	}
	wg.Wait()
}

// TestViewHardware: all of a machine is in the list, which is in the order of the
// names whatever was made and deleted when.
func TestViewHardware(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	db, kv := openAt(t, dir, store.Options{})
	want := map[string]string{}
	for _, n := range []int{7, 3, 9, 1, 8, 2} {
		h := create(t, db, n)
		want[h.Meta.Name] = h.Meta.UID
	}
	m := &workflow.Machine{UID: want["m3"], Status: hardware.Status{State: hardware.StateAvailable}}
	w := &workflow.Workflow{Meta: hardware.Meta{Name: "w"}, Status: workflow.Status{State: workflow.StatePending, HardwareUID: m.UID}}
	facts := &hardware.Facts{CPUs: 8, Disks: []hardware.DiskFact{{Path: "/dev/sda", Bytes: 1 << 40}}}
	if err := db.Commit(ctx, &workflow.Change{Machine: m, Workflow: w, Facts: facts}); err != nil {
		t.Fatal(err)
	}
	if err := db.DeleteHardware(ctx, "m9", 0); err != nil {
		t.Fatal(err)
	}
	delete(want, "m9")
	again := create(t, db, 9)
	want["m9"] = again.Meta.UID
	fresh, err := store.Open(ctx, kv, filepath.Join(dir, "seal.key"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for what, v := range map[string]*store.View{"that followed": db.View(), "that was loaded": fresh.View()} {
		var names []string
		for _, h := range v.Hardware() {
			names = append(names, h.Meta.Name)
			if h.Meta.UID != want[h.Meta.Name] {
				t.Errorf("a view %s: %s has uid %s, wanted %s", what, h.Meta.Name, h.Meta.UID, want[h.Meta.Name])
			}
		}
		if got := strings.Join(names, " "); got != "m1 m2 m3 m7 m8 m9" {
			t.Errorf("a view %s lists %s", what, got)
		}
		h, ok := v.HardwareByName("m3")
		if !ok || h.Facts == nil || h.Facts.CPUs != 8 || len(h.Facts.Disks) != 1 || !v.Active(h.Meta.UID) || v.Active(want["m1"]) {
			t.Errorf("a view %s: facts %+v", what, h.Facts)
		}
		if _, ok := v.HardwareByName("m"); ok {
			t.Errorf("a view %s finds what is not there", what)
		}
	}
	w.Status.State = workflow.StateCancelled
	if err := db.Commit(ctx, &workflow.Change{Workflow: w}); err != nil || db.View().Active(m.UID) {
		t.Errorf("the workflow has ended, the view says it is active; %v", err)
	}
	if err := db.DeleteHardware(ctx, "m3", 0); err != nil || len(db.View().Hardware()) != 5 {
		t.Errorf("after a delete: %d, %v", len(db.View().Hardware()), err)
	}
}

// BenchmarkView is the look-up of the DHCP server, and the load at start.
func BenchmarkView(b *testing.B) {
	const n = 10_000
	dir := b.TempDir()
	db, kv := openAt(b, dir, store.Options{})
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() {
			for i := w; i < n; i += 32 {
				h := machine(i + 1)
				h.Spec.SSHKeys = []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFJhY2tzdHJhcCBiZW5jaG1hcmsga2V5IG5vdCByZWFs ops"}
				if err := db.CreateHardware(b.Context(), h); err != nil {
					b.Error(err)
					return
				}
				m := &workflow.Machine{UID: h.Meta.UID, Status: hardware.Status{State: hardware.StateAvailable}}
				if err := db.Commit(b.Context(), &workflow.Change{Machine: m}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.Run("HardwareByMAC", func(b *testing.B) {
		mac := machine(n / 2).Spec.Interfaces[0].MAC
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := db.View().HardwareByMAC(mac); !ok {
				b.Fatal("not found")
			}
		}
	})
	b.Run("load 10000", func(b *testing.B) {
		for b.Loop() {
			if _, err := store.Open(b.Context(), kv, filepath.Join(dir, "seal.key"), store.Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ListHardware 10000", func(b *testing.B) {
		for b.Loop() {
			if all, err := db.ListHardware(b.Context()); err != nil || len(all) != n {
				b.Fatal(len(all), err)
			}
		}
	})
}
