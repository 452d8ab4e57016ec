package fat

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// File is one file in the root directory.
type File struct {
	Name    string
	Content []byte
}

// The shape of the file system, after Microsoft's FAT specification of 2000
// (version 1.03): FAT16, which needs at least 4085 and less than 65525 clusters.
const (
	reserved    = 4   // sectors before the first FAT
	rootEntries = 512 // of 32 bytes
	minClusters = 4085
	maxClusters = 65524
	// created is the date of all files, 1980-01-01: the same input gives the same bytes.
	created = 0x0021
)

// Size is what a partition needs for [Make], in bytes: enough clusters for FAT16
// with sectors of 512 and of 4096 bytes.
const Size = 32 << 20

// Make makes a FAT16 file system of [Size] bytes on sectors of that many bytes. It
// returns its beginning, up to the end of the last file; what follows is to be zero.
// It returns an error for a label or a name that FAT cannot have, and for files that
// are too large, too many or have too long names together.
func Make(label string, sector int, files []File) ([]byte, error) {
	if len(label) == 0 || len(label) > 11 || !plain(label) {
		return nil, fmt.Errorf("%q is no label of a FAT file system (1 to 11 letters or digits)", label)
	}
	if sector != 512 && sector != 4096 {
		return nil, fmt.Errorf("sectors of %d bytes are not supported", sector)
	}
	g := layout(sector)
	if len(files) > 64 {
		return nil, fmt.Errorf("%d files are too many", len(files))
	}
	table := []uint16{0xfff8, 0xffff}
	dir := entry(shortName(label), attrLabel, 0, 0)
	out := make([]byte, g.data)
	taken := map[[11]byte]bool{}
	seen := map[string]bool{}
	for _, f := range files {
		if f.Name == "" || len(f.Name) > 200 || !plain(f.Name) || seen[f.Name] {
			return nil, fmt.Errorf("%q is no name for a file here", f.Name)
		}
		seen[f.Name] = true
		first := uint16(0)
		n := (len(f.Content) + g.cluster - 1) / g.cluster
		if len(table)+n > g.clusters+2 {
			return nil, fmt.Errorf("file %s: %d bytes have no room", f.Name, len(f.Content))
		}
		if n > 0 {
			first = uint16(len(table))
		}
		for i := range n {
			next := uint16(0xffff)
			if i < n-1 {
				next = uint16(len(table) + 1)
			}
			table = append(table, next)
		}
		out = append(out, f.Content...)
		out = append(out, make([]byte, n*g.cluster-len(f.Content))...)
		short := alias(f.Name, taken)
		dir = append(dir, longName(f.Name, short)...)
		dir = append(dir, entry(short, attrFile, first, len(f.Content))...)
		if len(dir) > rootEntries*32 {
			return nil, fmt.Errorf("file %s: the directory has no room for its name (%d entries; a file takes one, and one for each 13 letters)", f.Name, rootEntries)
		}
	}
	copy(out, g.boot(label, crc32.ChecksumIEEE(out)))
	for n := range 2 {
		at := out[g.fat(n):]
		for i, v := range table {
			binary.LittleEndian.PutUint16(at[2*i:], v)
		}
	}
	copy(out[g.root:], dir)
	return out, nil
}

// geometry is where things are, in bytes from the start.
type geometry struct {
	sector, cluster int // bytes
	fatSectors      int // of one FAT
	root, data      int // offsets
	clusters        int
}

func layout(sector int) geometry {
	g := geometry{sector: sector, cluster: max(2048, sector)}
	// A FAT for as many clusters as there would be without the FATs: at most a few
	// sectors more than needed.
	g.fatSectors = ((Size/g.cluster+2)*2 + sector - 1) / sector
	g.root = g.fat(2)
	g.data = g.root + rootEntries*32
	g.clusters = (Size - g.data) / g.cluster
	return g
}

// fat is where the n-th FAT is.
func (g geometry) fat(n int) int { return (reserved + n*g.fatSectors) * g.sector }

// boot is the boot sector, whose program area is empty.
func (g geometry) boot(label string, serial uint32) []byte {
	b := make([]byte, g.sector)
	le := binary.LittleEndian
	copy(b, "\xeb\x3c\x90MSWIN4.1")
	le.PutUint16(b[11:], uint16(g.sector))
	b[13] = byte(g.cluster / g.sector)
	le.PutUint16(b[14:], reserved)
	b[16] = 2 // FATs
	le.PutUint16(b[17:], rootEntries)
	if total := Size / g.sector; total <= 0xffff {
		le.PutUint16(b[19:], uint16(total))
	} else {
		le.PutUint32(b[32:], uint32(total))
	}
	b[21] = 0xf8 // a fixed disk
	le.PutUint16(b[22:], uint16(g.fatSectors))
	le.PutUint16(b[24:], 63)  // sectors of a track
	le.PutUint16(b[26:], 255) // heads
	b[36], b[38] = 0x80, 0x29
	le.PutUint32(b[39:], serial)
	short := shortName(label)
	copy(b[43:], short[:])
	copy(b[54:], "FAT16   ")
	b[510], b[511] = 0x55, 0xaa
	return b
}
