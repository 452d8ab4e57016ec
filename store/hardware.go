package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// maxUnique bounds the MACs and addresses of one record, each of which is a key of
// its own, so that creating and deleting it fits one transaction.
const maxUnique = 90

// Hardware reads spec, status and facts by uid: workflow.ErrNotFound.
// Meta.Revision is that of spec and labels.
func (db *DB) Hardware(ctx context.Context, uid string) (*hardware.Hardware, error) {
	p, err := db.kv.List(ctx, Range{Prefix: prefixHardware + part(uid) + "/"})
	if err != nil {
		return nil, err
	}
	h, err := db.joinHardware(p.Entries)
	if err == nil && h == nil {
		err = named("hardware with uid", uid, workflow.ErrNotFound)
	}
	return h, err
}

// joinHardware makes one record of its keys; nil where there is no spec among them.
func (db *DB) joinHardware(entries []Entry) (*hardware.Hardware, error) {
	var h *hardware.Hardware
	var m workflow.Machine
	var f *hardware.Facts
	for _, e := range entries {
		_, what, _ := splitHardware(e.Key)
		var err error
		switch what {
		case partSpec:
			h = new(hardware.Hardware)
			err = db.decode(e.Key, e.Value, h)
			h.Meta.Revision = e.Revision
		case partMachine:
			err = db.decode(e.Key, e.Value, &m)
		case partFacts:
			f = new(hardware.Facts)
			err = db.decode(e.Key, e.Value, f)
		}
		if err != nil {
			return nil, err
		}
	}
	if h != nil {
		h.Status, h.Facts = ofNew(m.Status), f
	}
	return h, nil
}

// HardwareByName reads spec, status and facts: workflow.ErrNotFound.
func (db *DB) HardwareByName(ctx context.Context, name string) (*hardware.Hardware, error) {
	uid, rev, err := db.text(ctx, keyName(name))
	if err != nil {
		return nil, err
	}
	if rev == 0 {
		return nil, named("hardware", name, workflow.ErrNotFound)
	}
	h, err := db.Hardware(ctx, uid)
	if err != nil {
		return nil, named("hardware", name, err)
	}
	return h, nil
}

// ListHardware lists all records with status and facts, oldest first.
func (db *DB) ListHardware(ctx context.Context) ([]*hardware.Hardware, error) {
	var out []*hardware.Hardware
	var mine []Entry // the keys of one record
	last := ""
	flush := func() error {
		h, err := db.joinHardware(mine)
		if h != nil {
			out = append(out, h)
		}
		mine = mine[:0]
		return err
	}
	err := db.each(ctx, Range{Prefix: prefixHardware, Limit: MaxPage}, func(e Entry) error {
		uid, _, _ := splitHardware(e.Key)
		if uid != last {
			if err := flush(); err != nil {
				return err
			}
			last = uid
		}
		mine = append(mine, e)
		return nil
	})
	if err == nil {
		err = flush()
	}
	return out, err
}

// CreateHardware writes a new record and sets its UID, Revision and Created.
// Status and facts are not written. *hardware.Invalid (also for a MAC or an
// address that another record has, naming it), workflow.ErrExists.
func (db *DB) CreateHardware(ctx context.Context, h *hardware.Hardware) error {
	if err := h.Validate(); err != nil {
		return err
	}
	c := *h
	now := db.opts.Now()
	c.Meta.UID, c.Meta.Created = workflow.NewID(now), now
	rev, err := db.retry(ctx, func() (Txn, error) {
		_, taken, err := db.text(ctx, keyName(c.Meta.Name))
		if err == nil && taken != 0 {
			err = named("hardware", c.Meta.Name, workflow.ErrExists)
		}
		if err != nil {
			return Txn{}, err
		}
		t := Txn{
			If:   []Compare{{keyName(c.Meta.Name), 0}},
			Puts: []Put{{Key: keyName(c.Meta.Name), Value: []byte(c.Meta.UID)}},
		}
		return t, db.changeHardware(ctx, &t, &c, nil, hardware.ReasonRecordCreated)
	})
	if err != nil {
		return err
	}
	c.Meta.Revision = rev
	*h = c
	return nil
}

// UpdateHardware writes spec and labels of the record of that name; Meta.Revision
// 0 is any. The same again writes nothing. *hardware.Invalid,
// workflow.ErrNotFound, workflow.ErrConflict.
func (db *DB) UpdateHardware(ctx context.Context, h *hardware.Hardware) error {
	if err := h.Validate(); err != nil {
		return err
	}
	c := *h
	same := false
	rev, err := db.retry(ctx, func() (Txn, error) {
		old, err := db.HardwareByName(ctx, h.Meta.Name)
		if err != nil {
			return Txn{}, err
		}
		if want := h.Meta.Revision; want != 0 && want != old.Meta.Revision {
			return Txn{}, named("hardware", h.Meta.Name, workflow.ErrConflict)
		}
		c.Meta.UID, c.Meta.Created, c.Meta.Revision = old.Meta.UID, old.Meta.Created, old.Meta.Revision
		c.Status, c.Facts = old.Status, old.Facts
		if same = sameJSON(old.Spec, c.Spec) && sameJSON(old.Meta.Labels, c.Meta.Labels); same {
			return Txn{}, nil
		}
		var t Txn
		return t, db.changeHardware(ctx, &t, &c, old, hardware.ReasonRecordChanged)
	})
	if err != nil {
		return err
	}
	if !same {
		c.Meta.Revision = rev
	}
	*h = c
	return nil
}

// changeHardware adds to t what writes h over old (nil is "none").
func (db *DB) changeHardware(ctx context.Context, t *Txn, h, old *hardware.Hardware, why hardware.Reason) error {
	if err := db.writeHardware(ctx, t, h, old); err != nil {
		return err
	}
	db.noteHardware(ctx, t, why, h)
	if n := len(t.Puts) + len(t.Deletes); n > MaxOps {
		return invalidHardware(h, "spec.interfaces", "changes %d MACs and addresses at once, which is more than one transaction takes (change them in two steps)", n)
	}
	return nil
}

// writeHardware is changeHardware without its event.
func (db *DB) writeHardware(ctx context.Context, t *Txn, h, old *hardware.Hardware) error {
	key := keySpec(h.Meta.UID)
	var was uint64
	if old != nil {
		was = old.Meta.Revision
	}
	spec := hardware.Hardware{Meta: h.Meta, Spec: h.Spec}
	spec.Meta.Revision = 0
	b, err := db.encode(key, &spec)
	if err != nil {
		return err
	}
	t.If = append(t.If, Compare{key, was})
	t.Puts = append(t.Puts, Put{Key: key, Value: b})
	return db.reserve(ctx, t, h, old)
}

// DeleteHardware removes a record with its status and facts; rev 0 is any. Its
// events stay. workflow.ErrNotFound, workflow.ErrConflict, workflow.ErrInUse
// while a workflow is active, somebody has claimed the machine, or it is not known to
// have stopped.
func (db *DB) DeleteHardware(ctx context.Context, name string, rev uint64) error {
	_, err := db.retry(ctx, func() (Txn, error) {
		h, err := db.HardwareByName(ctx, name)
		if err != nil {
			return Txn{}, err
		}
		if rev != 0 && rev != h.Meta.Revision {
			return Txn{}, named("hardware", name, workflow.ErrConflict)
		}
		uid := h.Meta.UID
		var active []string
		was, err := db.get(ctx, keyActive(uid), &active)
		if err != nil {
			return Txn{}, err
		}
		if len(active) > 0 {
			return Txn{}, fmt.Errorf("hardware %q has the active workflow %q: %w (cancel it first: rackstrap workflow cancel %s)",
				name, active[0], workflow.ErrInUse, active[0])
		}
		var m workflow.Machine
		written, err := db.get(ctx, keyMachine(uid), &m)
		if err != nil {
			return Txn{}, err
		}
		if c := m.Status.Claim; c != nil {
			return Txn{}, fmt.Errorf("hardware %q belongs to %s (claim %s): %w (release it first: rackstrap release %s)", name, c.Owner, c.ID, workflow.ErrInUse, name)
		}
		if st := m.Status.Stopping; st.Awaited() {
			return Txn{}, fmt.Errorf("hardware %q may still run what claim %s installed: %w (wait until it is stopped: rackstrap explain %s)", name, st.Claim, workflow.ErrInUse, name)
		}
		t := Txn{
			// a claim that comes now writes the machine's value
			If:      []Compare{{keySpec(uid), h.Meta.Revision}, {keyMachine(uid), written}, {keyActive(uid), was}},
			Deletes: []string{keySpec(uid), keyMachine(uid), keyFacts(uid), keyName(name)},
		}
		for _, c := range uniquesOf(h) {
			t.Deletes = append(t.Deletes, c.key)
		}
		db.noteHardware(ctx, &t, hardware.ReasonRecordDeleted, h)
		return t, nil
	})
	return err
}

// unique is a MAC or an address that one record only may have.
type unique struct {
	key, field, what string
}

func uniquesOf(h *hardware.Hardware) []unique {
	var out []unique
	for i, n := range h.Spec.Interfaces {
		at := fmt.Sprintf("spec.interfaces[%d]", i)
		out = append(out, unique{keyMAC(n.MAC), at + ".mac", n.MAC.String()})
		for j, p := range n.Addresses {
			out = append(out, unique{keyAddress(p.Addr()), fmt.Sprintf("%s.addresses[%d]", at, j), p.Addr().String()})
		}
	}
	return out
}

// reserve adds the index keys that h has and old has not, and removes the others;
// *hardware.Invalid names those that another record has.
func (db *DB) reserve(ctx context.Context, t *Txn, h, old *hardware.Hardware) error {
	mine := uniquesOf(h)
	if len(mine) > maxUnique {
		return invalidHardware(h, "spec.interfaces", "has %d MACs and addresses in all, the limit is %d", len(mine), maxUnique)
	}
	gone := map[string]bool{}
	if old != nil {
		for _, c := range uniquesOf(old) {
			gone[c.key] = true
		}
	}
	check := hardware.NewChecker("hardware", h.Meta.Name)
	for _, c := range mine {
		if gone[c.key] {
			delete(gone, c.key)
			continue
		}
		uid, rev, err := db.text(ctx, c.key)
		if err != nil {
			return err
		}
		if rev != 0 {
			check.Addf(c.field, "%s belongs to hardware %q (take it away there first)", c.what, db.nameOf(ctx, uid))
			continue
		}
		t.If = append(t.If, Compare{c.key, 0})
		t.Puts = append(t.Puts, Put{Key: c.key, Value: []byte(h.Meta.UID)})
	}
	for key := range gone {
		t.Deletes = append(t.Deletes, key)
	}
	return check.Err()
}

// nameOf is the name of a record for messages, its uid where it cannot be read.
func (db *DB) nameOf(ctx context.Context, uid string) string {
	var h hardware.Hardware
	if rev, err := db.get(ctx, keySpec(uid), &h); err != nil || rev == 0 {
		return uid
	}
	return h.Meta.Name
}

func invalidHardware(h *hardware.Hardware, field, format string, args ...any) error {
	c := hardware.NewChecker("hardware", h.Meta.Name)
	c.Addf(field, format, args...)
	return c.Err()
}

// sameJSON reports whether two values are stored alike; empty and absent lists are.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
