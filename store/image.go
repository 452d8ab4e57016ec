package store

import (
	"context"
	"errors"
	"iter"
	"maps"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// prefixImageStatus begins the keys of statuses; the manager of images writes them.
const prefixImageStatus = "imagestatus/"

func keyImageStatus(uid string) string { return prefixImageStatus + part(uid) }

func images() kind[workflow.Image] {
	return kind[workflow.Image]{
		name: "image", prefix: prefixImage,
		meta:     func(i *workflow.Image) *hardware.Meta { return &i.Meta },
		validate: (*workflow.Image).Validate,
		same: func(a, b *workflow.Image) bool {
			return maps.Equal(a.Meta.Labels, b.Meta.Labels) && a.Spec == b.Spec
		},
	}
}

// CreateImage writes a new record and sets its UID, Revision and Created; it has no
// status: *hardware.Invalid, workflow.ErrExists.
func (db *DB) CreateImage(ctx context.Context, i *workflow.Image) error {
	i.Status = workflow.ImageStatus{}
	return images().create(ctx, db, i, nil)
}

// UpdateImage writes spec and labels; Meta.Revision 0 is any: *hardware.Invalid,
// workflow.ErrNotFound, workflow.ErrConflict.
func (db *DB) UpdateImage(ctx context.Context, i *workflow.Image) error {
	c := *i
	c.Status = workflow.ImageStatus{} // it has a key of its own
	if err := images().update(ctx, db, &c, nil); err != nil {
		return err
	}
	i.Meta = c.Meta
	return nil
}

// DeleteImage removes a record, not the files it may name; rev 0 is any:
// workflow.ErrNotFound, workflow.ErrConflict.
func (db *DB) DeleteImage(ctx context.Context, name string, rev uint64) error {
	return images().delete(ctx, db, name, rev, func(i *workflow.Image, t *Txn) error {
		t.Deletes = append(t.Deletes, keyImageStatus(i.Meta.UID))
		return nil
	})
}

// ImageByName reads a record: workflow.ErrNotFound.
func (db *DB) ImageByName(ctx context.Context, name string) (*workflow.Image, error) {
	i, err := images().get(ctx, db, name)
	if err != nil {
		return nil, err
	}
	_, err = db.get(ctx, keyImageStatus(i.Meta.UID), &i.Status)
	return i, err
}

// ListImages lists all, by name.
func (db *DB) ListImages(ctx context.Context) ([]*workflow.Image, error) {
	all, err := images().list(ctx, db)
	if err != nil {
		return nil, err
	}
	by := make(map[string]*workflow.Image, len(all))
	for _, i := range all {
		by[keyImageStatus(i.Meta.UID)] = i
	}
	err = db.each(ctx, Range{Prefix: prefixImageStatus}, func(e Entry) error {
		i := by[e.Key]
		if i == nil {
			return nil // created or deleted since
		}
		return db.decode(e.Key, e.Value, &i.Status)
	})
	return all, err
}

// SetImageStatus writes the status of an image, and an event if there is one. Only
// the image manager calls it: workflow.ErrNotFound where the record is gone, also
// when another one has its name.
func (db *DB) SetImageStatus(ctx context.Context, i *workflow.Image, st workflow.ImageStatus, ev *workflow.Event) error {
	_, err := db.retry(ctx, func() (Txn, error) {
		now, err := images().get(ctx, db, i.Meta.Name)
		if err != nil {
			return Txn{}, err
		}
		if now.Meta.UID != i.Meta.UID {
			return Txn{}, named("image", i.Meta.Name, workflow.ErrNotFound)
		}
		key := keyImageStatus(i.Meta.UID)
		b, err := db.encode(key, st)
		if err != nil {
			return Txn{}, err
		}
		t := Txn{If: []Compare{{images().key(i.Meta.Name), now.Meta.Revision}}, Puts: []Put{{Key: key, Value: b}}}
		if ev != nil {
			e := *ev
			err = db.appendEvent(&t, &e)
		}
		return t, err
	})
	return err
}

// ImageChanges yields nil at once, and after each change of an Image record; an
// error ends it. It blocks in between and ends with ctx.
func (db *DB) ImageChanges(ctx context.Context) iter.Seq[error] {
	return func(yield func(error) bool) {
		for {
			rev, err := db.kv.Revision(ctx)
			if !yield(err) || err != nil {
				return
			}
			for _, err = range db.kv.Watch(ctx, prefixImage, rev+1) {
				if err != nil {
					break
				}
				if !yield(nil) {
					return
				}
			}
			if ctx.Err() != nil {
				return
			}
			if !errors.Is(err, workflow.ErrCompacted) {
				yield(err)
				return
			}
		}
	}
}
