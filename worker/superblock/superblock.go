// Package superblock recognises what a partition or a whole disk holds, by the few bytes
// that its format puts at a fixed place. It writes nothing and believes little: whoever
// wrote the disk chose those bytes.
package superblock

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// Found is what a superblock shows. Label is as it is written, of any bytes; it is empty
// where the format keeps it elsewhere.
type Found struct {
	Kind  hardware.ContentKind // empty: nothing was recognised
	Label string
}

// mark says where to look for a format.
type mark struct {
	kind   hardware.ContentKind
	offset int64
	magic  string
	label  int64 // its offset
	width  int64 // of the label; 0 for none
}

// filesystems are after their on-disk formats: the kernel's Documentation/filesystems/ext4
// and fs/xfs/libxfs/xfs_format.h, btrfs's "On-disk format", Microsoft's FAT32 file system
// specification, and for NTFS the boot sector's OEM name, beside which there is no label.
func filesystems() []mark {
	return []mark{
		{hardware.ContentExt4, extSuper + 0x38, "\x53\xef", extSuper + 0x78, 16},
		{hardware.ContentXFS, 0, "XFSB", 0x6c, 12},
		{hardware.ContentBtrfs, 0x10040, "_BHRfS_M", 0x1012b, 256},
		{hardware.ContentVFAT, 82, "FAT32   ", 71, 11},
		{hardware.ContentVFAT, 54, "FAT1", 43, 11},
		{hardware.ContentNTFS, 3, "NTFS    ", 0, 0},
	}
}

// containers are what others are built on: LUKS 1 (which has no label) and 2, their
// "On-Disk Format Specification"; LVM2, lib/format_text/layout.h, whose label is in any of
// the first four sectors; swap, the kernel's include/linux/swap.h, whose mark is at the end
// of the first page of 4, 8, 16 or 64 KiB.
func containers() []mark {
	const lvm, swap = "LABELONE", "SWAPSPACE2"
	swapped := func(page int64) mark { return mark{hardware.ContentSwap, page - int64(len(swap)), swap, 1052, 16} }
	return []mark{
		{hardware.ContentLUKS, 0, "LUKS\xba\xbe\x00\x01", 0, 0},
		{hardware.ContentLUKS, 0, "LUKS\xba\xbe\x00\x02", 24, 48},
		{hardware.ContentLVM2, 0, lvm, 0, 0},
		{hardware.ContentLVM2, 512, lvm, 0, 0},
		{hardware.ContentLVM2, 1024, lvm, 0, 0},
		{hardware.ContentLVM2, 1536, lvm, 0, 0},
		swapped(4 << 10), swapped(8 << 10), swapped(16 << 10), swapped(64 << 10),
	}
}

// Filesystem recognises a file system, also in what is built on something else's member:
// half of a mirror looks like the whole.
func Filesystem(r io.ReaderAt) Found {
	f := first(r, filesystems())
	switch {
	case f.Kind == hardware.ContentExt4:
		f.Kind = ext(r)
	case f.Kind == hardware.ContentVFAT && f.Label == "NO NAME":
		f.Label = ""
	}
	if f.Kind == "" {
		return Found{}
	}
	return f
}

// Identify recognises whatever has so many bytes. What others are built on comes first:
// a mirror's member may begin with the mirror's own file system.
func Identify(r io.ReaderAt, size int64) Found {
	if f, ok := array(r, size); ok {
		return f
	}
	if f := first(r, containers()); f.Kind != "" {
		return f
	}
	return Filesystem(r)
}

func first(r io.ReaderAt, all []mark) Found {
	for _, m := range all {
		if string(read(r, m.offset, int64(len(m.magic)))) == m.magic {
			return Found{m.kind, text(read(r, m.label, m.width))}
		}
	}
	return Found{}
}

// read is nil where there are not so many bytes.
func read(r io.ReaderAt, offset, n int64) []byte {
	b := make([]byte, n)
	if got, _ := r.ReadAt(b, offset); got < len(b) {
		return nil
	}
	return b
}

// text is what comes before the zeros or spaces that fill a label.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return strings.TrimRight(string(b), " ")
}

// extSuper is where the superblock of the ext family is.
const extSuper = 0x400

// ext tells the three apart by what a reader must know, as the kernel's fs/ext2 and ext3
// did: s_feature_compat, s_feature_incompat and s_feature_ro_compat. A journal that is a
// device of its own is no file system.
func ext(r io.ReaderAt) hardware.ContentKind {
	const (
		hasJournal    = 0x4              // compat
		journalDevice = 0x8              // incompat
		oldIncompat   = 0x2 | 0x4 | 0x10 // file type, recover, meta block groups
		oldReadOnly   = 0x1 | 0x2 | 0x4  // sparse super, large file, B-tree directories
	)
	b := read(r, extSuper+0x5c, 12)
	if b == nil {
		return ""
	}
	compat, incompat, readOnly := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	switch {
	case incompat&journalDevice != 0:
		return ""
	case incompat&^uint32(oldIncompat) != 0 || readOnly&^uint32(oldReadOnly) != 0:
		return hardware.ContentExt4
	case compat&hasJournal != 0:
		return hardware.ContentExt3
	}
	return hardware.ContentExt2
}

// arrayMagic marks a member of a Linux software array (linux/raid/md_p.h).
const arrayMagic = 0xa92b4efc

// array looks for the superblock of an array: those of version 1 are at the begin, 4 KiB
// after it or about 8 KiB before the end, and say where they are; that of version 0.90 is
// in the last whole 64 KiB but one, in the byte order of the machine.
func array(r io.ReaderAt, size int64) (Found, bool) {
	le := binary.LittleEndian
	for _, at := range []int64{0, 4096, (size/512 - 16) &^ 7 * 512} {
		b := read(r, at, 256)
		if b != nil && at >= 0 && le.Uint32(b) == arrayMagic && le.Uint32(b[4:]) == 1 && le.Uint64(b[144:]) == uint64(at/512) {
			return Found{hardware.ContentRAID, text(b[32:64])}, true
		}
	}
	at := size&^(64<<10-1) - 64<<10
	b := read(r, at, 12)
	if b == nil {
		return Found{}, false
	}
	for _, order := range []binary.ByteOrder{le, binary.BigEndian} {
		if order.Uint32(b) == arrayMagic && order.Uint32(b[4:]) == 0 && order.Uint32(b[8:]) == 90 {
			return Found{Kind: hardware.ContentRAID}, true
		}
	}
	return Found{}, false
}
