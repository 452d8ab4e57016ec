package rest

import (
	"context"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/workflow"
)

// progressBoard has the latest progress of all active workflows. It is read from
// store and engine at most every progressEvery, however many streams ask.
type progressBoard struct {
	deps  Deps
	mu    sync.Mutex
	taken time.Time
	items []machineProgress
}

type machineProgress struct {
	workflow.Progress
	machine, hardware string // name, uid
}

func (b *progressBoard) latest(ctx context.Context) []machineProgress {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.deps.Now()
	if age := now.Sub(b.taken); age >= 0 && age < progressEvery/2 && !b.taken.IsZero() {
		return b.items
	}
	active, err := b.deps.Records.ActiveWorkflows(ctx)
	if err != nil {
		return b.items // the next tick asks again
	}
	items := make([]machineProgress, 0, len(active))
	for _, w := range active {
		if p, ok := b.deps.Engine.Progress(w.Meta.Name); ok {
			items = append(items, machineProgress{p, w.Spec.Hardware, w.Status.HardwareUID})
		}
	}
	b.items, b.taken = items, now
	return items
}
