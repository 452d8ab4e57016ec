package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The API keeps its paths; what it does not have there is not answered with a page.
func TestBesideUI(t *testing.T) {
	t.Parallel()
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	}
	h := besideUI(says("api"), says("ui"))
	for path, want := range map[string]string{
		"/": "ui", "/machines": "ui", "/machines/api": "ui", "/assets/app.js": "ui", "/apis": "ui", "/favicon.svg": "ui",
		"/api": "api", "/api/v1/hardware": "api", "/api/v2": "api", "/openapi.json": "api", "/docs": "api", "/docs/style.css": "api",
		"/metrics": "api", "/healthz": "api", "/readyz": "api", "//api/v1": "ui",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if got := w.Body.String(); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}
