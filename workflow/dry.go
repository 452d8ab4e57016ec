package workflow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rackstrap/rackstrap/hardware"
)

// DryStore is what a dry engine reads and writes: a store whose writes are thrown
// away.
type DryStore interface {
	Store
	// TemplateByName and HardwareByName are as in Config.
	TemplateByName(ctx context.Context, name string) (*Template, error)
	HardwareByName(ctx context.Context, name string) (*hardware.Hardware, error)
}

// Dry is an engine that decides as this one does and writes to s: no worker, no
// machine and no timeline hears of it. resolve is that of Config, over s. Its Run
// must not be called.
func (e *Engine) Dry(ctx context.Context, s DryStore, resolve func(context.Context, *hardware.Hardware, *Workflow, *Action) (json.RawMessage, error)) (*Engine, error) {
	c := e.c
	c.Store, c.Templates, c.HardwareByName, c.Resolve = s, s.TemplateByName, s.HardwareByName, resolve
	c.Note, c.Power = func(Event) {}, noPower{}
	dry := NewEngine(c)
	active, err := s.ActiveWorkflows(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the active workflows: %w", err)
	}
	for _, w := range active {
		dry.machine(w.Status.HardwareUID).active = w.Meta.Name
	}
	return dry, nil
}

// noPower switches nothing.
type noPower struct{}

// Do implements Power.
func (noPower) Do(_ context.Context, h *hardware.Hardware, action, _ string) (PowerOutcome, error) {
	return PowerOutcome{State: h.Status.Power.State, Message: "would be asked for: " + action}, nil
}
