package partition

import (
	"encoding/binary"
	"testing"
)

// endless is a disk on which each sector leads to the next one, as the sectors before
// logical partitions do, and none describes a partition.
type endless struct{ reads int }

func (e *endless) ReadAt(b []byte, at int64) (int, error) {
	e.reads++
	clear(b)
	b[510], b[511] = 0x55, 0xaa
	entry := b[mbrEntries:]
	if at > 0 {
		entry = entry[mbrEntrySize:]
	}
	entry[4] = 0x05
	binary.LittleEndian.PutUint32(entry[8:], uint32(at/512)) // counted from sector 1
	if at == 0 {
		binary.LittleEndian.PutUint32(entry[8:], 1)
	}
	binary.LittleEndian.PutUint32(entry[12:], 1<<31)
	return len(b), nil
}

// TestLookEnds: a disk can be one chain of nothing, a read for each of its sectors.
func TestLookEnds(t *testing.T) {
	t.Parallel()
	d := &endless{}
	table, err := Look(Disk{ReaderAt: d, Size: 1 << 30, Sector: 512})
	if err != nil || len(table.Entries) != 1 || d.reads > 2*maxLogical {
		t.Errorf("%d partitions after %d reads, %v", len(table.Entries), d.reads, err)
	}
}
