package store

import (
	"context"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// kind is what the records that are one value under their name have in common.
type kind[T any] struct {
	name     string // as in errors
	prefix   string
	meta     func(*T) *hardware.Meta
	validate func(*T) error
	same     func(a, b *T) bool // spec and labels
	// tell is what the timeline says of a change of a record that is told of in words of
	// its own; false: as of any other.
	tell func(v *T, why hardware.Reason, by string) (hardware.Reason, string, bool)
}

func (k kind[T]) key(name string) string { return k.prefix + part(name) }

// read decodes one entry.
func (k kind[T]) read(db *DB, e Entry) (*T, error) {
	v := new(T)
	if err := db.decode(e.Key, e.Value, v); err != nil {
		return nil, err
	}
	k.meta(v).Revision = e.Revision
	return v, nil
}

func (k kind[T]) get(ctx context.Context, db *DB, name string) (*T, error) {
	e, err := db.kv.Get(ctx, k.key(name))
	if err != nil {
		return nil, err
	}
	if e.Revision == 0 {
		return nil, named(k.name, name, workflow.ErrNotFound)
	}
	return k.read(db, e)
}

func (k kind[T]) list(ctx context.Context, db *DB) ([]*T, error) {
	var out []*T
	err := db.each(ctx, Range{Prefix: k.prefix}, func(e Entry) error {
		v, err := k.read(db, e)
		out = append(out, v)
		return err
	})
	return out, err
}

// write is the put of a record, without the revision, which is the key's.
func (k kind[T]) write(db *DB, v *T) (Put, error) {
	c := *v
	m := k.meta(&c)
	m.Revision = 0
	key := k.key(m.Name)
	b, err := db.encode(key, &c)
	return Put{Key: key, Value: b}, err
}

// extra is what a kind adds to each transaction, and checks before it.
type extra[T any] func(v *T, t *Txn) error

// create writes a new record: *hardware.Invalid, ErrExists.
func (k kind[T]) create(ctx context.Context, db *DB, v *T, more extra[T]) error {
	if err := k.validate(v); err != nil {
		return err
	}
	c := *v
	m := k.meta(&c)
	now := db.opts.Now()
	m.UID, m.Created = workflow.NewID(now), now
	rev, err := db.retry(ctx, func() (Txn, error) {
		e, err := db.kv.Get(ctx, k.key(m.Name))
		if err == nil && e.Revision != 0 {
			err = named(k.name, m.Name, workflow.ErrExists)
		}
		if err != nil {
			return Txn{}, err
		}
		return k.change(ctx, db, &c, 0, hardware.ReasonRecordCreated, more)
	})
	if err == nil {
		m.Revision = rev
		*v = c
	}
	return err
}

// update writes spec and labels: *hardware.Invalid, ErrNotFound, ErrConflict.
// The same again writes nothing.
func (k kind[T]) update(ctx context.Context, db *DB, v *T, more extra[T]) error {
	if err := k.validate(v); err != nil {
		return err
	}
	c := *v
	m := k.meta(&c)
	want := m.Revision
	same := false
	rev, err := db.retry(ctx, func() (Txn, error) {
		old, err := k.get(ctx, db, m.Name)
		if err != nil {
			return Txn{}, err
		}
		o := k.meta(old)
		if want != 0 && want != o.Revision {
			return Txn{}, named(k.name, m.Name, workflow.ErrConflict)
		}
		m.UID, m.Created, m.Revision = o.UID, o.Created, o.Revision
		if same = k.same(old, &c); same {
			return Txn{}, nil
		}
		return k.change(ctx, db, &c, o.Revision, hardware.ReasonRecordChanged, more)
	})
	if err != nil {
		return err
	}
	if !same {
		m.Revision = rev
	}
	*v = c
	return nil
}

// change is the transaction that writes v over revision old.
func (k kind[T]) change(ctx context.Context, db *DB, v *T, old uint64, why hardware.Reason, more extra[T]) (Txn, error) {
	p, err := k.write(db, v)
	if err != nil {
		return Txn{}, err
	}
	t := Txn{If: []Compare{{p.Key, old}}, Puts: []Put{p}}
	k.note(ctx, db, &t, v, why)
	if more != nil {
		err = more(v, &t)
	}
	return t, err
}

// note adds the event of a change.
func (k kind[T]) note(ctx context.Context, db *DB, t *Txn, v *T, why hardware.Reason) {
	if k.tell != nil {
		if r, detail, own := k.tell(v, why, workflow.By(ctx)); own {
			db.mustAppend(t, &workflow.Event{Reason: r, Detail: detail, By: workflow.By(ctx)})
			return
		}
	}
	db.note(ctx, t, why, k.name, k.meta(v).Name)
}

// delete removes a record of that revision (0 is any): ErrNotFound, ErrConflict.
func (k kind[T]) delete(ctx context.Context, db *DB, name string, rev uint64, more extra[T]) error {
	_, err := db.retry(ctx, func() (Txn, error) {
		old, err := k.get(ctx, db, name)
		if err != nil {
			return Txn{}, err
		}
		have := k.meta(old).Revision
		if rev != 0 && rev != have {
			return Txn{}, named(k.name, name, workflow.ErrConflict)
		}
		t := Txn{If: []Compare{{k.key(name), have}}, Deletes: []string{k.key(name)}}
		k.note(ctx, db, &t, old, hardware.ReasonRecordDeleted)
		if more != nil {
			err = more(old, &t)
		}
		return t, err
	})
	return err
}
