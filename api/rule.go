package api

import "github.com/rackstrap/rackstrap/hardware"

// TestRules is the body of POST /rules/test. Nothing is written.
type TestRules struct {
	// Rule is judged with those that are there, in place of the one of its name.
	Rule *hardware.Rule `json:"rule,omitempty"`
	// Hardware names machines; empty is every machine of which facts are known.
	Hardware []string `json:"hardware,omitempty"`
	// Selector takes of those only the ones with these labels.
	Selector string `json:"selector,omitempty"`
}

// RulesTested is the answer.
type RulesTested struct {
	Machines []RuledMachine `json:"machines"`
	// Left counts the machines that were not looked at, because there are too many.
	Left int `json:"left,omitempty"`
}

// RuledMachine says what the rules would make of one machine if it were discovered now.
type RuledMachine struct {
	Hardware string         `json:"hardware"`
	State    hardware.State `json:"state"`
	// Subnet is where it booted, as far as that is known.
	Subnet  string           `json:"subnet,omitempty"`
	Verdict hardware.Verdict `json:"verdict"`
	// But says what would not follow, and why: rules are applied to machines that are
	// pending, and one with a conflict is never accepted by a rule.
	But []string `json:"but,omitempty"`
}
