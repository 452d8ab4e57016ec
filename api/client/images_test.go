package client_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// A kept file goes when no record names it and no running attempt may read it.
func TestImageFilesGo(t *testing.T) {
	t.Parallel()
	blobs := &memBlobs{}
	d := startWith(t, blobs)
	ctx := t.Context()
	add := func(name, text string) string {
		t.Helper()
		img, err := d.c.UploadImage(ctx, name, strings.NewReader(text), client.Upload{})
		d.must(err)
		return img.Spec.Blob
	}
	want := func(what string, digests ...string) {
		t.Helper()
		got, err := blobs.List(ctx)
		d.must(err)
		slices.Sort(digests)
		if !slices.Equal(got, digests) {
			t.Fatalf("%s: kept %v, want %v", what, got, digests)
		}
	}
	a := add("one", "a")
	same := add("two", "a")
	b := add("three", "b")
	if a != same {
		t.Fatal("one file has two digests")
	}
	d.must(d.c.Images.Delete(ctx, "one", 0))
	want("two names it still", a, b)
	a2 := add("two", "a2")
	want("replaced", a2, b)
	_, err := d.c.Images.Replace(ctx, "two", &workflow.Image{Spec: workflow.ImageSpec{URL: "https://images.example.net/x.raw"}})
	d.must(err)
	want("elsewhere now", b)
	_, err = d.c.Images.Replace(ctx, "two", &workflow.Image{Spec: workflow.ImageSpec{Blob: a}})
	wantProblem(t, err, http.StatusUnprocessableEntity, api.CodeInvalid, "is no file that is kept here (upload it: `rackstrap image add two FILE`)")
	resp, text := d.raw(http.MethodPut, "/api/v1/images/three/blob", "", "c", "If-Match", `"99999"`)
	if resp.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("got %d %s", resp.StatusCode, text)
	}
	want("the record was not written", b)

	// the worker was told the file that the name meant then
	d.apply(rack + `---
kind: Template
metadata: {name: write}
spec:
  actions:
    - {name: write, kind: image.write, with: {image: three}}
`)
	_, err = d.c.Workflows.Create(ctx, &api.Workflow{Workflow: workflow.Workflow{Meta: hardware.Meta{Name: "w1"}, Spec: workflow.WorkflowSpec{Hardware: "m1", Template: "write"}}})
	d.must(err)
	s := d.worker("m1")
	running := d.assigned(s)
	b2 := add("three", "b2")
	want("an attempt reads the old one", b, b2)
	d.report(s, running, workflow.StateSucceeded)
	d.must(d.c.Images.Delete(ctx, "three", 0))
	want("it has ended")
}
