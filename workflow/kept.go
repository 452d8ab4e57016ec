package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// systemDisks are those that the workflow wrote an operating system to, as its worker said.
func (w *Workflow) systemDisks(f *hardware.Facts) []hardware.DiskRef {
	var out []hardware.DiskRef
	for _, a := range w.Status.Actions {
		n := len(a.Attempts)
		if a.Kind != KindImageWrite || n == 0 || a.Attempts[n-1].Result.Disk == "" {
			continue
		}
		d := hardware.DiskRef{Path: a.Attempts[n-1].Result.Disk}
		if f != nil {
			if i := slices.IndexFunc(f.Disks, func(x hardware.DiskFact) bool { return x.Path == d.Path }); i >= 0 {
				d.Serial = f.Disks[i].Serial
			}
		}
		if !slices.ContainsFunc(out, d.Is) {
			out = append(out, d)
		}
	}
	return out
}

// spared says which disk the workflow would leave a system on that was kept, while it
// installs to another one; nil: none. Firmware starts what it finds first, and nobody
// would see that it is the system of before. What is kept is not ours to destroy: who
// keeps disks counts on what is on them.
func spared(h *hardware.Hardware, w *Workflow) error {
	s := &h.Status
	if !s.KeptUnwiped() || s.Install == nil || !w.installs() || h.Facts == nil {
		return nil
	}
	disks := fixedDisks(h.Facts)
	var over []hardware.DiskRef
	var to []string
	for _, a := range w.Status.Actions {
		if !a.erases() {
			continue
		}
		want := a.disk()
		if want == DiskAll {
			return nil
		}
		if d, err := pickDisk(want, h.Facts); err == nil {
			over = append(over, hardware.DiskRef{Path: d.Path, Serial: d.Serial})
		} else if path, ok := want.Path(); ok {
			over = append(over, hardware.DiskRef{Path: path})
		}
		if a.Kind == KindImageWrite && len(over) > 0 {
			to = append(to, diskWords(over[len(over)-1]))
		}
	}
	if len(to) == 0 {
		to = []string{"a disk that its facts do not show"}
	}
	for _, old := range s.Install.Disks {
		there := slices.ContainsFunc(disks, func(d hardware.DiskFact) bool {
			return old.Is(hardware.DiskRef{Path: d.Path, Serial: d.Serial})
		})
		if there && !slices.ContainsFunc(over, old.Is) {
			return fmt.Errorf("installs to %s, and the system that %q was kept with is on %s: both could start (install to that one, for example disk: %s; or have every disk wiped first: rackstrap release %s)",
				strings.Join(to, " and "), h.Meta.Name, diskWords(old), selector(old), h.Meta.Name)
		}
	}
	return nil
}

// disk is the one that an action that wipes or writes an image names.
func (a *Action) disk() Disk {
	o, err := DecodeOptions(a.Kind, a.With)
	if err != nil {
		return ""
	}
	switch o := o.(type) {
	case *DiskWipe:
		return o.Disk
	case *ImageWrite:
		return o.Disk
	}
	return ""
}

func diskWords(d hardware.DiskRef) string {
	if d.Serial == "" {
		return d.Path
	}
	return d.Path + " (serial " + d.Serial + ")"
}

// selector names a disk so that it is found again, whatever the kernel calls it.
func selector(d hardware.DiskRef) string {
	if d.Serial == "" {
		return d.Path
	}
	return "serial=" + d.Serial
}
