package rest

import (
	"fmt"
	"runtime/debug"
)

// survive turns a panic of f into an error, with its stack for the log. A goroutine of
// our own is not one of net/http's, which ends the request only: one request must not
// take DHCP and everybody's install down.
func survive(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
