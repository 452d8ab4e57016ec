package workflow

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
)

// Every kind and every option is told to those who write templates, and nothing else is.
func TestAbout(t *testing.T) {
	t.Parallel()
	for _, k := range Kinds() {
		a := k.About()
		if a.Does == "" || a.Options == nil || a.Last == a.WritesDisk || a.Destroys && !a.WritesDisk {
			t.Errorf("%s: %+v", k, a)
		}
		fields := optionFields(a.Options)
		for _, f := range fields {
			if k.OptionAbout(f).Text == "" {
				t.Errorf("%s: nothing is said of the option %q (add it to optionsAbout)", k, f)
			}
		}
		for f := range optionsAbout()[k] {
			if !slices.Contains(fields, f) {
				t.Errorf("%s has no option %q", k, f)
			}
		}
	}
	if (Kind("none").About() != About{}) || Kind("none").OptionAbout("none").Text != "" {
		t.Error("something is said of a kind that does not exist")
	}
}

// An option that is one of a few takes these and no other.
func TestOneOf(t *testing.T) {
	t.Parallel()
	for _, k := range Kinds() {
		for _, f := range optionFields(k.About().Options) {
			said := k.OptionAbout(f)
			wrong := func(v string) string {
				o := k.About().Options
				raw, err := json.Marshal(map[string]string{f: v})
				if err == nil {
					err = json.Unmarshal(raw, o)
				}
				if err != nil {
					return "" // a number
				}
				c := hardware.NewChecker("action", "a")
				o.Validate(c, "with")
				var invalid *hardware.Invalid
				if !errors.As(c.Err(), &invalid) {
					return ""
				}
				for _, e := range invalid.Errors {
					if e.Field == "with."+f && strings.Contains(e.Detail, "is not known") {
						return e.Detail
					}
				}
				return ""
			}
			detail := wrong("no-such-word")
			if (detail != "") != (len(said.OneOf) > 0) {
				t.Errorf("%s.%s: OneOf is %q, and an unknown word gets %q", k, f, said.OneOf, detail)
			}
			for _, v := range said.OneOf {
				if wrong(v) != "" || !strings.Contains(detail, v) {
					t.Errorf("%s.%s: %q is not one of those that are taken: %s", k, f, v, detail)
				}
			}
			if n := strings.Count(detail, ",") + strings.Count(detail, " or "); detail != "" && n+1 != len(said.OneOf) {
				t.Errorf("%s.%s: OneOf is %q: %s", k, f, said.OneOf, detail)
			}
		}
	}
}

// What is told of the variables is what a template is rendered with.
func TestVariables(t *testing.T) {
	t.Parallel()
	var told []string
	for _, v := range Variables() {
		told = append(told, v.Name)
		if v.Means == "" {
			t.Errorf("%s means nothing", v.Name)
		}
	}
	slices.Sort(told)
	if have := slices.Sorted(maps.Keys(builtins(&hardware.Hardware{}))); !slices.Equal(told, have) {
		t.Errorf("%q are told, %q are there", told, have)
	}
}
