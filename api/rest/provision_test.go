package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// templates adds what stands for the built-in templates.
func (g *rig) templates() {
	g.t.Helper()
	for _, name := range []string{"install", "install-ignition", "install-talos"} {
		g.must(g.db.CreateTemplate(g.t.Context(), &workflow.Template{Meta: hardware.Meta{Name: name}, Spec: workflow.TemplateSpec{
			Parameters: []workflow.Parameter{{Name: "image"}, {Name: "userData", Type: workflow.ParamSecret, Default: ""}},
			Actions: []workflow.ActionSpec{
				{Name: "write", Kind: workflow.KindImageWrite, With: map[string]any{"image": "${image}"}},
				{Name: "seed", Kind: workflow.KindCloudInit, With: map[string]any{"userData": "${userData}"}},
			},
		}}))
	}
}

// audited are the details of the api-change events, the oldest first.
func (g *rig) audited() []string {
	g.t.Helper()
	list, err := g.db.Events(g.t.Context(), workflow.EventQuery{Reason: hardware.ReasonAPIChange})
	g.must(err)
	var out []string
	for _, e := range list {
		out = append(out, e.Detail)
	}
	return out
}

// A dry run says what the install would say, also of the machine's state, and is no
// change to the audit.
func TestProvisionDry(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.templates()
	g.machine(1, "m1", "rack=r1")
	g.machine(2, "m2", "rack=r1")
	h, err := g.db.HardwareByName(t.Context(), "m2")
	g.must(err)
	h.Spec.Protect = true
	g.must(g.db.UpdateHardware(t.Context(), h))
	for _, tt := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"m1/provision", `{"image":"debian","dryRun":true}`, 200, `"dryRun":true`},
		{"m1/provision?dryRun=true", `{"image":"debian"}`, 200, `"dryRun":true`},
		{"m1/provision?dryRun=true", `{"image":"debian","dryRun":true,"userData":"tops3cret"}`, 200, `"dryRun":true`},
		{"m2/provision", `{"image":"debian","dryRun":true}`, 422, "protect: true"},
		{"m1/provision", `{"image":"debian","format":"ignition","waitForPhoneHome":true}`, 422, "an Ignition config is written byte by byte"},
		{"m1/provision", `{"image":"debian","template":"install-talos","waitForPhoneHome":true,"userData":"x"}`, 422, "Talos reads its machine config only"},
		{"m1/provision", `{"image":"debian","format":"talos","dryRun":true}`, 422, "userData: is missing"},
		{"m1/provision", `{"image":"debian","format":"talos","dryRun":true,"params":{"userData":"x"}}`, 200, "install-talos"},
		{"m1/provision", `{"image":"debian","network":"version: 2","static":{"search":["example"]}}`, 422, "goes without network"},
		{"m1/provision", `{"image":"debian","static":{"addresses":[{"nic":7,"address":"10.0.0.5/24"}]}}`, 422, "is 7, and hardware"},
		{"m1/provision", `{"image":"debian","static":{"search":["example"]}}`, 422, "is not written by this appliance"},
		{"m1/provision", "{\"image\":\"debian\",\"userData\":\"\x1f\x8b\"}", 400, "is not UTF-8 text"},
	} {
		status, text := g.ask(g.sock, "POST", api.Base+"/hardware/"+tt.path, "", tt.body)
		if status != tt.status || !strings.Contains(text, tt.want) || strings.Contains(text, "tops3cret") || strings.Contains(text, `"uid"`) {
			t.Errorf("%s %s: %d %s", tt.path, tt.body, status, text)
		}
	}
	if got := g.audited(); len(got) > 0 {
		t.Errorf("audited: %q", got)
	}
	if list, err := g.db.ListWorkflows(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("%d workflows, %v", len(list), err)
	}
}

// The list of checksums at a URL is read once: the same install asked for again is what
// the list said then.
func TestProvisionChecksumList(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.machine(1, "m1", "rack=r1")
	g.must(g.db.CreateTemplate(t.Context(), &workflow.Template{Meta: hardware.Meta{Name: "install"}, Spec: workflow.TemplateSpec{
		Parameters: []workflow.Parameter{{Name: "image"}, {Name: "checksum", Default: ""}},
		Actions:    []workflow.ActionSpec{{Name: "write", Kind: workflow.KindImageWrite, With: map[string]any{"image": "${image}", "checksum": "${checksum}"}}},
	}}))
	says := "sha256:" + strings.Repeat("a", 64)
	deps := g.deps
	deps.Sums = func(_ context.Context, list, image string) (string, error) {
		if list != "https://images.example/SUMS" || image != "https://images.example/node.raw.zst" {
			return "", fmt.Errorf("%s has nothing of %s", list, image)
		}
		return says, nil
	}
	srv := httptest.NewServer(rest.New(deps))
	defer srv.Close()
	ask := func(base, body string, want int, text string) string {
		t.Helper()
		status, got := g.ask(base, "POST", api.Base+"/hardware/m1/provision", "", body)
		if status != want || !strings.Contains(got, text) {
			t.Errorf("%s: %d %s, want %d …%s…", body, status, got, want, text)
		}
		var out api.Provisioned
		g.must(json.Unmarshal([]byte(got), &out))
		return out.Workflow.Meta.UID
	}
	const one = `{"name":"w","image":"https://images.example/node.raw.zst","checksum":"https://images.example/SUMS"}`
	ask(g.sock, one, 422, "reads no lists")
	ask(srv.URL, `{"image":"node","checksum":"https://images.example/SUMS"}`, 422, "for an image by URL")
	ask(srv.URL, `{"image":"https://images.example/other","checksum":"https://images.example/SUMS"}`, 422, "has nothing of")
	uid := ask(srv.URL, one, 201, says)
	says = "sha256:" + strings.Repeat("b", 64)
	if again := ask(srv.URL, one, 200, strings.Repeat("a", 64)); again != uid {
		t.Errorf("uid %q, then %q", uid, again)
	}
	ask(srv.URL, strings.Replace(one, "node.raw", "other.raw", 1), 409, "other values")
}

// Many machines are installed as one is: each with the image of its architecture, a list
// of checksums is read once, and the network is made from each record.
func TestBulkProvision(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.machine(1, "m1", "rack=r1")
	g.machine(2, "m2", "rack=r1")
	h, err := g.db.HardwareByName(t.Context(), "m2")
	g.must(err)
	h.Spec.Arch = "arm64"
	g.must(g.db.UpdateHardware(t.Context(), h))
	for _, arch := range []string{"amd64", "arm64"} {
		g.must(g.db.CreateImage(t.Context(), &workflow.Image{Meta: hardware.Meta{Name: "debian-12-" + arch}, Spec: workflow.ImageSpec{
			URL: "https://images.example/12-" + arch, Direct: true, OS: "debian", OSVersion: "12", Arch: arch,
		}}))
	}
	g.must(g.db.CreateTemplate(t.Context(), &workflow.Template{Meta: hardware.Meta{Name: "install"}, Spec: workflow.TemplateSpec{
		Parameters: []workflow.Parameter{{Name: "image"}, {Name: "checksum", Default: ""}},
		Actions:    []workflow.ActionSpec{{Name: "write", Kind: workflow.KindImageWrite, With: map[string]any{"image": "${image}", "checksum": "${checksum}"}}},
	}}))
	var read atomic.Int32
	says := "sha256:" + strings.Repeat("a", 64)
	deps := g.deps
	deps.Sums = func(context.Context, string, string) (string, error) {
		read.Add(1)
		return says, nil
	}
	srv := httptest.NewServer(rest.New(deps))
	defer srv.Close()
	bulk := func(options string, wants ...string) {
		t.Helper()
		status, text := g.ask(srv.URL, "POST", api.Base+"/bulk", "", `{"verb":"provision","all":true,"confirm":2,"options":`+options+`}`)
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		all, err := g.db.ListWorkflows(t.Context())
		g.must(err)
		var got []string
		for _, w := range all {
			got = append(got, fmt.Sprint(w.Spec.Hardware, " ", w.Spec.Params))
			w.Status.State = workflow.StateCancelled
			m, err := g.db.Machine(t.Context(), w.Status.HardwareUID)
			g.must(err)
			m.Status.State, m.Status.Workflow = hardware.StateAvailable, ""
			g.must(g.db.Commit(t.Context(), &workflow.Change{Machine: m, Workflow: w}))
			g.must(g.db.DeleteWorkflow(t.Context(), w.Meta.Name, 0))
		}
		slices.Sort(got)
		if !slices.Equal(got, wants) {
			t.Errorf("%s: %q, want %q", options, got, wants)
		}
	}
	bulk(`{"os":"debian","osVersion":"12"}`, "m1 map[image:debian-12-amd64]", "m2 map[image:debian-12-arm64]")
	const url = "https://images.example/node.raw.zst"
	bulk(`{"image":"`+url+`","checksum":"https://images.example/SUMS"}`, "m1 map[checksum:"+says+" image:"+url+"]", "m2 map[checksum:"+says+" image:"+url+"]")
	if n := read.Load(); n != 1 {
		t.Errorf("the list is read %d times", n)
	}
}

// A look at a list of checksums that panics ends the request for all machines: none is
// installed without a checksum.
func TestBulkProvisionPanics(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.machine(1, "m1", "rack=r1")
	g.machine(2, "m2", "rack=r1")
	g.must(g.db.CreateTemplate(t.Context(), &workflow.Template{Meta: hardware.Meta{Name: "install"}, Spec: workflow.TemplateSpec{
		Parameters: []workflow.Parameter{{Name: "image"}, {Name: "checksum", Default: ""}},
		Actions:    []workflow.ActionSpec{{Name: "write", Kind: workflow.KindImageWrite, With: map[string]any{"image": "${image}", "checksum": "${checksum}"}}},
	}}))
	deps := g.deps
	deps.Sums = func(context.Context, string, string) (string, error) { panic("a list like no other") }
	srv := httptest.NewServer(rest.New(deps))
	defer srv.Close()
	status, text := g.ask(srv.URL, "POST", api.Base+"/bulk", "", `{"verb":"provision","all":true,"confirm":2,"options":{"image":"https://images.example/node.raw.zst","checksum":"https://images.example/SUMS"}}`)
	all, err := g.db.ListWorkflows(t.Context())
	g.must(err)
	if len(all) > 0 || status == http.StatusOK {
		t.Errorf("%d workflows: %d %s", len(all), status, text)
	}
}

// A name is one install, however far it is.
func TestProvisionAgain(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.templates()
	g.machine(1, "m1", "rack=r1")
	g.machine(2, "m2", "rack=r1")
	ask := func(machine, body string, want int) string {
		t.Helper()
		status, text := g.ask(g.sock, "POST", api.Base+"/hardware/"+machine+"/provision", "", body)
		if status != want {
			t.Errorf("%s %s: %d %s, want %d", machine, body, status, text, want)
		}
		var out api.Provisioned
		g.must(json.Unmarshal([]byte(text), &out))
		return out.Workflow.Meta.UID
	}
	const one, other = `{"name":"w","image":"debian","userData":"a"}`, `{"name":"w","image":"debian","userData":"b"}`
	uid := ask("m1", one, http.StatusCreated)
	if again := ask("m1", one, http.StatusOK); again != uid {
		t.Errorf("uid %q, then %q", uid, again)
	}
	ask("m1", other, http.StatusConflict)
	ask("m2", one, http.StatusConflict)
	w, err := g.db.Workflow(t.Context(), "w")
	g.must(err)
	m, err := g.db.Machine(t.Context(), w.Status.HardwareUID)
	g.must(err)
	w.Status.State, m.Status.State, m.Status.Workflow = workflow.StateSucceeded, hardware.StateProvisioned, ""
	g.must(g.db.Commit(t.Context(), &workflow.Change{Machine: m, Workflow: w}))
	if again := ask("m1", one, http.StatusOK); again != uid {
		t.Errorf("after its end: uid %q, was %q", again, uid)
	}
	ask("m1", other, http.StatusConflict)
	ask("m1", `{"image":"debian"}`, http.StatusUnprocessableEntity) // provisioned
}

// givenUp is an engine whose caller is gone once it has held a machine.
type givenUp struct {
	rest.Engine
	leave context.CancelFunc
}

func (e givenUp) SetHold(ctx context.Context, uid string, hold bool) error {
	defer e.leave()
	return e.Engine.SetHold(ctx, uid, hold)
}

// What a bulk verb did is told, also where it failed or was given up in between.
func TestBulkAudit(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.templates()
	for i, name := range []string{"m1", "m2", "m3"} {
		g.machine(byte(i+1), name, "rack=r1")
	}
	h, err := g.db.HardwareByName(t.Context(), "m2")
	g.must(err)
	h.Spec.Protect = true
	g.must(g.db.UpdateHardware(t.Context(), h))
	for _, body := range []string{
		`{"verb":"provision","all":true,"confirm":3,"options":{"image":"debian","dryRun":true}}`, // done to none
		`{"verb":"provision","all":true,"confirm":3,"options":{"image":"debian"}}`,
	} {
		if status, text := g.ask(g.sock, "POST", api.Base+"/bulk", "", body); !strings.Contains(text, string(api.CodePartiallyApplied)) {
			t.Errorf("%d %s", status, text)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	d := g.deps
	d.Engine = givenUp{d.Engine, leave}
	r := httptest.NewRequestWithContext(ctx, "POST", api.Base+"/bulk", strings.NewReader(`{"verb":"hold","all":true,"confirm":3}`))
	rest.New(d).ServeHTTP(httptest.NewRecorder(), r)
	got := g.audited()
	if len(got) != 2 || got[0] != "POST /api/v1/bulk: done in part: provision of 2 of 3 machines" ||
		!regexp.MustCompile(`^POST /api/v1/bulk: done in part: hold of [1-3] of 3 machines$`).MatchString(got[len(got)-1]) {
		t.Errorf("audited: %q", got)
	}
}

// What validate says of the user-data is what the install will say, and none of it is
// quoted.
func TestValidateFormats(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.templates()
	g.machine(1, "m1", "rack=r1")
	for _, tt := range []struct{ userData, query, want string }{
		{"", "format=ignition", "the record has none, and install-ignition needs it"},
		{"", "template=install-talos", "the record has none, and install-talos needs it"},
		{"", "", "nobody can log in"},
		{`{"tops3cret":{}}`, "format=ignition", "the Ignition config: has no ignition.version"},
		{"#cloud-config\npassword: tops3cret\n", "template=install-ignition", "the Ignition config: is not JSON at byte 1"},
		{`{"ignition":{"version":"3.4.0"},"x":"tops3cret"}`, "template=install-ignition", "bytes that can be read"},
		{"version: v1alpha1\ntoken: tops3cret\n", "format=talos", "bytes that can be read"},
		{"version: v1alpha1\n", "", "says nothing to cloud-init"},
	} {
		h, err := g.db.HardwareByName(t.Context(), "m1")
		g.must(err)
		h.Spec.UserData = tt.userData
		g.must(g.db.UpdateHardware(t.Context(), h))
		status, text := g.ask(g.sock, "GET", api.Base+"/hardware/m1/validate?"+tt.query, "", "")
		if status != http.StatusOK || !strings.Contains(text, tt.want) || strings.Contains(text, "tops3cret") {
			t.Errorf("%q, %s: %d %s, want %s", tt.userData, tt.query, status, text, tt.want)
		}
	}
}
