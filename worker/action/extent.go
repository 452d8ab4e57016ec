package action

import (
	"cmp"
	"slices"
)

// extent is a range of bytes of a disk.
type extent struct{ offset, length int64 }

func (e extent) end() int64 { return e.offset + e.length }

const mib = 1 << 20

// signatures are the places in a disk or partition of size bytes where tables
// and superblocks are: at the start (MBR, GPT, ext, XFS, LVM, LUKS, md 1.1 and
// 1.2, ZFS, the first superblock of btrfs at 64 KiB), at the end (backup GPT, md
// 0.90 and 1.0, firmware RAID, ZFS), and the other superblocks of btrfs, at
// 64 MiB and 256 GiB.
func signatures(within extent) []extent {
	at := func(offset, length int64) extent {
		offset, end := max(offset, 0), min(offset+length, within.length)
		return extent{within.offset + offset, max(end-offset, 0)}
	}
	return []extent{
		at(0, 4*mib),
		at(64*mib, mib),
		at(256<<30, mib),
		at(within.length-mib, mib),
	}
}

// merge sorts extents, joins those that touch, drops empty ones, and widens
// them to whole sectors of a disk of that size.
func merge(in []extent, size int64, sector int) []extent {
	s := int64(sector)
	var out []extent
	sorted := slices.Clone(in)
	slices.SortFunc(sorted, func(a, b extent) int { return cmp.Compare(a.offset, b.offset) })
	for _, e := range sorted {
		start := max(e.offset, 0) / s * s
		end := min((e.end()+s-1)/s*s, size)
		if e.length <= 0 || start >= end {
			continue
		}
		if n := len(out) - 1; n >= 0 && start <= out[n].end() {
			out[n].length = max(out[n].end(), end) - out[n].offset
			continue
		}
		out = append(out, extent{start, end - start})
	}
	return out
}
