package template

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rackstrap/rackstrap/api/capi/internal/wanted"
	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
)

// capacity is what a machine of a template will be.
type capacity struct {
	fits, free int32
	resources  corev1.ResourceList
	node       infrav1.NodeInfo
	// against counts the Hardware that does not fit, each by the first thing against it.
	against map[hardware.Against]int
}

// measure reads the capacity off the Hardware. No claim is made, and no two templates
// know of each other: each counts what it could have alone. An *hardware.Invalid where
// the template asks for what no appliance knows.
func measure(spec *infrav1.RackstrapMachineSpec, owner string, hw []hardware.Hardware) (*capacity, error) {
	want := wanted.Spec(&spec.HardwareClaim, owner)
	m, err := hardware.NewMatcher(&want, hardware.Selector{})
	if err != nil {
		return nil, err
	}
	out := &capacity{resources: corev1.ResourceList{}, node: infrav1.NodeInfo{OperatingSystem: "linux"}, against: map[hardware.Against]int{}}
	arch := map[string]bool{}
	for i := range hw {
		h := &hw[i]
		if _, ok := m.Fits(h, false); ok {
			out.free++
		}
		if why, ok := m.Fits(unclaimed(h), false); !ok {
			out.against[why]++
			continue
		}
		out.fits++
		arch[archOf(h)] = true
		if f := h.Facts; f != nil {
			out.least(corev1.ResourceCPU, int64(f.CPUs), resource.DecimalSI)
			out.least(corev1.ResourceMemory, int64(f.MemoryBytes), resource.BinarySI)
			out.least(corev1.ResourceEphemeralStorage, int64(disk(f.Disks, spec.Disk)), resource.DecimalSI)
		}
	}
	if len(arch) == 1 {
		out.node.Architecture = slices.Collect(maps.Keys(arch))[0]
	}
	return out, nil
}

func (c *capacity) least(name corev1.ResourceName, n int64, f resource.Format) {
	if have, ok := c.resources[name]; n > 0 && (!ok || n < have.Value()) {
		c.resources[name] = *resource.NewQuantity(n, f)
	}
}

// unclaimed is a Hardware as it is when nobody has it.
func unclaimed(h *hardware.Hardware) *hardware.Hardware {
	s := h.Status.State
	if h.Status.Claim == nil && s != hardware.StateProvisioning && s != hardware.StateProvisioned && s != hardware.StateReleasing {
		return h
	}
	out := *h
	out.Status.Claim, out.Status.State, out.Status.Dirty = nil, hardware.StateAvailable, nil
	return &out
}

func archOf(h *hardware.Hardware) string {
	if h.Spec.Arch == "" && h.Facts != nil && h.Facts.Arch != "" {
		return h.Facts.Arch
	}
	return h.Arch()
}

// disk is the size, in bytes, of the disk that a system is installed to: as Install.Disk
// says, and the smallest where that cannot be told from here. 0: there is none.
func disk(all []hardware.DiskFact, which string) uint64 {
	var usable []hardware.DiskFact
	for _, d := range all {
		if (which != "" && d.Path == which) || (d.Serial != "" && "serial="+d.Serial == which) {
			return d.Bytes
		}
		if d.Bytes > 0 && !d.ReadOnly && !d.Removable {
			usable = append(usable, d)
		}
	}
	if len(usable) == 0 {
		return 0
	}
	bySize := func(a, b hardware.DiskFact) int { return cmp.Compare(a.Bytes, b.Bytes) }
	if which == "largest" {
		return slices.MaxFunc(usable, bySize).Bytes
	}
	return slices.MinFunc(usable, bySize).Bytes
}

// refused says why nothing fits: "3 with too little memory, 1 on hold".
func (c *capacity) refused() string {
	var words []string
	for _, why := range slices.Sorted(maps.Keys(c.against)) {
		words = append(words, fmt.Sprintf("%d %s", c.against[why], why))
	}
	if len(words) == 0 {
		return "the token sees none"
	}
	return strings.Join(words, ", ")
}
