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
