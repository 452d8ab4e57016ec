package partition

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

const (
	mbrEntries   = 446 // offset of the four entries
	mbrEntrySize = 16
)

// mbrTable is the first sector of a disk.
type mbrTable struct {
	sector  []byte
	entries [4]mbrEntry
}

type mbrEntry struct {
	kind         byte
	first, count uint32 // sectors
}

// extended reports whether the partition holds logical ones.
func (e mbrEntry) extended() bool { return extended(e.kind) }

func extended(kind byte) bool { return kind == 0x05 || kind == 0x0f || kind == 0x85 }

// parseMBR reads the four primary entries. A boot sector of a file system has
// the same signature and no sensible entries.
func parseMBR(sector []byte) (mbrTable, error) {
	m := mbrTable{sector: sector}
	if sector[510] != 0x55 || sector[511] != 0xaa {
		return m, fmt.Errorf("%w on the disk (write an image first)", ErrNone)
	}
	for n := range m.entries {
		b := sector[mbrEntries+n*mbrEntrySize:][:mbrEntrySize]
		if b[0]&0x7f != 0 {
			return m, fmt.Errorf("%w: the first sector is not that of a partitioned disk", ErrNone)
		}
		if b[4] == 0xee {
			return m, errors.New("GPT header is missing: the first sector protects one that is not there")
		}
		m.entries[n] = mbrEntry{b[4], binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])}
	}
	return m, nil
}

func (m mbrTable) table(d Disk) Table {
	t := Table{Scheme: MBR}
	sector := int64(d.Sector)
	for n, e := range m.entries {
		if e.kind != 0 && e.count != 0 {
			t.Entries = append(t.Entries, Entry{
				Number: n + 1, Start: int64(e.first) * sector, End: (int64(e.first) + int64(e.count)) * sector, Kind: e.kind,
			})
		}
	}
	return t
}

// grow extends the last primary partition, at most to 2^32 sectors, which is
// all that an MBR can say.
func (m mbrTable) grow(d Disk) (Growth, error) {
	old, found := last(m.table(d).Entries)
	if !found {
		return Growth{}, errors.New("the partition table is empty (write an image first)")
	}
	if m.entries[old.Number-1].extended() {
		return Growth{}, fmt.Errorf("the last partition, %d, is an extended one, which cannot be grown (use an image with a GPT)", old.Number)
	}
	if old.End > d.Size {
		return Growth{}, fmt.Errorf("partition %d ends at byte %d, the disk has %d (the image is larger than the disk)", old.Number, old.End, d.Size)
	}
	sector := int64(d.Sector)
	limit := min(d.Size, math.MaxUint32*sector, old.Start+math.MaxUint32*sector)
	newEnd := max(old.End, limit/align*align)
	out := Growth{Scheme: MBR, Number: old.Number, Before: old.End - old.Start, After: newEnd - old.Start}
	if newEnd == old.End {
		return out, nil
	}
	changed := bytes.Clone(m.sector)
	b := changed[mbrEntries+(old.Number-1)*mbrEntrySize:]
	copy(b[5:8], []byte{0xfe, 0xff, 0xff}) // last cylinder, head, sector: beyond what they can say
	binary.LittleEndian.PutUint32(b[12:], uint32((newEnd-old.Start)/sector))
	out.Writes = []Write{{0, changed}}
	return out, nil
}
