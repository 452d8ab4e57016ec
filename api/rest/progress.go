package rest

import (
	"cmp"
	"slices"

	"github.com/rackstrap/rackstrap/workflow"
)

// activeProgress is the latest progress of all active workflows that reported any. It
// is asked for twice a second and reads memory only.
func activeProgress(d Deps) []workflow.Progress {
	out := d.Engine.AllProgress()
	slices.SortFunc(out, func(a, b workflow.Progress) int { return cmp.Compare(a.Workflow, b.Workflow) })
	return out
}
