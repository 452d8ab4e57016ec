package rest_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest/openapi"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// Who writes a template is told every kind with every option, in words and as a schema
// that the options themselves obey.
func TestActionKinds(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	var all api.ActionKinds
	if status, text := g.ask(g.url, "GET", api.Base+"/action-kinds", g.token("v", hardware.TokenSpec{Role: hardware.RoleViewer}), ""); status != http.StatusOK || json.Unmarshal([]byte(text), &all) != nil {
		t.Fatalf("%d %s", status, text)
	}
	var kinds []workflow.Kind
	for _, k := range all.Items {
		kinds = append(kinds, k.Kind)
		var schema openapi.Schema
		if err := json.Unmarshal(k.Options, &schema); err != nil || schema.Type != "object" || k.Does == "" {
			t.Errorf("%s: %v, %s", k.Kind, err, k.Options)
		}
		// each field of a struct whose zero values are left out is optional
		raw, err := json.Marshal(k.Kind.About().Options)
		g.must(err)
		var needed map[string]any
		g.must(json.Unmarshal(raw, &needed))
		for name, p := range schema.Properties {
			if _, must := needed[name]; must != slices.Contains(schema.Required, name) {
				t.Errorf("%s.%s: needed is %t", k.Kind, name, must)
			}
			if p.Description == "" || p.Type == "" {
				t.Errorf("%s.%s: %+v", k.Kind, name, p)
			}
			// and it is an option
			value := map[string]string{"string": `"x"`, "boolean": "true", "integer": "1"}[p.Type]
			if _, err := workflow.DecodeOptions(k.Kind, json.RawMessage(`{"`+name+`": `+value+`}`)); err != nil {
				t.Errorf("%s.%s: %v", k.Kind, name, err)
			}
		}
		if _, err := workflow.DecodeOptions(k.Kind, json.RawMessage(`{"no-such-option": 1}`)); err == nil || strings.Count(err.Error(), ",") != max(len(schema.Properties)-1, 0) {
			t.Errorf("%s has %d properties: %v", k.Kind, len(schema.Properties), err)
		}
	}
	if !slices.Equal(kinds, workflow.Kinds()) || len(all.Variables) != len(workflow.Variables()) {
		t.Errorf("kinds %v, %d variables", kinds, len(all.Variables))
	}
}

const seeded = `
kind: Template
metadata: {name: seeded}
spec:
  parameters:
    - {name: image}
    - {name: password, type: secret}
    - {name: kept, type: secret, default: swordfish}
  actions:
    - {name: write, kind: image.write, with: {image: "${image}"}}
    - {name: note, kind: file.write, with: {path: "/etc/${hardware.name}", content: "${password}"}}
    - {name: hello, kind: cloudinit, with: {metaData: "a: ${kept}"}}
    - {name: restart, kind: reboot}
`

func (g *rig) render(token, body string) (int, api.RenderedTemplate, string) {
	g.t.Helper()
	var out api.RenderedTemplate
	status, text := g.ask(g.url, "POST", api.Base+"/templates/render", token, body)
	if status == http.StatusOK {
		g.must(json.Unmarshal([]byte(text), &out))
	}
	return status, out, text
}

// A template is rendered against a machine as a workflow would be, without secrets, and
// nothing is left of it.
func TestRenderTemplate(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.machine(1, "m1", "a=b")
	token := g.token("o", hardware.TokenSpec{Role: hardware.RoleOperator})
	if status, text := g.ask(g.sock, "POST", api.Base+"/apply", "", seeded); status != http.StatusOK {
		t.Fatal(text)
	}
	status, out, text := g.render(token, `{"name": "seeded", "hardware": "m1", "params": {"image": "debian", "password": "hunter2"}}`)
	if status != http.StatusOK || len(out.Actions) != 4 || !out.Destroys || !out.WritesDisk {
		t.Fatalf("%d %s", status, text)
	}
	if strings.Contains(text, "hunter2") || strings.Contains(text, "swordfish") || !strings.Contains(string(out.Actions[1].With), "/etc/m1") || !strings.Contains(string(out.Actions[2].With), hardware.Redacted) {
		t.Errorf("rendered as %s", text)
	}
	if out.Refused != nil {
		t.Errorf("refused is %+v", out.Refused)
	}
	// what keeps the machine from it now is said beside the steps, with what to type
	if status, text := g.ask(g.sock, "POST", api.Base+"/hardware/m1/hold", "", "{}"); status != http.StatusOK {
		t.Fatal(text)
	}
	if _, out, _ = g.render(token, `{"name": "seeded", "hardware": "m1", "params": {"image": "debian", "password": "hunter2"}}`); len(out.Actions) != 4 || out.Refused == nil || !strings.Contains(out.Refused.Detail, "hardware unhold m1") || len(out.Refused.Errors) != 1 {
		t.Errorf("refused is %+v", out.Refused)
	}
	if status, text := g.ask(g.sock, "POST", api.Base+"/hardware/m1/hold", "", `{"hold": false}`); status != http.StatusOK {
		t.Fatal(text)
	}
	// one that is not saved; the kept secret is put in where it was not changed
	unsaved := `{"hardware": "m1", "params": {"image": "debian", "password": "x"}, "template": {"apiVersion": "rackstrap/v1", "kind": "Template", "metadata": {"name": "NAME"},
		"spec": {"parameters": [{"name": "image"}, {"name": "password", "type": "secret"}, {"name": "kept", "type": "secret", "default": "(redacted)"}],
		"actions": [{"name": "write", "kind": "image.write", "with": {"image": "${image}"}}, {"name": "hello", "kind": "cloudinit", "with": {"metaData": "b: ${kept}"}}]}}}`
	status, out, text = g.render(token, strings.Replace(unsaved, "NAME", "seeded", 1))
	if status != http.StatusOK || len(out.Actions) != 2 || out.Refused != nil || strings.Contains(text, "swordfish") || !strings.Contains(text, "b: "+hardware.Redacted) {
		t.Errorf("%d %s", status, text)
	}
	if status, _, text = g.render(token, strings.Replace(unsaved, "NAME", "other", 1)); status != http.StatusUnprocessableEntity || !strings.Contains(text, "spec.parameters[2].default") {
		t.Errorf("a secret that is not kept: %d %s", status, text)
	}
	flows, err := g.db.ListWorkflows(t.Context())
	kept, terr := g.db.TemplateByName(t.Context(), "seeded")
	if err != nil || terr != nil || len(flows) != 0 || len(kept.Spec.Actions) != 4 {
		t.Errorf("something was written: %v, %+v", flows, kept)
	}
	for body, want := range map[string]string{
		`{"hardware": "m1"}`:                   "is missing (give one, or the name",
		`{"name": "seeded", "hardware": "m1"}`: `"spec.params.image"`,
		`{"name": "seeded", "hardware": "no"}`: `no hardware \"no\"`,
		`{"name": "no", "hardware": "m1"}`:     `no template \"no\"`,
		`{"nome": "seeded"}`:                   `"nome"`,
		`{"hardware": "m1", "template": {"metadata": {"name": "a"}, "spec": {"actions": []}}}`:                                                     `"spec.actions"`,
		`{"hardware": "m1", "template": {"metadata": {"name": "a"}, "spec": {"actions": [{"name": "a", "kind": "reboot", "with": {"now": 1}}]}}}`:  `"spec.actions[0]"`,
		`{"hardware": "m1", "template": {"metadata": {"name": "a"}, "spec": {"actions": [{"name": "a", "kind": "reboot", "width": {"now": 1}}]}}}`: `"spec.actions[0].width"`,
	} {
		if status, _, text := g.render(token, body); status == http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	// a template may be called so
	if status, text := g.ask(g.sock, "POST", api.Base+"/apply", "", "kind: Template\nmetadata: {name: render}\nspec: {actions: [{name: restart, kind: reboot}]}\n"); status != http.StatusOK {
		t.Fatal(text)
	}
	if status, text := g.ask(g.url, "GET", api.Base+"/templates/render", token, ""); status != http.StatusOK {
		t.Errorf("a template that is called render: %d %s", status, text)
	}
}

// A row of the list says what was made of a template, to each caller what it may see.
func TestTemplateSummaries(t *testing.T) {
	t.Parallel()
	g := held(t)
	if status, text := g.ask(g.sock, "POST", api.Base+"/apply", "", seeded+"---\nkind: Rule\nmetadata: {name: r1}\nspec: {match: {facts: {diskTransport: nvme}}, accept: true, provision: {template: seeded, params: {image: debian, password: x}}}\n"); status != http.StatusOK {
		t.Fatal(text)
	}
	rows := func(token string) map[string]api.TemplateSummary {
		t.Helper()
		status, text := g.ask(g.url, "GET", api.Base+"/template-summaries", token, "")
		var list api.List[api.TemplateSummary]
		if status != http.StatusOK || json.Unmarshal([]byte(text), &list) != nil {
			t.Fatalf("%d %s", status, text)
		}
		out := map[string]api.TemplateSummary{}
		for _, r := range list.Items {
			out[r.Name] = r
		}
		return out
	}
	all := rows(g.token("v", hardware.TokenSpec{Role: hardware.RoleViewer}))
	if r := all["install"]; r.Workflows != 2 || r.Last == nil || r.Last.Hardware == "" || r.BuiltIn {
		t.Errorf("install is %+v", r)
	}
	if r := all["seeded"]; r.Workflows != 0 || r.Last != nil || !slices.Equal(r.Parameters, []string{"image", "password"}) || !slices.Equal(r.Optional, []string{"kept"}) ||
		len(r.Kinds) != 4 || r.Kinds[1] != workflow.KindFileWrite || !slices.Equal(r.Rules, []string{"r1"}) {
		t.Errorf("seeded is %+v", r)
	}
	own := rows(g.token("c", hardware.TokenSpec{Role: hardware.RoleClaimer, OwnerPrefix: "a/", Selector: "team=a"}))
	if r := own["install"]; r.Workflows != 1 || r.Last.Hardware != "mine" || own["seeded"].Rules != nil {
		t.Errorf("to a claimer install is %+v", r)
	}
}
