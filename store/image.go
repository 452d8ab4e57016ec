package store

import (
	"context"
	"maps"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

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

// CreateImage writes a new record and sets its UID, Revision and Created:
// *hardware.Invalid, workflow.ErrExists.
func (db *DB) CreateImage(ctx context.Context, i *workflow.Image) error {
	return images().create(ctx, db, i, nil)
}

// UpdateImage writes spec and labels; Meta.Revision 0 is any: *hardware.Invalid,
// workflow.ErrNotFound, workflow.ErrConflict.
func (db *DB) UpdateImage(ctx context.Context, i *workflow.Image) error {
	return images().update(ctx, db, i, nil)
}

// DeleteImage removes a record, not the file it may name; rev 0 is any:
// workflow.ErrNotFound, workflow.ErrConflict.
func (db *DB) DeleteImage(ctx context.Context, name string, rev uint64) error {
	return images().delete(ctx, db, name, rev, nil)
}

// ImageByName reads a record: workflow.ErrNotFound.
func (db *DB) ImageByName(ctx context.Context, name string) (*workflow.Image, error) {
	return images().get(ctx, db, name)
}

// ListImages lists all, by name.
func (db *DB) ListImages(ctx context.Context) ([]*workflow.Image, error) {
	return images().list(ctx, db)
}
