package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// A kept file goes when no record names it and no running attempt may read it.
func TestImageFilesGo(t *testing.T) {
	t.Parallel()
	d := start(t)
	ctx := t.Context()
	add := func(name, text string) string {
		t.Helper()
		img, err := d.c.UploadImage(ctx, name, strings.NewReader(text), client.Upload{Format: "raw"})
		d.must(err)
		return img.Spec.Blob
	}
	want := func(what string, digests ...string) {
		t.Helper()
		slices.Sort(digests)
		for end := time.Now().Add(20 * time.Second); ; runtime.Gosched() { // what was served goes when the next is ready
			all, err := d.files.List()
			d.must(err)
			var got []string
			for _, b := range all {
				got = append(got, b.Digest)
			}
			if slices.Equal(got, digests) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: kept %v, want %v", what, got, digests)
			}
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
	_, err := d.c.Images.Replace(ctx, "two", &api.Image{Image: workflow.Image{Spec: workflow.ImageSpec{URL: "https://images.example.net/x.raw", Direct: true}}})
	d.must(err)
	want("elsewhere now", b)
	_, err = d.c.Images.Replace(ctx, "two", &api.Image{Image: workflow.Image{Spec: workflow.ImageSpec{Blob: a}}})
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

func TestFindImages(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.apply(`
kind: Image
metadata: {name: deb12}
spec: {url: "https://images.example.net/a.raw", direct: true, os: debian, osVersion: "12"}
---
kind: Image
metadata: {name: deb12-arm}
spec: {url: "https://images.example.net/b.raw", direct: true, os: debian, osVersion: "12", arch: arm64}
---
kind: Image
metadata: {name: node}
spec: {url: "https://images.example.net/c.raw", direct: true, os: Flatcar, kubernetesVersion: v1.31.2}
`)
	for _, tc := range []struct {
		q    workflow.ImageQuery
		want string
	}{
		{workflow.ImageQuery{}, "deb12 deb12-arm node"},
		{workflow.ImageQuery{OS: "Debian", Arch: "amd64"}, "deb12"},
		{workflow.ImageQuery{OSVersion: "12"}, "deb12 deb12-arm"},
		{workflow.ImageQuery{KubernetesVersion: "1.31.2"}, "node"},
		{workflow.ImageQuery{OS: "debian", KubernetesVersion: "1.31.2"}, ""},
	} {
		found, err := d.c.FindImages(t.Context(), tc.q)
		d.must(err)
		var names []string
		for _, i := range found {
			names = append(names, i.Meta.Name)
		}
		if got := strings.Join(names, " "); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.q, got, tc.want)
		}
	}
	// a misspelt filter must not list everything
	if resp, text := d.raw(http.MethodGet, "/api/v1/images?version=12", "", ""); resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "osVersion") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	_, err := d.c.FetchImage(t.Context(), "node")
	wantProblem(t, err, http.StatusUnprocessableEntity, api.CodeInvalid, "fetched by the workers themselves")
	_, err = d.c.FetchImage(t.Context(), "nod")
	wantProblem(t, err, http.StatusNotFound, api.CodeNotFound, "nod")
}

// An image by URL is fetched by the daemon, which says how far it is; what it says is
// nobody else's to write.
func TestFetchedImage(t *testing.T) {
	t.Parallel()
	d := start(t)
	ctx := t.Context()
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "20")
		_, _ = w.Write([]byte("an operat"))
		w.(http.Flusher).Flush()
		<-release
		_, _ = w.Write([]byte("ing system!"))
	}))
	defer srv.Close()
	d.apply("kind: Image\nmetadata: {name: far}\nspec: {url: '" + srv.URL + "/x?key=s3cret', format: raw}\nstatus: {state: ready, renditions: [{format: raw, digest: x, bytes: 1}]}\n")
	var states []workflow.ImageState
	i, err := d.c.WaitImage(ctx, "far", func(i *api.Image) {
		if p := i.Progress; p != nil && p.Done == 9 && p.Total == 20 && states == nil {
			states = append(states, i.Status.State, p.State)
			close(release)
		}
	})
	d.must(err)
	if !slices.Equal(states, []workflow.ImageState{workflow.ImageFetching, workflow.ImageFetching}) || i.Status.DiskBytes != 20 || len(i.Status.Renditions) != 1 || i.Status.Renditions[0].Bytes != 20 {
		t.Errorf("%v, then %+v", states, i.Status)
	}
	events, _, err := d.c.ListEvents(ctx, client.Filter{})
	d.must(err)
	last := events[len(events)-1]
	if last.Reason != hardware.ReasonImageReady || !strings.Contains(last.Detail, "image far: from "+srv.URL+"/x, sha256:") || last.Bytes != 20 {
		t.Errorf("the last event is %+v", last)
	}
	// sent back as it was read it changes nothing
	again, err := d.c.Images.Replace(ctx, "far", i)
	d.must(err)
	if again.Meta.Revision != i.Meta.Revision {
		t.Errorf("revision %d became %d", i.Meta.Revision, again.Meta.Revision)
	}
	_, err = d.c.WaitImage(ctx, "nobody", nil)
	wantProblem(t, err, http.StatusNotFound, api.CodeNotFound, "nobody")
	d.apply("kind: Image\nmetadata: {name: down}\nspec: {url: 'http://nobody.invalid/x'}\n")
	_, err = d.c.WaitImage(ctx, "down", nil)
	var failed *client.ImageFailed
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "nobody.invalid") {
		t.Errorf("nobody is there: %v", err)
	}
}
