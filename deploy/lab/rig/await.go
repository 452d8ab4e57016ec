package rig

import (
	"context"
	"errors"
	"fmt"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Await follows what happens to a machine, from its first event on, until fits
// says true of an event or of progress; the other one is nil. It goes on across a
// restart of the daemon. What was seen before may be seen again.
func (r *Rack) Await(ctx context.Context, machine string, fits func(*api.Event, *workflow.Progress) bool) error {
	for m, err := range r.Appliance.Client.Events(ctx, 0, client.Filter{Hardware: machine}) {
		if err != nil {
			return err
		}
		if m.Compacted {
			continue
		}
		if fits(m.Event, m.Progress) {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("the events of %s ended", machine), ctx.Err())
}

// AwaitReason returns the first event of the machine with that Reason, after the
// event called after (an id; empty: any). It fails where the workflow fails.
func (r *Rack) AwaitReason(ctx context.Context, machine string, want hardware.Reason, after string) (*api.Event, error) {
	var got *api.Event
	var failed error
	err := r.Await(ctx, machine, func(e *api.Event, _ *workflow.Progress) bool {
		switch {
		case e == nil || e.ID <= after:
			return false
		case e.Reason == want:
			got = e
			return true
		case e.Reason == hardware.ReasonWorkflowFailed || e.Reason == hardware.ReasonWorkflowTimeout:
			failed = fmt.Errorf("%s: %s", machine, e.Sentence)
			return true
		}
		return false
	})
	return got, errors.Join(err, failed)
}
