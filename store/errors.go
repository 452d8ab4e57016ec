package store

import (
	"errors"
	"fmt"

	"github.com/rackstrap/rackstrap/workflow"
)

// Errors of every KV.
var (
	// ErrConflict: a key has another revision than the transaction demanded; the
	// error is a *ConflictError.
	ErrConflict = workflow.ErrConflict
	// ErrCompacted: the changes since that revision are no longer kept; list, and
	// watch from the revision of the list on.
	ErrCompacted = workflow.ErrCompacted
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
	// ErrSessionExpired: the session is over and its keys are gone.
	ErrSessionExpired = errors.New("session has expired")
	// ErrLimit: a transaction beyond the limits; the error is a *LimitError.
	ErrLimit = errors.New("beyond the store's limits")
	// ErrNoSpace: the disk is full. Nothing of the transaction was written; reads go on.
	ErrNoSpace = errors.New("no space left")
)

// ConflictError says which key of a transaction was not as demanded. It is an
// ErrConflict.
type ConflictError struct {
	Key        string
	Want, Have uint64
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("key %q has revision %d, the transaction wants %d", e.Key, e.Have, e.Want)
}

// Is makes it an ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// LimitError says what of a transaction was too large. It is an ErrLimit.
type LimitError struct {
	What  string // for example "value of hardware/x/spec"
	Have  int
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: %d, the limit is %d", e.What, e.Have, e.Limit)
}

// Is makes it an ErrLimit.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// TooLarge is always true: callers that do not know this package tell the error by
// it.
func (e *LimitError) TooLarge() bool { return true }
