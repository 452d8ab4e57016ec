package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// A dry engine says what the real one would, and changes nothing.
func TestDryEngine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := workflow.WorkflowSpec{Hardware: "m1", Template: "install", Params: map[string]any{"image": "debian"}}
	dryEngine := func() *workflow.Engine {
		e, err := r.e.Dry(r.ctx, r.db.Dry(), func(_ context.Context, _ *hardware.Hardware, _ *workflow.Workflow, a *workflow.Action) (json.RawMessage, error) {
			return a.With, nil
		})
		r.must(err)
		return e
	}
	dry := dryEngine()
	w, err := dry.CreateWorkflow(r.ctx, "w1", spec)
	r.must(err)
	if _, err := dry.CreateWorkflow(r.ctx, "w2", spec); !errors.Is(err, workflow.ErrInUse) {
		t.Errorf("a second one: %v", err)
	}
	if _, err := r.db.Workflow(r.ctx, "w1"); !errors.Is(err, workflow.ErrNotFound) || len(w.Status.Actions) != 3 {
		t.Errorf("it was written: %v", err)
	}
	_, err = r.e.CreateWorkflow(r.ctx, "w1", spec)
	r.must(err)
	got, err := dryEngine().CancelWorkflow(r.ctx, "w1", "dry")
	r.must(err)
	kept, err := r.db.Workflow(r.ctx, "w1")
	r.must(err)
	if got.Status.State != workflow.StateCancelled || kept.Status.State != workflow.StatePending {
		t.Errorf("dry %s, kept %s", got.Status.State, kept.Status.State)
	}
}
