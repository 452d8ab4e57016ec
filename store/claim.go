package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// keepEnded is how long a claim that has ended is remembered, so that a late retry
// of its request takes no other machine.
const keepEnded = 30 * 24 * time.Hour

func claims() kind[hardware.Claim] {
	return kind[hardware.Claim]{
		name: "claim", prefix: prefixClaim,
		meta: func(c *hardware.Claim) *hardware.Meta { return &c.Meta },
	}
}

// ClaimByID reads a claim, held or ended: workflow.ErrNotFound.
func (db *DB) ClaimByID(ctx context.Context, id string) (*hardware.Claim, error) {
	return claims().get(ctx, db, id)
}

// ListClaims lists all claims, by id; ended ones are kept for 30 days.
func (db *DB) ListClaims(ctx context.Context) ([]*hardware.Claim, error) {
	return claims().list(ctx, db)
}

// Claim takes a machine for the claim and returns it with its Status; created is
// false where that was done before. The id makes it idempotent: asked again with
// the same spec it returns the same claim, whatever else happened meanwhile. within
// limits the machines besides the spec's own selector.
//
// The machine's value, the claim and the event are one transaction, which compares
// all that was looked at, so no machine is ever given twice.
//
// *hardware.Invalid, *hardware.ClaimDiffers, *hardware.ClaimEnded,
// *hardware.NoCandidate, workflow.ErrNotFound where the machine that the spec names
// is not there.
func (db *DB) Claim(ctx context.Context, c *hardware.Claim, within hardware.Selector) (_ *hardware.Claim, created bool, err error) {
	if db.dry {
		return nil, false, errDry // the View, which is asked for machines, would not show it
	}
	if err := c.Validate(); err != nil {
		return nil, false, err
	}
	m, err := hardware.NewMatcher(&c.Spec, within)
	if err != nil {
		return nil, false, err
	}
	// two requests with one id would take two machines, and one would give its back
	done, err := db.taking.wait(ctx, "claim/"+c.Meta.Name)
	if err != nil {
		return nil, false, err
	}
	defer done()
	for {
		have, err := db.ClaimByID(ctx, c.Meta.Name)
		if err == nil {
			return again(have, c)
		}
		if !errors.Is(err, workflow.ErrNotFound) {
			return nil, false, err
		}
		got, err := db.take(ctx, c, m, within)
		if !errors.Is(err, ErrConflict) {
			return got, err == nil, err
		}
	}
}

// RefuseClaim makes a claim of the owner that has ended and had no machine: a request
// for it that is still on its way then takes none. It returns the claim of that id where
// there is one, held or ended. *hardware.Invalid.
func (db *DB) RefuseClaim(ctx context.Context, id, owner string) (*hardware.Claim, error) {
	now := db.opts.Now()
	c := &hardware.Claim{Meta: hardware.Meta{Name: id, UID: workflow.NewID(now), Created: now}, Spec: hardware.ClaimSpec{Owner: owner}}
	c.Status = hardware.ClaimStatus{Ended: now, Stopped: &hardware.Stopped{At: now, By: hardware.StoppedNeverRan}}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if db.dry {
		return nil, errDry
	}
	done, err := db.taking.wait(ctx, "claim/"+id)
	if err != nil {
		return nil, err
	}
	defer done()
	for {
		have, err := db.ClaimByID(ctx, id)
		if !errors.Is(err, workflow.ErrNotFound) {
			return have, err
		}
		var t Txn
		if err := db.put(&t, keyClaim(id), 0, c); err != nil {
			return nil, err
		}
		rev, err := db.txn(ctx, t)
		if err == nil {
			db.ended.Add(1)
			c.Meta.Revision = rev
			return c, nil
		}
		if !errors.Is(err, ErrConflict) {
			return nil, err
		}
	}
}

// again is the answer to a claim whose id is known.
func again(have, asked *hardware.Claim) (*hardware.Claim, bool, error) {
	// first, so that nobody learns of another owner's machine by guessing ids
	if field := have.Spec.Difference(&asked.Spec); field != "" {
		return nil, false, &hardware.ClaimDiffers{ID: have.Meta.Name, Field: field}
	}
	if !have.Status.Ended.IsZero() {
		return nil, false, &hardware.ClaimEnded{ID: have.Meta.Name, Hardware: have.Status.Hardware, Ended: have.Status.Ended}
	}
	return have, false, nil
}

// take picks a machine and writes that it is taken. ErrConflict means: look again.
func (db *DB) take(ctx context.Context, c *hardware.Claim, match *hardware.Matcher, within hardware.Selector) (*hardware.Claim, error) {
	uid, done, err := db.pick(ctx, c, match, within)
	if err != nil {
		return nil, err
	}
	defer done()
	h, m, active := db.view.all(uid)
	if h == nil {
		return nil, ErrConflict
	}
	if _, fits := match.Fits(h, active); !fits {
		return nil, ErrConflict // somebody was faster
	}
	got, t, err := db.takes(ctx, c, h, &m)
	if err != nil {
		return nil, err
	}
	rev, err := db.txn(ctx, t)
	if errors.Is(err, ErrConflict) {
		// Another appliance, or the engine, wrote and the View does not show it yet.
		if err := db.view.refresh(ctx, uid); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	got.Meta.Revision = rev
	return got, nil
}

// takes is the transaction that gives h to the claim, decided on what is passed in.
func (db *DB) takes(ctx context.Context, c *hardware.Claim, h *hardware.Hardware, m *workflow.Machine) (*hardware.Claim, Txn, error) {
	installation, err := db.Installation(ctx)
	if err != nil {
		return nil, Txn{}, err
	}
	now := db.opts.Now()
	got := &hardware.Claim{Meta: hardware.Meta{Name: c.Meta.Name, UID: workflow.NewID(now), Labels: c.Meta.Labels, Created: now}, Spec: c.Spec}
	got.Status = hardware.ClaimStatus{
		Hardware: h.Meta.Name, UID: h.Meta.UID, Claimed: now,
		ProviderID: fmt.Sprintf("rackstrap://%s/%s/%s", installation, h.Meta.UID, c.Meta.Name),
	}
	m.UID, m.Status = h.Meta.UID, ofNew(m.Status)
	m.Status.Claim, m.Status.Stopping = &hardware.ClaimRef{ID: c.Meta.Name, Owner: c.Spec.Owner, Since: now}, nil
	if !m.Status.KeptUnwiped() {
		m.Status.Reserved = nil
	}
	t := Txn{If: []Compare{{keySpec(h.Meta.UID), h.Meta.Revision}, {keyActive(h.Meta.UID), 0}}}
	if err := db.put(&t, keyMachine(h.Meta.UID), m.Revision, m); err != nil {
		return nil, t, err
	}
	if err := db.put(&t, keyClaim(c.Meta.Name), 0, got); err != nil {
		return nil, t, err
	}
	db.mustAppend(&t, &workflow.Event{
		Reason: hardware.ReasonClaimed, Hardware: h.Meta.UID, Machine: h.Meta.Name, By: workflow.By(ctx),
		Detail: claimWords(c.Meta.Name, c.Spec.Owner),
	})
	return got, t, nil
}

func claimWords(id, owner string) string { return owner + " (claim " + id + ")" }

// endings is what a change of a machine's value says of the claim with that id: that it
// ends, that its system is known to have stopped, or both.
func endings(was, is *hardware.Status) (id string, ends, stops bool) {
	if st := is.Stopping; st != nil && st.Stopped != nil {
		id = st.Claim
		stops = was.Stopping == nil || was.Stopping.Claim != id || was.Stopping.Stopped == nil
	}
	if ref := was.Claim; ref != nil && (is.Claim == nil || is.Claim.ID != ref.ID) {
		return ref.ID, true, stops && id == ref.ID
	}
	return id, false, stops
}

// endClaim adds to a write of a machine's value that the claim it had ends, where
// the new value does not have it any more, and how it is known that the system of an
// ended one runs no more. The record goes with the machine's value
// in one transaction, so the two cannot differ.
func (db *DB) endClaim(ctx context.Context, t *Txn, had Entry, m *workflow.Machine, events []workflow.Event) error {
	if had.Revision == 0 {
		return nil
	}
	var old workflow.Machine
	if err := db.decode(had.Key, had.Value, &old); err != nil {
		return err
	}
	id, ends, stops := endings(&old.Status, &m.Status)
	if !ends && !stops {
		return nil
	}
	var c hardware.Claim
	was, err := db.get(ctx, keyClaim(id), &c)
	if err != nil {
		return err
	}
	if was == 0 || c.Status.UID != m.UID || ends && !c.Status.Ended.IsZero() {
		return nil // an owner that never claimed here: an adopted machine
	}
	if stops && c.Status.Stopped == nil {
		c.Status.Stopped = m.Status.Stopping.Stopped
	}
	if ends {
		c.Status.Ended = db.opts.Now()
		db.ended.Add(1)
	}
	if err := db.put(t, keyClaim(id), was, &c); err != nil || !ends {
		return err
	}
	ref := old.Status.Claim
	for _, ev := range events {
		if ev.Reason == hardware.ReasonClaimEnded {
			return nil
		}
	}
	return db.appendEvent(t, &workflow.Event{
		Reason: hardware.ReasonClaimEnded, Hardware: m.UID, Machine: c.Status.Hardware, By: workflow.By(ctx),
		Detail: claimWords(ref.ID, ref.Owner),
	})
}

const (
	// maxEndedClaims bounds the ended claims that are remembered: whoever claims and
	// releases in a loop must not fill the disk.
	maxEndedClaims = 10_000
	// maxRefused bounds those besides that never had a machine: they cost who asks nothing.
	maxRefused = 2_000
	// trimClaimsAfter is how many claims end until they are looked at before their time.
	trimClaimsAfter = 500
)

// gone is a claim that has ended.
type gone struct {
	Compare
	owner   string
	ended   time.Time
	stopped bool // it is known that its system runs no more
	refused bool // it never had a machine
}

// forgotten are those that ended before a time, and the oldest of too many, in which one
// owner's push out none of another's. Of a claim whose system may still run the record
// is what its owner asks; there are no more of these than machines.
func forgotten(ended []gone, before time.Time, most, mostRefused int) []gone {
	var out, had, refused []gone
	for _, g := range ended {
		switch {
		case !g.ended.After(before):
			out = append(out, g)
		case g.refused:
			refused = append(refused, g)
		case g.stopped:
			had = append(had, g)
		default:
			most--
		}
	}
	out = append(out, beyond(had, max(most, 0), 0)...)
	return append(out, beyond(refused, mostRefused, 0)...)
}

// beyond are those that are too many. What is in front of each separator of an owner may
// be what a tenant is limited to (hardware.OwnerHas), so the place is shared among those
// that differ in the first word, then within each among the next, and so on; who needs
// less than a share leaves the rest to the others. Of one owner the oldest go. The owners
// agree in the first at bytes.
func beyond(all []gone, most, at int) (out []gone) {
	if len(all) <= most {
		return nil
	}
	shares := map[string][]gone{}
	for _, g := range all {
		w := word(g.owner[at:])
		shares[w] = append(shares[w], g)
	}
	if _, same := shares[""]; same && len(shares) == 1 {
		slices.SortFunc(all, func(a, b gone) int { return a.ended.Compare(b.ended) })
		return all[:len(all)-most]
	}
	words := slices.SortedFunc(maps.Keys(shares), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(shares[a]), len(shares[b])), strings.Compare(a, b))
	})
	for i, w := range words {
		keep := min(len(shares[w]), most/(len(words)-i))
		most -= keep
		out = append(out, beyond(shares[w], keep, at+len(w))...)
	}
	return out
}

// word is what an owner begins with: a separator, or what is in front of the next one.
func word(owner string) string {
	switch i := strings.IndexAny(owner, hardware.OwnerSeparators); i {
	case -1:
		return owner
	case 0:
		return owner[:1]
	default:
		return owner[:i]
	}
}

// trimClaims forgets the claims that ended long ago, and the oldest of too many.
func (db *DB) trimClaims(ctx context.Context) error {
	var ended []gone
	err := db.each(ctx, Range{Prefix: prefixClaim}, func(e Entry) error {
		c, err := claims().read(db, e)
		if err == nil && !c.Status.Ended.IsZero() {
			ended = append(ended, gone{Compare{e.Key, e.Revision}, c.Spec.Owner, c.Status.Ended, c.Status.Stopped != nil, c.Status.UID == ""})
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, g := range forgotten(ended, db.opts.Now().Add(-keepEnded), maxEndedClaims, maxRefused) {
		_, err := db.txn(ctx, Txn{If: []Compare{g.Compare}, Deletes: []string{g.Key}})
		if err != nil && !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return nil
}

// ExplainClaim says of each machine why a claim with this spec would, or would not,
// be given it. id is the claim's own, whose machine fits. within leaves out machines,
// as in Claim. *hardware.Invalid.
func (db *DB) ExplainClaim(id string, spec *hardware.ClaimSpec, within hardware.Selector) (*hardware.ClaimAnswer, error) {
	m, err := hardware.NewMatcher(spec, within)
	if err != nil {
		return nil, err
	}
	return m.Answer(id, matching(db.view.Hardware(), within, id), db.view.Active), nil
}

// Installation is the name of this installation: a ULID that is made once and
// travels with the store, into backups too.
func (db *DB) Installation(ctx context.Context) (string, error) {
	if id := db.installation.Load(); id != nil {
		return *id, nil
	}
	b, err := db.Secret(ctx, "installation-id", func() ([]byte, error) { return []byte(workflow.NewID(db.opts.Now())), nil })
	if err != nil {
		return "", err
	}
	id := string(b)
	db.installation.Store(&id)
	return id, nil
}
