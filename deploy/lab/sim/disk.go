package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// disk is one disk and what is on it.
type disk struct {
	Disk
	system *System // nil: nothing that boots
	// layout is what a worker sees on it.
	layout *hardware.Layout
}

// blank is what is on a disk that was wiped.
func blank() *hardware.Layout { return &hardware.Layout{Table: hardware.TableNone} }

// ofSystem is what an image leaves on a disk of so many bytes, once it was grown.
func ofSystem(bytes int64) *hardware.Layout {
	const mib, efi = 1 << 20, 512 << 20
	l := &hardware.Layout{Table: hardware.TableGPT}
	start, end := uint64(mib), uint64(bytes)/mib*mib-mib
	if end > 2*efi {
		l.Partitions = append(l.Partitions, hardware.PartitionFact{Number: 1, Start: start, Bytes: efi, Type: "EFI system", Content: hardware.ContentVFAT, Label: "EFI"})
		start += efi
	}
	if end > start {
		l.Partitions = append(l.Partitions, hardware.PartitionFact{
			Number: len(l.Partitions) + 1, Start: start, Bytes: end - start, Type: "Linux file system", Content: hardware.ContentExt4, Label: "root",
		})
	}
	return l
}

// look gives disks of the facts what is on them.
func (m *Machine) look(_ context.Context, disks []hardware.DiskFact) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range disks {
		for _, d := range m.disks {
			if d.Path == disks[i].Path {
				disks[i].Layout = d.layout.Clone()
			}
		}
	}
}

// clone is a copy that the machine does not change any more.
func (s *System) clone() *System {
	if s == nil {
		return nil
	}
	out := *s
	out.Files = maps.Clone(s.Files)
	return &out
}

// choose finds the disk that an action names, by the rules of the worker.
func choose(all []*disk, sel workflow.Disk) (*disk, error) {
	var fit []*disk
	path, byPath := sel.Path()
	serial, bySerial := sel.Serial()
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *disk) int { return int(min(max(a.Bytes-b.Bytes, -1), 1)) })
	switch {
	case byPath:
		fit = slices.DeleteFunc(sorted, func(d *disk) bool { return d.Path != path })
	case bySerial:
		fit = slices.DeleteFunc(sorted, func(d *disk) bool { return d.Serial != serial })
	case sel == "":
		fit = sorted
	case sel == workflow.DiskLargest && len(sorted) > 0:
		least := sorted[len(sorted)-1].Bytes
		fit = slices.DeleteFunc(sorted, func(d *disk) bool { return d.Bytes < least })
	case sel == workflow.DiskSmallest && len(sorted) > 0:
		most := sorted[0].Bytes
		fit = slices.DeleteFunc(sorted, func(d *disk) bool { return d.Bytes > most })
	}
	if len(fit) == 1 {
		return fit[0], nil
	}
	var there []string
	for _, d := range all {
		there = append(there, fmt.Sprintf("%s (%d bytes, serial %s)", d.Path, d.Bytes, d.Serial))
	}
	return nil, fmt.Errorf("disk %q names %d of this machine's disks: %s", sel, len(fit), strings.Join(there, ", "))
}
