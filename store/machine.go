package store

import (
	"context"

	"github.com/rackstrap/rackstrap/workflow"
)

// Machine reads the engine's own value; a machine without one is returned with the
// zero Status and Revision 0. workflow.ErrNotFound where there is no such Hardware.
func (db *DB) Machine(ctx context.Context, uid string) (*workflow.Machine, error) {
	m := &workflow.Machine{UID: uid}
	rev, err := db.get(ctx, keyMachine(uid), m)
	if err != nil {
		return nil, err
	}
	if rev == 0 {
		e, err := db.kv.Get(ctx, keySpec(uid))
		if err == nil && e.Revision == 0 {
			err = named("hardware with uid", uid, workflow.ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
	}
	m.Revision = rev
	return m, nil
}
