// Package partition reads and grows partition tables. It works on bytes: what
// it is given it reads, what shall change it returns as a list of writes.
package partition

import (
	"errors"
	"fmt"
	"io"
)

// Scheme is the kind of a partition table.
type Scheme string

// The schemes.
const (
	GPT Scheme = "gpt"
	MBR Scheme = "mbr"
)

// align is the boundary in bytes on which a grown partition ends: what every
// current partitioning tool uses, and a multiple of every flash page.
const align = 1 << 20

// ErrNone says that there is no partition table.
var ErrNone = errors.New("no partition table")

// Entry is one partition.
type Entry struct {
	Number int   // from 1, as the kernel counts
	Start  int64 // first byte
	End    int64 // first byte after it
	Name   string
	// Type and GUID are those of a GPT, in the bytes of the table.
	Type, GUID [16]byte
	// Kind is the type in an MBR.
	Kind byte
}

// Table is what a partition table says.
type Table struct {
	Scheme  Scheme
	Entries []Entry // in the order of the table
	// Rescued: the first of the two tables of a GPT is damaged, and this is the other.
	Rescued bool
}

// Write is a change to the disk.
type Write struct {
	Offset int64
	Data   []byte
}

// Growth is what [Grow] decided. Writes are in the order that keeps a valid
// table on the disk at every moment; each is a whole number of sectors. There
// are none when the table is right already.
type Growth struct {
	Scheme Scheme
	// Number is the last partition; Before and After are its sizes in bytes.
	Number        int
	Before, After int64
	Writes        []Write
}

// Disk is a disk or an image of one.
type Disk struct {
	io.ReaderAt
	Size   int64 // bytes
	Sector int   // logical sector size in bytes: 512 or 4096
}

// Read returns the partition table. Errors wrap [ErrNone] when there is none.
func Read(d Disk) (Table, error) {
	mbr, isGPT, err := readFirst(d)
	if err != nil {
		return Table{}, err
	}
	if !isGPT {
		return mbr.table(d), nil
	}
	g, err := readGPT(d)
	if err != nil {
		return Table{}, err
	}
	if err := g.within(d); err != nil {
		return Table{}, err
	}
	return g.table(d), nil
}

// Last returns the partition that ends last, even where that is beyond the disk.
// Errors wrap [ErrNone] when there is no table, or no partition in it.
func Last(d Disk) (Entry, error) {
	mbr, isGPT, err := readFirst(d)
	if err != nil {
		return Entry{}, err
	}
	table := mbr.table(d)
	if isGPT {
		g, err := readGPT(d)
		if err != nil {
			return Entry{}, err
		}
		table = g.table(d)
	}
	e, found := last(table.Entries)
	if !found {
		return e, fmt.Errorf("%w with a partition in it", ErrNone)
	}
	return e, nil
}

// Grow moves the backup of a GPT to the end of the disk and extends the
// partition that ends last to the last whole MiB of the disk. Errors wrap
// [ErrNone] when there is no table.
func Grow(d Disk) (Growth, error) {
	mbr, isGPT, err := readFirst(d)
	if err != nil {
		return Growth{}, err
	}
	if !isGPT {
		return mbr.grow(d)
	}
	g, err := readGPT(d)
	if err != nil {
		return Growth{}, err
	}
	if err := g.within(d); err != nil {
		return Growth{}, err
	}
	return g.grow(d, mbr)
}

// readFirst reads the MBR and says whether it protects a GPT.
func readFirst(d Disk) (mbr mbrTable, isGPT bool, err error) {
	if d.Sector != 512 && d.Sector != 4096 {
		return mbr, false, fmt.Errorf("sector size of %d bytes is not supported", d.Sector)
	}
	if d.Size < int64(3*d.Sector) {
		return mbr, false, fmt.Errorf("%w: the disk has only %d bytes", ErrNone, d.Size)
	}
	first := make([]byte, 2*4096)
	n, err := d.ReadAt(first[:min(int64(len(first)), d.Size)], 0)
	if err != nil && err != io.EOF {
		return mbr, false, err
	}
	first = first[:n]
	if n < 2*d.Sector {
		return mbr, false, io.ErrUnexpectedEOF
	}
	if hasGPTMagic(first[d.Sector:]) {
		mbr.sector = first[:d.Sector]
		return mbr, true, nil
	}
	if other := 512 + 4096 - d.Sector; len(first) > other && hasGPTMagic(first[other:]) {
		return mbr, false, fmt.Errorf("the partition table is made for sectors of %d bytes, the disk has sectors of %d (use an image made for them)", other, d.Sector)
	}
	mbr, err = parseMBR(first[:d.Sector])
	return mbr, false, err
}

// last returns the entry that ends last; ok is false when there is none.
func last(entries []Entry) (e Entry, ok bool) {
	for _, c := range entries {
		if !ok || c.End > e.End {
			e, ok = c, true
		}
	}
	return e, ok
}
