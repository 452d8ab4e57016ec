package hardware

import (
	"fmt"
	"strings"
)

// maxDifferences bounds what is told of one change of the facts.
const maxDifferences = 16

// Differences says in sentences what in the machine is not what it was; nil where
// either report is missing. They are few and short whatever a machine reports.
//
// Left out is what changes by itself: names that the kernel gives in any order, memory
// that a kernel keeps for itself, what a worker of another version reports or does not,
// sticks and virtual media, and that a link came up or how fast it was negotiated,
// which takes longer than a boot.
func Differences(old, now *Facts) []string {
	if old == nil || now == nil {
		return nil
	}
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	changed := func(what, is, was string) {
		if is != "" && was != "" && is != was {
			add("%s %s, was %s", what, short(is), short(was))
		}
	}
	changed("UUID", realUUID(now.UUID), realUUID(old.UUID))
	changed("serial number", Unfilled(now.Serial), Unfilled(old.Serial))
	changed("board serial", now.BoardSerial, old.BoardSerial)
	changed("chassis serial", now.ChassisSerial, old.ChassisSerial)
	if now.CPUs != old.CPUs && now.CPUs > 0 && old.CPUs > 0 {
		add("%d CPUs, was %d", now.CPUs, old.CPUs)
	}
	changed("CPU", now.CPUModel, old.CPUModel)
	if lessMemory(now.MemoryBytes, old.MemoryBytes) || lessMemory(old.MemoryBytes, now.MemoryBytes) {
		add("memory %s, was %s", gib(now.MemoryBytes), gib(old.MemoryBytes))
	}
	out = append(out, diskDifferences(old.Disks, now.Disks)...)
	out = append(out, nicDifferences(old.NICs, now.NICs)...)
	changed("vendor", now.Vendor, old.Vendor)
	changed("product", now.Product, old.Product)
	changed("asset tag", now.AssetTag, old.AssetTag)
	changed("firmware", now.Firmware, old.Firmware)
	changed("BIOS", now.BIOS, old.BIOS)
	changed("Secure Boot", now.SecureBoot, old.SecureBoot)
	if a, b := now.BMC, old.BMC; a != nil && b != nil {
		if a.Address.IsValid() && b.Address.IsValid() && a.Address != b.Address {
			add("BMC address %s, was %s", a.Address, b.Address)
		}
		if a.MAC != b.MAC && a.MAC != (MAC{}) && b.MAC != (MAC{}) {
			add("BMC MAC %s, was %s", a.MAC, b.MAC)
		}
		changed("BMC firmware", a.Firmware, b.Firmware)
	}
	if n := len(out); n > maxDifferences {
		out = append(out[:maxDifferences-1], fmt.Sprintf("and %d more", n-maxDifferences+1))
	}
	return out
}

// lessMemory reports whether a is so much less than b that no kernel's own needs make
// up for it: the smallest module there is is larger.
func lessMemory(a, b uint64) bool {
	return a > 0 && a < b && b-a > max(b/64, 128<<20)
}

// gib is an amount of memory as its modules are sold: the kernel reports a little less.
func gib(n uint64) string {
	if n < 2<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d GiB", (n+(1<<30)-1)>>30)
}

// key is what a disk is known by: its name in the world, its serial number, or where it
// has neither, its place.
func (d DiskFact) key() string {
	switch {
	case d.WWN != "":
		return d.WWN
	case d.Serial != "":
		return d.Serial
	}
	return d.Path + " " + d.Model
}

// named is the disk in a sentence.
func (d DiskFact) named() string {
	s := short(d.Serial)
	if s == "" {
		s = short(d.Path)
	}
	return "disk " + s
}

// sized is the disk with what it is, as it is sold.
func (d DiskFact) sized() string {
	return fmt.Sprintf("%s (%s)", d.named(), strings.TrimSpace(disksize(d.Bytes)+" "+short(d.Transport)))
}

func disksize(n uint64) string {
	switch {
	case n < 1e9:
		return fmt.Sprintf("%d MB", n/1e6)
	case n < 1e12:
		return fmt.Sprintf("%d GB", (n+5e8)/1e9)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e12), ".0") + " TB"
}

func diskDifferences(old, now []DiskFact) (out []string) {
	was := map[string]DiskFact{}
	for _, d := range old {
		if !d.Removable {
			was[d.key()] = d
		}
	}
	var fresh []string
	seen := map[string]bool{}
	for _, d := range now {
		w, ok := was[d.key()]
		delete(was, d.key())
		again := seen[d.key()]
		seen[d.key()] = true
		switch {
		case d.Removable || again: // a disk at two paths is one
		case !ok:
			fresh = append(fresh, d.sized()+" is new")
		case d.Bytes != w.Bytes:
			out = append(out, fmt.Sprintf("%s has %s, was %s", d.named(), disksize(d.Bytes), disksize(w.Bytes)))
		case d.ReadOnly && !w.ReadOnly:
			out = append(out, d.sized()+" can only be read")
		}
	}
	for _, d := range old {
		if w, ok := was[d.key()]; ok && w == d {
			out = append(out, d.sized()+" is gone")
		}
	}
	return append(out, fresh...)
}

// key is the address that the card was made with.
func (n NICFact) key() MAC {
	if n.Permanent != (MAC{}) {
		return n.Permanent
	}
	return n.MAC
}

func nicDifferences(old, now []NICFact) (out []string) {
	was := map[MAC]NICFact{}
	for _, n := range old {
		was[n.key()] = n
	}
	var fresh []string
	for _, n := range now {
		w, ok := was[n.key()]
		delete(was, n.key())
		switch {
		case !ok:
			fresh = append(fresh, fmt.Sprintf("NIC %s is new", n.key()))
		case w.Link && !n.Link:
			out = append(out, fmt.Sprintf("NIC %s has no link", n.key()))
		}
	}
	for _, n := range old {
		if _, ok := was[n.key()]; ok {
			out = append(out, fmt.Sprintf("NIC %s is gone", n.key()))
			delete(was, n.key())
		}
	}
	return append(out, fresh...)
}
