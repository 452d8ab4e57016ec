package client_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

// A dry run finds what is wrong between the documents and the records, and among the
// documents, says what would change, and writes nothing.
func TestDryApply(t *testing.T) {
	t.Parallel()
	d := start(t)
	ctx := t.Context()
	rs, err := d.c.DryApply(ctx, strings.NewReader(rack))
	d.must(err)
	if outcomes(rs) != "m1=created lan=created install=created" {
		t.Errorf("got %s", outcomes(rs))
	}
	if all, err := d.c.Subnets.List(ctx); err != nil || len(all) != 0 {
		t.Fatalf("it was written: %v, %v", all, err)
	}
	d.apply(rack)
	before, err := d.db.Cursor(ctx)
	d.must(err)
	rs, err = d.c.DryApply(ctx, strings.NewReader(strings.NewReplacer("r7", "r8", "tops3cret", "other", "hunter2", "swordfish", "leaseTime: 90", "leaseTime: 2m").Replace(rack)))
	d.must(err)
	text, err := json.Marshal(rs)
	d.must(err)
	for _, want := range []string{
		`m1=changed lan=changed install=changed`, `{"field":"metadata.labels.rack","from":"r7","to":"r8"}`,
		`{"field":"spec.userData","from":"(redacted)","to":"(another value)"}`, `"field":"spec.leaseTime","from":"1m30s","to":"2m0s"`,
		`{"field":"spec.parameters[1].default","from":"(redacted)","to":"(another value)"}`,
	} {
		if !strings.Contains(outcomes(rs)+string(text), want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	for _, secret := range []string{"tops3cret", "hunter2", "swordfish", "other"} {
		if strings.Contains(string(text), secret+`"`) || strings.Contains(string(text), "password: "+secret) {
			t.Errorf("%s is in %s", secret, text)
		}
	}
	_, err = d.c.DryApply(ctx, strings.NewReader(rack+`---
kind: Hardware
metadata: {name: m2}
spec: {interfaces: [{mac: 52:54:00:00:00:01}]}
---
kind: Hardware
metadata: {name: m3}
spec: {interfaces: [{mac: 52:54:00:00:00:03, addresses: [10.0.0.3/24]}]}
---
kind: Hardware
metadata: {name: m4}
spec: {interfaces: [{mac: 52:54:00:00:00:04, addresses: [10.0.0.3/24]}]}
---
kind: Subnet
metadata: {name: wide}
spec: {prefix: 10.0.0.0/16}
---
kind: Subnet
metadata: {name: new}
spec: {prefix: 10.9.0.0/16, gatway: 10.9.0.1}
---
kind: Workflow
metadata: {name: w1}
spec: {hardware: m3, template: install, params: {image: x}}
---
kind: Workflow
metadata: {name: w2}
spec: {hardware: m9, template: install, params: {image: x}}
`))
	p := wantProblem(t, err, http.StatusUnprocessableEntity, api.CodeInvalid, "5 of 10 documents")
	if got, want := outcomes(p.Results), "m1=unchanged lan=unchanged install=unchanged m2=error m3=created m4=error wide=error new=error w1=created w2=error"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	text, _ = json.Marshal(p.Results)
	for _, want := range []string{`belongs to hardware \"m1\"`, `belongs to hardware \"m3\"`, `overlaps 10.0.0.0/24 of subnet \"lan\"`, `did you mean gateway?`, `there is no hardware \"m9\"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	if after, err := d.db.Cursor(ctx); err != nil || after != before {
		t.Errorf("something was written: revision %d, then %d, %v", before, after, err)
	}
}

func TestDryRecords(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(rack)
	ctx := t.Context()
	before, err := d.db.Cursor(ctx)
	d.must(err)
	h, err := d.c.Hardware.Get(ctx, "m1")
	d.must(err)
	dry := d.c.Hardware.Dry()
	for name, fn := range map[string]func() (*api.Applied, error){
		"unchanged": func() (*api.Applied, error) { return dry.Replace(ctx, "m1", h) },
		"changed": func() (*api.Applied, error) {
			return dry.Patch(ctx, "m1", h.Meta.Revision, map[string]any{"spec": map[string]any{"protect": true}})
		},
		"created": func() (*api.Applied, error) {
			return dry.Create(ctx, &hardware.Hardware{Meta: hardware.Meta{Name: "m2"}, Spec: hardware.Spec{Interfaces: []hardware.NIC{{MAC: hardware.MAC{2}}}}})
		},
		"deleted": func() (*api.Applied, error) { return dry.Delete(ctx, "m1", 0, false) },
	} {
		if a, err := fn(); err != nil || string(a.Result) != name || (name == "changed") != (len(a.Changes) == 1) {
			t.Errorf("%s: got %+v, %v", name, a, err)
		}
	}
	_, err = dry.Create(ctx, &hardware.Hardware{Meta: hardware.Meta{Name: "m2"}, Spec: hardware.Spec{Interfaces: h.Spec.Interfaces}})
	wantProblem(t, err, http.StatusUnprocessableEntity, api.CodeInvalid, `belongs to hardware "m1"`)
	_, err = dry.Create(ctx, &hardware.Hardware{Meta: hardware.Meta{Name: "m1"}, Spec: hardware.Spec{Interfaces: h.Spec.Interfaces}})
	wantProblem(t, err, http.StatusConflict, api.CodeExists, "m1")
	_, err = dry.Delete(ctx, "m1", 1, false)
	wantProblem(t, err, http.StatusPreconditionFailed, api.CodeConflict, "revision")
	if a, err := d.c.Subnets.Dry().Delete(ctx, "lan", 0, true); err != nil || len(a.Skipped) != 1 || !strings.Contains(a.Skipped[0], `hardware "m1" (10.0.0.5)`) {
		t.Errorf("got %+v, %v", a, err)
	}
	// what makes no dry run refuses to be asked for one, and does nothing
	for _, path := range []string{"/hardware/m1/hold", "/hardware/m1/release", "/workflows/w/cancel"} {
		if resp, text := d.raw("POST", api.Base+path+"?dryRun=true", "", ""); resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "dryRun") {
			t.Errorf("%s: got %d %s", path, resp.StatusCode, text)
		}
	}
	if after, err := d.db.Cursor(ctx); err != nil || after != before {
		t.Errorf("something was written: revision %d, then %d, %v", before, after, err)
	}
	skipped, err := d.c.Subnets.DeleteForce(ctx, "lan", 0)
	if err != nil || len(skipped) != 1 {
		t.Errorf("got %v, %v", skipped, err)
	}
	_, err = d.c.Templates.DeleteForce(ctx, "install", 0)
	wantProblem(t, err, http.StatusBadRequest, api.CodeBadRequest, "force")
	// a template can go while a workflow runs that was made from it; its machine not
	d.create("w1")
	d.must(d.c.Templates.Delete(ctx, "install", 0))
	wantProblem(t, d.c.Hardware.Delete(ctx, "m1", 0), http.StatusConflict, api.CodeInUse, "w1")
	if a, err := dry.Delete(ctx, "m1", 0, true); err != nil || len(a.Skipped) == 0 {
		t.Errorf("got %+v, %v", a, err)
	}
	if w, err := d.c.Workflows.Get(ctx, "w1"); err != nil || w.Status.State.Ended() {
		t.Errorf("a dry run ended it: %+v, %v", w, err)
	}
	if skipped, err := d.c.Hardware.DeleteForce(ctx, "m1", 0); err != nil || len(skipped) == 0 || !strings.Contains(skipped[0], "w1") {
		t.Errorf("got %v, %v", skipped, err)
	}
	_, err = d.c.Hardware.Get(ctx, "m1")
	wantProblem(t, err, http.StatusNotFound, api.CodeNotFound, "m1")
}

// An image that a workflow is about to write stays.
func TestImageInUse(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(strings.Replace(rack, "- {name: wipe, kind: disk.wipe}", "- {name: write, kind: image.write, with: {image: \"${image}\"}}", 1))
	ctx := t.Context()
	_, err := d.c.UploadImage(ctx, "debian", strings.NewReader("x"), client.Upload{Format: "raw"})
	d.must(err)
	d.create("w1")
	wantProblem(t, d.c.Images.Delete(ctx, "debian", 0), http.StatusConflict, api.CodeInUse, `workflow "w1" on hardware "m1"`)
	_, err = d.c.CancelWorkflow(ctx, "w1", "")
	d.must(err)
	d.must(d.c.Images.Delete(ctx, "debian", 0))
}
