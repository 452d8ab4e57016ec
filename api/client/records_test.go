package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func wantProblem(t *testing.T, err error, status int, code api.Code, text string) *api.Problem {
	t.Helper()
	var p *api.Problem
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want a problem", err)
	}
	if p.Status != status || p.Code != code || !strings.Contains(p.Detail, text) {
		t.Errorf("got %d %s %q, want %d %s …%s…", p.Status, p.Code, p.Detail, status, code, text)
	}
	return p
}

func outcomes(rs []api.Applied) string {
	var out []string
	for _, r := range rs {
		out = append(out, r.Name+"="+string(r.Result))
	}
	return strings.Join(out, " ")
}

func TestApplyTwiceAndBack(t *testing.T) {
	t.Parallel()
	d := start(t)
	ctx := t.Context()
	for _, want := range []string{"m1=created lan=created install=created", "m1=unchanged lan=unchanged install=unchanged"} {
		rs, err := d.c.Apply(ctx, strings.NewReader(rack))
		d.must(err)
		if got := outcomes(rs); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	// what was read goes back without a change, secrets and all
	h, err := d.c.Hardware.Get(ctx, "m1")
	d.must(err)
	if h.Spec.UserData != hardware.Redacted || h.Meta.UID == "" || h.Meta.Revision == 0 {
		t.Errorf("got %+v", h)
	}
	tm, err := d.c.Templates.Get(ctx, "install")
	d.must(err)
	var back strings.Builder
	for k, v := range map[api.Kind]any{api.KindHardware: h, api.KindTemplate: tm} {
		raw, err := api.Marshal(k, v)
		d.must(err)
		text, err := document.EncodeYAML(raw)
		d.must(err)
		back.WriteString("---\n" + string(text))
	}
	rs, err := d.c.Apply(ctx, strings.NewReader(back.String()))
	d.must(err)
	if got := outcomes(rs); strings.Contains(got, "changed") && strings.Count(got, "unchanged") != 2 {
		t.Errorf("sent back: %s", got)
	}
	h.Spec.Notes = "second row"
	h2, err := d.c.Hardware.Replace(ctx, "m1", h)
	d.must(err)
	if h2.Meta.Revision == h.Meta.Revision || h2.Spec.Notes != "second row" {
		t.Errorf("got %+v", h2)
	}
	kept, err := d.db.HardwareByName(ctx, "m1")
	d.must(err)
	if !strings.Contains(kept.Spec.UserData, "tops3cret") {
		t.Errorf("the secret was lost: %q", kept.Spec.UserData)
	}
	_, err = d.c.Hardware.Replace(ctx, "m1", &hardware.Hardware{Meta: h.Meta, Spec: hardware.Spec{Interfaces: h.Spec.Interfaces}})
	if p := wantProblem(t, err, http.StatusConflict, api.CodeConflict, "somebody changed it"); p.Revision != h2.Meta.Revision || !strings.Contains(p.Hint, "rackstrap hardware get m1") {
		t.Errorf("got %+v", p)
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(rack)
	ctx := t.Context()
	_, err := d.c.Hardware.Get(ctx, "m11")
	if p := wantProblem(t, err, http.StatusNotFound, api.CodeNotFound, `there is no hardware "m11"`); !strings.Contains(p.Hint, "did you mean m1?") {
		t.Errorf("hint %q", p.Hint)
	}
	h, err := d.c.Hardware.Get(ctx, "m1")
	d.must(err)
	twin := *h
	twin.Spec.UserData = ""
	_, err = d.c.Hardware.Create(ctx, &twin)
	wantProblem(t, err, http.StatusConflict, api.CodeExists, "m1")
	twin.Meta = hardware.Meta{Name: "m2"}
	_, err = d.c.Hardware.Create(ctx, &twin)
	if p := wantProblem(t, err, http.StatusUnprocessableEntity, api.CodeInvalid, "m1"); len(p.Errors) == 0 || !strings.HasPrefix(p.Errors[0].Field, "spec.interfaces[0]") {
		t.Errorf("got %+v", p.Errors)
	}
	_, err = d.c.Hardware.Create(ctx, &hardware.Hardware{Meta: hardware.Meta{Name: "m3"}, Spec: hardware.Spec{UserData: hardware.Redacted, Interfaces: []hardware.NIC{{MAC: hardware.MAC{2}}}}})
	wantProblem(t, err, http.StatusUnprocessableEntity, api.CodeInvalid, "(redacted)")
	wantProblem(t, d.c.Subnets.Delete(ctx, "lan", 99999), http.StatusPreconditionFailed, api.CodeConflict, "revision")
	if p := wantProblem(t, d.c.Subnets.Delete(ctx, "lan", 0), http.StatusConflict, api.CodeInUse, `in use by hardware "m1" (10.0.0.5)`); !strings.Contains(p.Hint, "rackstrap subnet delete lan --force") {
		t.Errorf("hint %q", p.Hint)
	}
	d.must(d.c.Hardware.Delete(ctx, "m1", h.Meta.Revision))
	d.must(d.c.Subnets.Delete(ctx, "lan", 0))
	all, err := d.c.Subnets.List(ctx)
	if err != nil || len(all) != 0 {
		t.Errorf("got %v, %v", all, err)
	}
	if ls, err := d.c.Leases(ctx, client.LeaseFilter{}); err != nil || len(ls) != 0 {
		t.Errorf("leases: %v, %v", ls, err)
	}
	if v, err := d.c.Version(ctx); err != nil || v.Version != "test" {
		t.Errorf("got %v, %v", v, err)
	}
}

func TestApplyWritesNothingWhenOneIsWrong(t *testing.T) {
	t.Parallel()
	d := start(t)
	bad := rack + `---
kind: Hardware
metadata: {name: m2}
spec:
  interfaces:
    - mac: 52:54:00:00:00:zz
      adresses: [10.0.0.6]
---
kind: Hardwear
---
kind: Subnet
metadata: {name: lan}
spec: {prefix: 10.1.0.0/24}
`
	_, err := d.c.Apply(t.Context(), strings.NewReader(bad))
	p := wantProblem(t, err, http.StatusUnprocessableEntity, api.CodeInvalid, "3 of 6 documents are wrong, nothing was written")
	if got, want := outcomes(p.Results), "m1=skipped lan=skipped install=skipped m2=error =error lan=error"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	text, _ := json.Marshal(p.Results)
	for _, want := range []string{
		`spec.interfaces[0].adresses`, `did you mean addresses?`, `is not a MAC address`, `(line `, `did you mean Hardware?`, `is also in the document at line`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	if all, err := d.c.Subnets.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("something was written: %v, %v", all, err)
	}
	// right by itself, refused by the store: the others are written
	_, err = d.c.Apply(t.Context(), strings.NewReader("kind: Subnet\nmetadata: {name: a}\nspec: {prefix: 10.0.0.0/24}\n---\nkind: Subnet\nmetadata: {name: b}\nspec: {prefix: 10.0.0.0/25}\n"))
	p = wantProblem(t, err, http.StatusUnprocessableEntity, api.CodePartiallyApplied, "1 of 2")
	if got, want := outcomes(p.Results), "a=created b=error"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A record that passes its own checks may still be larger than the store takes.
func TestRecordBeyondTheStore(t *testing.T) {
	t.Parallel()
	d := start(t)
	big := &workflow.Template{Meta: hardware.Meta{Name: "big"}}
	for i := range 6 {
		big.Spec.Actions = append(big.Spec.Actions, workflow.ActionSpec{
			Name: fmt.Sprintf("write-%d", i), Kind: workflow.KindFileWrite, With: map[string]any{"path": "/etc/x", "content": strings.Repeat("x", 250<<10)},
		})
	}
	_, err := d.c.Templates.Create(t.Context(), big)
	if p := wantProblem(t, err, http.StatusRequestEntityTooLarge, api.CodeTooLarge, "the limit is 1048576"); p.Hint == "" {
		t.Error("no hint")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if strings.Contains(d.log.String(), "level=ERROR") {
		t.Errorf("log: %s", d.log.String())
	}
}

func TestWorkflowNeverShowsSecrets(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(rack)
	ctx := t.Context()
	w, err := d.c.Workflows.Create(ctx, &api.Workflow{Workflow: workflow.Workflow{
		Meta: hardware.Meta{Name: "w1"}, Spec: workflow.WorkflowSpec{Hardware: "m1", Template: "install", Params: map[string]any{"image": "debian", "pw": "swordfish"}},
	}})
	d.must(err)
	list, err := d.c.Workflows.List(ctx)
	d.must(err)
	raw, err := json.Marshal([]any{w, list})
	d.must(err)
	if strings.Contains(string(raw), "swordfish") || strings.Contains(string(raw), "hunter2") || !strings.Contains(string(raw), "debian") {
		t.Errorf("got %s", raw)
	}
	text, err := api.Marshal(api.KindWorkflow, w)
	d.must(err)
	rs, err := d.c.Apply(ctx, strings.NewReader(string(text)))
	d.must(err)
	if outcomes(rs) != "w1=unchanged" {
		t.Errorf("sent back: %s", outcomes(rs))
	}
	_, err = d.c.Apply(ctx, strings.NewReader("kind: Workflow\nmetadata: {name: w1}\nspec: {hardware: m1, template: install, params: {image: other}}"))
	wantProblem(t, err, http.StatusConflict, api.CodePartiallyApplied, "1 of 1")
	wantProblem(t, d.c.Workflows.Delete(ctx, "w1", 0), http.StatusConflict, api.CodeInUse, "w1")
	got, err := d.c.CancelWorkflow(ctx, "w1", "wrong image\nreally")
	d.must(err)
	if got.Status.State != workflow.StateCancelled || !strings.Contains(got.Status.Message, "wrong image really") {
		t.Errorf("got %+v", got.Status)
	}
	d.must(d.c.Workflows.Delete(ctx, "w1", 0))
	held, err := d.c.Hold(ctx, "m1", true)
	if err != nil || !held.Status.Hold {
		t.Errorf("got %+v, %v", held, err)
	}
	_, err = d.c.Workflows.Create(ctx, &api.Workflow{Workflow: workflow.Workflow{Spec: workflow.WorkflowSpec{Hardware: "m1", Template: "install", Params: map[string]any{"image": "x"}}}})
	wantProblem(t, err, http.StatusUnprocessableEntity, api.CodeInvalid, "on hold")
	held, err = d.c.Hold(ctx, "m1", false)
	if err != nil || held.Status.Hold {
		t.Errorf("got %+v, %v", held, err)
	}
}
