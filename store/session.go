package store

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

const (
	// maxSessions is how many sessions one token has at a time.
	maxSessions = 32
	// maxSwept bounds the sessions that are deleted at once: two keys and an event each.
	maxSwept = 30
)

// CreateSession makes a session of a token for who asks from an address, until a time,
// and returns its secret, of which only a hash is kept. It has the token's rights and does not outlive it. The
// oldest of too many sessions of that token go, and all that have ended.
// workflow.ErrNotFound where the token has been revoked.
func (db *DB) CreateSession(ctx context.Context, of *hardware.Token, from netip.Addr, until time.Time) (secret string, s *hardware.Token, err error) {
	s = &hardware.Token{Meta: hardware.Meta{Name: "session-" + strings.ToLower(workflow.NewID(db.opts.Now()))}, Spec: of.Spec}
	s.Spec.SessionOf, s.Spec.SessionOfUID, s.Spec.SessionFrom, s.Spec.Expires = of.Meta.Name, of.Meta.UID, from, until
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
		ended := db.view.endedSessions(of.Meta.UID, db.opts.Now(), maxSessions-1)
		for _, s := range t.dropSessions(ended) {
			why := "its time was over at " + s.Spec.Expires.UTC().Format("2006-01-02 15:04 UTC")
			if !s.Expired(db.opts.Now()) {
				why = "it was one too many, or its token is gone"
			}
			db.mustAppend(t, &workflow.Event{Reason: hardware.ReasonSessionEnded, Detail: sessionOf(s) + ": " + why})
		}
		return nil
	})
	if err != nil {
		return "", nil, err
	}
	return secret, s, nil
}

// tellSession says of the record of a session what it means, in the words of its Reason.
func tellSession(s *hardware.Token, why hardware.Reason, by string) (hardware.Reason, string, bool) {
	switch {
	case s.Spec.SessionOf == "":
		return "", "", false
	case why == hardware.ReasonRecordCreated:
		return hardware.ReasonSignedIn, fmt.Sprintf("from %s in a browser, as %s", orUnknown(s.Spec.SessionFrom), s.Spec.Role), true
	case by == s.Spec.SessionOf:
		return hardware.ReasonSignedOut, fmt.Sprintf("of the browser at %s", orUnknown(s.Spec.SessionFrom)), true
	}
	return hardware.ReasonSessionEnded, sessionOf(s) + ": somebody ended it", true
}

// sessionOf says whose a session is.
func sessionOf(s *hardware.Token) string {
	return fmt.Sprintf("of %s at %s", s.Spec.SessionOf, orUnknown(s.Spec.SessionFrom))
}

// orUnknown is an address, which sessions of a former release lack.
func orUnknown(a netip.Addr) string {
	if !a.IsValid() {
		return "an unknown address"
	}
	return a.String()
}

// dropSessions deletes sessions, as many as fit, and returns those. One that is gone
// already does no harm.
func (t *Txn) dropSessions(all []*hardware.Token) []*hardware.Token {
	all = all[:min(len(all), maxSwept)]
	for _, s := range all {
		t.Deletes = append(t.Deletes, tokens().key(s.Meta.Name), keyTokenUse(s.Meta.Name))
	}
	return all
}

// endedSessions are the sessions that are good for nothing any more, and the oldest of
// the token with that uid, so that most are left.
func (v *View) endedSessions(uid string, now time.Time, most int) []*hardware.Token {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var ended, live []*hardware.Token
	for _, t := range v.tokens.byKey {
		s := t.Token
		if s.Spec.SessionOf == "" {
			continue
		}
		of := v.tokens.byKey[tokens().key(s.Spec.SessionOf)]
		switch {
		case s.Expired(now) || of == nil || of.Token.Meta.UID != s.Spec.SessionOfUID:
			ended = append(ended, s)
		case s.Spec.SessionOfUID == uid:
			live = append(live, s)
		}
	}
	slices.SortFunc(live, func(a, b *hardware.Token) int { return strings.Compare(a.Meta.Name, b.Meta.Name) }) // by their start
	ended = append(ended, live[:max(len(live)-most, 0)]...)
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
