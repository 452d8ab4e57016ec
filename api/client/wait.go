package client

import (
	"context"

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
			if w, err = c.Workflows.Get(ctx, name); err != nil {
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
		if h, err = c.Hardware.Get(ctx, name); err != nil || done(h) {
			return h, err
		}
	}
	return nil, ctx.Err()
}
