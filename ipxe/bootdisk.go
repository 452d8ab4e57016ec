package ipxe

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

// A boot disk is a small FAT file system that UEFI HTTP boot loads into memory and
// boots as a disk (UEFI 2.10 section 24.7.3.1, application/vnd.efi-img): shim, GRUB
// and a grub.cfg that takes everything else by TFTP. It is the way under Secure Boot:
// shim by its own URL starts the signed GRUB as well, but that GRUB then looks for its
// grub.cfg by HTTP, which it was built without. See deploy/docs/adr.

// bootDisks are the boot disks by name: the names of shim and GRUB among the assets,
// and on the disk.
var bootDisks = map[string]struct{ shim, grub, removable string }{
	"shimx64.img":  {"shimx64.efi", "grubx64.efi", "BOOTX64.EFI"},
	"shimaa64.img": {"shimaa64.efi", "grubaa64.efi", "BOOTAA64.EFI"},
}

// bootDisk makes the boot disk of that name; server is where GRUB is to look for us.
// The errors are those of [Assets.Open].
func (a *Assets) bootDisk(name string, server netip.Addr) (*Asset, error) {
	d := bootDisks[name]
	shim, err := a.base(d.shim)
	if err != nil {
		return nil, err
	}
	grub, err := a.base(d.grub)
	if err != nil {
		return nil, closing(err, shim)
	}
	v := &view{Host: server.String()}
	if !server.IsValid() || server.Zone() != "" || server.IsUnspecified() {
		return nil, closing(fmt.Errorf("%q is no address that a machine could reach us at (set the Subnet's advertise)", server), append(shim, grub...))
	}
	config, err := execute("bootdisk.grub.tmpl", v)
	if err != nil {
		return nil, closing(err, append(shim, grub...))
	}
	parts, err := fatDisk([]fatFile{
		{"EFI/BOOT/" + d.removable, shim[0]},
		{"EFI/BOOT/" + strings.ToUpper(d.grub), grub[0]},
		{"GRUB/GRUB.CFG", memoryPart(config)},
	})
	if err != nil {
		return nil, closing(err, append(shim, grub...))
	}
	return newAsset(a, name, parts), nil
}

func closing(err error, parts []part) error {
	if cerr := closeParts(parts); cerr != nil {
		return fmt.Errorf("%w (and %w)", err, cerr)
	}
	return err
}

// memoryPart is a part that holds b.
func memoryPart(b []byte) part {
	return part{ReaderAt: bytes.NewReader(b), Closer: io.NopCloser(nil), size: int64(len(b)), id: fmt.Sprintf("%x", sha256.Sum256(b))}
}

// The shape of the file system, after Microsoft's FAT specification of 2000 (version
// 1.03): FAT16, which has 4085 to 65524 clusters, here of one sector each.
const (
	fatSector      = 512
	fatRootEntries = 512
	fatMinClusters = 4085 + 16 // readers differ by some about where FAT16 begins
	fatMaxClusters = 65524
	fatEntry       = 32
	fatDirectory   = 0x10
	fatReadOnly    = 0x01
	fatEnd         = 0xffff
)

// fatFile is a file in one or two folders; all names are upper case, at most 8.3.
type fatFile struct {
	path string
	part part
}

// fatDisk lays files out as parts, their content as it is. Each folder has room for 14
// entries besides its own two.
func fatDisk(files []fatFile) ([]part, error) {
	fat := &fatTable{next: 2, dirs: map[string]uint16{}, data: map[uint16][]byte{}}
	fat.table = append(fat.table, 0xfff8, fatEnd)
	for _, f := range files {
		for i, c := range f.path {
			if c == '/' {
				fat.folder(f.path[:i])
			}
		}
	}
	folders := int(fat.next)
	sectors := 0
	for _, f := range files {
		n := int((f.part.size + fatSector - 1) / fatSector)
		if n == 0 || folders+sectors+n > fatMaxClusters {
			return nil, fmt.Errorf("boot disk: %s with %d bytes has no place on it", f.path, f.part.size)
		}
		fat.enter(f.path, fatReadOnly, fat.take(n), uint32(f.part.size))
		sectors += n
	}
	empty := max(fatMinClusters-(int(fat.next)-2), 0)
	head := fat.head(empty)
	for c := uint16(2); int(c) < folders; c++ {
		head = append(head, fat.data[c]...)
	}
	parts := []part{memoryPart(head)}
	for _, f := range files {
		parts = append(parts, f.part)
		// multiReaderAt pads to partAlign by itself.
		if pad := -(f.part.size + (-f.part.size)&(partAlign-1)) & (fatSector - 1); pad > 0 {
			parts = append(parts, memoryPart(make([]byte, pad)))
		}
	}
	if empty > 0 {
		parts = append(parts, memoryPart(make([]byte, empty*fatSector)))
	}
	return parts, nil
}

// fatTable is a file system while it is laid out.
type fatTable struct {
	table []uint16
	next  uint16 // the first cluster that is free
	root  []byte
	dirs  map[string]uint16 // the cluster of each folder
	data  map[uint16][]byte // the content of each folder
}

// take allots n clusters in a row.
func (t *fatTable) take(n int) (first uint16) {
	first = t.next
	for range n - 1 {
		t.next++
		t.table = append(t.table, t.next)
	}
	t.next++
	t.table = append(t.table, fatEnd)
	return first
}

func (t *fatTable) folder(path string) {
	if _, ok := t.dirs[path]; ok {
		return
	}
	c := t.take(1)
	t.enter(path, fatDirectory, c, 0)
	up := uint16(0)
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		up = t.dirs[path[:i]]
	}
	t.dirs[path] = c
	b := make([]byte, fatSector)
	copy(b, fatRecord(".", fatDirectory, c, 0))
	copy(b[fatEntry:], fatRecord("..", fatDirectory, up, 0))
	t.data[c] = b
}

// enter writes the record of a file or folder into the folder that it is in.
func (t *fatTable) enter(path string, attr byte, first uint16, size uint32) {
	i := strings.LastIndexByte(path, '/')
	record := fatRecord(path[i+1:], attr, first, size)
	if i < 0 {
		t.root = append(t.root, record...)
		return
	}
	dir := t.data[t.dirs[path[:i]]]
	for at := 2 * fatEntry; at < len(dir); at += fatEntry {
		if dir[at] == 0 {
			copy(dir[at:], record)
			return
		}
	}
}

// fatRecord is a directory entry; its date is 1980-01-01, so that the same files make
// the same disk.
func fatRecord(name string, attr byte, first uint16, size uint32) []byte {
	base, ext := name, ""
	if !strings.HasPrefix(name, ".") {
		base, ext, _ = strings.Cut(name, ".")
	}
	b := make([]byte, fatEntry)
	copy(b, fmt.Sprintf("%-8s%-3s", base, ext))
	b[11] = attr
	binary.LittleEndian.PutUint16(b[16:], 0x0021)
	binary.LittleEndian.PutUint16(b[24:], 0x0021)
	binary.LittleEndian.PutUint16(b[26:], first)
	binary.LittleEndian.PutUint32(b[28:], size)
	return b
}

// head is the file system up to its first cluster; empty clusters follow those taken.
func (t *fatTable) head(empty int) []byte {
	clusters := int(t.next) - 2 + empty
	size := (2*(clusters+2) + fatSector - 1) / fatSector // of one FAT, in sectors
	rootSectors := fatRootEntries * fatEntry / fatSector
	b := make([]byte, (1+2*size+rootSectors)*fatSector)
	le := binary.LittleEndian
	copy(b, "\xeb\x3c\x90RACKSTRP")
	le.PutUint16(b[11:], fatSector)
	b[13] = 1 // sectors in a cluster
	le.PutUint16(b[14:], 1)
	b[16] = 2 // FATs
	le.PutUint16(b[17:], fatRootEntries)
	if total := len(b)/fatSector + clusters; total < 1<<16 {
		le.PutUint16(b[19:], uint16(total))
	} else {
		le.PutUint32(b[32:], uint32(total))
	}
	b[21] = 0xf8 // fixed disk
	le.PutUint16(b[22:], uint16(size))
	le.PutUint16(b[24:], 32) // sectors a track and heads, which nobody asks for
	le.PutUint16(b[26:], 2)
	b[36], b[38] = 0x80, 0x29
	copy(b[39:], "RSBTNO NAME    FAT16   ")
	b[510], b[511] = 0x55, 0xaa
	for f := range 2 {
		for i, c := range t.table {
			le.PutUint16(b[(1+f*size)*fatSector+2*i:], c)
		}
	}
	copy(b[(1+2*size)*fatSector:], t.root)
	return b
}
