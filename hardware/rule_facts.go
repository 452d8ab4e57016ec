package hardware

import (
	"maps"
	"slices"
	"strings"
)

// ruleFacts are the facts that a rule can ask for, by their JSON name. Those of which a
// machine has several (disks, NICs) match where one of them does.
func ruleFacts() map[string]func(h *Hardware, f *Facts) []string {
	one := func(of func(f *Facts) string) func(*Hardware, *Facts) []string {
		return func(_ *Hardware, f *Facts) []string { return []string{of(f)} }
	}
	disks := func(of func(d *DiskFact) string) func(*Hardware, *Facts) []string {
		return func(_ *Hardware, f *Facts) []string {
			var out []string
			for i := range f.Disks {
				out = append(out, of(&f.Disks[i]))
			}
			return out
		}
	}
	bmc := func(of func(b *BMCFact) string) func(*Hardware, *Facts) []string {
		return func(_ *Hardware, f *Facts) []string {
			if f.BMC == nil {
				return nil
			}
			return []string{of(f.BMC)}
		}
	}
	return map[string]func(*Hardware, *Facts) []string{
		"firmware":      one(func(f *Facts) string { return f.Firmware }),
		"secureBoot":    one(func(f *Facts) string { return f.SecureBoot }),
		"arch":          one(func(f *Facts) string { return f.Arch }),
		"cpuModel":      one(func(f *Facts) string { return f.CPUModel }),
		"vendor":        one(func(f *Facts) string { return f.Vendor }),
		"product":       one(func(f *Facts) string { return f.Product }),
		"serial":        one(func(f *Facts) string { return f.Serial }),
		"uuid":          one(func(f *Facts) string { return f.UUID }),
		"boardSerial":   one(func(f *Facts) string { return f.BoardSerial }),
		"chassisSerial": one(func(f *Facts) string { return f.ChassisSerial }),
		"assetTag":      one(func(f *Facts) string { return f.AssetTag }),
		"bios":          one(func(f *Facts) string { return f.BIOS }),
		"kernel":        one(func(f *Facts) string { return f.Kernel }),
		"worker":        one(func(f *Facts) string { return f.Worker }),
		"bmcAddress": bmc(func(b *BMCFact) string {
			if !b.Address.IsValid() {
				return ""
			}
			return b.Address.String()
		}),
		"bmcFirmware":   bmc(func(b *BMCFact) string { return b.Firmware }),
		"diskModel":     disks(func(d *DiskFact) string { return d.Model }),
		"diskSerial":    disks(func(d *DiskFact) string { return d.Serial }),
		"diskTransport": disks(func(d *DiskFact) string { return d.Transport }),
		"nicDriver": func(_ *Hardware, f *Facts) []string {
			var out []string
			for _, n := range f.NICs {
				out = append(out, n.Driver)
			}
			return out
		},
		"mac": func(h *Hardware, f *Facts) []string {
			var out []string
			for _, n := range h.Spec.Interfaces {
				out = append(out, n.MAC.String())
			}
			for _, n := range f.NICs {
				out = append(out, n.MAC.String())
			}
			return out
		},
	}
}

// RuleFacts are the names of the facts that a rule can ask for.
func RuleFacts() []string { return slices.Sorted(maps.Keys(ruleFacts())) }

// factLike reports whether one of the values is what the pattern says. A fact that is
// not known is what the empty pattern asks for, and no other.
func factLike(pattern string, values []string) bool {
	known := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	if pattern == "" {
		return len(known) == 0
	}
	return slices.ContainsFunc(known, func(v string) bool { return like(pattern, v) })
}

// factText shows what a machine has, shortly.
func factText(name string, values []string) string {
	known := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	if len(known) == 0 {
		return name + " is not known"
	}
	slices.Sort(known)
	for i, v := range known {
		known[i] = quoted(v)
	}
	return name + " is " + listed(slices.Compact(known), "")
}

func quoted(s string) string {
	return `"` + strings.ReplaceAll(PlainText(s, maxFactText), `"`, "'") + `"`
}
