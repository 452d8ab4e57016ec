package api

import (
	"encoding/json"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// ActionKinds is the answer of GET /action-kinds: all that a template can be made of.
type ActionKinds struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Items      []ActionKind `json:"items"`
	// Variables are the ${name}s that every template may use without declaring them.
	Variables []workflow.Variable `json:"variables"`
}

// ActionKind is one kind of action.
type ActionKind struct {
	Kind workflow.Kind `json:"kind"`
	// Does is what it does, in a sentence.
	Does string `json:"does"`
	// Options is the JSON Schema of `with:`.
	Options json.RawMessage `json:"options"`
	// Timeout of one attempt and Retries, where the template names none; no timeout is
	// none at all.
	Timeout hardware.Duration `json:"timeout,omitempty"`
	Retries int               `json:"retries"`
	// WritesDisk: it leaves something on a disk. Destroys: it overwrites whole disks.
	WritesDisk bool `json:"writesDisk,omitempty"`
	Destroys   bool `json:"destroys,omitempty"`
	// Last: nothing can come after it.
	Last bool `json:"last,omitempty"`
}

// TemplateSummary is a template as a row of a list, with what was made of it.
type TemplateSummary struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters are those that have to be given, and Optional those with a default.
	Parameters []string `json:"parameters,omitempty"`
	Optional   []string `json:"optional,omitempty"`
	// Kinds are those of its actions, in their order.
	Kinds []workflow.Kind `json:"kinds"`
	// BuiltIn: the appliance has it from the start, and makes it again when it starts.
	// Edited: it is no longer as it was shipped, so that upgrades leave it alone.
	BuiltIn bool `json:"builtIn,omitempty"`
	Edited  bool `json:"edited,omitempty"`
	// Rules start workflows from it, by their names.
	Rules []string `json:"rules,omitempty"`
	// Workflows is how many were made of it, of those that are kept and the caller sees;
	// Last is the newest.
	Workflows int          `json:"workflows"`
	Last      *TemplateUse `json:"last,omitempty"`
}

// TemplateUse is one workflow that was made of a template.
type TemplateUse struct {
	Workflow string         `json:"workflow"`
	Hardware string         `json:"hardware"`
	Created  time.Time      `json:"created"`
	State    workflow.State `json:"state"`
}

// RenderTemplate is the body of POST /templates/render: what would a template, also
// one that is not saved, do on a machine?
type RenderTemplate struct {
	// Template is one as it would be saved; left out, it is the kept one called Name.
	Template *workflow.Template `json:"template,omitempty"`
	Name     string             `json:"name,omitempty"`
	// Hardware is the machine's name.
	Hardware string         `json:"hardware"`
	Params   map[string]any `json:"params,omitempty"`
	// Reinstall allows a machine that is provisioned.
	Reinstall bool `json:"reinstall,omitempty"`
	// Claim is the claim under which it would be done.
	Claim string `json:"claim,omitempty"`
}

// RenderedTemplate is the answer. Nothing was written.
type RenderedTemplate struct {
	Template string `json:"template"`
	Hardware string `json:"hardware"`
	// Actions are the steps with all values in place; secrets are redacted.
	Actions []workflow.Action `json:"actions"`
	// WritesDisk: it leaves something on a disk. Destroys: it overwrites whole disks.
	WritesDisk bool `json:"writesDisk,omitempty"`
	Destroys   bool `json:"destroys,omitempty"`
	// Refused is why the workflow would not be started now; it would be where there is
	// none.
	Refused *Problem `json:"refused,omitempty"`
}
