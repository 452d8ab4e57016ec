package web

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"testing/fstest"
)

func built() fstest.MapFS {
	return fstest.MapFS{
		"dist/README.md":               {Data: []byte("# readme")},
		"dist/index.html":              {Data: []byte("<!doctype html>plain")},
		"dist/index.html.br":           {Data: []byte("index in br")},
		"dist/index.html.gz":           {Data: []byte("index in gz")},
		"dist/favicon.svg":             {Data: []byte("<svg/>")},
		"dist/assets/app-ABC.js":       {Data: []byte("app()")},
		"dist/assets/app-ABC.js.gz":    {Data: []byte("app in gz")},
		"dist/assets/style-DEF.css":    {Data: []byte("body{}")},
		"dist/assets/source-ABC.js.ts": {Data: []byte("source")},
	}
}

func ask(h http.Handler, method, target string, header ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestFiles(t *testing.T) {
	t.Parallel()
	h := newHandler(built(), "1.2")
	const ever, again = "public, max-age=31536000, immutable", "no-cache"
	for _, tc := range []struct {
		path, accept string
		status       int
		body, kind   string
		encoding     string
		cache        string
	}{
		{"/", "", 200, "<!doctype html>plain", "text/html; charset=utf-8", "", again},
		{"/", "gzip, deflate, br, zstd", 200, "index in br", "text/html; charset=utf-8", "br", again},
		{"/", "gzip", 200, "index in gz", "text/html; charset=utf-8", "gzip", again},
		{"/", "br;q=0, gzip;q=0.5", 200, "index in gz", "text/html; charset=utf-8", "gzip", again},
		{"/", "GZIP;q=1.0", 200, "index in gz", "text/html; charset=utf-8", "gzip", again},
		{"/", "gzip; q=0.000", 200, "<!doctype html>plain", "text/html; charset=utf-8", "", again},
		{"/", "brotli, xgzip, *", 200, "<!doctype html>plain", "text/html; charset=utf-8", "", again},
		{"/machines", "", 200, "<!doctype html>plain", "text/html; charset=utf-8", "", again},
		{"/machines/node-7?tab=events", "", 200, "<!doctype html>plain", "text/html; charset=utf-8", "", again},
		{"/machines/", "", 200, "<!doctype html>plain", "text/html; charset=utf-8", "", again},
		{"/index.html", "br", 200, "index in br", "text/html; charset=utf-8", "br", again},
		{"/favicon.svg", "br", 200, "<svg/>", "image/svg+xml", "", again},
		{"/favicon.ico", "", 200, "<svg/>", "image/svg+xml", "", again},
		{"/assets/app-ABC.js", "br", 200, "app()", "text/javascript; charset=utf-8", "", ever},
		{"/assets/app-ABC.js", "gzip, br", 200, "app in gz", "text/javascript; charset=utf-8", "gzip", ever},
		{"/assets/style-DEF.css", "gzip", 200, "body{}", "text/css; charset=utf-8", "", ever},
		{"/assets/app-OLD.js", "", 404, "there is no such file\n", "text/plain; charset=utf-8", "", "no-store"},
		{"/assets/app-ABC.js.gz", "", 404, "there is no such file\n", "text/plain; charset=utf-8", "", "no-store"},
		{"/assets/source-ABC.js.ts", "", 404, "there is no such file\n", "text/plain; charset=utf-8", "", "no-store"},
		{"/assets/", "", 404, "there is no such file\n", "text/plain; charset=utf-8", "", "no-store"},
		{"/assets/nothing", "", 404, "there is no such file\n", "text/plain; charset=utf-8", "", "no-store"},
		{"/README.md", "", 404, "there is no such file\n", "text/plain; charset=utf-8", "", "no-store"},
		{"/.env", "", 404, "there is no such file\n", "text/plain; charset=utf-8", "", "no-store"},
		{"/assets/../../web.go", "", 404, "there is no such file\n", "text/plain; charset=utf-8", "", "no-store"},
		{"/assets/%2e%2e/index.html", "", 404, "there is no such file\n", "text/plain; charset=utf-8", "", "no-store"},
		{"//evil.example/..", "", 404, "there is no such file\n", "text/plain; charset=utf-8", "", "no-store"},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			resp := ask(h, method, tc.path, "Accept-Encoding", tc.accept)
			raw, err := io.ReadAll(resp.Body)
			want := tc.body
			if method == "HEAD" && tc.status == 200 {
				want = ""
			}
			if method == "HEAD" && tc.status != 200 {
				raw, want = nil, "" // net/http leaves the body out
			}
			head := resp.Header
			if err != nil || resp.StatusCode != tc.status || string(raw) != want || head.Get("Content-Type") != tc.kind || head.Get("Content-Encoding") != tc.encoding || head.Get("Cache-Control") != tc.cache {
				t.Errorf("%s %s (%s): %d %q %v", method, tc.path, tc.accept, resp.StatusCode, raw, head)
			}
			for name, want := range map[string]string{
				"Content-Security-Policy": Policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
				"Cross-Origin-Resource-Policy": "same-origin", "Permissions-Policy": permissions, "Vary": "Accept-Encoding",
			} {
				if head.Get(name) != want {
					t.Errorf("%s: %s is %q", tc.path, name, head.Get(name))
				}
			}
		}
	}
	if resp := ask(h, "POST", "/"); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

// What the browser has and is still the same is not sent again, in the form that it has.
func TestNotModified(t *testing.T) {
	t.Parallel()
	h := newHandler(built(), "1.2")
	tags := map[string]bool{}
	for _, accept := range []string{"", "gzip", "br"} {
		tag := ask(h, "GET", "/machines", "Accept-Encoding", accept).Header.Get("ETag")
		if tags[tag] || tag == "" {
			t.Errorf("%s: ETag %s", accept, tag)
		}
		tags[tag] = true
		if resp := ask(h, "GET", "/racks", "Accept-Encoding", accept, "If-None-Match", tag); resp.StatusCode != http.StatusNotModified {
			t.Errorf("%s: %d", accept, resp.StatusCode)
		}
	}
	if resp := ask(h, "GET", "/", "If-None-Match", `"another"`); resp.StatusCode != http.StatusOK {
		t.Errorf("another: %d", resp.StatusCode)
	}
}

// A binary that was made without the UI says so.
func TestNotBuilt(t *testing.T) {
	t.Parallel()
	h := newHandler(fstest.MapFS{"dist/README.md": {Data: []byte("# readme")}}, "<v1>")
	resp := ask(h, "GET", "/machines")
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(raw), "make build") || !strings.Contains(string(raw), "&lt;v1&gt;") {
		t.Errorf("%d %s", resp.StatusCode, raw)
	}
	if resp := ask(h, "GET", "/assets/app.js"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a file: %d", resp.StatusCode)
	}
}

// Whatever this binary has inside is of a type that is served, or is a compressed form of
// it; a page that is there finds all that it names.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	h := newHandler(dist, "test")
	err := fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "dist/README.md" {
			return err
		}
		plain := strings.TrimSuffix(strings.TrimSuffix(name, ".br"), ".gz")
		if _, known := types()[path.Ext(plain)]; !known {
			t.Errorf("%s: not served (add its type)", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	index := h.files[page]
	if index == nil {
		return // not built: TestNotBuilt
	}
	text := string(index.forms[""])
	for _, inline := range []string{"<style", " style=", "<script>", "onload=", "http://", "https://"} {
		if strings.Contains(text, inline) {
			t.Errorf("index.html has %q, which the policy forbids", inline)
		}
	}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '"' }) {
		if strings.HasPrefix(part, "/assets/") && ask(h, "GET", part).StatusCode != http.StatusOK {
			t.Errorf("index.html names %s, which is not there", part)
		}
	}
}
