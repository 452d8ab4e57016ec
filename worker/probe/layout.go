package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/action/partition"
	"github.com/rackstrap/rackstrap/worker/superblock"
)

// Limits of a look at the disks.
const (
	// layoutLimit is for all of them: whoever waits for the facts waits for it.
	layoutLimit = 5 * time.Second
	// layoutsAtOnce bounds the memory that hostile tables can take, 4 MiB each, and the
	// threads that disks which do not answer hold in the kernel.
	layoutsAtOnce = 16
)

// Layouts looks at what is on the disks. It only reads, a few KiB of each partition.
type Layouts struct {
	root fs.FS
	gate chan struct{}

	mu sync.Mutex
	// mute are the paths of disks that were asked and have not answered yet. They are not
	// asked again: the kernel tries for minutes.
	mute map[string]bool
}

// NewLayouts looks at the machine below root.
func NewLayouts(root fs.FS) *Layouts {
	return &Layouts{root: root, gate: make(chan struct{}, layoutsAtOnce), mute: map[string]bool{}}
}

// Fill gives each of the disks its layout. It takes layoutLimit at most, and less where ctx
// ends; of a disk that has not answered by then the layout says so.
func (l *Layouts) Fill(ctx context.Context, disks []hardware.DiskFact) {
	ctx, cancel := context.WithTimeout(ctx, layoutLimit)
	defer cancel()
	type answer struct {
		disk   int
		layout *hardware.Layout
	}
	answers := make(chan answer, len(disks))
	waiting := 0
	for i, d := range disks {
		disks[i].Layout = &hardware.Layout{Table: hardware.TableUnknown, Problem: "the disk does not answer"}
		if !l.ask(d.Path) {
			continue
		}
		waiting++
		go func() {
			defer l.answered(d.Path)
			select {
			case l.gate <- struct{}{}:
			case <-ctx.Done():
				return
			}
			defer func() { <-l.gate }()
			answers <- answer{i, l.look(d)}
		}()
	}
	for ; waiting > 0; waiting-- {
		select {
		case a := <-answers:
			disks[a.disk].Layout = a.layout
		case <-ctx.Done():
			return
		}
	}
}

// ask reports whether the disk may be asked, and notes that it is.
func (l *Layouts) ask(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mute[path] {
		return false
	}
	l.mute[path] = true
	return true
}

func (l *Layouts) answered(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mute, path)
}

// look reads one disk. A panic over what is on it would be the kernel's: the worker is its
// only program.
func (l *Layouts) look(d hardware.DiskFact) (out *hardware.Layout) {
	defer func() {
		if p := recover(); p != nil {
			out = &hardware.Layout{Table: hardware.TableUnknown, Problem: fmt.Sprintf("the worker broke over it: %v (a fault of Rackstrap)", p)}
		}
	}()
	f, err := l.root.Open(strings.TrimPrefix(d.Path, "/"))
	if err != nil {
		return &hardware.Layout{Table: hardware.TableUnknown, Problem: err.Error()}
	}
	defer f.Close()
	r, ok := f.(io.ReaderAt)
	if !ok {
		return &hardware.Layout{Table: hardware.TableUnknown, Problem: "it cannot be read at any place"}
	}
	return layout(partition.Disk{ReaderAt: r, Size: int64(d.Bytes), Sector: l.sector(d)})
}

// sector is the disk's logical sector size in bytes.
func (l *Layouts) sector(d hardware.DiskFact) int {
	name := strings.ReplaceAll(strings.TrimPrefix(d.Path, "/dev/"), "/", "!")
	n, err := strconv.Atoi(text(l.root, path.Join("sys/block", name, "queue/logical_block_size")))
	if err != nil {
		return 512
	}
	return n
}

// layout is what a disk holds.
func layout(d partition.Disk) *hardware.Layout {
	table, err := partition.Look(d)
	switch {
	case errors.Is(err, partition.ErrNone):
		return whole(d)
	case err != nil:
		return &hardware.Layout{Table: hardware.TableUnknown, Problem: err.Error()}
	case table.Scheme == partition.GPT:
	case len(table.Entries) == 0:
		// FAT and NTFS begin with a sector that has the mark of an MBR.
		if l := whole(d); l.Content != "" {
			return l
		}
	}
	out := &hardware.Layout{Table: hardware.TableGPT}
	if table.Scheme == partition.MBR {
		out.Table = hardware.TableDOS
	}
	if table.Rescued {
		out.Problem = "the first of the two partition tables is damaged"
	}
	entries := slices.Clone(table.Entries)
	slices.SortStableFunc(entries, func(a, b partition.Entry) int {
		switch {
		case a.Start < b.Start:
			return -1
		case a.Start > b.Start:
			return 1
		}
		return a.Number - b.Number
	})
	for i, e := range entries {
		if i == hardware.MaxPartitions {
			out.More = len(entries) - i
			break
		}
		p := hardware.PartitionFact{Number: e.Number, Start: uint64(e.Start), Bytes: uint64(e.End - e.Start), Type: table.For(e), Name: e.Name}
		if size := min(e.End, d.Size) - e.Start; size > 0 && p.Type != hardware.TypeExtended {
			found := superblock.Identify(io.NewSectionReader(d, e.Start, size), size)
			p.Content, p.Label = found.Kind, found.Label
		}
		out.Partitions = append(out.Partitions, p)
	}
	return out
}

// whole is the layout of a disk without partitions.
func whole(d partition.Disk) *hardware.Layout {
	f := superblock.Identify(io.NewSectionReader(d, 0, d.Size), d.Size)
	return &hardware.Layout{Table: hardware.TableNone, Content: f.Kind, Label: f.Label}
}
