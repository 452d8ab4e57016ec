package store

import (
	"context"
	"fmt"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func workflows() kind[workflow.Workflow] {
	return kind[workflow.Workflow]{
		name: "workflow", prefix: prefixWorkflow,
		meta: func(w *workflow.Workflow) *hardware.Meta { return &w.Meta },
	}
}

// Workflow reads by name: workflow.ErrNotFound. Workflows are written by Commit.
func (db *DB) Workflow(ctx context.Context, name string) (*workflow.Workflow, error) {
	return workflows().get(ctx, db, name)
}

// ListWorkflows lists all, by name.
func (db *DB) ListWorkflows(ctx context.Context) ([]*workflow.Workflow, error) {
	return workflows().list(ctx, db)
}

// ActiveWorkflows lists those whose state is not final.
func (db *DB) ActiveWorkflows(ctx context.Context) ([]*workflow.Workflow, error) {
	var names []string
	err := db.each(ctx, Range{Prefix: prefixActive}, func(e Entry) error {
		var some []string
		err := db.decode(e.Key, e.Value, &some)
		names = append(names, some...)
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []*workflow.Workflow
	for _, name := range names {
		var w workflow.Workflow
		rev, err := db.get(ctx, keyWorkflow(name), &w)
		if err != nil {
			return nil, err
		}
		if rev == 0 || w.Status.State.Ended() {
			continue // ended since the list was read
		}
		w.Meta.Revision = rev
		out = append(out, &w)
	}
	return out, nil
}

// DeleteWorkflow removes a workflow that has ended; rev 0 is any:
// workflow.ErrNotFound, workflow.ErrConflict, workflow.ErrInUse while it is active.
func (db *DB) DeleteWorkflow(ctx context.Context, name string, rev uint64) error {
	return workflows().delete(ctx, db, name, rev, func(w *workflow.Workflow, _ *Txn) error {
		if !w.Status.State.Ended() {
			return fmt.Errorf("workflow %q is %s: %w (cancel it first: rackstrap workflow cancel %s)", name, w.Status.State, workflow.ErrInUse, name)
		}
		return nil
	})
}
