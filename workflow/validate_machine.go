package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// fixed reports whether a disk is one that installs write to and releases wipe.
func fixed(d hardware.DiskFact) bool { return !d.Removable && !d.ReadOnly && d.Bytes > 0 }

// fixedDisks are the disks that an install may choose from, the smallest first.
func fixedDisks(f *hardware.Facts) []hardware.DiskFact {
	if f == nil {
		return nil
	}
	var out []hardware.DiskFact
	for _, d := range f.Disks {
		if fixed(d) {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b hardware.DiskFact) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return out
}

// checkDisk asks whether the disk is one, and large enough.
func checkDisk(s *Snapshot, p *Plan) []Check {
	const name = "disk"
	f := s.hw().Facts
	if f == nil {
		return []Check{doubt(name, "let it be looked at: rackstrap hardware inspect "+s.name(), "nothing is known of its disks: its worker was never there")}
	}
	disks := fixedDisks(f)
	if len(disks) == 0 {
		return []Check{bad(name, "look at its controller's setup, and add its driver to the initramfs", "the worker found no fixed disk")}
	}
	d, err := pickDisk(p.Disk, f)
	switch {
	case err != nil && p.Disk == "":
		return []Check{bad(name, "say which: --disk smallest, --disk largest or --disk serial=…", "%v", err)}
	case errors.Is(err, errSameSize):
		return []Check{bad(name, "say which: --disk serial=… or --disk /dev/…", "%v", err)}
	case err != nil:
		return []Check{bad(name, "look at its disks: "+typeGet(s.name()), "%v", err)}
	}
	if need := imageBytes(p); need > 0 && need > d.Bytes {
		return []Check{bad(name, "choose a larger disk or a smaller image", "image %q needs %s, and %s has %s", p.ImageName, megabytes(int64(need)), d.Path, megabytes(int64(d.Bytes)))}
	}
	return []Check{good(name, "%s, %s", d.Path, megabytes(int64(d.Bytes)))}
}

func imageBytes(p *Plan) uint64 {
	if p.Image == nil || p.Image.DiskBytes < 0 {
		return 0
	}
	return uint64(p.Image.DiskBytes)
}

// errSameSize is that of two disks which a size does not tell apart.
var errSameSize = errors.New("have the same size, and the worker does not guess")

// pickDisk chooses as the worker does, which takes a disk of another sort than the fixed
// ones by its path only. Its errors say what the machine has.
func pickDisk(want Disk, f *hardware.Facts) (hardware.DiskFact, error) {
	fixed := fixedDisks(f)
	if path, ok := want.Path(); ok {
		i := slices.IndexFunc(f.Disks, func(d hardware.DiskFact) bool { return d.Path == path && !d.ReadOnly && d.Bytes > 0 })
		if i < 0 {
			return hardware.DiskFact{}, fmt.Errorf("%q is none of its disks that can be written (%s)", path, diskNames(fixed))
		}
		return f.Disks[i], nil
	}
	if len(fixed) == 0 {
		return hardware.DiskFact{}, errors.New("the worker found no fixed disk")
	}
	if serial, ok := want.Serial(); ok {
		i := slices.IndexFunc(fixed, func(d hardware.DiskFact) bool { return d.Serial == serial || d.WWN == serial })
		if i < 0 {
			return hardware.DiskFact{}, fmt.Errorf("%q is none of its fixed disks (%s)", want, diskNames(fixed))
		}
		return fixed[i], nil
	}
	switch want {
	case DiskSmallest:
	case DiskLargest:
		slices.Reverse(fixed)
	default:
		if len(fixed) > 1 {
			return hardware.DiskFact{}, fmt.Errorf("it has %d fixed disks (%s), and none is chosen", len(fixed), diskNames(fixed))
		}
	}
	if len(fixed) > 1 && fixed[0].Bytes == fixed[1].Bytes {
		return hardware.DiskFact{}, fmt.Errorf("%s is not one disk: %s and %s %w", want, fixed[0].Path, fixed[1].Path, errSameSize)
	}
	return fixed[0], nil
}

func diskNames(disks []hardware.DiskFact) string {
	const most = 6
	var out []string
	for i, d := range disks {
		if i == most {
			out = append(out, fmt.Sprintf("%d more", len(disks)-most))
			break
		}
		out = append(out, d.Path+" "+megabytes(int64(d.Bytes)))
	}
	return strings.Join(out, ", ")
}

// checkLogin asks whether anybody can log in to the installed system.
func checkLogin(s *Snapshot, p *Plan) []Check {
	spec := &s.hw().Spec
	own, _ := p.Params["userData"].(string)
	userData := cmp.Or(own, spec.UserData)
	switch {
	case p.UserData != nil:
		return []Check{bad("user-data", "correct it: "+typeGet(s.name()), "%v", p.UserData)}
	case userData == "" && p.NeedsUserData:
		return []Check{doubt("user-data", "set spec.userData, or say rackstrap provision "+s.name()+" … --user-data FILE", "the record has none, and %s needs it", p.TemplateName)}
	case userData == "" && len(spec.SSHKeys) == 0:
		return []Check{doubt("login", "add spec.sshKeys or spec.userData to the record", "there are no SSH keys and no user-data: nobody can log in to a cloud image")}
	case userData != "":
		return []Check{good("user-data", "%d bytes that can be read", len(userData))}
	}
	return []Check{good("login", "%d SSH keys", len(spec.SSHKeys))}
}

func checkHostname(s *Snapshot, p *Plan) []Check {
	h := s.hw()
	const fix = "set spec.hostname in one of the two records"
	switch err := hardware.ValidHostname(h.HostName()); {
	case err != nil:
		return []Check{bad("host name", "correct spec.hostname", "%v", err)}
	case p.SameHostname != "":
		return []Check{doubt("host name", fix, "%q is also the host name of %s", h.HostName(), p.SameHostname)}
	}
	return []Check{good("host name", "%s", h.HostName())}
}

// checkPower asks who can switch the machine.
func checkPower(s *Snapshot, _ *Plan) []Check {
	p := &s.hw().Status.Power
	switch {
	case s.byHand():
		return []Check{doubt("power", "set spec.power, or be there: it has to netboot", "a person has to switch it on")}
	case p.Error != "":
		return []Check{bad("power", "mend it, then type: "+typePower(s.name(), "status"), "its controller does not do what it is told: %s", p.Error)}
	case p.Checked.IsZero():
		return []Check{doubt("power", typePower(s.name(), "status"), "its controller was never asked")}
	}
	return []Check{good("power", "its controller said %s, %s", orWord(string(p.State), "nothing"), ago(p.Checked, s.Now))}
}
