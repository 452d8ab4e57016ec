package store

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/workflow"
)

// keepWorkflows is how many ended workflows of each machine are kept, as many as its
// boots.
const keepWorkflows = 20

// trimWorkflows removes all but the newest ended workflows of each machine, and the ones
// that a machine's value names.
func (db *DB) trimWorkflows(ctx context.Context) error {
	type end struct {
		Compare
		name, id string // uids sort by time
	}
	of := map[string][]end{}
	err := db.each(ctx, Range{Prefix: prefixWorkflow}, func(e Entry) error {
		var w workflow.Workflow
		if err := db.decode(e.Key, e.Value, &w); err != nil {
			return err
		}
		if w.Status.State.Ended() {
			uid := w.Status.HardwareUID
			of[uid] = append(of[uid], end{Compare{e.Key, e.Revision}, w.Meta.Name, w.Meta.UID})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for uid, ends := range of {
		if len(ends) <= keepWorkflows {
			continue
		}
		m, _ := db.view.Machine(uid)
		slices.SortFunc(ends, func(a, b end) int { return strings.Compare(b.id, a.id) })
		for _, x := range ends[keepWorkflows:] {
			if x.name == m.Status.Workflow || m.Status.Install != nil && x.name == m.Status.Install.Workflow {
				continue // the machine's state, or its metadata, is about this one
			}
			_, err := db.txn(ctx, Txn{If: []Compare{x.Compare}, Deletes: []string{x.Key}})
			if err != nil && !errors.Is(err, ErrConflict) {
				return err
			}
		}
	}
	return nil
}
