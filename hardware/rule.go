package hardware

// Rule says what becomes of a discovered machine by what is in it.
type Rule struct {
	Meta Meta     `json:"metadata"`
	Spec RuleSpec `json:"spec"`
}

// RuleSpec is what an operator says. All rules that match a machine apply, the
// greatest Priority first, then by name; the first that sets something wins.
type RuleSpec struct {
	// Priority orders the rules that match a machine, the greatest first; 0 where empty.
	Priority int       `json:"priority,omitempty"`
	Match    RuleMatch `json:"match"`
	// Labels are put on the machine; one that it has already stays.
	Labels map[string]string `json:"labels,omitempty"`
	// Accept: the machine becomes available without a human. Never one with an IdentityConflict.
	Accept bool `json:"accept,omitempty"`
	// Provision starts a workflow on the machine once it is accepted.
	Provision *RuleProvision `json:"provision,omitempty"`
}

// RuleMatch is what must hold; empty fields ask for nothing, an empty match is refused
// unless All says that it is meant.
type RuleMatch struct {
	// All says that an empty match is meant: every machine.
	All bool `json:"all,omitempty"`
	// Subnet is the name of the Subnet that the machine booted in.
	Subnet string `json:"subnet,omitempty"`
	// Selector are labels that the machine has, also from rules before this one.
	Selector string `json:"selector,omitempty"`
	// Requirements are the least that must be in it.
	Requirements Requirements `json:"requirements,omitzero"`
	// Facts are facts by their JSON name (vendor, product, serial, uuid, firmware,
	// secureBoot, arch, cpuModel, bios, assetTag, mac, …; see RuleFacts), each a pattern
	// with * and ?, compared without case. An empty pattern asks that the fact is not
	// known; every other one, also *, that it is.
	Facts map[string]string `json:"facts,omitempty"`
}

// RuleProvision is the workflow that a rule starts.
type RuleProvision struct {
	// Template is the name of the template, and Params are values of its parameters.
	Template string         `json:"template"`
	Params   map[string]any `json:"params,omitempty"`
}

// Verdict is what the rules say of one machine.
type Verdict struct {
	// Rules are the names of those that match, in the order in which they apply.
	Rules     []string          `json:"rules,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Accept    bool              `json:"accept,omitempty"`
	Provision *RuleProvision    `json:"provision,omitempty"`
	// LeftOut says which labels of rules that match are not put on the machine, and why.
	LeftOut []string `json:"leftOut,omitempty"`
	// Against says, by rule, why those that do not match do not.
	Against map[string]string `json:"against,omitempty"`
}
