package main

import (
	"testing"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Every built-in template is valid, and renders with nothing but an image.
func TestBuiltinTemplates(t *testing.T) {
	t.Parallel()
	all, err := builtinTemplates()
	if err != nil || len(all) < 6 {
		t.Fatalf("%d templates, %v", len(all), err)
	}
	h := &hardware.Hardware{Meta: hardware.Meta{Name: "m1"}}
	for _, x := range all {
		if err := x.Validate(); err != nil {
			t.Error(err)
		}
		params := map[string]any{}
		if len(x.Spec.Parameters) > 0 {
			params["image"] = "debian"
		}
		if _, err := workflow.Render(x, params, h); err != nil {
			t.Errorf("%s: %v", x.Meta.Name, err)
		}
	}
}

// What is built in is known by its name, and an edited one by what is in it.
func TestIsBuiltIn(t *testing.T) {
	t.Parallel()
	sums, err := builtIns()
	if err != nil {
		t.Fatal(err)
	}
	a := openAppliance(t, t.TempDir())
	install, err := a.db.TemplateByName(t.Context(), "install")
	if err != nil {
		t.Fatal(err)
	}
	if shipped, edited := isBuiltIn(sums, install); !shipped || edited {
		t.Errorf("as it is kept: shipped %t, edited %t", shipped, edited)
	}
	install.Spec.Description = "ours"
	if shipped, edited := isBuiltIn(sums, install); !shipped || !edited {
		t.Errorf("edited: shipped %t, edited %t", shipped, edited)
	}
	install.Meta.Name = "ours"
	if shipped, edited := isBuiltIn(sums, install); shipped || edited {
		t.Errorf("a copy: shipped %t, edited %t", shipped, edited)
	}
}

// The template of the first release is brought up to date, an edited one is not.
func TestBuiltinTemplatesAreRefreshed(t *testing.T) {
	t.Parallel()
	dir := firstRelease(t)
	a := openAppliance(t, dir)
	install, err := a.db.TemplateByName(t.Context(), "install")
	if err != nil {
		t.Fatal(err)
	}
	has := func(x *workflow.Template, name string) bool {
		for _, p := range x.Spec.Parameters {
			if p.Name == name {
				return true
			}
		}
		return false
	}
	if !has(install, "network") {
		t.Error("the first release's template was not brought up to date")
	}
	install.Spec.Description = "ours"
	install.Spec.Parameters = install.Spec.Parameters[:5]
	install.Spec.Actions[3].With = nil
	if err := a.db.UpdateTemplate(t.Context(), install); err != nil {
		t.Fatal(err)
	}
	a.close()
	again, err := openAppliance(t, dir).db.TemplateByName(t.Context(), "install")
	if err != nil || again.Spec.Description != "ours" || has(again, "network") {
		t.Errorf("an edited template was changed: %+v, %v", again, err)
	}
}
