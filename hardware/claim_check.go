package hardware

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits on one claim.
const (
	MaxRequired    = 64 // disks, and NICs, of one claim
	MaxPreferences = 16
	MaxWeight      = 100
)

// DefaultFailureDomain is the label that says where a machine stands. A machine
// without it stands in its Spec.Rack.
const DefaultFailureDomain = "rack"

// ValidOwner says why s cannot own a machine, or nil: words of letters, digits and
// - _ . : @ + joined by slashes, as capi/prod/web-1, MaxOwner bytes at most.
func ValidOwner(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("is empty (say who claims: team/service, or a name)")
	case len(s) > MaxOwner:
		return fmt.Errorf("%.20q… has %d bytes, the limit is %d", s, len(s), MaxOwner)
	}
	for word := range strings.SplitSeq(s, "/") {
		if word == "" {
			return fmt.Errorf("%q begins or ends with a slash, or has two of them (write it as team/service)", s)
		}
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.:@+/", c) {
			return fmt.Errorf("%q has %q (use letters, digits and - _ . : @ + /)", s, c)
		}
	}
	return nil
}

// Validate says everything that is wrong with the claim, as an *Invalid.
func (c *Claim) Validate() error {
	k := NewChecker("claim", PlainText(c.Meta.Name, 80))
	if c.Meta.Name == "" {
		k.Addf("metadata.name", "is empty (choose an id of your own, such as a UUID, and send the same one when you try again)")
	} else {
		k.Meta(c.Meta)
	}
	c.Spec.check(k)
	return k.Err()
}

// Validate says everything that is wrong with the spec, as an *Invalid.
func (s *ClaimSpec) Validate() error {
	k := NewChecker("claim", "")
	s.check(k)
	return k.Err()
}

func (s *ClaimSpec) check(k *Checker) {
	k.Add("spec.owner", ValidOwner(s.Owner))
	if s.Hardware != "" {
		k.Add("spec.hardware", ValidName(s.Hardware))
	}
	_, err := ParseSelector(s.Selector)
	k.Add("spec.selector", err)
	if s.FailureDomain != "" {
		k.Add("spec.failureDomain", validLabel("x", s.FailureDomain))
	}
	if s.FailureDomainLabel != "" {
		k.Add("spec.failureDomainLabel", validLabel(s.FailureDomainLabel, ""))
	}
	if s.FailureDomainLabel != "" && s.FailureDomain == "" {
		k.Addf("spec.failureDomain", "is empty, but spec.failureDomainLabel is %q (write the value that the label must have, or leave both out)", s.FailureDomainLabel)
	}
	if s.FailureDomainPreferred && s.FailureDomain == "" {
		k.Addf("spec.failureDomain", "is empty, but spec.failureDomainPreferred is true (write the failure domain that is preferred, or leave both out)")
	}
	if s.Reuse != "" {
		k.Add("spec.reuse", ValidOwner(s.Reuse))
	}
	if len(s.Prefer) > MaxPreferences {
		k.Addf("spec.prefer", "has %d entries, the limit is %d", len(s.Prefer), MaxPreferences)
	}
	for i, p := range s.Prefer {
		at := fmt.Sprintf("spec.prefer[%d]", i)
		sel, err := ParseSelector(p.Selector)
		k.Add(at+".selector", err)
		if err == nil && sel.Empty() {
			k.Addf(at+".selector", "is empty, which prefers every machine alike (name a label)")
		}
		if p.Weight == 0 || p.Weight < -MaxWeight || p.Weight > MaxWeight {
			k.Addf(at+".weight", "is %d, wanted -%d to %d and not 0", p.Weight, MaxWeight, MaxWeight)
		}
	}
	s.Requirements.check(k, "spec.requirements")
}

func (r *Requirements) check(k *Checker, at string) {
	if r.Arch != "" && r.Arch != "amd64" && r.Arch != "arm64" {
		k.Addf(at+".arch", "%.40q is not known (amd64 or arm64)", r.Arch)
	}
	if r.CPUs < 0 {
		k.Addf(at+".cpus", "is %d, which is less than none", r.CPUs)
	}
	_, err := r.Memory.Bytes()
	k.Add(at+".memory", err)
	disks, nics := 0, 0
	for i, d := range r.Disks {
		path := fmt.Sprintf("%s.disks[%d]", at, i)
		disks += d.check(k, path)
	}
	for i, n := range r.NICs {
		path := fmt.Sprintf("%s.nics[%d]", at, i)
		nics += countOf(k, path, n.Count)
		if n.Mbps < 0 {
			k.Addf(path+".mbps", "is %d, which is less than none", n.Mbps)
		}
	}
	for field, n := range map[string]int{"disks": disks, "nics": nics} {
		if n > MaxRequired {
			k.Addf(at+"."+field, "asks for %d in all, the limit is %d", n, MaxRequired)
		}
	}
}

func (d *DiskRequirement) check(k *Checker, path string) int {
	_, err := d.Size.Bytes()
	k.Add(path+".size", err)
	for _, c := range d.Transport {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') || len(d.Transport) > 16 {
			k.Addf(path+".transport", "%.40q is not known (nvme, sata, sas, virtio, …)", d.Transport)
			break
		}
	}
	return countOf(k, path, d.Count)
}

// countOf is a count with its default.
func countOf(k *Checker, path string, n int) int {
	if n < 0 || n > MaxRequired {
		k.Addf(path+".count", "is %d, wanted 1 to %d", n, MaxRequired)
		return 0
	}
	return max(n, 1)
}

// Difference names the first field in which two valid specs do not mean the same;
// empty where they do. 1024Mi is 1Gi, and a count that is left out is 1.
func (s *ClaimSpec) Difference(o *ClaimSpec) string {
	fields := map[string]bool{
		"spec.owner":                  s.Owner == o.Owner,
		"spec.hardware":               s.Hardware == o.Hardware,
		"spec.selector":               sameSelector(s.Selector, o.Selector),
		"spec.failureDomain":          s.FailureDomain == o.FailureDomain,
		"spec.failureDomainLabel":     s.domainLabel() == o.domainLabel(),
		"spec.failureDomainPreferred": s.FailureDomainPreferred == o.FailureDomainPreferred,
		"spec.reuse":                  s.Reuse == o.Reuse,
		"spec.requirements.arch":      s.Requirements.Arch == o.Requirements.Arch,
		"spec.requirements.cpus":      s.Requirements.CPUs == o.Requirements.CPUs,
		"spec.requirements.memory":    sameQuantity(s.Requirements.Memory, o.Requirements.Memory),
		"spec.requirements.disks":     slices.EqualFunc(s.Requirements.Disks, o.Requirements.Disks, sameDisks),
		"spec.requirements.nics":      slices.EqualFunc(s.Requirements.NICs, o.Requirements.NICs, sameNICs),
		"spec.prefer":                 slices.EqualFunc(s.Prefer, o.Prefer, samePreference),
	}
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		if !fields[f] {
			return f
		}
	}
	return ""
}

func (s *ClaimSpec) domainLabel() string {
	if s.FailureDomainLabel == "" {
		return DefaultFailureDomain
	}
	return s.FailureDomainLabel
}

func sameSelector(a, b string) bool {
	x, errX := ParseSelector(a)
	y, errY := ParseSelector(b)
	return errX == nil && errY == nil && x.String() == y.String()
}

func sameQuantity(a, b Quantity) bool {
	x, errX := a.Bytes()
	y, errY := b.Bytes()
	return errX == nil && errY == nil && x == y
}

func sameDisks(a, b DiskRequirement) bool {
	return max(a.Count, 1) == max(b.Count, 1) && sameQuantity(a.Size, b.Size) && a.Transport == b.Transport &&
		(a.Rotational == nil) == (b.Rotational == nil) && (a.Rotational == nil || *a.Rotational == *b.Rotational)
}

func sameNICs(a, b NICRequirement) bool {
	return max(a.Count, 1) == max(b.Count, 1) && a.Mbps == b.Mbps
}

func samePreference(a, b Preference) bool {
	return a.Weight == b.Weight && sameSelector(a.Selector, b.Selector)
}
