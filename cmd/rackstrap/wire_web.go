package main

import (
	"net/http"
	"strings"
)

// besideUI gives the API its paths, and the web UI all others: the UI's pages are paths
// of its own, which only it knows.
func besideUI(api, ui http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		word, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch word {
		case "api", "docs", "openapi.json", "metrics", "healthz", "readyz":
			api.ServeHTTP(w, r)
		default:
			ui.ServeHTTP(w, r)
		}
	})
}
