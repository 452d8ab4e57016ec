package workflow

import (
	"context"
	"errors"

	"github.com/rackstrap/rackstrap/hardware"
)

// Machine is what the engine writes of one machine: its lifecycle state and its
// current boot, in one value of the store, apart from the operators' spec.
type Machine struct {
	UID      string          `json:"uid"` // of the Hardware
	Status   hardware.Status `json:"status"`
	Boot     *hardware.Boot  `json:"boot,omitempty"`
	Revision uint64          `json:"-"`
}

// Change is what one decision writes: all of it in one transaction, or nothing.
// A Machine, Workflow or Hardware is written only if its Revision is still the store's.
type Change struct {
	// Hardware is the record of Machine.UID: a new one (Revision 0, with the uid and the
	// time of its creation), which discovery makes, or one to which discovery adds what
	// an operator's rule or accept stands for. Nothing else writes what belongs to operators.
	Hardware *hardware.Hardware
	Machine  *Machine
	Workflow *Workflow
	// Facts, if not nil, replace those of Machine.UID.
	Facts  *hardware.Facts
	Events []Event
}

// Errors of Store.
var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the record was changed by somebody else; read again and decide again.
	ErrConflict = errors.New("changed by somebody else")
	// ErrExists: another record of that kind has this name.
	ErrExists = errors.New("exists already")
	// ErrInUse: the record cannot go while others need it.
	ErrInUse = errors.New("in use")
	// ErrCompacted: the cursor is older than the log; list again and go on from there.
	ErrCompacted = errors.New("compacted, list again")
)

// Store is what the engine needs of the store.
type Store interface {
	// Hardware reads spec, status and facts by uid; ErrNotFound.
	Hardware(ctx context.Context, uid string) (*hardware.Hardware, error)
	// Machine reads the engine's own value; a machine without one is returned as
	// available, with Revision 0. ErrNotFound where there is no such Hardware.
	Machine(ctx context.Context, uid string) (*Machine, error)
	// Workflow reads by name; ErrNotFound.
	Workflow(ctx context.Context, name string) (*Workflow, error)
	// ActiveWorkflows lists those whose state is not final.
	ActiveWorkflows(ctx context.Context) ([]*Workflow, error)
	// Commit writes the change and sets the new Revisions in it; ErrConflict. For a
	// Hardware also ErrExists (its name) and *hardware.Invalid (a MAC that another has).
	Commit(ctx context.Context, c *Change) error
}
