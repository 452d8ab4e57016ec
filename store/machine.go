package store

import (
	"context"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// ofNew is the status of a machine whose engine value was not written yet: it was
// registered by an operator, so it is available.
func ofNew(s hardware.Status) hardware.Status {
	if s.State == "" {
		s.State = hardware.StateAvailable
	}
	return s
}

// Machine reads the engine's own value; a machine without one is returned as
// available, with Revision 0. workflow.ErrNotFound where there is no such Hardware.
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
	m.Revision, m.Status = rev, ofNew(m.Status)
	return m, nil
}
