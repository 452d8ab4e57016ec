package hardware

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// Matcher judges machines for one claim. It is made once and asked often.
type Matcher struct {
	spec     *ClaimSpec
	selector Selector
	within   Selector
	memory   int64
	disks    []diskWant
	nics     []int // the least speed of each NIC, in Mbps
	prefer   []weighed
}

type weighed struct {
	selector Selector
	weight   int
}

// NewMatcher makes a Matcher of a spec; an *Invalid if the spec is. within is what
// the claimer may use at all.
func NewMatcher(spec *ClaimSpec, within Selector) (*Matcher, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	m := newMatcher(spec)
	m.within = within
	return m, nil
}

// newMatcher makes a Matcher of a spec that Validate has read.
func newMatcher(spec *ClaimSpec) *Matcher {
	m := &Matcher{spec: spec}
	m.selector, _ = ParseSelector(spec.Selector)
	m.memory, _ = spec.Requirements.Memory.Bytes()
	for _, p := range spec.Prefer {
		sel, _ := ParseSelector(p.Selector)
		m.prefer = append(m.prefer, weighed{sel, p.Weight})
	}
	for _, d := range spec.Requirements.Disks {
		size, _ := d.Size.Bytes()
		for range max(d.Count, 1) {
			m.disks = append(m.disks, diskWant{uint64(size), d.Size, d.Transport, d.Rotational})
		}
	}
	for _, n := range spec.Requirements.NICs {
		for range max(n.Count, 1) {
			m.nics = append(m.nics, n.Mbps)
		}
	}
	return m
}

// Against is a kind of thing that speaks against a machine, as a summary counts
// them: "12 claimed".
type Against string

// What speaks against a machine, in the order in which it is looked at.
const (
	AgainstName        Against = "not the one that is named"
	AgainstClaimed     Against = "claimed"
	AgainstReserved    Against = "kept for another group"
	AgainstState       Against = "not in state available"
	AgainstWorkflow    Against = "with an active workflow"
	AgainstHold        Against = "on hold"
	AgainstMaintenance Against = "in maintenance"
	AgainstQuarantine  Against = "quarantined"
	AgainstDirty       Against = "not-wiped"
	AgainstProtect     Against = "protected"
	AgainstNetboot     Against = "not allowed to netboot"
	AgainstScope       Against = "outside of what the token may use"
	AgainstLabels      Against = "with other labels"
	AgainstDomain      Against = "in another failure domain"
	AgainstArch        Against = "of another architecture"
	AgainstNoFacts     Against = "without facts"
	AgainstCPUs        Against = "with too few CPUs"
	AgainstMemory      Against = "with too little memory"
	AgainstDisks       Against = "without the disks"
	AgainstNICs        Against = "without the NICs"
)

// objections collects what speaks against a machine. Where only the first one is
// wanted, its sentence is not made.
type objections struct {
	one   bool
	first Against
	texts []string
}

// add reports whether that is enough.
func (o *objections) add(a Against, format string, args ...any) bool {
	if o.first == "" {
		o.first = a
	}
	if !o.one {
		o.texts = append(o.texts, fmt.Sprintf(format, args...))
	}
	return o.one
}

// Fits reports whether the claim can have the machine, and if not, the first thing
// against it. active says that a workflow of the machine has not ended.
func (m *Matcher) Fits(h *Hardware, active bool) (Against, bool) {
	o := objections{one: true}
	_ = m.usable(h, active, &o) || m.placed(h, &o) || m.equipped(h, &o)
	return o.first, o.first == ""
}

// Candidate says everything that speaks against the machine, and its score. held is
// the claim that asks, where it has a machine already: that one fits.
func (m *Matcher) Candidate(h *Hardware, active bool, held string) Candidate {
	c := Candidate{Hardware: h.Meta.Name, Score: m.Score(h)}
	if held != "" && h.Status.Claim != nil && h.Status.Claim.ID == held {
		c.Fits = true
		return c
	}
	o := objections{}
	m.usable(h, active, &o)
	m.placed(h, &o)
	m.equipped(h, &o)
	c.Against, c.Fits = o.texts, o.first == ""
	if c.Fits {
		c.Note, c.rank = m.note(h), m.rank(h)
	}
	return c
}

// Score is the sum of the preferences that the machine meets.
func (m *Matcher) Score(h *Hardware) int {
	sum := 0
	for _, p := range m.prefer {
		if p.selector.Matches(h.Meta.Labels) {
			sum += p.weight
		}
	}
	return sum
}

// Fit says whether a claim with this spec could have the machine, and if not,
// everything that speaks against it, in sentences. active says that a workflow of
// the machine has not ended. A spec that is not valid is what speaks against it.
func Fit(h *Hardware, active bool, spec *ClaimSpec) Candidate {
	m, err := NewMatcher(spec, Selector{})
	if err != nil {
		return Candidate{Hardware: h.Meta.Name, Against: []string{err.Error()}}
	}
	return m.Candidate(h, active, "")
}

// usable looks at the machine's life.
func (m *Matcher) usable(h *Hardware, active bool, o *objections) bool {
	s := &h.Status
	state := s.State
	if state == "" {
		state = StateAvailable // an operator registered it, the engine had nothing to do with it yet
	}
	if n := m.spec.Hardware; n != "" && n != h.Meta.Name && o.add(AgainstName, "the claim names %s", n) {
		return true
	}
	if c := s.Claim; c != nil && o.add(AgainstClaimed, "claimed by %s (claim %s)", c.Owner, c.ID) {
		return true
	}
	if r := s.Reserved; r != nil && !m.reuses(s) && o.add(AgainstReserved, "kept for claims of %s until %s: claim it with --reuse %s, or end that with `rackstrap release %s`", r.For, r.Until.UTC().Format(time.RFC3339), r.For, h.Meta.Name) {
		return true
	}
	if s.Stopping.Awaited() && o.add(AgainstState, "state %s, and what its last owner installed is being stopped", state) {
		return true
	}
	kept := m.reuses(s) && s.Reserved.KeepDisks
	switch {
	case state == StateAvailable:
	case kept && (state == StateProvisioned || state == StateFailed):
	case state == StatePending:
		if o.add(AgainstState, "state pending: accept it first with `rackstrap accept %s`", h.Meta.Name) {
			return true
		}
	default:
		if o.add(AgainstState, "state %s", state) {
			return true
		}
	}
	if state == StateAvailable && len(s.Dirty) > 0 && !kept && o.add(AgainstDirty, "its disks were written and not wiped since: `rackstrap release %s`", h.Meta.Name) {
		return true
	}
	if active && o.add(AgainstWorkflow, "workflow %s is active", orNothing(s.Workflow)) {
		return true
	}
	if s.Hold && o.add(AgainstHold, "%s", withNote("on hold", sentenceOf(s.HoldReason))) {
		return true
	}
	if s.Maintenance && o.add(AgainstMaintenance, "%s", withNote("in maintenance", s.MaintenanceNote)) {
		return true
	}
	if s.Quarantined() && o.add(AgainstQuarantine, "quarantined: %s: look at `rackstrap explain %s`", s.QuarantinedFor(), h.Meta.Name) {
		return true
	}
	if h.Spec.Protect && o.add(AgainstProtect, "protect: true") {
		return true
	}
	if !h.Spec.Netboot.PXE() && o.add(AgainstNetboot, "allowPXE: false: nothing can be installed on it") {
		return true
	}
	return !h.Spec.Netboot.Workflow() && o.add(AgainstNetboot, "allowWorkflow: false: nothing can be installed on it")
}

// placed looks at labels and place.
func (m *Matcher) placed(h *Hardware, o *objections) bool {
	for _, t := range m.within.terms {
		if !t.matches(h.Meta.Labels) && o.add(AgainstScope, "%s, and the token may only use %s", labelOf(h, t.key), t) {
			return true
		}
	}
	for _, t := range m.selector.terms {
		if !t.matches(h.Meta.Labels) && o.add(AgainstLabels, "%s, wanted %s", labelOf(h, t.key), t) {
			return true
		}
	}
	if m.spec.FailureDomain == "" || m.spec.FailureDomainPreferred {
		return false
	}
	label, have := m.spec.domainLabel(), m.domain(h)
	if have == m.spec.FailureDomain {
		return false
	}
	if have == "" {
		return o.add(AgainstDomain, "in no failure domain: it has no label %s, wanted %s=%s", label, label, m.spec.FailureDomain)
	}
	return o.add(AgainstDomain, "in failure domain %s=%s, wanted %s", label, have, m.spec.FailureDomain)
}

// domain is the failure domain that the machine is in, empty for none.
func (m *Matcher) domain(h *Hardware) string {
	label := m.spec.domainLabel()
	have, ok := h.Meta.Labels[label]
	if !ok && label == DefaultFailureDomain {
		have = h.Spec.Rack
	}
	return have
}

// reuses reports whether the machine is kept for the claim's group.
func (m *Matcher) reuses(s *Status) bool {
	return s.Reserved != nil && m.spec.Reuse != "" && s.Reserved.For == m.spec.Reuse
}

// note says why a machine that fits is taken before others, or after them, besides its
// score.
func (m *Matcher) note(h *Hardware) string {
	var out []string
	if m.reuses(&h.Status) {
		out = append(out, "kept for "+m.spec.Reuse+" until "+h.Status.Reserved.Until.UTC().Format(time.RFC3339))
	}
	if want := m.spec.FailureDomain; want != "" && m.spec.FailureDomainPreferred && m.domain(h) != want {
		have := "in no failure domain"
		if d := m.domain(h); d != "" {
			have = "in failure domain " + m.spec.domainLabel() + "=" + d
		}
		out = append(out, have+", preferred "+want)
	}
	return strings.Join(out, "; ")
}

func labelOf(h *Hardware, key string) string {
	if v, ok := h.Meta.Labels[key]; ok {
		return "label " + key + "=" + v
	}
	return "no label " + key
}

func orNothing(s string) string {
	if s == "" {
		return "of an operator"
	}
	return s
}

func sentenceOf(r Reason) string {
	if r == "" {
		return ""
	}
	return r.Sentence()
}

func withNote(s, note string) string {
	if note = strings.TrimSpace(note); note == "" {
		return s
	}
	return s + ": " + note
}

// ranked are machines by how willingly they are taken, in the order in which they
// were added among equals. Few ranks are many machines: they are not sorted one by
// one.
type ranked map[rank][]*Hardware

type rank struct {
	// kept: for the claim's group; near: in the failure domain that it prefers.
	kept, near      bool
	score, failures int
}

// better is first, as cmp has it.
func (a rank) better(b rank) int {
	return cmp.Or(first(a.kept, b.kept), first(a.near, b.near), cmp.Compare(b.score, a.score), cmp.Compare(a.failures, b.failures))
}

// first compares so that what is true comes first.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// rank is how willingly the claim takes the machine.
func (m *Matcher) rank(h *Hardware) rank {
	return rank{
		kept: m.reuses(&h.Status), near: m.spec.FailureDomainPreferred && m.domain(h) == m.spec.FailureDomain,
		score: m.Score(h), failures: h.Status.Failures,
	}
}

// order lists all, the best first.
func (r ranked) order() iter.Seq[*Hardware] {
	ranks := slices.SortedFunc(maps.Keys(r), rank.better)
	return func(yield func(*Hardware) bool) {
		for _, k := range ranks {
			for _, h := range r[k] {
				if !yield(h) {
					return
				}
			}
		}
	}
}

// Best yields the machines that the claim can have, the one to take first: one that is
// kept for its group, then one of the failure domain that it prefers, then the
// highest score, then the fewest failures, then the next one after a place that
// follows from the claim's id, so that claims at the same time do not all want the
// same machine. Where the claim prefers none it looks no further than it is asked
// to. h must be sorted by name; it is not changed. active says whether a workflow of
// the machine with that uid has not ended.
func (m *Matcher) Best(id string, h []*Hardware, active func(uid string) bool) iter.Seq[*Hardware] {
	fits := func(x *Hardware) bool {
		_, ok := m.Fits(x, false)
		return ok && !active(x.Meta.UID)
	}
	return func(yield func(*Hardware) bool) {
		if len(h) == 0 {
			return
		}
		start := Place(id, len(h))
		later, alike := ranked{}, len(m.prefer) == 0 && m.spec.Reuse == "" && !m.spec.FailureDomainPreferred
		for i := range h {
			x := h[(start+i)%len(h)]
			if !alike || x.Status.Failures > 0 {
				k := m.rank(x)
				later[k] = append(later[k], x) // a score costs less than to see whether it fits
			} else if fits(x) && !yield(x) {
				return
			}
		}
		for x := range later.order() {
			if fits(x) && !yield(x) {
				return
			}
		}
	}
}

// Answer says of all machines whether the claim could have them. h must be sorted by
// name; active is as in Best.
func (m *Matcher) Answer(id string, h []*Hardware, active func(uid string) bool) *ClaimAnswer {
	out := &ClaimAnswer{Candidates: make([]Candidate, len(h)), Against: map[Against]int{}}
	for x := range m.Best(id, h, active) {
		out.Picked = x.Meta.Name
		break
	}
	for i, x := range h {
		busy := active(x.Meta.UID)
		out.Candidates[i] = m.Candidate(x, busy, id)
		if id != "" && x.Status.Claim != nil && x.Status.Claim.ID == id {
			out.Picked = x.Meta.Name
		} else if first, fits := m.Fits(x, busy); !fits {
			out.Against[first]++
		}
	}
	sortCandidates(out.Candidates, out.Picked)
	return out
}

// Place is where among n machines a claim begins to look.
func Place(id string, n int) int {
	f := fnv.New64a()
	_, _ = f.Write([]byte(id)) // never fails
	return int(f.Sum64() % uint64(n))
}

// sortCandidates puts the best first: the picked one, those that fit by their score,
// then those with the least against them.
func sortCandidates(c []Candidate, picked string) {
	place := func(x Candidate) int {
		switch {
		case x.Hardware == picked:
			return 0
		case x.Fits:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(c, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), first(a.rank.kept, b.rank.kept), first(a.rank.near, b.rank.near), cmp.Compare(len(a.Against), len(b.Against)), cmp.Compare(b.Score, a.Score), strings.Compare(a.Hardware, b.Hardware))
	})
}
