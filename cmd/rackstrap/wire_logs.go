package main

import (
	"context"
	"time"

	"github.com/rackstrap/rackstrap/workflow"
)

// sweepLogsEvery is how soon the logs of a workflow that was deleted are gone, too.
const sweepLogsEvery = 10 * time.Minute

// sweepLogs removes the attempt logs of workflows that are gone. Logs that cannot be read
// are no reason to serve no machines.
func (a *appliance) sweepLogs(ctx context.Context) {
	err := a.logs.Sweep(func() ([]*workflow.Workflow, error) { return a.db.ListWorkflows(ctx) })
	if err != nil && ctx.Err() == nil {
		a.log.Warn("logs of workflows that are gone were not removed", "err", err)
	}
}

// keepLogs sweeps again and again until ctx ends. A sweep that fails is tried again.
func (a *appliance) keepLogs(ctx context.Context) error {
	t := time.NewTicker(sweepLogsEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			a.sweepLogs(ctx)
		}
	}
}
