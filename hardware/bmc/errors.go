package bmc

import (
	"errors"
	"fmt"
)

// ByHand says that a person has to do it.
type ByHand struct {
	// Do is what, as an instruction that begins with a verb.
	Do string
}

func (e *ByHand) Error() string { return e.Do + " (by hand: the record names no power control)" }

// Refused says that asking again gives the same: the controller said no, or what
// it says cannot be trusted or read.
type Refused struct {
	// Who is the controller, or the machine where no controller was asked.
	Who string
	// Code is the controller's HTTP status; 0 where it gave none.
	Code int
	// Why is the reason with its remedy.
	Why string
	// Unsupported: the controller cannot do this at all, and nothing is wrong.
	Unsupported bool
}

func (e *Refused) Error() string {
	if e.Code != 0 {
		return fmt.Sprintf("power control of %s: answers %d: %s", e.Who, e.Code, e.Why)
	}
	return fmt.Sprintf("power control of %s: %s", e.Who, e.Why)
}

// Is makes an Unsupported one match errors.ErrUnsupported.
func (e *Refused) Is(target error) bool { return e.Unsupported && target == errors.ErrUnsupported }

// Unreachable says that the controller did not answer, or not with sense, and may
// do so later.
type Unreachable struct {
	Who string
	// Tries is how often it was asked.
	Tries int
	// Err is the last try's.
	Err error
}

func (e *Unreachable) Error() string {
	if e.Tries == 1 {
		return fmt.Sprintf("power control of %s: %v", e.Who, e.Err)
	}
	return fmt.Sprintf("power control of %s: tried %d times: %v", e.Who, e.Tries, e.Err)
}

func (e *Unreachable) Unwrap() error { return e.Err }
