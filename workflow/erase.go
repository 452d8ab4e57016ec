package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Erasure is a disk that a workflow overwrites, as far as the machine's facts tell which
// one that is, and what is known to be on it.
type Erasure struct {
	// Wanted is how the actions name the disk: smallest, serial=…; empty is the only one.
	Wanted Disk `json:"wanted,omitempty"`
	// Disk is the disk; nil where the facts do not tell, and Why says why not.
	Disk *hardware.DiskFact `json:"disk,omitempty"`
	Why  string             `json:"why,omitempty"`
	// Seen is when the worker told of the disk, and of what was on it then.
	Seen time.Time `json:"seen,omitzero"`
	// Holds is what is known to be on the disk, and Detail says it in words.
	Holds  Holds  `json:"holds"`
	Detail string `json:"detail"`
}

// Holds is what is known to be on a disk.
type Holds string

// What a disk may hold.
const (
	// HoldsNothing: it was wiped and read back, and nothing was written since.
	HoldsNothing Holds = "nothing"
	// HoldsData: a workflow wrote it, or may have.
	HoldsData Holds = "data"
	// HoldsUnknown: this appliance never wrote or wiped it.
	HoldsUnknown Holds = "unknown"
)

// Erases lists the disks that the workflow overwrites on the machine.
func Erases(h *hardware.Hardware, w *Workflow) []Erasure {
	var out []Erasure
	var seen []Disk
	for _, a := range w.Status.Actions {
		want := a.disk()
		if !a.erases() || slices.Contains(seen, want) {
			continue
		}
		seen = append(seen, want)
		for _, e := range erased(h, want) {
			if !slices.ContainsFunc(out, e.same) {
				out = append(out, e)
			}
		}
	}
	return out
}

// same reports whether both are of one disk.
func (e Erasure) same(o Erasure) bool {
	return e.Disk != nil && o.Disk != nil && e.Disk.Path == o.Disk.Path
}

// erases reports whether the action overwrites a disk as a whole.
func (a *Action) erases() bool { return a.Kind == KindImageWrite || a.Kind == KindDiskWipe }

// erased are the disks that want means.
func erased(h *hardware.Hardware, want Disk) []Erasure {
	if h.Facts == nil {
		return []Erasure{{Wanted: want, Why: "nothing is known of its disks: its worker was never there", Holds: HoldsUnknown, Detail: "nobody knows what is on it"}}
	}
	picked := fixedDisks(h.Facts)
	if want != DiskAll {
		d, err := pickDisk(want, h.Facts)
		if err != nil {
			return []Erasure{{Wanted: want, Why: err.Error(), Holds: HoldsUnknown, Detail: "nobody knows which disk that is"}}
		}
		picked = []hardware.DiskFact{d}
	}
	out := make([]Erasure, len(picked))
	for i, d := range picked {
		out[i] = Erasure{Wanted: want, Disk: &d, Seen: h.Facts.Collected}
		out[i].Holds, out[i].Detail = holds(&h.Status, hardware.DiskRef{Path: d.Path, Serial: d.Serial})
	}
	return out
}

// holds says what is known to be on a disk.
func holds(s *hardware.Status, d hardware.DiskRef) (Holds, string) {
	switch {
	case s.Installed && s.Install != nil && slices.ContainsFunc(s.Install.Disks, d.Is):
		return HoldsData, fmt.Sprintf("it holds the system that workflow %s installed", s.Install.Workflow)
	case slices.ContainsFunc(s.Dirty, d.Is) && s.Installed:
		return HoldsData, "it may hold data of the installed system"
	case slices.ContainsFunc(s.Dirty, d.Is):
		return HoldsData, "a workflow wrote to this machine, and no verified wipe came after it"
	case s.Installed || s.State == hardware.StateProvisioned:
		return HoldsData, "the machine has a system, which may be on this disk"
	case s.Wiped != nil && slices.ContainsFunc(s.Wiped.Disks, func(w hardware.WipedDisk) bool { return d.Is(hardware.DiskRef{Path: w.Path, Serial: w.Serial}) }):
		return HoldsNothing, fmt.Sprintf("workflow %s wiped it and read it back at %s", cmp.Or(s.Wiped.Workflow, "(unknown)"), clock(s.Wiped.At))
	}
	return HoldsUnknown, "this appliance never wiped it: it may hold anything"
}
