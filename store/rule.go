package store

import (
	"context"
	"maps"

	"github.com/rackstrap/rackstrap/hardware"
)

func rules() kind[hardware.Rule] {
	return kind[hardware.Rule]{
		name: "rule", prefix: prefixRule,
		meta:     func(r *hardware.Rule) *hardware.Meta { return &r.Meta },
		validate: (*hardware.Rule).Validate,
		same: func(a, b *hardware.Rule) bool {
			return maps.Equal(a.Meta.Labels, b.Meta.Labels) && sameJSON(a.Spec, b.Spec)
		},
	}
}

// CreateRule writes a new record and sets its UID, Revision and Created:
// *hardware.Invalid, workflow.ErrExists.
func (db *DB) CreateRule(ctx context.Context, r *hardware.Rule) error {
	return rules().create(ctx, db, r, nil)
}

// UpdateRule writes spec and labels; Meta.Revision 0 is any: *hardware.Invalid,
// workflow.ErrNotFound, workflow.ErrConflict.
func (db *DB) UpdateRule(ctx context.Context, r *hardware.Rule) error {
	return rules().update(ctx, db, r, nil)
}

// DeleteRule removes a record; rev 0 is any: workflow.ErrNotFound,
// workflow.ErrConflict.
func (db *DB) DeleteRule(ctx context.Context, name string, rev uint64) error {
	return rules().delete(ctx, db, name, rev, nil)
}

// RuleByName reads a record: workflow.ErrNotFound.
func (db *DB) RuleByName(ctx context.Context, name string) (*hardware.Rule, error) {
	return rules().get(ctx, db, name)
}

// ListRules lists all, by name.
func (db *DB) ListRules(ctx context.Context) ([]*hardware.Rule, error) {
	return rules().list(ctx, db)
}
