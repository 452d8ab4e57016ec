package client

import (
	"context"
	"errors"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

// WaitWorkflow returns the workflow when it has ended. see, if not nil, is called
// with its state at first and whenever it has changed or progressed.
func (c *Client) WaitWorkflow(ctx context.Context, name string, see func(*api.Workflow)) (*api.Workflow, error) {
	// the cursor first: what happens between the two reads is then seen again
	_, cursor, err := c.ListEvents(ctx, Filter{Limit: 1})
	if err != nil {
		return nil, err
	}
	w, err := c.Workflows.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	if see != nil {
		see(w)
	}
	if w.Status.State.Ended() {
		return w, nil
	}
	for m, err := range c.Events(ctx, cursor, Filter{Workflow: name}) {
		switch {
		case err != nil:
			return nil, err
		case m.Progress != nil:
			w.Progress = m.Progress
		default:
			if w, err = patient(ctx, func() (*api.Workflow, error) { return c.Workflows.Get(ctx, name) }); err != nil {
				return nil, err
			}
		}
		if see != nil {
			see(w)
		}
		if w.Status.State.Ended() {
			return w, nil
		}
	}
	return nil, ctx.Err()
}

// WaitHardware returns the machine when done says so. done is called with the record
// as it is at first, and whenever something happened to the machine.
func (c *Client) WaitHardware(ctx context.Context, name string, done func(*hardware.Hardware) bool) (*hardware.Hardware, error) {
	_, cursor, err := c.ListEvents(ctx, Filter{Limit: 1})
	if err != nil {
		return nil, err
	}
	h, err := c.Hardware.Get(ctx, name)
	if err != nil || done(h) {
		return h, err
	}
	for m, err := range c.Events(ctx, cursor, Filter{Hardware: name}) {
		if err != nil {
			return nil, err
		}
		if m.Progress != nil {
			continue
		}
		if h, err = patient(ctx, func() (*hardware.Hardware, error) { return c.Hardware.Get(ctx, name) }); err != nil || done(h) {
			return h, err
		}
	}
	return nil, ctx.Err()
}

const (
	// patience is how often a wait asks again while the daemon restarts, every
	// patientPause: two minutes, as long as a service manager takes at most.
	patience     = 240
	patientPause = 500 * time.Millisecond
)

// patient asks again while the daemon does not answer: whoever waits for a machine
// must not give up because the daemon is restarted meanwhile.
func patient[T any](ctx context.Context, get func() (T, error)) (T, error) {
	for n := 0; ; n++ {
		v, err := get()
		var u *Unreachable
		if !errors.As(err, &u) || n == patience {
			return v, err
		}
		pause := time.NewTimer(patientPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return v, ctx.Err()
		case <-pause.C:
		}
	}
}
