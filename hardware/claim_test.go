package hardware

import (
	"strings"
	"testing"
	"time"
)

func goodClaim() *Claim {
	yes := true
	return &Claim{
		Meta: Meta{Name: "0b9f9c1e-6c5d-4f0e-9d57-5a7f1d1b2c3d", Labels: map[string]string{"cluster": "prod"}},
		Spec: ClaimSpec{
			Owner: "capi/prod/web-1", Selector: "tier=prod", FailureDomain: "b1", FailureDomainLabel: "row",
			Prefer: []Preference{{"rack=a1", 10}},
			Requirements: Requirements{
				Arch: "arm64", CPUs: 4, Memory: "8Gi", Disks: []DiskRequirement{{Count: 2, Size: "1.5T", Transport: "nvme", Rotational: &yes}},
				NICs: []NICRequirement{{Count: 2, Mbps: 10000}},
			},
		},
	}
}

// TestClaimValidate has one row for each thing that can be wrong.
func TestClaimValidate(t *testing.T) {
	t.Parallel()
	if err := goodClaim().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Claim){
		"metadata.name: is empty (choose an id":                     func(c *Claim) { c.Meta.Name = "" },
		`metadata.name: "A" has 'A'`:                                func(c *Claim) { c.Meta.Name = "A" },
		"metadata.labels: key":                                      func(c *Claim) { c.Meta.Labels[""] = "x" },
		"spec.owner: is empty":                                      func(c *Claim) { c.Spec.Owner = "" },
		`spec.owner: "/a" begins or ends with a slash`:              func(c *Claim) { c.Spec.Owner = "/a" },
		`spec.owner: "a//b" begins`:                                 func(c *Claim) { c.Spec.Owner = "a//b" },
		"spec.owner: \"a b\" has ' '":                               func(c *Claim) { c.Spec.Owner = "a b" },
		"bytes, the limit is 253":                                   func(c *Claim) { c.Spec.Owner = strings.Repeat("a", 254) },
		"spec.hardware: ":                                           func(c *Claim) { c.Spec.Hardware = "no name" },
		"spec.selector: selector":                                   func(c *Claim) { c.Spec.Selector = "a=b=" },
		"spec.failureDomain: ":                                      func(c *Claim) { c.Spec.FailureDomain = "a b" },
		"spec.failureDomainLabel: ":                                 func(c *Claim) { c.Spec.FailureDomainLabel = "a b" },
		`spec.failureDomain: is empty, but spec.failureDomainLabel`: func(c *Claim) { c.Spec.FailureDomain = "" },
		`spec.failureDomain: is empty, but spec.failureDomainPreferred`: func(c *Claim) {
			c.Spec.FailureDomain, c.Spec.FailureDomainLabel, c.Spec.FailureDomainPreferred = "", "", true
		},
		`spec.reuse: "a/" begins or ends with a slash`:                  func(c *Claim) { c.Spec.Reuse = "a/" },
		"spec.prefer: has 17 entries":                                   func(c *Claim) { c.Spec.Prefer = make([]Preference, 17) },
		"spec.prefer[0].selector: selector":                             func(c *Claim) { c.Spec.Prefer[0].Selector = "(" },
		"spec.prefer[0].selector: is empty":                             func(c *Claim) { c.Spec.Prefer[0].Selector = "" },
		"spec.prefer[0].weight: is 101":                                 func(c *Claim) { c.Spec.Prefer[0].Weight = 101 },
		`spec.requirements.arch: "x86" is not known`:                    func(c *Claim) { c.Spec.Requirements.Arch = "x86" },
		"spec.requirements.cpus: is -1":                                 func(c *Claim) { c.Spec.Requirements.CPUs = -1 },
		`spec.requirements.memory: "lots" is no size`:                   func(c *Claim) { c.Spec.Requirements.Memory = "lots" },
		"spec.requirements.disks[0].size: ":                             func(c *Claim) { c.Spec.Requirements.Disks[0].Size = "-1" },
		`spec.requirements.disks[0].transport: "NVMe!" is not known`:    func(c *Claim) { c.Spec.Requirements.Disks[0].Transport = "NVMe!" },
		"spec.requirements.disks[0].count: is 65, wanted 1 to 64":       func(c *Claim) { c.Spec.Requirements.Disks[0].Count = 65 },
		"spec.requirements.nics: asks for 65 in all, the limit is 64":   func(c *Claim) { c.Spec.Requirements.NICs = make([]NICRequirement, 65) },
		"spec.requirements.nics[0].mbps: is -10, which is less than no": func(c *Claim) { c.Spec.Requirements.NICs[0].Mbps = -10 },
	} {
		c := goodClaim()
		change(c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwanted %s", err, want)
		}
	}
}

// TestClaimDifference: what means the same is the same, and each field counts.
func TestClaimDifference(t *testing.T) {
	t.Parallel()
	a, b := goodClaim().Spec, goodClaim().Spec
	b.Selector, b.Requirements.Memory, b.Requirements.Disks[0].Size = " tier==prod ", "8192Mi", "1500G"
	if d := a.Difference(&b); d != "" {
		t.Errorf("the same in other words differs in %s", d)
	}
	plain, rack := ClaimSpec{FailureDomain: "x"}, ClaimSpec{FailureDomain: "x", FailureDomainLabel: "rack"}
	if d := plain.Difference(&rack); d != "" {
		t.Errorf("the default label differs in %s", d)
	}
	no := false
	for want, change := range map[string]func(*ClaimSpec){
		"spec.owner":                  func(s *ClaimSpec) { s.Owner = "x" },
		"spec.hardware":               func(s *ClaimSpec) { s.Hardware = "x" },
		"spec.selector":               func(s *ClaimSpec) { s.Selector = "" },
		"spec.failureDomain":          func(s *ClaimSpec) { s.FailureDomain = "x" },
		"spec.failureDomainLabel":     func(s *ClaimSpec) { s.FailureDomainLabel = "" },
		"spec.failureDomainPreferred": func(s *ClaimSpec) { s.FailureDomainPreferred = true },
		"spec.reuse":                  func(s *ClaimSpec) { s.Reuse = "x" },
		"spec.requirements.arch":      func(s *ClaimSpec) { s.Requirements.Arch = "" },
		"spec.requirements.cpus":      func(s *ClaimSpec) { s.Requirements.CPUs = 5 },
		"spec.requirements.memory":    func(s *ClaimSpec) { s.Requirements.Memory = "8G" },
		"spec.requirements.disks":     func(s *ClaimSpec) { s.Requirements.Disks[0].Rotational = &no },
		"spec.requirements.nics":      func(s *ClaimSpec) { s.Requirements.NICs = nil },
		"spec.prefer":                 func(s *ClaimSpec) { s.Prefer[0].Weight = 11 },
	} {
		b := goodClaim().Spec
		change(&b)
		if d := a.Difference(&b); d != want {
			t.Errorf("difference %q, wanted %q", d, want)
		}
	}
}

func TestClaimErrors(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		`hardware "m1" does not fit: on hold; protect: true`:                                                 &NoCandidate{Hardware: "m1", Why: []string{"on hold", "protect: true"}},
		"no machine fits: there are none":                                                                    &NoCandidate{ID: "c"},
		"no machine fits; of 6: 3 claimed, 2 on hold, 1 with too few CPUs":                                   &NoCandidate{Machines: 6, Against: map[Against]int{AgainstCPUs: 1, AgainstClaimed: 3, AgainstHold: 2}},
		`claim "c" exists with another spec.owner (send what it was made with, or use another id)`:           &ClaimDiffers{ID: "c", Field: "spec.owner"},
		`claim "c" ended at 2026-01-02T03:04:05Z; it had hardware "m1" (a new claim needs an id of its own)`: &ClaimEnded{ID: "c", Hardware: "m1", Ended: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	} {
		if err.Error() != want {
			t.Errorf("got %s\nwanted %s", err, want)
		}
	}
}
