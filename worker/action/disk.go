package action

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/worker/block"
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
	usable bool      // may be chosen without being named by its path
	why    block.Why // when not
	locked block.Why // why it cannot be written, whatever else it is
}

// disks lists the disks, sorted by name, those that cannot be used included.
func disks(sys Sys) ([]disk, error) {
	all, err := block.List(os.DirFS(sys.block()))
	if err != nil {
		return nil, err
	}
	var out []disk
	for _, d := range all {
		out = append(out, disk{
			name: d.Name, path: filepath.Join(sys.dev(), d.Path), sys: filepath.Join(sys.block(), d.Name),
			size: d.Bytes, serial: d.Serial, wwn: d.WWN,
			usable: d.Why == "", why: d.Why, locked: d.Locked,
		})
	}
	return out, nil
}

func attr(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.Trim(string(b), " \x00\n\t")
}

func (d disk) String() string {
	s := fmt.Sprintf("%s (%s", d.path, bytesText(d.size))
	if d.serial != "" {
		s += ", serial " + d.serial
	}
	if !d.usable {
		s += ", " + string(d.why)
	}
	return s + ")"
}

// disk finds the one disk that sel names, and says in the log which one that is and
// what else there was. Its errors list the disks that were found.
func (e Env) disk(sel workflow.Disk) (disk, error) {
	all, err := disks(e.Sys)
	if err != nil {
		return disk{}, err
	}
	d, err := choose(all, sel)
	if err == nil {
		e.Log.Info("disk chosen", "disk", d.String(), "asked_for", orDefault(string(sel), "the only one"), "found", list(all))
	}
	return d, err
}

// choose is the choice without the machine.
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
		if d.size == 0 || d.locked != "" {
			return disk{}, permanentf("disk %s cannot be written: it is %s", path, unusableText(d))
		}
		return d, nil
	}
	if strings.HasPrefix(path, "/dev/disk/") {
		return disk{}, permanentf("disk %s: the worker has no udev links; found %s (use such a path or serial=…)", path, list(all))
	}
	return disk{}, permanentf("disk %s is not there; found %s", path, list(all))
}

func unusableText(d disk) block.Why {
	if d.locked != "" {
		return d.locked
	}
	return block.Empty
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
		if d.why != block.NoDisk {
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
