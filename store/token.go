package store

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// tokenUseEvery is how exact LastUsed is: a token in use costs one write in it.
const tokenUseEvery = time.Hour

// tokenRecord is a token with the hash of its secret.
type tokenRecord struct {
	hardware.Token
	Hash hardware.TokenHash `json:"hash"`
}

func tokens() kind[tokenRecord] {
	return kind[tokenRecord]{
		name: "token", prefix: prefixToken,
		meta:     func(t *tokenRecord) *hardware.Meta { return &t.Meta },
		validate: func(t *tokenRecord) error { return t.Validate() },
		tell: func(t *tokenRecord, why hardware.Reason, by string) (hardware.Reason, string, bool) {
			return tellSession(&t.Token, why, by)
		},
	}
}

func keyTokenUse(name string) string { return prefixTokenUse + part(name) }

// CreateToken writes a new record, sets its UID, Revision, Created and Status.ID,
// and returns its secret, of which only a hash is kept: *hardware.Invalid,
// workflow.ErrExists.
func (db *DB) CreateToken(ctx context.Context, t *hardware.Token) (secret string, err error) {
	return db.createToken(ctx, t, nil)
}

func (db *DB) createToken(ctx context.Context, t *hardware.Token, more extra[tokenRecord]) (secret string, err error) {
	secret, id := hardware.NewTokenSecret()
	r := tokenRecord{Token: *t, Hash: hardware.HashToken(secret)}
	r.Status = hardware.TokenStatus{ID: id}
	if err := tokens().create(ctx, db, &r, more); err != nil {
		return "", err
	}
	*t = r.Token
	return secret, nil
}

// DeleteToken revokes a token at once, and its sessions with it; rev 0 is any:
// workflow.ErrNotFound, workflow.ErrConflict.
func (db *DB) DeleteToken(ctx context.Context, name string, rev uint64) error {
	return tokens().delete(ctx, db, name, rev, func(r *tokenRecord, t *Txn) error {
		t.Deletes = append(t.Deletes, keyTokenUse(name))
		if r.Spec.SessionOf == "" {
			ended := db.view.endedSessions(r.Meta.UID, db.opts.Now(), 0)
			t.dropSessions(ended) // what does not fit is good for nothing either
		}
		return nil
	})
}

// TokenByName reads a record: workflow.ErrNotFound.
func (db *DB) TokenByName(ctx context.Context, name string) (*hardware.Token, error) {
	r, err := tokens().get(ctx, db, name)
	if err != nil {
		return nil, err
	}
	_, err = db.get(ctx, keyTokenUse(name), &r.Status.LastUsed)
	return &r.Token, err
}

// ListTokens lists all, by name.
func (db *DB) ListTokens(ctx context.Context) ([]*hardware.Token, error) {
	all, err := tokens().list(ctx, db)
	if err != nil {
		return nil, err
	}
	out := make([]*hardware.Token, len(all))
	for i, r := range all {
		if _, err := db.get(ctx, keyTokenUse(r.Meta.Name), &r.Status.LastUsed); err != nil {
			return nil, err
		}
		out[i] = &r.Token
	}
	return out, nil
}

// LiveToken finds the token with that id, in memory. It may have expired.
func (db *DB) LiveToken(id string) (hardware.LiveToken, bool) {
	db.view.mu.RLock()
	defer db.view.mu.RUnlock()
	t, ok := db.view.tokens.byID[id]
	if !ok {
		return hardware.LiveToken{}, false
	}
	return t.LiveToken, true
}

// UseToken remembers that the token with that id was used, if that was not written
// lately. That the disk refuses is logged and does no harm.
func (db *DB) UseToken(ctx context.Context, id string) {
	now := db.opts.Now()
	db.view.mu.RLock()
	t := db.view.tokens.byID[id]
	db.view.mu.RUnlock()
	if t == nil || !t.due(now) {
		return
	}
	name := t.Token.Meta.Name
	b, err := json.Marshal(now)
	if err == nil {
		_, err = db.txn(ctx, Txn{
			If:   []Compare{{tokens().key(name), t.Token.Meta.Revision}}, // not after it was deleted
			Puts: []Put{{Key: keyTokenUse(name), Value: b}},
		})
	}
	if err != nil && ctx.Err() == nil {
		db.opts.Log.Debug("the use of a token was not written", "token", name, "err", err)
	}
}

// tokenView is the part of the View that has the tokens.
type tokenView struct {
	byKey, byID map[string]*liveToken
}

func newTokenView() tokenView {
	return tokenView{byKey: map[string]*liveToken{}, byID: map[string]*liveToken{}}
}

// liveToken is a token in memory.
type liveToken struct {
	hardware.LiveToken
	revoke func()

	mu   sync.Mutex
	used time.Time
}

// due reports, once, whether the use at that time is to be written.
func (t *liveToken) due(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.used) < tokenUseEvery {
		return false
	}
	t.used = now
	return true
}

func isTokenKey(key string) bool {
	return strings.HasPrefix(key, prefixToken) || strings.HasPrefix(key, prefixTokenUse)
}

// put shows a token or its last use.
func (v *tokenView) put(db *DB, key string, value []byte, rev uint64) error {
	if name, ok := strings.CutPrefix(key, prefixTokenUse); ok {
		if t := v.byKey[prefixToken+name]; t != nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			return db.decode(key, value, &t.used)
		}
		return nil
	}
	if old := v.byKey[key]; old != nil && old.Token.Meta.Revision >= rev {
		return nil
	}
	r, err := tokens().read(db, Entry{Key: key, Value: value, Revision: rev})
	if err != nil {
		return err
	}
	selector, err := hardware.ParseSelector(r.Spec.Selector)
	if err != nil {
		return err
	}
	v.delete(key, rev)
	done := make(chan struct{})
	t := &liveToken{
		LiveToken: hardware.LiveToken{Token: &r.Token, Hash: r.Hash, Selector: selector, Revoked: done},
		revoke:    sync.OnceFunc(func() { close(done) }),
	}
	v.byKey[key], v.byID[r.Status.ID] = t, t
	return nil
}

// delete revokes the token of a key.
func (v *tokenView) delete(key string, rev uint64) {
	t := v.byKey[key]
	if t == nil || t.Token.Meta.Revision > rev {
		return
	}
	delete(v.byKey, key)
	delete(v.byID, t.Token.Status.ID)
	t.revoke()
}

// replace takes over what was read anew; what is gone is revoked, what stayed goes on.
func (v *tokenView) replace(fresh tokenView) {
	for key, old := range v.byKey {
		if t := fresh.byKey[key]; t != nil && t.Token.Meta.Revision == old.Token.Meta.Revision {
			fresh.byKey[key], fresh.byID[old.Token.Status.ID] = old, old
			continue
		}
		old.revoke()
	}
	*v = fresh
}
