// Package block says which block devices of a machine are disks, which of these can
// be written, and what they call themselves. What the worker reports of a machine and
// what its actions do with it must agree: a release counts only if every disk that
// was reported was wiped, by path and serial number.
package block

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// Why is why a block device is not taken for a disk that anything may be written to.
type Why string

// The reasons.
const (
	NoDisk    Why = "no disk"   // it is built on others, in memory, a medium in a drive
	BootArea  Why = "boot area" // a part of an eMMC for firmware or keys
	Empty     Why = "empty"     // such as a card reader without a card
	Removable Why = "removable"
	ReadOnly  Why = "read-only"
	// Zoned disks take writes only in the order of each zone (shingled magnetic
	// recording that the host manages, ZBC and ZNS).
	Zoned Why = "zoned"
)

// Disk is one block device, as the kernel shows it.
type Disk struct {
	Name   string // in /sys/block: sda, nvme0n1, cciss!c0d0
	Path   string // below /dev: sda, cciss/c0d0
	Bytes  int64
	Serial string // plain text of one line; empty where it has none
	WWN    string // likewise
	// Why it is no disk that can be used; empty for those that can.
	Why Why
	// Locked is ReadOnly or Zoned where it cannot be written, whatever else it is.
	Locked Why
}

// Fixed reports whether it is a disk that stays in the machine and has room for
// data, even where it cannot be written.
func (d Disk) Fixed() bool { return d.Why == "" || d.Why == d.Locked }

// List lists what is in /sys/block, which is the root of sys, sorted by name. The
// single paths of a multipath NVMe disk (nvme0c0n1) are left out: they are hidden and
// have no device node. An error is that of reading the directory.
func List(sys fs.FS) ([]Disk, error) {
	entries, err := fs.ReadDir(sys, ".")
	if err != nil {
		return nil, err
	}
	var out []Disk
	for _, e := range entries {
		dir := e.Name()
		if attr(sys, dir, "hidden") == "1" {
			continue
		}
		// The unit is 512 bytes, whatever the disk's own sectors are.
		sectors, _ := strconv.ParseInt(attr(sys, dir, "size"), 10, 64)
		d := Disk{
			Name:   dir,
			Path:   strings.ReplaceAll(dir, "!", "/"), // a device node in a directory
			Bytes:  sectors * 512,
			Serial: serial(sys, dir),
			WWN:    attr(sys, dir, "device/wwid", "wwid"),
		}
		switch {
		case attr(sys, dir, "ro") == "1":
			d.Locked = ReadOnly
		case attr(sys, dir, "queue/zoned") == "host-managed":
			d.Locked = Zoned
		}
		d.Why = why(d, attr(sys, dir, "removable") == "1")
		if id, ok := region(dir); ok && attr(sys, dir, "device/subsystem/devices/region"+id+"/mappings") == "0" {
			d.Why = NoDisk
		}
		out = append(out, d)
	}
	return out, nil
}

// virtual are the names of block devices that are no disks; a number follows.
var virtual = []string{
	"loop", "ram", "zram", "dm-", "md", "md_", "sr", "fd", "nbd", "zd", "drbd", "bcache", "mtdblock", "ubiblock", "pktcdvd",
}

// region is the number in the name of persistent memory. The kernel shows as such what
// the firmware set aside as a disk in memory, too, as UEFI HTTP boot does with a disk
// that it loaded; no DIMM is mapped there (ACPI 6.5 section 5.2.26, the NFIT).
func region(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, "pmem")
	n := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if n >= 0 {
		rest = rest[:n] // pmem0.1, pmem0s
	}
	return rest, ok && rest != ""
}

// why puts what a thing is before the state it is in: Linux keeps the boot areas of
// an eMMC read-only, and a drive without a medium may be.
func why(d Disk, removable bool) Why {
	switch {
	case slices.ContainsFunc(virtual, func(p string) bool {
		rest, ok := strings.CutPrefix(d.Name, p)
		return ok && (rest == "" || p == "md_" || rest[0] >= '0' && rest[0] <= '9')
	}):
		return NoDisk
	case strings.HasPrefix(d.Name, "mmcblk") && (strings.Contains(d.Name, "boot") || strings.HasSuffix(d.Name, "rpmb")):
		return BootArea
	case d.Bytes <= 0:
		return Empty
	case removable:
		return Removable
	}
	return d.Locked
}

// serial is where the disk's driver puts it: NVMe and MMC below device, virtio at
// the disk, SCSI and SATA in the vital product data page 80h, the unit serial number
// (SPC-4 section 7.8.15): a header of four bytes that ends with the length, then text.
func serial(sys fs.FS, dir string) string {
	if s := attr(sys, dir, "device/serial", "serial"); s != "" {
		return s
	}
	b := raw(sys, path.Join(dir, "device/vpd_pg80"))
	if len(b) < 4 {
		return ""
	}
	return line(b[4:min(len(b), 4+int(b[2])<<8+int(b[3]))])
}

// attr is the first of the attributes that has a value.
func attr(sys fs.FS, dir string, names ...string) string {
	for _, n := range names {
		if s := line(raw(sys, path.Join(dir, n))); s != "" {
			return s
		}
	}
	return ""
}

// line makes one line of plain text of what a disk says, as short as facts hold it.
func line(b []byte) string {
	return strings.Join(strings.Fields(hardware.FactText(string(b))), " ")
}

// page is the most that the kernel shows of an attribute.
const page = 64 << 10

func raw(sys fs.FS, name string) []byte {
	f, err := sys.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	// A file of sysfs may fail in the middle; what came before is no value then.
	b, err := io.ReadAll(io.LimitReader(f, page))
	if err != nil {
		return nil
	}
	return b
}
