package rest

import (
	"context"

	"github.com/rackstrap/rackstrap/workflow"
)

// machineProgress is how far a workflow is, and on which machine.
type machineProgress struct {
	workflow.Progress
	machine, hardware string // name, uid
}

// activeProgress is the latest progress of all active workflows that reported any.
func activeProgress(ctx context.Context, d Deps) ([]machineProgress, error) {
	active, err := d.Records.ActiveWorkflows(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]machineProgress, 0, len(active))
	for _, w := range active {
		if p, ok := d.Engine.Progress(w.Meta.Name); ok {
			out = append(out, machineProgress{p, w.Spec.Hardware, w.Status.HardwareUID})
		}
	}
	return out, nil
}
