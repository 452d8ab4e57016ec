package store_test

import (
	"errors"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/store"
	"github.com/rackstrap/rackstrap/store/bolt"
	"github.com/rackstrap/rackstrap/workflow"
)

// A session survives a restart, and a restore ends all; one of a token that is gone
// cannot be made.
func TestSessions(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	open := func() (*store.DB, func()) {
		kv, err := bolt.Open(filepath.Join(dir, "db"), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		db, err := store.Open(ctx, kv, filepath.Join(dir, "key"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return db, func() { _ = kv.Close() }
	}
	db, closeDB := open()
	ci := &hardware.Token{Meta: hardware.Meta{Name: "ci"}, Spec: hardware.TokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: "a/", Selector: "team=a"}}
	if _, err := db.CreateToken(ctx, ci); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	secret, made, err := db.CreateSession(ctx, ci, netip.MustParseAddr("10.0.0.7"), until)
	if err != nil || made.Spec.OwnerPrefix != "a/" || made.Spec.Selector != "team=a" || !made.Spec.Expires.Equal(until) {
		t.Fatalf("%v %+v", err, made)
	}
	closeDB()
	db, closeDB = open()
	defer func() { closeDB() }()
	id, err := hardware.ParseToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	live, ok := db.LiveToken(id)
	if !ok || !live.Hash.Equal(hardware.HashToken(secret)) {
		t.Fatal("the session is gone")
	}
	if of, ok := db.SessionToken(live.Token); !ok || of.Token.Meta.UID != ci.Meta.UID {
		t.Errorf("its token: %+v", of)
	}
	if _, ok := db.SessionToken(ci); ok {
		t.Error("a token is a session")
	}
	if err := db.EndSessions(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-live.Revoked:
	default:
		t.Error("it goes on")
	}
	if err := db.DeleteToken(ctx, "ci", 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.CreateSession(ctx, ci, netip.Addr{}, until); !errors.Is(err, workflow.ErrNotFound) {
		t.Errorf("of a revoked token: %v", err)
	}
	if all, err := db.ListTokens(ctx); err != nil || len(all) != 0 {
		t.Errorf("left: %v %v", all, err)
	}
}
