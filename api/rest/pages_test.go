package rest_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest"
	"github.com/rackstrap/rackstrap/api/rest/openapi"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// The pages are for everybody, fetch nothing from elsewhere, have no program, and
// each problem's type leads to its place.
func TestPages(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	get := func(path string) string {
		resp := g.send(g.url, "GET", path, "", "")
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Security-Policy") != openapi.Policy {
			t.Fatalf("%s: %d %v %v", path, resp.StatusCode, resp.Header, err)
		}
		return string(raw)
	}
	problems := get("/docs/problems")
	for _, c := range api.Codes() {
		if !strings.Contains(problems, `id="`+string(c)+`"`) {
			t.Errorf("/docs/problems has no %s", c)
		}
	}
	page := get("/docs")
	for _, r := range rest.Routes() {
		if !strings.Contains(page, api.Base+r.Path) || !strings.Contains(page, "<span>") {
			t.Errorf("/docs has no %s", r.Path)
		}
	}
	for _, text := range []string{page, problems, get("/docs/style.css")} {
		if regexp.MustCompile(`(?i)<script|src=|https?://|javascript:|@import|url\(| style=| on[a-z]+=`).MatchString(text) {
			t.Error("a page has a program, or fetches something")
		}
	}
	for _, link := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(page, `id="`+link[1]+`"`) {
			t.Errorf("/docs: #%s leads nowhere", link[1])
		}
	}
	if !strings.HasPrefix(get("/openapi.json"), "{") {
		t.Error("no document")
	}
}

// What can be read can be asked for by HEAD, with the same header and no body.
func TestHead(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	token := g.token("eye", hardware.TokenSpec{Role: hardware.RoleViewer})
	for path, status := range map[string]int{"/docs": 200, "/openapi.json": 200, api.Base + "/hardware": 200, api.Base + "/hardware/nobody": 404, "/metrics": 200} {
		resp := g.send(g.url, "HEAD", path, token, "")
		raw, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != status || len(raw) > 0 {
			t.Errorf("%s: %d, %d bytes, %v", path, resp.StatusCode, len(raw), err)
		}
	}
	if list, err := g.db.Events(t.Context(), workflow.EventQuery{Reason: hardware.ReasonAPIChange}); err != nil || len(list) > 0 {
		t.Errorf("HEAD is a change: %v, %v", list, err)
	}
}
