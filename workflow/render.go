package workflow

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// builtins are the values every template may use, from the Hardware record.
func builtins(h *hardware.Hardware) map[string]any {
	ip := ""
	mac := ""
	if len(h.Spec.Interfaces) > 0 {
		n := h.Spec.Interfaces[0]
		mac = n.MAC.String()
		if len(n.Addresses) > 0 {
			ip = n.Addresses[0].Addr().String()
		}
	}
	return map[string]any{
		"hardware.name": h.Meta.Name, "hardware.uid": h.Meta.UID, "hardware.hostname": h.HostName(),
		"hardware.arch": h.Arch(), "hardware.mac": mac, "hardware.address": ip,
	}
}

// Render makes the actions of one workflow: every ${name} of the template is
// replaced by its typed value. A value that is exactly one ${name} takes the
// parameter's type; inside other text the value is written out. $${ is a literal
// ${. It returns an *hardware.Invalid that names each missing, unknown or wrongly
// typed parameter and each wrong option.
func Render(t *Template, params map[string]any, h *hardware.Hardware) ([]Action, error) {
	c := hardware.NewChecker("workflow", h.Meta.Name)
	vals := t.values(c, "spec.params", params)
	if err := c.Err(); err != nil {
		return nil, err
	}
	for k, v := range builtins(h) {
		vals[k] = v
	}
	var out []Action
	for i, a := range t.Spec.Actions {
		at := fmt.Sprintf("spec.actions[%d]", i)
		with, err := substitute(map[string]any(a.With), vals)
		if err != nil {
			c.Addf(at+".with", "%v", err)
			continue
		}
		raw, err := json.Marshal(with)
		if err != nil {
			c.Addf(at+".with", "%v", err)
			continue
		}
		checkOptions(c, at, a.Kind, raw)
		out = append(out, Action{
			Name: a.Name, Kind: a.Kind, With: raw, State: StatePending,
			Timeout: hardware.Duration(a.timeout()), Retries: a.retries(),
		})
	}
	return out, c.Err()
}

// checkOptions decodes and validates rendered options.
func checkOptions(c *hardware.Checker, at string, k Kind, raw json.RawMessage) {
	o, err := DecodeOptions(k, raw)
	if err != nil {
		c.Add(at, err)
		return
	}
	o.Validate(c, at+".with")
}

// checkWith checks what can be known of an action before its parameters are.
func checkWith(c *hardware.Checker, at string, a ActionSpec, declared map[string]bool) {
	if !a.Kind.Known() {
		c.Addf(at+".kind", "%q is not known (one of %s)", a.Kind, joinKinds())
		return
	}
	used := map[string]bool{}
	if err := references(map[string]any(a.With), used, 0); err != nil {
		c.Add(at+".with", err)
		return
	}
	for name := range used {
		_, builtin := builtins(&hardware.Hardware{})[name]
		if !declared[name] && !builtin {
			c.Addf(at+".with", "${%s} is not declared (add it to spec.parameters)", name)
		}
	}
	if len(used) == 0 {
		raw, err := json.Marshal(a.With)
		if err != nil {
			c.Add(at+".with", err)
			return
		}
		checkOptions(c, at, a.Kind, raw)
		return
	}
	fields := optionFields(kinds()[a.Kind].options())
	for k := range a.With {
		if !slices.Contains(fields, k) {
			c.Addf(at+".with", "unknown field %q (fields of %s: %s)", k, a.Kind, strings.Join(fields, ", "))
		}
	}
}

// CheckParams says in c what is wrong with parameters that a workflow would be made
// with; at is the path of the field that they are in.
func (t *Template) CheckParams(c *hardware.Checker, at string, params map[string]any) {
	t.values(c, at, params)
}

// values checks the given parameters against the declared ones and adds defaults.
func (t *Template) values(c *hardware.Checker, at string, given map[string]any) map[string]any {
	out := map[string]any{}
	declared := map[string]bool{}
	for _, p := range t.Spec.Parameters {
		declared[p.Name] = true
		v, ok := given[p.Name]
		if !ok {
			v = p.Default
		}
		if v == nil {
			c.Addf(at+"."+p.Name, "is missing (template %q needs it)", t.Meta.Name)
			continue
		}
		typed, err := p.value(v)
		if err != nil {
			c.Add(at+"."+p.Name, err)
			continue
		}
		out[p.Name] = typed
	}
	for name := range given {
		if !declared[name] {
			c.Addf(at+"."+name, "template %q has no such parameter (it has %s)", t.Meta.Name, t.paramNames())
		}
	}
	return out
}

func (t *Template) paramNames() string {
	var s []string
	for _, p := range t.Spec.Parameters {
		s = append(s, p.Name)
	}
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}

// value converts v, as YAML, JSON or a command line gave it, to the parameter's type.
func (p Parameter) value(v any) (any, error) {
	switch p.Type {
	case ParamInt:
		switch x := v.(type) {
		case int:
			return int64(x), nil
		case int64:
			return x, nil
		case uint64:
			if x <= math.MaxInt64 {
				return int64(x), nil
			}
		case float64:
			if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
				return int64(x), nil
			}
		case string:
			if n, err := strconv.ParseInt(x, 10, 64); err == nil {
				return n, nil
			}
		}
		return nil, fmt.Errorf("%v is not a whole number", v)
	case ParamBool:
		switch x := v.(type) {
		case bool:
			return x, nil
		case string:
			if x == "true" || x == "false" {
				return x == "true", nil
			}
		}
		return nil, fmt.Errorf("%v is not true or false", v)
	default:
		switch x := v.(type) {
		case string:
			if len(x) > maxParamText {
				return nil, fmt.Errorf("has %d bytes, the limit is %d", len(x), maxParamText)
			}
			return x, nil
		case int, int64, uint64, float64, bool:
			return fmt.Sprint(x), nil
		}
		return nil, fmt.Errorf("is a %T, wanted text", v)
	}
}
