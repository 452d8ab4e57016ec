package store_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

// The installs that ended are the same from memory and, after a restart, from the store.
func TestInstalls(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	open := func() (*store.DB, func()) {
		kv, err := bolt.Open(filepath.Join(dir, "db"), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		db, err := store.Open(ctx, kv, filepath.Join(dir, "key"), store.Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return db, func() { _ = kv.Close() }
	}
	db, closeDB := open()
	with := json.RawMessage(`{}`)
	add := func(name string, kind workflow.Kind, state workflow.State, ago time.Duration) {
		w := &workflow.Workflow{Meta: hardware.Meta{Name: name, Created: now.Add(-ago - time.Minute)}, Status: workflow.Status{State: state, HardwareUID: "u", Finished: now.Add(-ago), Actions: []workflow.Action{{
			Kind: kind, With: with, Attempts: []workflow.Attempt{{Boot: "B1", State: workflow.StateFailed, Result: workflow.Result{WrittenBytes: 5}}, {Boot: "B2", State: workflow.StateSucceeded, Started: now, Finished: now.Add(time.Second), Result: workflow.Result{WrittenBytes: 7}}},
		}}}}
		if err := db.Commit(ctx, &workflow.Change{Workflow: w}); err != nil {
			t.Fatal(err)
		}
	}
	add("second", workflow.KindImageWrite, workflow.StateSucceeded, time.Hour)
	add("first", workflow.KindImageWrite, workflow.StateFailed, 2*time.Hour)
	add("old", workflow.KindImageWrite, workflow.StateSucceeded, 91*24*time.Hour)
	add("wipe", workflow.KindDiskWipe, workflow.StateSucceeded, time.Hour)
	add("runs", workflow.KindImageWrite, workflow.StateRunning, 0)
	look := func(since time.Duration) string {
		all, whole := db.Installs(ctx, now.Add(-since))
		text := fmt.Sprint(whole)
		for _, i := range all {
			text += fmt.Sprint(" ", i.Workflow, " ", i.State, " ", i.Boot, " ", i.Written, " ", i.Writing)
		}
		return text
	}
	const want = "true first failed B2 7 1s second succeeded B2 7 1s"
	if got := look(24 * time.Hour); got != want {
		t.Error(got)
	}
	if got := look(90 * time.Minute); got != "true second succeeded B2 7 1s" {
		t.Error(got)
	}
	closeDB()
	db, closeDB = open()
	defer closeDB()
	if got := look(1000 * time.Hour); got != want {
		t.Errorf("after a restart: %s", got)
	}
}
