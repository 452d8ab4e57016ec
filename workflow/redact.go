package workflow

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// Redacted is a copy of the template with the defaults of its secret parameters
// replaced. Text in the actions is shown: a template is no place for a secret,
// its secret parameters are.
func (t *Template) Redacted() *Template {
	out := hardware.Redact(t)
	for i, p := range out.Spec.Parameters {
		if p.Type == ParamSecret && p.Default != nil && p.Default != "" {
			out.Spec.Parameters[i].Default = hardware.Redacted
		}
	}
	return out
}

// Unredacted is a copy of t in which each secret default that reads
// hardware.Redacted has the value that old's parameter of that name has.
func (t *Template) Unredacted(old *Template) *Template {
	out := hardware.Unredact(t, old)
	for i, p := range out.Spec.Parameters {
		if p.Type != ParamSecret || p.Default != hardware.Redacted {
			continue
		}
		j := slices.IndexFunc(old.Spec.Parameters, func(o Parameter) bool { return o.Name == p.Name })
		if j >= 0 {
			out.Spec.Parameters[i].Default = old.Spec.Parameters[j].Default
		}
	}
	return out
}

// Redacted is a copy of the workflow without its secrets: parameters that the
// template declares secret, options that are tagged so, and those parameters'
// values wherever else they were written into. t is the workflow's template;
// where it is gone (nil), every parameter counts as secret.
func (w *Workflow) Redacted(t *Template) *Workflow {
	out := hardware.Redact(w)
	var values []string
	for name, v := range out.Spec.Params {
		if !secretParam(t, name) {
			continue
		}
		if s, ok := v.(string); ok && s != "" {
			values = append(values, s)
		}
		out.Spec.Params[name] = hardware.Redacted
	}
	if t != nil {
		for _, p := range t.Spec.Parameters {
			if s, ok := p.Default.(string); ok && s != "" && p.Type == ParamSecret {
				values = append(values, s)
			}
		}
	}
	// the longest first: one secret may hold another
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for i := range out.Status.Actions {
		a := &out.Status.Actions[i]
		a.With = redactWith(a.Kind, a.With, values)
	}
	return out
}

// Unredacted is a copy of the spec in which each parameter that reads
// hardware.Redacted has the value of old.
func (s WorkflowSpec) Unredacted(old WorkflowSpec) WorkflowSpec {
	out := hardware.Unredact(s, old)
	for name, v := range out.Params {
		if o, ok := old.Params[name]; ok && v == hardware.Redacted {
			out.Params[name] = o
		}
	}
	return out
}

func secretParam(t *Template, name string) bool {
	if t == nil {
		return true
	}
	i := slices.IndexFunc(t.Spec.Parameters, func(p Parameter) bool { return p.Name == name })
	return i < 0 || t.Spec.Parameters[i].Type == ParamSecret
}

// redactWith hides the secret fields of rendered options, and the values.
// Options that cannot be read are hidden as a whole.
func redactWith(k Kind, with json.RawMessage, values []string) json.RawMessage {
	if len(with) == 0 {
		return with
	}
	hidden, _ := json.Marshal(hardware.Redacted)
	o, err := DecodeOptions(k, with)
	if err != nil {
		return hidden
	}
	raw, err := json.Marshal(hardware.Redact(o))
	if err != nil {
		return hidden
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return hidden
	}
	raw, err = json.Marshal(hide(v, values))
	if err != nil {
		return hidden
	}
	return raw
}

func hide(v any, values []string) any {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			x[k] = hide(e, values)
		}
	case []any:
		for i, e := range x {
			x[i] = hide(e, values)
		}
	case string:
		for _, s := range values {
			x = strings.ReplaceAll(x, s, hardware.Redacted)
		}
		return x
	}
	return v
}
