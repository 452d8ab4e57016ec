package client

import (
	"context"

	"github.com/rackstrap/rackstrap/api"
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
