package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

const (
	// maxSessions is how many sessions one token has at a time.
	maxSessions = 32
	// maxSwept bounds the sessions that are deleted at once: two keys each.
	maxSwept = 40
)

// CreateSession makes a session of a token, until a time, and returns its secret, of
// which only a hash is kept. It has the token's rights and does not outlive it. The
// oldest of too many sessions of that token go, and all that have ended.
// workflow.ErrNotFound where the token has been revoked.
func (db *DB) CreateSession(ctx context.Context, of *hardware.Token, until time.Time) (secret string, s *hardware.Token, err error) {
	s = &hardware.Token{Meta: hardware.Meta{Name: "session-" + strings.ToLower(workflow.NewID(db.opts.Now()))}, Spec: of.Spec}
	s.Spec.SessionOf, s.Spec.SessionOfUID, s.Spec.Expires = of.Meta.Name, of.Meta.UID, until
	secret, err = db.createToken(ctx, s, func(_ *tokenRecord, t *Txn) error {
		key := tokens().key(of.Meta.Name)
		now, err := db.kv.Get(ctx, key)
		if err != nil {
			return err
		}
		if now.Revision != of.Meta.Revision {
			return named("token", of.Meta.Name, workflow.ErrNotFound)
		}
		t.If = append(t.If, Compare{key, of.Meta.Revision})
		t.dropSessions(db.view.endedSessions(of.Meta.UID, db.opts.Now(), maxSessions-1))
		return nil
	})
	if err != nil {
		return "", nil, err
	}
	return secret, s, nil
}

// dropSessions deletes sessions by name. One that is gone already does no harm.
func (t *Txn) dropSessions(names []string) {
	for _, name := range names[:min(len(names), maxSwept)] {
		t.Deletes = append(t.Deletes, tokens().key(name), keyTokenUse(name))
	}
}

// endedSessions names the sessions that are good for nothing any more, and the oldest of
// the token with that uid, so that most are left.
func (v *View) endedSessions(uid string, now time.Time, most int) []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var ended []string
	var live []*hardware.Token
	for _, t := range v.tokens.byKey {
		s := t.Token
		if s.Spec.SessionOf == "" {
			continue
		}
		of := v.tokens.byKey[tokens().key(s.Spec.SessionOf)]
		switch {
		case s.Expired(now) || of == nil || of.Token.Meta.UID != s.Spec.SessionOfUID:
			ended = append(ended, s.Meta.Name)
		case s.Spec.SessionOfUID == uid:
			live = append(live, s)
		}
	}
	slices.SortFunc(live, func(a, b *hardware.Token) int { return strings.Compare(a.Meta.Name, b.Meta.Name) }) // by their start
	for _, s := range live[:max(len(live)-most, 0)] {
		ended = append(ended, s.Meta.Name)
	}
	slices.Reverse(ended) // those of the token first: there may be more than are deleted at once
	return ended
}

// SessionToken is the token of which a session is, if it is there still. It may have
// expired.
func (db *DB) SessionToken(s *hardware.Token) (hardware.LiveToken, bool) {
	db.view.mu.RLock()
	defer db.view.mu.RUnlock()
	t, ok := db.view.tokens.byKey[tokens().key(s.Spec.SessionOf)]
	if !ok || s.Spec.SessionOf == "" || t.Token.Meta.UID != s.Spec.SessionOfUID {
		return hardware.LiveToken{}, false
	}
	return t.LiveToken, true
}

// EndSessions ends every session. Their tokens stay.
func (db *DB) EndSessions(ctx context.Context) error {
	all, err := db.ListTokens(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Spec.SessionOf == "" {
			continue
		}
		if err := db.DeleteToken(ctx, t.Meta.Name, 0); err != nil {
			return err
		}
	}
	return nil
}
