package hardware

import (
	"fmt"
	"slices"
	"strings"
)

// equipped looks at what is in the machine.
func (m *Matcher) equipped(h *Hardware, o *objections) bool {
	r := &m.spec.Requirements
	if have := archOf(h); r.Arch != "" && have != r.Arch && o.add(AgainstArch, "is %s, wanted %s", have, r.Arch) {
		return true
	}
	if r.CPUs == 0 && m.memory == 0 && len(m.disks) == 0 && len(m.nics) == 0 {
		return false
	}
	f := h.Facts
	if f == nil {
		return o.add(AgainstNoFacts, "%s", noFacts(h))
	}
	if f.CPUs < r.CPUs && o.add(AgainstCPUs, "has %d CPUs, wanted %d", f.CPUs, r.CPUs) {
		return true
	}
	if Installed(f.MemoryBytes) < uint64(m.memory) && o.add(AgainstMemory, "has %s memory, wanted %s", binarySize(Installed(f.MemoryBytes)), r.Memory) {
		return true
	}
	if len(m.disks) > 0 {
		if text := m.lacksDisks(f, o.one); text != "" && o.add(AgainstDisks, "%s", text) {
			return true
		}
	}
	if len(m.nics) > 0 {
		if text := m.lacksNICs(f, o.one); text != "" {
			return o.add(AgainstNICs, "%s", text)
		}
	}
	return false
}

func noFacts(h *Hardware) string {
	return fmt.Sprintf("no facts known yet: boot its worker once with `rackstrap hardware inspect %s`", h.Meta.Name)
}

// archOf is what the record says, else what was found, else the default.
func archOf(h *Hardware) string {
	if h.Spec.Arch == "" && h.Facts != nil && h.Facts.Arch != "" {
		return h.Facts.Arch
	}
	return h.Arch()
}

// Installed estimates the installed memory from what Linux has of it, in bytes:
// firmware and kernel keep 1 to 6 percent, so a machine sold with 64 GiB reports
// about 62.5. Memory comes in steps of at least an eighth of its size: the next
// such step is what was bought. A number that is whole already is taken as it is.
func Installed(memTotal uint64) uint64 {
	const whole = 256 << 20
	if memTotal < whole || memTotal%whole == 0 {
		return memTotal
	}
	step := uint64(1)
	for step*16 <= memTotal {
		step *= 2
	}
	up := (memTotal + step - 1) / step * step
	if up < memTotal || up-memTotal > memTotal/16 {
		return memTotal // too far away to be what firmware and kernel keep
	}
	return up
}

// diskWant is one disk that is wanted.
type diskWant struct {
	size       uint64
	asked      Quantity // size as it was written
	transport  string
	rotational *bool
}

func (w diskWant) takes(d *DiskFact) bool {
	return d.Bytes >= w.size && d.Bytes > 0 && !d.ReadOnly && !d.Removable &&
		(w.transport == "" || w.transport == d.Transport) && (w.rotational == nil || *w.rotational == d.Rotational)
}

func (w diskWant) String() string {
	words := []string{"a"}
	switch {
	case w.rotational != nil && *w.rotational:
		words = append(words, "spinning")
	case w.rotational != nil:
		words = append(words, "flash")
	}
	if w.transport != "" {
		words = append(words, w.transport)
	}
	words = append(words, "disk")
	if w.size > 0 {
		words = append(words, "of", string(w.asked))
	}
	return strings.Join(words, " ")
}

// lacksDisks says which disks are not there; empty where all are.
func (m *Matcher) lacksDisks(f *Facts, short bool) string {
	unmatched := match(len(m.disks), len(f.Disks), func(i, j int) bool { return m.disks[i].takes(&f.Disks[j]) })
	if len(unmatched) == 0 {
		return ""
	}
	if short {
		return "disks"
	}
	var lack, have []string
	for _, i := range unmatched {
		lack = append(lack, m.disks[i].String())
	}
	for i := range f.Disks {
		have = append(have, diskText(&f.Disks[i]))
	}
	return fmt.Sprintf("lacks %s; has %s", counted(lack), listed(have, "no disks"))
}

func diskText(d *DiskFact) string {
	words := []string{strings.TrimPrefix(d.Path, "/dev/"), decimalSize(d.Bytes)}
	if d.Transport != "" {
		words = append(words, d.Transport)
	}
	if d.Rotational {
		words = append(words, "spinning")
	}
	if d.ReadOnly {
		words = append(words, "read-only")
	}
	if d.Removable {
		words = append(words, "removable")
	}
	return strings.Join(words, " ")
}

// lacksNICs says which NICs are not there; empty where all are.
func (m *Matcher) lacksNICs(f *Facts, short bool) string {
	unmatched := match(len(m.nics), len(f.NICs), func(i, j int) bool { return f.NICs[j].Mbps >= m.nics[i] })
	if len(unmatched) == 0 {
		return ""
	}
	if short {
		return "NICs"
	}
	var lack, have []string
	for _, i := range unmatched {
		text := "a NIC"
		if m.nics[i] > 0 {
			text = fmt.Sprintf("a NIC with %d Mbit/s", m.nics[i])
		}
		lack = append(lack, text)
	}
	for _, n := range f.NICs {
		text := n.Name + " without a known speed"
		if n.Mbps > 0 {
			text = fmt.Sprintf("%s %d Mbit/s", n.Name, n.Mbps)
		} else if !n.Link {
			text = n.Name + " without a link"
		}
		have = append(have, text)
	}
	return fmt.Sprintf("lacks %s; has %s", counted(lack), listed(have, "no NICs"))
}

// match gives each of the wants a thing of its own, as many as possible, and
// returns the wants that got none: augmenting paths in a bipartite graph (Kuhn).
// Taking the first thing that will do is not enough: "any disk" would take the one
// NVMe from "an NVMe disk".
func match(wants, things int, takes func(want, thing int) bool) (without []int) {
	owner := make([]int, things) // want + 1
	tried := make([]int, things) // by want + 1
	var give func(want, mark int) bool
	give = func(want, mark int) bool {
		for j := range things {
			if tried[j] == mark || !takes(want, j) {
				continue
			}
			tried[j] = mark
			if owner[j] == 0 || give(owner[j]-1, mark) {
				owner[j] = want + 1
				return true
			}
		}
		return false
	}
	for i := range wants {
		if !give(i, i+1) {
			without = append(without, i)
		}
	}
	return without
}

// counted joins texts, repeats with a count: "2 × a disk, a NIC".
func counted(texts []string) string {
	var out []string
	for len(texts) > 0 {
		n := 1
		for n < len(texts) && texts[n] == texts[0] {
			n++
		}
		text := texts[0]
		if n > 1 {
			text = fmt.Sprintf("%d × %s", n, text)
		}
		out, texts = append(out, text), texts[n:]
	}
	return strings.Join(out, " and ")
}

// listed joins the first few texts.
func listed(texts []string, none string) string {
	const most = 8
	if len(texts) == 0 {
		return none
	}
	slices.Sort(texts)
	if more := len(texts) - most; more > 0 {
		return strings.Join(texts[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(texts, ", ")
}

func binarySize(n uint64) string { return sized(n, 1024, "B", "KiB", "MiB", "GiB", "TiB", "PiB") }

// decimalSize is how disks are sold.
func decimalSize(n uint64) string { return sized(n, 1000, "B", "kB", "MB", "GB", "TB", "PB") }

func sized(n uint64, base float64, units ...string) string {
	v, i := float64(n), 0
	for v >= base && i < len(units)-1 {
		v, i = v/base, i+1
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".") + " " + units[i]
}
