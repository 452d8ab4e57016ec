// Package web has the web UI inside: web/ui is what people write, web/dist what `make
// web` makes of it and this package serves. It uses the same public API as everybody and
// knows none of our other packages.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed all:dist
var dist embed.FS

// Policy is the Content-Security-Policy of all that is served here: our own files, no
// program or style in the page itself, nothing from elsewhere, in nobody's frame.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// types is all that is served, by the end of the file's name. What a build leaves here
// besides is not.
func types() map[string]string {
	return map[string]string{
		".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
		".png": "image/png", ".ico": "image/vnd.microsoft.icon", ".woff2": "font/woff2", ".json": "application/json", ".webmanifest": "application/manifest+json",
	}
}

// page is the file that every path of the app is answered with; the app reads the path.
const page = "index.html"

// file is one file, as it is and compressed.
type file struct {
	kind string
	etag string
	// forms are by Content-Encoding; "" is always there.
	forms map[string][]byte
}

// handler serves the files of one build.
type handler struct {
	files map[string]*file
	// missing is shown where nothing was built.
	missing string
}

// Handler serves the UI that this binary has inside. version is the binary's.
func Handler(version string) http.Handler { return newHandler(dist, version) }

func newHandler(in fs.FS, version string) *handler {
	h := &handler{files: map[string]*file{}, missing: fmt.Sprintf(notBuilt, html.EscapeString(version))}
	// what cannot be read is not served; embedded files always can be
	_ = fs.WalkDir(in, "dist", func(name string, d fs.DirEntry, err error) error {
		kind, known := types()[path.Ext(name)]
		if err != nil || d.IsDir() || !known {
			return nil
		}
		raw, err := fs.ReadFile(in, name)
		if err != nil {
			return nil
		}
		sum := sha256.Sum256(raw)
		f := &file{kind: kind, etag: hex.EncodeToString(sum[:12]), forms: map[string][]byte{"": raw}}
		for encoding, end := range map[string]string{"br": ".br", "gzip": ".gz"} {
			if packed, err := fs.ReadFile(in, name+end); err == nil {
				f.forms[encoding] = packed
			}
		}
		h.files[strings.TrimPrefix(name, "dist/")] = f
		return nil
	})
	return h
}

// ServeHTTP answers with a file, or with the page for a path of the app: one whose last
// part has no dot.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	guard(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are possible here", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if !strings.Contains(path.Base(name), ".") && !strings.HasPrefix(name, "assets/") || path.Clean(name) == "." {
		name = page
	}
	if name == "favicon.ico" {
		name = "favicon.svg" // asked for beside pages that name no icon, like an answer of the API; its type says what it is
	}
	f := h.files[name]
	switch {
	case f == nil && name == page:
		w.Header().Set("Content-Type", types()[".html"])
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusServiceUnavailable)
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(h.missing)) // the client may be gone
		}
	case f == nil:
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "there is no such file", http.StatusNotFound)
	default:
		f.serve(w, r, strings.HasPrefix(name, "assets/"))
	}
}

// serve sends the file in a form that the client takes. One that is named by its content
// never changes; any other one is asked for again, and costs nothing while it is the same.
func (f *file) serve(w http.ResponseWriter, r *http.Request, hashed bool) {
	form := ""
	for _, encoding := range []string{"br", "gzip"} { // the smallest first
		if f.forms[encoding] != nil && accepts(r.Header.Values("Accept-Encoding"), encoding) {
			form = encoding
			break
		}
	}
	head := w.Header()
	head.Set("Content-Type", f.kind)
	head.Set("Cache-Control", "no-cache")
	if hashed {
		head.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	tag := f.etag
	if form != "" {
		head.Set("Content-Encoding", form)
		tag += "-" + form
	}
	head.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.forms[form]))
}

// accepts reports whether an encoding is in the list, and not with weight 0 (RFC 9110
// section 12.5.3). A star is not read: no browser sends one.
func accepts(lists []string, encoding string) bool {
	for _, list := range lists {
		for one := range strings.SplitSeq(list, ",") {
			name, weight, _ := strings.Cut(one, ";")
			if !strings.EqualFold(strings.TrimSpace(name), encoding) {
				continue
			}
			q, _ := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
			return weight == "" || strings.Trim(q, "0.") != ""
		}
	}
	return false
}

// guard are the headers of every answer.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", permissions)
	h.Set("Vary", "Accept-Encoding")
}

// permissions takes from the page what it has no use for.
const permissions = "accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), " +
	"microphone=(), midi=(), payment=(), serial=(), usb=(), web-share=(), xr-spatial-tracking=()"

// notBuilt is the page of a binary that was made by `go build` alone.
const notBuilt = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Rackstrap</title></head>
<body>
<h1>This binary was built without the web UI</h1>
<p>rackstrap %s has all else: the command line, and the API (<a href="/docs">/docs</a>).</p>
<p>To have the web UI inside, build it with <code>make build</code>, which needs npm; <code>go build</code> alone leaves it out.</p>
</body>
</html>
`
