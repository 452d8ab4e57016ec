package store

import (
	"context"
	"maps"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func templates() kind[workflow.Template] {
	return kind[workflow.Template]{
		name: "template", prefix: prefixTemplate,
		meta:     func(t *workflow.Template) *hardware.Meta { return &t.Meta },
		validate: (*workflow.Template).Validate,
		same: func(a, b *workflow.Template) bool {
			return maps.Equal(a.Meta.Labels, b.Meta.Labels) && sameJSON(a.Spec, b.Spec)
		},
	}
}

// CreateTemplate writes a new record and sets its UID, Revision and Created:
// *hardware.Invalid, workflow.ErrExists.
func (db *DB) CreateTemplate(ctx context.Context, t *workflow.Template) error {
	return templates().create(ctx, db, t, nil)
}

// UpdateTemplate writes spec and labels; Meta.Revision 0 is any. Workflows that
// exist keep the actions they were made with. *hardware.Invalid,
// workflow.ErrNotFound, workflow.ErrConflict.
func (db *DB) UpdateTemplate(ctx context.Context, t *workflow.Template) error {
	return templates().update(ctx, db, t, nil)
}

// DeleteTemplate removes a record; rev 0 is any: workflow.ErrNotFound,
// workflow.ErrConflict.
func (db *DB) DeleteTemplate(ctx context.Context, name string, rev uint64) error {
	return templates().delete(ctx, db, name, rev, nil)
}

// TemplateByName reads a record: workflow.ErrNotFound.
func (db *DB) TemplateByName(ctx context.Context, name string) (*workflow.Template, error) {
	return templates().get(ctx, db, name)
}

// ListTemplates lists all, by name.
func (db *DB) ListTemplates(ctx context.Context) ([]*workflow.Template, error) {
	return templates().list(ctx, db)
}
