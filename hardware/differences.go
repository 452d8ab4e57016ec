package hardware

import (
	"fmt"
	"slices"
	"strings"
)

// maxDifferences bounds what is told of one change of the facts.
const maxDifferences = 16

// Differences says in sentences what in the machine is not what it was; nil where
// either report is missing. They are few and short whatever a machine reports.
//
// Left out is what changes by itself: names that the kernel gives in any order, memory
// that a kernel keeps for itself, what a worker of another version reports or does not,
// sticks and virtual media, that a link came up or how fast it was negotiated, which
// takes longer than a boot, and what is on the disks, which workflows and systems write.
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

// firsts are the first of each key, in their order and by key: a disk at two paths is
// one.
func firsts[T any, K comparable](all []T, key func(T) K) (list []T, by map[K]T) {
	by = make(map[K]T, len(all))
	for _, x := range all {
		if _, again := by[key(x)]; !again {
			by[key(x)] = x
			list = append(list, x)
		}
	}
	return list, by
}

func diskDifferences(old, now []DiskFact) (out []string) {
	fixed := func(all []DiskFact) ([]DiskFact, map[string]DiskFact) {
		return firsts(slices.DeleteFunc(slices.Clone(all), func(d DiskFact) bool { return d.Removable }), DiskFact.key)
	}
	was, before := fixed(old)
	is, after := fixed(now)
	for _, w := range was {
		switch d, ok := after[w.key()]; {
		case !ok:
			out = append(out, w.sized()+" is gone")
		case d.Bytes != w.Bytes:
			out = append(out, fmt.Sprintf("%s has %s, was %s", d.named(), disksize(d.Bytes), disksize(w.Bytes)))
		case d.ReadOnly && !w.ReadOnly:
			out = append(out, d.sized()+" can only be read")
		}
	}
	for _, d := range is {
		if _, ok := before[d.key()]; !ok {
			out = append(out, d.sized()+" is new")
		}
	}
	return out
}

// key is the address that the card was made with.
func (n NICFact) key() MAC {
	if n.Permanent != (MAC{}) {
		return n.Permanent
	}
	return n.MAC
}

func nicDifferences(old, now []NICFact) (out []string) {
	was, before := firsts(old, NICFact.key)
	is, after := firsts(now, NICFact.key)
	for _, w := range was {
		switch n, ok := after[w.key()]; {
		case !ok:
			out = append(out, fmt.Sprintf("NIC %s is gone", w.key()))
		case w.Link && !n.Link:
			out = append(out, fmt.Sprintf("NIC %s has no link", n.key()))
		}
	}
	for _, n := range is {
		if _, ok := before[n.key()]; !ok {
			out = append(out, fmt.Sprintf("NIC %s is new", n.key()))
		}
	}
	return out
}
