package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// A preview says what would happen with each machine; what is confirmed happens, and
// says the same.
func TestBulk(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.fleet(20)
	ctx := t.Context()
	before, err := d.db.Cursor(ctx)
	d.must(err)
	in := api.Bulk{Verb: "hold", Selector: "rack=r0,tier=test"} // m001 m003 (held) m005 m007 m009
	preview, err := d.c.DryBulk(ctx, in)
	d.must(err)
	if got, want := outcomes(preview), "m001=changed m003=unchanged m005=changed m007=changed m009=changed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if preview[2].State != hardware.StateProvisioned || preview[2].Detail != "provisioned → provisioned, on hold" {
		t.Errorf("got %+v", preview[2])
	}
	for _, n := range []*int{nil, new(int)} {
		in.Confirm = n
		_, err = d.c.Bulk(ctx, in)
		p := wantProblem(t, err, http.StatusConflict, api.CodeConflict, "hold is for 5 machines")
		if len(p.Results) != 5 || p.Results[0].Result != api.OutcomeSkipped || !strings.Contains(p.Hint, "confirm: 5") {
			t.Errorf("got %+v", p)
		}
	}
	if after, err := d.db.Cursor(ctx); err != nil || after != before {
		t.Fatalf("something was written: revision %d, then %d, %v", before, after, err)
	}
	five := 5
	in.Confirm = &five
	done, err := d.c.Bulk(ctx, in)
	d.must(err)
	if outcomes(done) != outcomes(preview) {
		t.Errorf("got %s after %s", outcomes(done), outcomes(preview))
	}
	h, err := d.c.Hardware.Get(ctx, "m009")
	if err != nil || !h.Status.Hold {
		t.Errorf("got %+v, %v", h.Status, err)
	}
	// labels
	two := 2
	labelled, err := d.c.Bulk(ctx, api.Bulk{Verb: "label", Names: []string{"m012", "m011", "m012"}, Options: map[string]any{"set": map[string]string{"gpu": "h100"}, "remove": []string{"tier"}}, Confirm: &two})
	d.must(err)
	if outcomes(labelled) != "m011=changed m012=changed" || len(labelled[0].Changes) != 2 || labelled[0].Changes[0] != (api.Change{Field: "metadata.labels.gpu", To: "h100"}) {
		t.Errorf("got %+v", labelled)
	}
	// a failure stops no other machine
	d.apply("kind: Template\nmetadata: {name: install}\nspec: {actions: [{name: wipe, kind: disk.wipe}]}\n")
	_, err = d.e.CreateWorkflow(ctx, "w1", workflow.WorkflowSpec{Hardware: "m012", Template: "install"})
	d.must(err)
	_, err = d.c.Bulk(ctx, api.Bulk{Verb: "delete", Names: []string{"m011", "m012"}, Confirm: &two})
	var p *api.Problem
	if !errors.As(err, &p) || p.Code != api.CodePartiallyApplied || outcomes(p.Results) != "m011=deleted m012=error" || !strings.Contains(p.Results[1].Detail, "w1") {
		t.Errorf("got %+v", err)
	}
	gone, err := d.c.DryBulk(ctx, api.Bulk{Verb: "delete", Names: []string{"m012"}, Options: map[string]any{"force": true}})
	if err != nil || outcomes(gone) != "m012=deleted" || len(gone[0].Skipped) == 0 {
		t.Errorf("got %+v, %v", gone, err)
	}
	// the active workflow ends; who has none is as wanted
	in = api.Bulk{Verb: "cancel", Names: []string{"m012", "m013"}, Options: map[string]any{"reason": "another day"}, Confirm: &two}
	for range 2 { // a preview ends nothing
		cancelled, err := d.c.DryBulk(ctx, in)
		if err != nil || outcomes(cancelled) != "m012=changed m013=unchanged" || cancelled[0].Detail != "workflow w1: pending → cancelled" {
			t.Errorf("got %+v, %v", cancelled, err)
		}
	}
	cancelled, err := d.c.Bulk(ctx, in)
	if err != nil || outcomes(cancelled) != "m012=changed m013=unchanged" {
		t.Errorf("got %+v, %v", cancelled, err)
	}
	if cancelled, err = d.c.Bulk(ctx, in); err != nil || outcomes(cancelled) != "m012=unchanged m013=unchanged" {
		t.Errorf("again: got %+v, %v", cancelled, err)
	}
	// the verbs of the lifecycle
	for verb, want := range map[string]string{"maintenance": "m000=changed", "retire": "m000=changed", "release": "m000="} {
		got, err := d.c.DryBulk(ctx, api.Bulk{Verb: verb, Names: []string{"m000"}})
		if err != nil || !strings.HasPrefix(outcomes(got), want) {
			t.Errorf("%s: got %+v, %v", verb, got, err)
		}
	}
	all, err := d.c.DryBulk(ctx, api.Bulk{Verb: "provision", State: []string{"available"}, Selector: "rack=r1", Options: map[string]any{"image": "x", "template": "install"}})
	d.must(err)
	if len(all) != 8 || !strings.Contains(outcomes(all), "m010=error") { // the template has no parameter image
		t.Errorf("got %s", outcomes(all))
	}
}

func TestBulkRefusals(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.fleet(3)
	for _, tc := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"verb":"hodl","all":true}`, 400, `did you mean hold?`},
		{`{"verb":"hold"}`, 422, `say all: true`},
		{`{"verb":"hold","names":["m000"],"selector":"a"}`, 422, `give one of them`},
		{`{"verb":"hold","selector":"a=b=c"}`, 422, `at character 4`},
		{`{"verb":"hold","state":["up"],"all":true}`, 422, `one of pending`},
		{`{"verb":"hold","names":["m009"]}`, 404, `did you mean m000`},
		{`{"verb":"hold","all":true,"options":{"x":1}}`, 422, `options.x`},
		{`{"verb":"label","all":true,"options":{"sett":{}}}`, 422, `did you mean set?`},
		{`{"verb":"provision","all":true,"options":{"image":"x","name":"w"}}`, 200, `options.name is for one machine`},
		{`{"verb":"provision","all":true,"options":{"image":"x","name":"w"}}`, 200, `"hint":"leave it out: `},
		{`{"verb":"power","all":true,"options":{"action":"explode"}}`, 200, `is not known (on, off, cycle or status)`},
		{`{"verb":"hold","al":true}`, 422, `did you mean all?`},
	} {
		if resp, text := d.raw("POST", api.Base+"/bulk?dryRun=true", "", tc.body); resp.StatusCode != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%s: got %d %s, want %d …%s…", tc.body, resp.StatusCode, text, tc.status, tc.want)
		}
	}
}
