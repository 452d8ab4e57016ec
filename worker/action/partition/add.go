package partition

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"unicode/utf16"
)

// basicData is the type of a partition with a file system that every system reads
// (UEFI specification 2.10, table 5-7 and Microsoft's basic data partition,
// ebd0a0a2-b9e5-4433-87c0-68b6b72699c7), in the bytes of the table.
var basicData = [16]byte{0xa2, 0xa0, 0xd0, 0xeb, 0xe5, 0xb9, 0x33, 0x44, 0x87, 0xc0, 0x68, 0xb6, 0xb7, 0x26, 0x99, 0xc7}

// Addition is what [Add] decided. Writes are as in [Growth].
type Addition struct {
	// Entry is the partition; it had been there before where Existed.
	Entry
	Existed bool
	Writes  []Write
}

// Add puts a partition of our own at the end of the disk, after moving the backup
// of the GPT there. It knows one that it added before by its name and GUID, and
// leaves that where it is. Errors wrap [ErrNone] when there is no table; an MBR, a
// full table and a disk without room are errors, too.
func Add(d Disk, name string, size int64) (Addition, error) {
	protective, isGPT, err := readFirst(d)
	if err != nil {
		return Addition{}, err
	}
	if !isGPT {
		return Addition{}, fmt.Errorf("the disk has an MBR, and a partition can be added to a GPT only (use an image with a GPT)")
	}
	g, err := readGPT(d)
	if err != nil {
		return Addition{}, err
	}
	if err := g.within(d); err != nil {
		return Addition{}, err
	}
	return g.add(d, protective, name, size)
}

// ownGUID is the GUID of a partition that we add: made of the table's own and the
// partition's name, in the form of a random one (RFC 9562, version 8: the bytes of
// the first three fields are swapped in a GPT).
func (g *gptTable) ownGUID(name string) [16]byte {
	sum := sha256.Sum256(append(bytes.Clone(g.header.GUID[:]), "rackstrap "+name...))
	id := [16]byte(sum[:])
	id[7] = id[7]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

func (g gptTable) add(d Disk, protective mbrTable, name string, size int64) (Addition, error) {
	table := g.table(d)
	lastEntry, _ := last(table.Entries)
	lastUsable, err := g.room(d, lastEntry)
	if err != nil {
		return Addition{}, err
	}
	for _, e := range table.Entries {
		if e.Name == name && e.GUID == g.ownGUID(name) && e.End-e.Start == size {
			w, err := g.replace(d, protective, g.entries, lastUsable)
			return Addition{e, true, w}, err
		}
	}
	sector := int64(d.Sector)
	end := (lastUsable + 1) * sector / align * align
	start := end - size
	first := max(int64(g.header.FirstUsable)*sector, lastEntry.End)
	if start < first {
		return Addition{}, fmt.Errorf("there are %d bytes after the last partition, and %d are needed (use a larger disk, and disk.grow after this)", max(end-first, 0), size)
	}
	number := 1
	for _, e := range table.Entries {
		number = max(number, e.Number+1) // systems know their partitions by number
	}
	if number > int(g.header.Count) {
		return Addition{}, fmt.Errorf("the partition table has no entry left after number %d", number-1)
	}
	e := gptEntry{Type: basicData, GUID: g.ownGUID(name), First: uint64(start / sector), Last: uint64(end/sector - 1)}
	copy(e.Name[:], utf16.Encode([]rune(name)))
	entries := bytes.Clone(g.entries)
	at := (number - 1) * int(g.header.EntrySize)
	if _, err := binary.Encode(entries[at:at+gptEntrySize], binary.LittleEndian, &e); err != nil {
		return Addition{}, err
	}
	w, err := g.replace(d, protective, entries, lastUsable)
	return Addition{Entry{Number: number, Start: start, End: end, Name: name, Type: e.Type, GUID: e.GUID}, false, w}, err
}
