package workflow

import (
	"fmt"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Template is a parameterised list of actions.
type Template struct {
	Meta hardware.Meta `json:"metadata"`
	Spec TemplateSpec  `json:"spec"`
}

// TemplateSpec is what operators say of a Template.
type TemplateSpec struct {
	// Description says to people what it is for.
	Description string `json:"description,omitempty"`
	// Parameters are what a workflow may, or must, be given.
	Parameters []Parameter `json:"parameters,omitempty"`
	// Timeout of a whole workflow, as 90m; 0 is none.
	Timeout hardware.Duration `json:"timeout,omitempty"`
	// Actions are done in this order, one at a time; at most 64.
	Actions []ActionSpec `json:"actions"`
}

// Parameter is one ${name} that the actions may use.
type Parameter struct {
	// Name is what actions write as ${name}.
	Name string `json:"name"`
	// Type of its value; string where empty. A secret is a string that is shown nowhere.
	Type ParamType `json:"type,omitempty"`
	// Default makes the parameter optional.
	Default any `json:"default,omitempty"`
	// Description says to people what to write.
	Description string `json:"description,omitempty"`
}

// ParamType is the type of a parameter's value.
type ParamType string

// The parameter types; string where none is given. A secret is a string that is
// shown nowhere.
const (
	ParamString ParamType = "string"
	ParamInt    ParamType = "int"
	ParamBool   ParamType = "bool"
	ParamSecret ParamType = "secret"
)

// ActionSpec is one step as the Template writes it; With may hold ${…}.
type ActionSpec struct {
	// Name is what timeline and progress call it; unique in its template.
	Name string `json:"name"`
	// Kind says what is done.
	Kind Kind `json:"kind"`
	// Timeout of one attempt, as 30m; nil is the kind's own, 0 is none.
	Timeout *hardware.Duration `json:"timeout,omitempty"`
	// Retries after a failed attempt; nil is the kind's own.
	Retries *int `json:"retries,omitempty"`
	// With are the options of its kind; ${name} in them is replaced.
	With map[string]any `json:"with,omitempty"`
}

// Limits on a Template.
const (
	MaxActions    = 64
	MaxParameters = 64
	MaxRetries    = 20
	maxParamText  = 256 << 10
)

// Validate says everything that is wrong with the template, as an
// *hardware.Invalid: unknown kinds, unknown fields, undeclared parameters.
func (t *Template) Validate() error {
	c := hardware.NewChecker("template", t.Meta.Name)
	c.Meta(t.Meta)
	s := &t.Spec
	declared := t.checkParameters(c)
	if len(s.Actions) == 0 {
		c.Addf("spec.actions", "is empty (list at least one action: `- {name: restart, kind: reboot}`)")
	}
	if len(s.Actions) > MaxActions {
		c.Addf("spec.actions", "has %d entries, the limit is %d", len(s.Actions), MaxActions)
	}
	names := map[string]bool{}
	for i, a := range s.Actions {
		at := fmt.Sprintf("spec.actions[%d]", i)
		c.Add(at+".name", hardware.ValidName(a.Name))
		if names[a.Name] {
			c.Addf(at+".name", "%q is used twice", a.Name)
		}
		names[a.Name] = true
		if a.Retries != nil && (*a.Retries < 0 || *a.Retries > MaxRetries) {
			c.Addf(at+".retries", "%d must be 0 to %d", *a.Retries, MaxRetries)
		}
		checkWith(c, at, a, declared)
		if a.Kind.last() && i != len(s.Actions)-1 {
			c.Addf(at+".kind", "%s must be the last action", a.Kind)
		}
	}
	return c.Err()
}

func (t *Template) checkParameters(c *hardware.Checker) map[string]bool {
	declared := map[string]bool{}
	if len(t.Spec.Parameters) > MaxParameters {
		c.Addf("spec.parameters", "has %d entries, the limit is %d", len(t.Spec.Parameters), MaxParameters)
	}
	for i, p := range t.Spec.Parameters {
		at := fmt.Sprintf("spec.parameters[%d]", i)
		if strings.Contains(p.Name, ".") || !validParamName(p.Name) {
			c.Addf(at+".name", "%q is no parameter name (letters, digits, _ and -)", p.Name)
		}
		if declared[p.Name] {
			c.Addf(at+".name", "%q is declared twice", p.Name)
		}
		declared[p.Name] = true
		switch p.Type {
		case "", ParamString, ParamInt, ParamBool, ParamSecret:
		default:
			c.Addf(at+".type", "%q is not known (string, int, bool or secret)", p.Type)
			continue
		}
		if p.Default != nil {
			if _, err := p.value(p.Default); err != nil {
				c.Add(at+".default", err)
			}
		}
	}
	return declared
}

// secrets names the parameters of type secret.
func (t *Template) secrets() []string {
	var out []string
	for _, p := range t.Spec.Parameters {
		if p.Type == ParamSecret {
			out = append(out, p.Name)
		}
	}
	return out
}

// timeout is the limit of one attempt of the action; 0 is none.
func (a ActionSpec) timeout() time.Duration {
	if a.Timeout != nil {
		return time.Duration(*a.Timeout)
	}
	return kinds()[a.Kind].timeout
}

func (a ActionSpec) retries() int {
	if a.Retries != nil {
		return *a.Retries
	}
	return kinds()[a.Kind].retries
}
