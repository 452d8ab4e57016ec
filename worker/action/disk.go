package action

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rackstrap/rackstrap/workflow"
)

// disk is a whole disk as the kernel shows it in /sys/block.
type disk struct {
	name   string // sda, nvme0n1
	path   string // below /dev
	sys    string // below /sys/block
	size   int64  // bytes
	serial string // empty where the disk has none
	wwn    string
	usable bool   // may be chosen without being named by its path
	why    string // when not
}

// whyReadOnly is why a disk with a write protection cannot be used.
const whyReadOnly = "read-only"

// virtual are the names of block devices that are no disks. The rest of
// /sys/block that is not wanted is told by its attributes.
var virtual = []string{"loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd", "mtdblock"}

// disks lists the disks, sorted by name, those that cannot be used included.
func disks(sys Sys) ([]disk, error) {
	entries, err := os.ReadDir(sys.block())
	if err != nil {
		return nil, err
	}
	var out []disk
	for _, e := range entries {
		dir := filepath.Join(sys.block(), e.Name())
		if attr(dir, "hidden") == "1" { // one path of a multipath NVMe disk
			continue
		}
		sectors, _ := strconv.ParseInt(attr(dir, "size"), 10, 64)
		d := disk{
			name: e.Name(), path: filepath.Join(sys.dev(), strings.ReplaceAll(e.Name(), "!", "/")), sys: dir,
			size:   sectors * 512, // whatever the sector size of the disk is
			serial: serial(dir),
			wwn:    firstAttr(dir, "wwid", "device/wwid"),
		}
		d.why = unusable(d)
		d.usable = d.why == ""
		out = append(out, d)
	}
	return out, nil
}

func unusable(d disk) string {
	switch {
	case slices.ContainsFunc(virtual, func(p string) bool {
		rest, ok := strings.CutPrefix(d.name, p)
		return ok && (rest == "" || rest[0] >= '0' && rest[0] <= '9')
	}):
		return "no disk"
	case attr(d.sys, "removable") == "1":
		return "removable"
	case attr(d.sys, "ro") == "1":
		return whyReadOnly
	case d.size == 0:
		return "empty"
	case strings.HasPrefix(d.name, "mmcblk") && (strings.Contains(d.name, "boot") || strings.Contains(d.name, "rpmb")):
		return "boot area"
	}
	return ""
}

// serial reads what the drivers offer: virtio-blk and NVMe an attribute, SCSI
// and ATA the page 0x80 of the vital product data (SPC-5, 7.7.17), whose first
// four bytes are a header.
func serial(dir string) string {
	if s := firstAttr(dir, "serial", "device/serial"); s != "" {
		return s
	}
	page, err := os.ReadFile(filepath.Join(dir, "device/vpd_pg80"))
	if err != nil || len(page) < 4 {
		return ""
	}
	return strings.Trim(string(page[4:]), " \x00\n")
}

func attr(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.Trim(string(b), " \x00\n\t")
}

func firstAttr(dir string, names ...string) string {
	for _, n := range names {
		if s := attr(dir, n); s != "" {
			return s
		}
	}
	return ""
}

func (d disk) String() string {
	s := fmt.Sprintf("%s (%s", d.path, bytesText(d.size))
	if d.serial != "" {
		s += ", serial " + d.serial
	}
	if !d.usable {
		s += ", " + d.why
	}
	return s + ")"
}

// selectDisk finds the one disk that sel names. Its errors list the disks that
// were found.
func selectDisk(sys Sys, sel workflow.Disk) (disk, error) {
	all, err := disks(sys)
	if err != nil {
		return disk{}, err
	}
	return choose(all, sel)
}

// choose is selectDisk without the machine.
func choose(all []disk, sel workflow.Disk) (disk, error) {
	if path, ok := sel.Path(); ok {
		return chooseByPath(all, path)
	}
	var usable []disk
	for _, d := range all {
		if d.usable {
			usable = append(usable, d)
		}
	}
	if len(usable) == 0 {
		return disk{}, permanentf("the machine has no disk that can be used; found %s (is a driver missing, or a RAID controller without a volume?)", list(all))
	}
	if wanted, ok := sel.Serial(); ok {
		return chooseBySerial(usable, wanted)
	}
	slices.SortStableFunc(usable, func(a, b disk) int {
		switch {
		case a.size == b.size:
			return strings.Compare(a.name, b.name)
		case a.size < b.size:
			return -1
		}
		return 1
	})
	switch sel {
	case "":
		if len(usable) > 1 {
			return disk{}, permanentf("the machine has several disks and the action names none: %s (set disk: smallest, largest, a path or serial=…)", list(usable))
		}
		return usable[0], nil
	case workflow.DiskLargest:
		slices.Reverse(usable)
	case workflow.DiskSmallest:
	default:
		return disk{}, permanentf("disk %q cannot be used here (use smallest, largest, a path or serial=…)", sel)
	}
	if len(usable) > 1 && usable[0].size == usable[1].size {
		return disk{}, permanentf("%s is not unique, refusing to guess between %s and %s (set disk: to a path or serial=…)", sel, usable[0], usable[1])
	}
	return usable[0], nil
}

func chooseByPath(all []disk, path string) (disk, error) {
	for _, d := range all {
		if d.path != path {
			continue
		}
		if d.size == 0 || d.why == whyReadOnly {
			return disk{}, permanentf("disk %s cannot be written: it is %s", path, unusableText(d))
		}
		return d, nil
	}
	if strings.HasPrefix(path, "/dev/disk/") {
		return disk{}, permanentf("disk %s: the worker has no udev links; found %s (use such a path or serial=…)", path, list(all))
	}
	return disk{}, permanentf("disk %s is not there; found %s", path, list(all))
}

func unusableText(d disk) string {
	if d.why == whyReadOnly {
		return d.why
	}
	return "empty"
}

func chooseBySerial(usable []disk, wanted string) (disk, error) {
	var found []disk
	for _, d := range usable {
		if d.serial == wanted || d.wwn == wanted {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 0:
		return disk{}, permanentf("no disk has the serial number %q; found %s", wanted, list(usable))
	case 1:
		return found[0], nil
	}
	return disk{}, permanentf("serial number %q is not unique, refusing to guess between %s (use a path)", wanted, list(found))
}

// list names the disks that matter; loop and RAM devices are noise there.
func list(all []disk) string {
	var s []string
	for _, d := range all {
		if d.why != "no disk" {
			s = append(s, d.String())
		}
	}
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}

// bytesText writes a size exactly and readably.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%d bytes = %.1f GiB", n, float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%d bytes = %.1f MiB", n, float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}

// inUse refuses a disk that something is built on: device mapper or md arrays
// that the kernel or firmware assembled.
func (d disk) inUse() error {
	holders := holders(d.sys)
	if len(holders) == 0 {
		return nil
	}
	return permanentf("disk %s is in use by %s (an array or volume is active on it: netboot the machine again, the worker itself starts none)",
		d.path, strings.Join(holders, ", "))
}
