package action

import (
	"slices"
	"strings"
	"sync"

	"github.com/rackstrap/rackstrap/workflow"
)

// history is what the actions of this boot did to the disks. A worker that was
// started again in the middle of a workflow knows nothing of what was before.
type history struct {
	mu      sync.Mutex
	touched bool     // an action changed a disk
	written []string // disks that hold what an action wrote
}

// add notes an action that succeeded on the disks, paths with commas between.
func (h *history) add(kind workflow.Kind, paths string) {
	if paths == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.touched = true
	for path := range strings.SplitSeq(paths, ",") {
		h.written = slices.DeleteFunc(h.written, func(w string) bool { return w == path })
		if kind != workflow.KindDiskWipe {
			h.written = append(h.written, path)
		}
	}
}

// among returns those of the disks that may hold the installed system: the ones
// that were written, or all that can be used when this boot has not touched any.
func (h *history) among(all []disk) []disk {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []disk
	for _, d := range all {
		if slices.Contains(h.written, d.path) || !h.touched && d.usable {
			out = append(out, d)
		}
	}
	return out
}
