package partition

import "encoding/binary"

// maxLogical bounds the sectors of the chain of logical partitions, also of those that
// describe none: a whole disk can be one chain. The kernel, too, stops after about so many.
const maxLogical = 124

// Look reads the partition table as it is written, also where it could not be used: with
// partitions that end beyond the disk, and the logical ones of an MBR. Errors wrap
// [ErrNone] when there is no table.
func Look(d Disk) (Table, error) {
	mbr, isGPT, err := readFirst(d)
	if err != nil {
		return Table{}, err
	}
	if !isGPT {
		t := mbr.table(d)
		for _, e := range t.Entries {
			if extended(e.Kind) {
				t.Entries = append(t.Entries, logical(d, e)...)
				break // the kernel, too, takes the first one only
			}
		}
		return t, nil
	}
	g, err := readGPT(d)
	if err != nil {
		return Table{}, err
	}
	return g.table(d), nil
}

// logical lists the partitions in an extended one. Each has a sector like an MBR before
// it: its first entry is the partition, counted from there, and its second the next such
// sector, counted from the begin of the extended partition. A chain that breaks off ends
// the list.
func logical(d Disk, in Entry) []Entry {
	sector := int64(d.Sector)
	var out []Entry
	at := in.Start
	for range maxLogical {
		b := make([]byte, d.Sector)
		if readAt(d, b, at) != nil || b[510] != 0x55 || b[511] != 0xaa {
			break
		}
		entry := func(n int) mbrEntry {
			e := b[mbrEntries+n*mbrEntrySize:]
			return mbrEntry{e[4], binary.LittleEndian.Uint32(e[8:]), binary.LittleEndian.Uint32(e[12:])}
		}
		if e := entry(0); e.kind != 0 && e.count != 0 {
			start := at + int64(e.first)*sector
			out = append(out, Entry{Number: 5 + len(out), Start: start, End: start + int64(e.count)*sector, Kind: e.kind})
		}
		next := entry(1)
		then := in.Start + int64(next.first)*sector
		if !next.extended() || then <= at {
			break // it only goes forward, so it ends
		}
		at = then
	}
	return out
}
