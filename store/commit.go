package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// maxChangeEvents bounds the events of one Change: each is two operations.
const maxChangeEvents = 40

// Commit writes a decision of the engine, with its events, in one transaction, and
// sets the new revisions and cursors in it, and the events' ids, which sort as the
// events do. Nothing of c is changed on an error.
//
// workflow.ErrConflict: the Machine or the Workflow is not at its Revision.
// workflow.ErrExists: a new Workflow (Revision 0) whose name is taken.
// workflow.ErrNotFound: a new Machine value for a Hardware that is gone.
// For a Hardware also what CreateHardware and UpdateHardware return.
// A *LimitError where a record is too large for the store.
func (db *DB) Commit(ctx context.Context, c *workflow.Change) error {
	if len(c.Events) > maxChangeEvents {
		return &LimitError{"events of one change", len(c.Events), maxChangeEvents}
	}
	if c.Facts != nil && c.Machine == nil {
		return fmt.Errorf("commit: facts without the machine they are of")
	}
	if c.Hardware != nil {
		if c.Machine == nil || c.Machine.UID != c.Hardware.Meta.UID {
			return fmt.Errorf("commit: a hardware record without the engine's value of it")
		}
		if err := c.Hardware.Validate(); err != nil {
			return err
		}
	}
	var w *workflow.Workflow
	if c.Workflow != nil {
		copied := *c.Workflow
		w = &copied
		if w.Meta.Revision == 0 && w.Meta.UID == "" {
			now := db.opts.Now()
			w.Meta.UID = workflow.NewID(now)
			if w.Meta.Created.IsZero() {
				w.Meta.Created = now
			}
		}
	}
	events := slices.Clone(c.Events)
	inOrder(events)
	for i := range events {
		if events[i].By == "" {
			events[i].By = workflow.By(ctx)
		}
	}
	rev, err := db.retry(ctx, func() (Txn, error) {
		var t Txn
		if c.Hardware != nil {
			if err := db.putRecord(ctx, &t, c.Hardware); err != nil {
				return t, err
			}
		}
		if c.Machine != nil {
			if err := db.putMachine(ctx, &t, c.Machine, c.Facts, c.Hardware, events); err != nil {
				return t, err
			}
		}
		if w != nil {
			if err := db.putWorkflow(ctx, &t, w); err != nil {
				return t, err
			}
		}
		for i := range events {
			if err := db.appendEvent(&t, &events[i]); err != nil {
				return t, err
			}
		}
		return t, nil
	})
	if err != nil {
		return err
	}
	if c.Machine != nil {
		c.Machine.Revision = rev
	}
	if c.Hardware != nil {
		c.Hardware.Meta.Revision = rev
	}
	if w != nil {
		w.Meta.Revision = rev
		*c.Workflow = *w
		if !db.dry {
			db.history.ended(w, db.opts.Now())
		}
	}
	for i := range events {
		events[i].Cursor = rev
	}
	copy(c.Events, events)
	return nil
}

// putRecord adds a record that discovery makes or adds to. Who asked for it is in the
// events of the change.
func (db *DB) putRecord(ctx context.Context, t *Txn, h *hardware.Hardware) error {
	if h.Meta.Revision != 0 {
		old, err := db.Hardware(ctx, h.Meta.UID)
		if err != nil {
			return err
		}
		if old.Meta.Revision != h.Meta.Revision {
			return named("hardware", h.Meta.Name, workflow.ErrConflict)
		}
		return db.writeHardware(ctx, t, h, old)
	}
	_, taken, err := db.text(ctx, keyName(h.Meta.Name))
	if err == nil && taken != 0 {
		err = named("hardware", h.Meta.Name, workflow.ErrExists)
	}
	if err != nil {
		return err
	}
	t.If = append(t.If, Compare{keyName(h.Meta.Name), 0})
	t.Puts = append(t.Puts, Put{Key: keyName(h.Meta.Name), Value: []byte(h.Meta.UID)})
	return db.writeHardware(ctx, t, h, nil)
}

// putMachine adds the machine's value and facts. The revision is looked at before
// the transaction too, because there a conflict means "decide again here". with is its
// record, where that is in the same transaction.
func (db *DB) putMachine(ctx context.Context, t *Txn, m *workflow.Machine, f *hardware.Facts, with *hardware.Hardware, events []workflow.Event) error {
	have, err := db.kv.Get(ctx, keyMachine(m.UID))
	if err != nil {
		return err
	}
	if have.Revision != m.Revision {
		return named("machine", m.UID, workflow.ErrConflict)
	}
	if m.Revision == 0 && with == nil {
		spec, err := db.kv.Get(ctx, keySpec(m.UID))
		if err != nil {
			return err
		}
		if spec.Revision == 0 {
			return named("hardware with uid", m.UID, workflow.ErrNotFound)
		}
		t.If = append(t.If, Compare{spec.Key, spec.Revision})
	}
	if err := db.put(t, keyMachine(m.UID), m.Revision, m); err != nil {
		return err
	}
	if err := db.endClaim(ctx, t, have, m, events); err != nil {
		return err
	}
	if f == nil {
		return nil
	}
	capped := cloneFacts(f)
	capped.Cap()
	b, err := db.encode(keyFacts(m.UID), capped)
	t.Puts = append(t.Puts, Put{Key: keyFacts(m.UID), Value: b})
	return err
}

// putWorkflow adds the workflow, and its entry among the active ones where it
// begins or ends.
func (db *DB) putWorkflow(ctx context.Context, t *Txn, w *workflow.Workflow) error {
	key := keyWorkflow(w.Meta.Name)
	have, err := db.kv.Get(ctx, key)
	if err != nil {
		return err
	}
	switch {
	case have.Revision == w.Meta.Revision:
	case w.Meta.Revision == 0:
		return named("workflow", w.Meta.Name, workflow.ErrExists)
	default:
		return named("workflow", w.Meta.Name, workflow.ErrConflict)
	}
	plain := *w
	plain.Meta.Revision = 0
	if err := db.put(t, key, have.Revision, &plain); err != nil {
		return err
	}
	if w.Meta.Revision != 0 && !w.Status.State.Ended() {
		return nil
	}
	return db.putActive(ctx, t, w)
}

// putActive adds or removes the workflow's name at its machine.
func (db *DB) putActive(ctx context.Context, t *Txn, w *workflow.Workflow) error {
	key := keyActive(w.Status.HardwareUID)
	var names []string
	was, err := db.get(ctx, key, &names)
	if err != nil {
		return err
	}
	i := slices.Index(names, w.Meta.Name)
	switch {
	case w.Status.State.Ended() && i >= 0:
		names = slices.Delete(names, i, i+1)
	case !w.Status.State.Ended() && i < 0:
		names = append(names, w.Meta.Name)
	default:
		return nil
	}
	if len(names) > 0 {
		return db.put(t, key, was, names)
	}
	t.If = append(t.If, Compare{key, was})
	t.Deletes = append(t.Deletes, key)
	return nil
}

// put adds one compared put.
func (db *DB) put(t *Txn, key string, was uint64, v any) error {
	b, err := db.encode(key, v)
	t.If = append(t.If, Compare{key, was})
	t.Puts = append(t.Puts, Put{Key: key, Value: b})
	return err
}

func cloneFacts(f *hardware.Facts) *hardware.Facts {
	c := *f
	c.Disks, c.NICs = slices.Clone(f.Disks), slices.Clone(f.NICs)
	for i := range c.Disks {
		c.Disks[i].Layout = c.Disks[i].Layout.Clone()
	}
	return &c
}

// Secret returns the secret of that name, which create makes once: of several that
// ask first at the same time, all get the same.
func (db *DB) Secret(ctx context.Context, name string, create func() ([]byte, error)) ([]byte, error) {
	key := keySecret(name)
	for {
		var b []byte
		rev, err := db.get(ctx, key, &b)
		if err != nil || rev != 0 {
			return b, err
		}
		if b, err = create(); err != nil {
			return nil, err
		}
		v, err := db.encode(key, b)
		if err != nil {
			return nil, err
		}
		_, err = db.txn(ctx, Txn{If: []Compare{{key, 0}}, Puts: []Put{{Key: key, Value: v}}})
		if !errors.Is(err, ErrConflict) {
			return b, err
		}
	}
}
