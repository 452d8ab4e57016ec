package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
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

// Redacted is a copy of the workflow without its secrets: parameters that were
// secret when it was created or that the template declares so today, options that
// are tagged so, and those parameters' values wherever else they were written into.
// t is the workflow's template; where it is gone (nil), every parameter counts as
// secret. Options that may hold a default that t no longer tells are hidden whole.
func (w *Workflow) Redacted(t *Template) *Workflow {
	out := hardware.Redact(w)
	var values []string
	for name, v := range out.Spec.Params {
		if !secretParam(t, name) && !slices.Contains(w.Status.SecretParams, name) {
			continue
		}
		values = append(values, written(v)...)
		out.Spec.Params[name] = hardware.Redacted
	}
	defaults := t.secretDefaults(w.Status.SecretParams)
	for _, name := range w.Status.SecretParams {
		_, given := out.Spec.Params[name]
		if _, known := defaults[name]; !given && !known {
			for i := range out.Status.Actions {
				out.Status.Actions[i].With = hiddenWith(out.Status.Actions[i].With)
			}
			return out
		}
	}
	for _, v := range defaults {
		values = append(values, written(v)...)
	}
	// the longest first: one secret may hold another
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for i := range out.Status.Actions {
		a := &out.Status.Actions[i]
		a.With = redactWith(a.Kind, a.With, values)
	}
	return out
}

// written is how a value may read in rendered text. A whole number that was given
// without quotes has become a float64 in the store.
func written(v any) []string {
	switch x := v.(type) {
	case nil:
		return nil
	case string:
		if x == "" {
			return nil
		}
	case float64:
		return []string{fmt.Sprint(x), strconv.FormatFloat(x, 'f', -1, 64)}
	}
	return []string{fmt.Sprint(v)}
}

// secretDefaults are the defaults of the parameters that t declares secret, and of
// those that once were, by name.
func (t *Template) secretDefaults(once []string) map[string]any {
	out := map[string]any{}
	if t == nil {
		return out
	}
	for _, p := range t.Spec.Parameters {
		if p.Default != nil && (p.Type == ParamSecret || slices.Contains(once, p.Name)) {
			out[p.Name] = p.Default
		}
	}
	return out
}

// RedactedParams is a copy of the parameters of a template in which those that it
// declares secret read hardware.Redacted. t is nil where the template is gone: then all
// do.
func RedactedParams(t *Template, params map[string]any) map[string]any {
	out := maps.Clone(params)
	for name := range out {
		if secretParam(t, name) {
			out[name] = hardware.Redacted
		}
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
	hidden := hiddenWith(with)
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

// hiddenWith stands for options that are not shown at all.
func hiddenWith(with json.RawMessage) json.RawMessage {
	if len(with) == 0 {
		return with
	}
	hidden, _ := json.Marshal(hardware.Redacted)
	return hidden
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
