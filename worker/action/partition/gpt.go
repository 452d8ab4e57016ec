package partition

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strings"
	"unicode/utf16"
)

const gptMagic = "EFI PART"

// maxEntries bounds the table: 128 entries are usual, 1024 the most that the
// kernel and the tools agree on.
const maxEntries = 1024

func hasGPTMagic(b []byte) bool { return bytes.HasPrefix(b, []byte(gptMagic)) }

// gptHeader is the GPT header of the UEFI specification 2.10, table 5-5.
type gptHeader struct {
	Magic                      [8]byte
	Revision, Size, CRC, _     uint32
	Self, Other                uint64 // LBA of this header and of the other one
	FirstUsable, LastUsable    uint64
	GUID                       [16]byte
	Entries                    uint64 // LBA of the entries
	Count, EntrySize, EntryCRC uint32
}

const gptHeaderSize = 92

// gptEntry is a partition entry, table 5-6. An entry may be longer.
type gptEntry struct {
	Type, GUID  [16]byte
	First, Last uint64 // LBA, both inclusive
	Attributes  uint64
	Name        [36]uint16
}

const gptEntrySize = 128

// gptTable is one of the two tables. Its header is always that of a primary one.
type gptTable struct {
	raw     []byte // the sector of the header
	header  gptHeader
	entries []byte // whole sectors
	// rescued: it is the backup, the primary is damaged.
	rescued bool
}

// errDamaged: a table is not what was written there.
var errDamaged = errors.New("damaged")

// readHeader reads the header in a sector with its entries and verifies both.
func readHeader(d Disk, at uint64) (gptTable, error) {
	g := gptTable{raw: make([]byte, d.Sector)}
	sector := int64(d.Sector)
	if err := readAt(d, g.raw, int64(at)*sector); err != nil {
		return g, err
	}
	if _, err := binary.Decode(g.raw, binary.LittleEndian, &g.header); err != nil {
		return g, err
	}
	h := &g.header
	switch {
	case !hasGPTMagic(g.raw):
		return g, fmt.Errorf("GPT header is %w: it is not there", errDamaged)
	case h.Size < gptHeaderSize || h.Size > uint32(d.Sector):
		return g, fmt.Errorf("GPT header is %w: size %d", errDamaged, h.Size)
	case headerCRC(g.raw[:h.Size]) != h.CRC:
		return g, fmt.Errorf("GPT header is %w: wrong CRC", errDamaged)
	case h.Self != at:
		return g, fmt.Errorf("GPT header is %w: it says it is in sector %d", errDamaged, h.Self)
	case h.EntrySize < gptEntrySize || h.EntrySize > 4096 || h.EntrySize&(h.EntrySize-1) != 0:
		return g, fmt.Errorf("GPT entries of %d bytes are not supported", h.EntrySize)
	case h.Count == 0 || h.Count > maxEntries:
		return g, fmt.Errorf("GPT with %d entries is not supported", h.Count)
	case h.Entries < 2 || h.Entries > uint64(d.Size/sector):
		return g, fmt.Errorf("GPT header is %w: entries in sector %d", errDamaged, h.Entries)
	}
	size := int64(h.Count) * int64(h.EntrySize)
	g.entries = make([]byte, (size+sector-1)/sector*sector)
	if err := readAt(d, g.entries, int64(h.Entries)*sector); err != nil {
		return g, err
	}
	if crc32.ChecksumIEEE(g.entries[:size]) != h.EntryCRC {
		return g, fmt.Errorf("GPT entries are %w: wrong CRC", errDamaged)
	}
	return g, g.check(d)
}

// check refuses entries that cannot be, so that later arithmetic is safe.
func (g *gptTable) check(d Disk) error {
	for n := range int(g.header.Count) {
		e := g.entry(n)
		if e.Type == [16]byte{} {
			continue
		}
		if e.First > e.Last || e.First < 2 || e.Last >= uint64(math.MaxInt64/int64(d.Sector)) {
			return fmt.Errorf("GPT partition %d is damaged: sectors %d to %d", n+1, e.First, e.Last)
		}
	}
	return nil
}

// within refuses partitions that end beyond the disk. The header's own idea of
// the disk does not count: the image may have been made for a larger one.
func (g *gptTable) within(d Disk) error {
	sectors := uint64(d.Size) / uint64(d.Sector)
	for n := range int(g.header.Count) {
		if e := g.entry(n); e.Type != [16]byte{} && e.Last >= sectors {
			return fmt.Errorf("partition %d ends at sector %d, the disk has %d (the image is larger than the disk)", n+1, e.Last, sectors)
		}
	}
	return nil
}

func (g *gptTable) entry(n int) gptEntry {
	var e gptEntry
	at := n * int(g.header.EntrySize)
	_, _ = binary.Decode(g.entries[at:at+gptEntrySize], binary.LittleEndian, &e)
	return e
}

func (g *gptTable) table(d Disk) Table {
	t := Table{Scheme: GPT, Rescued: g.rescued}
	sector := int64(d.Sector)
	for n := range int(g.header.Count) {
		e := g.entry(n)
		if e.Type == [16]byte{} {
			continue
		}
		name := string(utf16.Decode(e.Name[:]))
		if end := strings.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		t.Entries = append(t.Entries, Entry{
			Number: n + 1, Start: int64(e.First) * sector, End: (int64(e.Last) + 1) * sector, Name: name,
			Type: e.Type, GUID: e.GUID,
		})
	}
	return t
}

// grow decides the new table. A partition of our own after the last one stays where
// it is.
func (g gptTable) grow(d Disk, protective mbrTable) (Growth, error) {
	var others []Entry
	limit := int64(math.MaxInt64)
	for _, e := range g.table(d).Entries {
		if e.GUID == g.ownGUID(e.Name) {
			limit = min(limit, e.Start)
			continue
		}
		others = append(others, e)
	}
	old, found := last(others)
	if !found {
		return Growth{}, errors.New("the partition table is empty (write an image first)")
	}
	if old.End > limit {
		return Growth{}, fmt.Errorf("partition %d ends after our own begins, which has to be the last (write an image again)", old.Number)
	}
	lastUsable, err := g.room(d, old)
	if err != nil {
		return Growth{}, err
	}
	sector := int64(d.Sector)
	newEnd := max(old.End, min((lastUsable+1)*sector, limit)/align*align)
	out := Growth{Scheme: GPT, Number: old.Number, Before: old.End - old.Start, After: newEnd - old.Start}
	entries := bytes.Clone(g.entries)
	at := (old.Number-1)*int(g.header.EntrySize) + 40 // ending LBA
	binary.LittleEndian.PutUint64(entries[at:], uint64(newEnd/sector-1))
	out.Writes, err = g.replace(d, protective, entries, lastUsable)
	return out, err
}

// room is the last sector that partitions can use when the backup is at the end of
// the disk; an error when the partition that ends last is in its way.
func (g *gptTable) room(d Disk, old Entry) (lastUsable int64, err error) {
	sector := int64(d.Sector)
	sectors := d.Size / sector
	lastUsable = sectors - 1 - int64(len(g.entries))/sector - 1
	if old.End/sector-1 > lastUsable {
		return 0, fmt.Errorf("partition %d ends %d sectors before the end of the disk: no room for the backup of the GPT (use a larger disk)",
			old.Number, sectors-old.End/sector)
	}
	return lastUsable, nil
}

// replace returns the writes for a table with new entries, none when the disk has it
// already. The backup is written first: until the primary changes, the old one is
// valid; while it changes, the new backup is. Where the backup is all that there is,
// it is the other way around.
func (g *gptTable) replace(d Disk, protective mbrTable, entries []byte, lastUsable int64) ([]Write, error) {
	sector := int64(d.Sector)
	sectors := d.Size / sector
	primary := g.header
	primary.Other, primary.LastUsable = uint64(sectors-1), uint64(lastUsable)
	primary.EntryCRC = crc32.ChecksumIEEE(entries[:int(primary.Count)*int(primary.EntrySize)])
	backup := primary
	backup.Self, backup.Other = primary.Other, primary.Self
	backup.Entries = uint64(lastUsable + 1)

	all := []Write{
		{int64(backup.Entries) * sector, entries},
		{int64(backup.Self) * sector, g.encode(backup)},
		{int64(primary.Entries) * sector, entries},
		{sector, g.encode(primary)},
	}
	if g.rescued {
		all = append(all[2:4:4], all[:2]...)
	}
	if w, ok := protective.protect(sectors); ok {
		all = append(all, w)
	}
	if changed, err := anyChange(d, all); err != nil || !changed {
		return nil, err
	}
	return all, nil
}

// encode returns the sector of a header, with what the old one had after it.
func (g *gptTable) encode(h gptHeader) []byte {
	out := bytes.Clone(g.raw)
	_, _ = binary.Encode(out, binary.LittleEndian, &h)
	binary.LittleEndian.PutUint32(out[16:], headerCRC(out[:h.Size]))
	return out
}

// headerCRC is the CRC over a header with its CRC field taken as zero.
func headerCRC(header []byte) uint32 {
	c := crc32.NewIEEE()
	c.Write(header[:16])
	c.Write([]byte{0, 0, 0, 0})
	c.Write(header[20:])
	return c.Sum32()
}

// protect updates the size in a protective MBR. A hybrid MBR, one with other
// partitions besides, is left alone.
func (m mbrTable) protect(sectors int64) (Write, bool) {
	const entry = mbrEntries
	if m.sector[entry+4] != 0xee || !allZero(m.sector[entry+16:entry+64]) {
		return Write{}, false
	}
	out := bytes.Clone(m.sector)
	binary.LittleEndian.PutUint32(out[entry+12:], uint32(min(sectors-1, math.MaxUint32)))
	return Write{0, out}, true
}

func anyChange(d Disk, writes []Write) (bool, error) {
	for _, w := range writes {
		have := make([]byte, len(w.Data))
		if err := readAt(d, have, w.Offset); err != nil {
			return false, err
		}
		if !bytes.Equal(have, w.Data) {
			return true, nil
		}
	}
	return false, nil
}

func readAt(d Disk, p []byte, offset int64) error {
	if offset < 0 || offset+int64(len(p)) > d.Size {
		return io.ErrUnexpectedEOF
	}
	if n, err := d.ReadAt(p, offset); n < len(p) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
