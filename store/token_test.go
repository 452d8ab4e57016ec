package store_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	open := func() (*store.DB, func()) {
		kv, err := bolt.Open(filepath.Join(dir, "db"), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		db, err := store.Open(ctx, kv, filepath.Join(dir, "key"), store.Options{Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return db, func() { _ = kv.Close() }
	}
	db, closeDB := open()
	ci := &hardware.Token{Meta: hardware.Meta{Name: "ci"}, Spec: hardware.TokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: "a/", Selector: "team=a"}}
	secret, err := db.CreateToken(ctx, ci)
	if err != nil {
		t.Fatal(err)
	}
	id, err := hardware.ParseToken(secret)
	if err != nil || id != ci.Status.ID || ci.Meta.UID == "" || ci.Meta.Revision == 0 {
		t.Fatalf("%v: %+v", err, ci)
	}
	if _, err := db.CreateToken(ctx, &hardware.Token{Meta: hardware.Meta{Name: "ci"}, Spec: hardware.TokenSpec{Role: hardware.RoleViewer}}); !errors.Is(err, workflow.ErrExists) {
		t.Errorf("a second one of that name: %v", err)
	}
	live, ok := db.LiveToken(id)
	if !ok || !live.Hash.Equal(hardware.HashToken(secret)) || !live.Selector.Matches(map[string]string{"team": "a"}) || live.Selector.Matches(nil) {
		t.Fatalf("live: %v %+v", ok, live)
	}

	// each hour of use is one write, however much it is used
	revision := func() uint64 { r, _ := db.Cursor(ctx); return r }
	before := revision()
	for range 50 {
		db.UseToken(ctx, id)
	}
	if got := revision(); got != before+1 {
		t.Errorf("50 uses made %d writes", got-before)
	}
	now = now.Add(30 * time.Minute)
	db.UseToken(ctx, id)
	if got := revision(); got != before+1 {
		t.Error("a use within the hour was written")
	}
	used := now
	now = now.Add(time.Hour)
	db.UseToken(ctx, id)
	db.UseToken(ctx, "nobody")
	if got, err := db.TokenByName(ctx, "ci"); err != nil || !got.Status.LastUsed.After(used) {
		t.Errorf("last used %v, %v", got, err)
	}

	// all of it survives a restart, and the hour too
	closeDB()
	db, closeDB = open()
	defer closeDB()
	live, ok = db.LiveToken(id)
	if !ok || !live.Hash.Equal(hardware.HashToken(secret)) {
		t.Fatal("the token is gone after a restart")
	}
	before = revision()
	db.UseToken(ctx, id)
	if got := revision(); got != before {
		t.Error("a use right after a restart was written")
	}
	if all, err := db.ListTokens(ctx); err != nil || len(all) != 1 || all[0].Status.ID != id || all[0].Status.LastUsed.IsZero() {
		t.Errorf("list: %+v, %v", all, err)
	}

	if err := db.DeleteToken(ctx, "ci", 1<<40); !errors.Is(err, workflow.ErrConflict) {
		t.Errorf("another revision: %v", err)
	}
	if err := db.DeleteToken(ctx, "ci", 0); err != nil {
		t.Fatal(err)
	}
	select {
	case <-live.Revoked:
	default:
		t.Error("those who hold it were not told")
	}
	if _, ok := db.LiveToken(id); ok {
		t.Error("a revoked token lives")
	}
	before = revision()
	db.UseToken(ctx, id)
	if _, err := db.TokenByName(ctx, "ci"); !errors.Is(err, workflow.ErrNotFound) || revision() != before {
		t.Errorf("after the end: %v", err)
	}

	// the same name again is another token
	again, err := db.CreateToken(ctx, &hardware.Token{Meta: hardware.Meta{Name: "ci"}, Spec: hardware.TokenSpec{Role: hardware.RoleViewer}})
	if err != nil || again == secret {
		t.Fatal(err)
	}
	if got, err := db.TokenByName(ctx, "ci"); err != nil || !got.Status.LastUsed.IsZero() {
		t.Errorf("a new token was used: %+v, %v", got, err)
	}
}
