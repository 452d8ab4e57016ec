package hardware

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Judge says what the rules make of a machine that booted in the named Subnet; empty
// where it is not known. It goes by what h has (labels, record, facts) and by nothing
// else: that the machine is discovered, pending and without a conflict is for the caller
// to know. Neither rules nor h are changed; the Verdict shares nothing with them but the
// values of params.
func Judge(rules []*Rule, h *Hardware, subnet string) Verdict {
	v := Verdict{}
	labels := maps.Clone(h.Meta.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, r := range slices.SortedFunc(slices.Values(rules), inOrder) {
		if against := r.against(h, labels, subnet); len(against) > 0 {
			if v.Against == nil {
				v.Against = map[string]string{}
			}
			v.Against[r.Meta.Name] = strings.Join(against, "; ")
			continue
		}
		v.Rules = append(v.Rules, r.Meta.Name)
		v.label(r, labels)
		v.Accept = v.Accept || r.Spec.Accept
		if p := r.Spec.Provision; p != nil && v.Provision == nil {
			v.Provision = &RuleProvision{Template: p.Template, Params: maps.Clone(p.Params)}
		}
	}
	return v
}

// inOrder is the order in which rules apply.
func inOrder(a, b *Rule) int {
	return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), strings.Compare(a.Meta.Name, b.Meta.Name))
}

// label adds the rule's labels to labels, which are those of the machine so far.
func (v *Verdict) label(r *Rule, labels map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(r.Spec.Labels)) {
		want := r.Spec.Labels[k]
		have, has := labels[k]
		switch {
		case has && have == want:
		case has:
			v.LeftOut = append(v.LeftOut, fmt.Sprintf("rule %s: label %s=%s: the machine has %s=%s already", r.Meta.Name, k, want, k, have))
		case len(labels) >= MaxLabels:
			v.LeftOut = append(v.LeftOut, fmt.Sprintf("rule %s: label %s=%s: the machine has %d labels, which is the limit", r.Meta.Name, k, want, MaxLabels))
		default:
			if v.Labels == nil {
				v.Labels = map[string]string{}
			}
			v.Labels[k], labels[k] = want, want
		}
	}
}

// against is everything that keeps the rule from matching, in sentences.
func (r *Rule) against(h *Hardware, labels map[string]string, subnet string) []string {
	m := &r.Spec.Match
	if m.empty() {
		if m.All {
			return nil
		}
		return []string{"it asks for nothing and does not say all: true"}
	}
	var out []string
	switch {
	case m.Subnet == "" || m.Subnet == subnet:
	case subnet == "":
		out = append(out, fmt.Sprintf("it is not known in which subnet the machine boots, wanted %s", m.Subnet))
	default:
		out = append(out, fmt.Sprintf("boots in subnet %s, wanted %s", subnet, m.Subnet))
	}
	sel, err := ParseSelector(m.Selector)
	if err != nil {
		out = append(out, err.Error())
	}
	has := Hardware{Meta: Meta{Labels: labels}}
	for _, t := range sel.terms {
		if !t.matches(labels) {
			out = append(out, fmt.Sprintf("%s, wanted %s", labelOf(&has, t.key), t))
		}
	}
	o := objections{}
	newMatcher(&ClaimSpec{Requirements: m.Requirements}).equipped(h, &o)
	out = append(out, o.texts...)
	if len(m.Facts) == 0 {
		return out
	}
	if h.Facts == nil {
		if o.first != AgainstNoFacts {
			out = append(out, noFacts(h))
		}
		return out
	}
	known := ruleFacts()
	for _, name := range slices.Sorted(maps.Keys(m.Facts)) {
		want, of := m.Facts[name], known[name]
		switch {
		case of == nil:
			out = append(out, fmt.Sprintf("there is no fact %q", name))
		case factLike(want, of(h, h.Facts)):
		case want == "":
			out = append(out, factText(name, of(h, h.Facts))+", wanted none")
		default:
			out = append(out, factText(name, of(h, h.Facts))+", wanted "+quoted(want))
		}
	}
	return out
}

// empty reports whether the match asks for nothing.
func (m *RuleMatch) empty() bool {
	return m.Subnet == "" && m.Selector == "" && m.Requirements.empty() && len(m.Facts) == 0
}

func (r *Requirements) empty() bool {
	return r.Arch == "" && r.CPUs == 0 && r.Memory == "" && len(r.Disks) == 0 && len(r.NICs) == 0
}
