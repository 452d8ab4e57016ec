package api

import (
	"fmt"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// KindClaim is what a claim's `kind:` says. It is none of Kinds: apply makes no
// claims, because a claim is a request that may find nothing.
const KindClaim Kind = "Claim"

// ClaimHardware is the body of POST /hardware/{name}/claim.
type ClaimHardware struct {
	// Claim is the claim's id, the caller's own: the same one again is the same claim.
	Claim  string            `json:"claim"`
	Owner  string            `json:"owner"`
	Labels map[string]string `json:"labels,omitempty"`
}

// ExplainClaim is the body of POST /claims/explain. Without an owner it is asked for
// nobody in particular.
type ExplainClaim struct {
	Spec hardware.ClaimSpec `json:"spec"`
}

// ReleaseClaim is the body of POST /claims/{id}/release.
type ReleaseClaim struct {
	// Reserve keeps the machine for the next claim of a group.
	Reserve *hardware.Reserve `json:"reserve,omitempty"`
	// Unhealthy is why the machine should not be given to anybody before a human looked
	// at it; empty: nothing speaks against it. It is quarantined.
	Unhealthy string `json:"unhealthy,omitempty"`
	// Reason is what the timeline shows.
	Reason string `json:"reason,omitempty"`
	// Owner, where there is no claim of that id: the id counts as one of this owner that
	// has ended, so that a request for it which is still on its way takes no machine.
	// Without it an unknown id is not found.
	Owner string `json:"owner,omitempty"`
}

// ClaimReleased is the answer to DELETE /claims/{id} and POST /claims/{id}/release.
type ClaimReleased struct {
	Claim hardware.Claim `json:"claim"`
	// Workflow wipes the machine; empty where nothing had to be wiped, or where a
	// running workflow has to end first.
	Workflow string `json:"workflow,omitempty"`
}

// ClaimFlags is a spec as the flags of `rackstrap claim create` and `explain`.
func ClaimFlags(s *hardware.ClaimSpec) string {
	var out []string
	add := func(flag, value string) {
		if value != "" {
			out = append(out, flag+" "+quoted(value))
		}
	}
	r := &s.Requirements
	add("--owner", s.Owner)
	add("--hardware", s.Hardware)
	add("-l", s.Selector)
	add("--arch", r.Arch)
	if r.CPUs > 0 {
		add("--cpus", fmt.Sprint(r.CPUs))
	}
	add("--memory", string(r.Memory))
	for _, d := range r.Disks {
		add("--disk", DiskFlag(d))
	}
	for _, n := range r.NICs {
		add("--nic", fmt.Sprintf("%dx%d", max(n.Count, 1), n.Mbps))
	}
	add("--failure-domain", s.FailureDomain)
	add("--failure-domain-label", s.FailureDomainLabel)
	if s.FailureDomainPreferred {
		out = append(out, "--failure-domain-preferred")
	}
	add("--reuse", s.Reuse)
	for _, p := range s.Prefer {
		add("--prefer", fmt.Sprintf("%d:%s", p.Weight, p.Selector))
	}
	return strings.Join(out, " ")
}

// DiskFlag is a requirement as --disk takes it: 2x500Gi,nvme,flash.
func DiskFlag(d hardware.DiskRequirement) string {
	words := []string{fmt.Sprintf("%dx%s", max(d.Count, 1), d.Size)}
	if d.Transport != "" {
		words = append(words, d.Transport)
	}
	if d.Rotational != nil && *d.Rotational {
		words = append(words, "spinning")
	} else if d.Rotational != nil {
		words = append(words, "flash")
	}
	return strings.Join(words, ",")
}

// quoted is s as one word of a shell.
func quoted(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
