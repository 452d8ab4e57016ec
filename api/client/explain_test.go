package client_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func TestIssues(t *testing.T) {
	t.Parallel()
	d := start(t)
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	issue := func(k hardware.IssueKind, s hardware.Severity, age int) hardware.Issue {
		return hardware.Issue{Kind: k, Severity: s, Since: at.Add(-time.Duration(age) * time.Minute), Detail: "d", Fix: "f"}
	}
	for i, is := range [][]hardware.Issue{
		{issue(hardware.IssueWorkerLost, hardware.SeverityWarning, 5), issue(hardware.IssueHeld, hardware.SeverityInfo, 9)},
		{issue(hardware.IssueBootStuck, hardware.SeverityError, 1)},
		{issue(hardware.IssueBootStuck, hardware.SeverityError, 3)},
	} {
		name := fmt.Sprintf("m%d", i+1)
		d.apply(fmt.Sprintf("kind: Hardware\nmetadata: {name: %s, labels: {rack: r%d}}\nspec: {interfaces: [{mac: \"52:54:00:00:00:0%d\"}]}\n", name, i%2, i+1))
		h, err := d.db.HardwareByName(t.Context(), name)
		d.must(err)
		mc, err := d.db.Machine(t.Context(), h.Meta.UID)
		d.must(err)
		mc.Status.Issues = is
		d.must(d.db.Commit(t.Context(), &workflow.Change{Machine: mc}))
	}
	for _, tt := range []struct {
		f    client.IssueFilter
		want string
	}{
		{client.IssueFilter{}, "m3 boot-stuck, m2 boot-stuck, m1 worker-lost, m1 on-hold"},
		{client.IssueFilter{Kind: "boot-stuck"}, "m3 boot-stuck, m2 boot-stuck"},
		{client.IssueFilter{Severity: "warning"}, "m1 worker-lost"},
		{client.IssueFilter{Selector: "rack=r0"}, "m3 boot-stuck, m1 worker-lost, m1 on-hold"},
		{client.IssueFilter{Selector: "rack=r0", Severity: "info", Kind: "boot-stuck"}, ""},
	} {
		all, err := d.c.Issues(t.Context(), tt.f)
		d.must(err)
		var got []string
		for _, i := range all {
			got = append(got, i.Hardware+" "+string(i.Kind))
			if i.Title != i.Kind.Title() || i.State != hardware.StateAvailable || i.Fix != "f" {
				t.Errorf("got %+v", i)
			}
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%+v: got %s, want %s", tt.f, strings.Join(got, ", "), tt.want)
		}
	}
	for _, f := range []client.IssueFilter{{Kind: "x"}, {Severity: "bad"}, {Selector: "a in ("}} {
		_, err := d.c.Issues(t.Context(), f)
		var p *api.Problem
		if !errors.As(err, &p) || p.Code != api.CodeBadRequest {
			t.Errorf("%+v: got %v", f, err)
		}
	}
}

// Explain and validate read what the store and the engine know.
func TestExplain(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(rack)
	e, err := d.c.Explain(t.Context(), "m1")
	d.must(err)
	if e.Hardware != "m1" || e.State != hardware.StateAvailable || !strings.Contains(strings.Join(e.Lines, "\n"), "10.0.0.5 is reserved for it in subnet lan") {
		t.Errorf("got %+v", e)
	}
	_, err = d.c.Workflows.Create(t.Context(), &api.Workflow{Workflow: workflow.Workflow{Spec: workflow.WorkflowSpec{Hardware: "m1", Template: "install", Params: map[string]any{"image": "x"}}}})
	d.must(err)
	if e, err = d.c.Explain(t.Context(), "m1"); err != nil || !strings.Contains(e.Summary, "waits") {
		t.Errorf("waiting: got %v %+v", err, e)
	}
	v, err := d.c.Validate(t.Context(), "m1", client.Planned{})
	d.must(err)
	if v.Ready || v.Checks[0].Name != "state" || v.Checks[0].OK {
		t.Errorf("an active workflow: got %+v", v)
	}
	d.worker("m1")
	if e, err = d.c.Explain(t.Context(), "m1"); err != nil || !strings.Contains(e.Summary, "works on action 1 of 3 (wipe)") || strings.Contains(fmt.Sprint(e), "tops3cret") {
		t.Errorf("working: got %v %+v", err, e)
	}
	for _, p := range []client.Planned{{Format: "floppy"}} {
		if _, err := d.c.Validate(t.Context(), "m1", p); err == nil {
			t.Errorf("%+v: no error", p)
		}
	}
}

// A daemon without the guide still has the sentence of every Reason.
func TestReasons(t *testing.T) {
	t.Parallel()
	d := start(t)
	all, err := d.c.Reasons(t.Context())
	d.must(err)
	if len(all) != len(hardware.Reasons()) || all[0].Reason != hardware.Reasons()[0] || all[0].Sentence == "" {
		t.Errorf("%d reasons, the first is %+v", len(all), all[0])
	}
}

// Templates are looked into as the API has them.
func TestTemplates(t *testing.T) {
	t.Parallel()
	d := start(t)
	kinds, err := d.c.ActionKinds(t.Context())
	d.must(err)
	if len(kinds.Items) != len(workflow.Kinds()) || len(kinds.Variables) == 0 {
		t.Errorf("%+v", kinds)
	}
	_, err = d.c.Templates.Create(t.Context(), &workflow.Template{
		Meta: hardware.Meta{Name: "restart"},
		Spec: workflow.TemplateSpec{Actions: []workflow.ActionSpec{{Name: "restart", Kind: workflow.KindReboot}}},
	})
	d.must(err)
	rows, err := d.c.TemplateSummaries(t.Context())
	d.must(err)
	if len(rows) != 1 || rows[0].Name != "restart" {
		t.Errorf("%+v", rows)
	}
	_, err = d.c.RenderTemplate(t.Context(), api.RenderTemplate{Name: "restart", Hardware: "none"})
	wantProblem(t, err, 404, api.CodeNotFound, "none")
}
