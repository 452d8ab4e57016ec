package hardware

import (
	"maps"
	"slices"
	"strings"
)

// MaxPriority bounds a rule's priority, both ways.
const MaxPriority = 1_000_000

// Validate says everything that is wrong with the rule by itself, as an *Invalid;
// whether its Subnet and Template are there is for who has them.
func (r *Rule) Validate() error {
	c := NewChecker("rule", PlainText(r.Meta.Name, 80))
	c.Meta(r.Meta)
	s := &r.Spec
	if s.Priority < -MaxPriority || s.Priority > MaxPriority {
		c.Addf("spec.priority", "is %d, wanted -%d to %d", s.Priority, MaxPriority, MaxPriority)
	}
	s.Match.check(c)
	if len(s.Labels) > MaxLabels {
		c.Addf("spec.labels", "has %d entries, the limit is %d", len(s.Labels), MaxLabels)
	}
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		c.Add("spec.labels", validLabel(k, s.Labels[k]))
	}
	if s.Provision != nil {
		c.Add("spec.provision.template", ValidName(s.Provision.Template))
	}
	if len(s.Labels) == 0 && !s.Accept && s.Provision == nil {
		c.Addf("spec", "does nothing with the machines that match (give it labels, accept: true or provision)")
	}
	return c.Err()
}

func (m *RuleMatch) check(c *Checker) {
	const at = "spec.match"
	switch {
	case m.All && !m.empty():
		c.Addf(at+".all", "is true, and there are conditions beside it (leave out the one or the others)")
	case !m.All && m.empty():
		c.Addf(at, "asks for nothing, which every machine has (if every machine is meant, write all: true)")
	}
	if m.Subnet != "" {
		c.Add(at+".subnet", ValidName(m.Subnet))
	}
	_, err := ParseSelector(m.Selector)
	c.Add(at+".selector", err)
	m.Requirements.check(c, at+".requirements")
	names := RuleFacts()
	for _, name := range slices.Sorted(maps.Keys(m.Facts)) {
		checkFact(c, at+".facts", name, m.Facts[name], names)
	}
}

// countedFacts are asked for as numbers, not as text.
func countedFacts() map[string]string {
	return map[string]string{
		"cpus": "requirements.cpus", "memory": "requirements.memory", "memoryBytes": "requirements.memory",
		"disks": "requirements.disks", "nics": "requirements.nics", "bytes": "requirements.disks", "mbps": "requirements.nics",
	}
}

func checkFact(c *Checker, at, name, pattern string, names []string) {
	switch near := Nearest(name, names); {
	case slices.Contains(names, name):
	case countedFacts()[name] != "":
		c.Addf(at, "%q is a number, no text (ask for it in spec.match.%s)", name, countedFacts()[name])
		return
	case len(near) > 0:
		c.Addf(at, "there is no fact %.60q (did you mean %s?)", name, near[0])
		return
	default:
		c.Addf(at, "there is no fact %.60q (one of %s)", name, strings.Join(names, ", "))
		return
	}
	if len(pattern) > maxPattern {
		c.Addf(at+"."+name, "has %d bytes, the limit is %d", len(pattern), maxPattern)
	}
	if PlainText(pattern, maxPattern) != pattern {
		c.Addf(at+"."+name, "%.80q has characters that no fact has (write plain text)", pattern)
	}
	if name == "mac" && strings.Trim(strings.ToLower(pattern), "0123456789abcdef:*?") != "" {
		c.Addf(at+".mac", "%.40q is no part of a MAC (write it as 52:54:00:*)", pattern)
	}
}
