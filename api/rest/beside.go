package rest

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/go-chi/chi/v5"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/rest/openapi"
)

// serveBeside adds what is served beside the API: the document and the pages made
// of it, for everybody, and the metrics.
func (s *server) serveBeside(r chi.Router) {
	texts := sync.OnceValues(func() (documentation, error) { return documented(s.Version) })
	page := func(path, contentType string, pick func(documentation) []byte) {
		r.Get(path, func(w http.ResponseWriter, r *http.Request) {
			all, err := texts()
			if err != nil {
				s.fail(w, r, err)
				return
			}
			h := w.Header()
			h.Set("Content-Type", contentType)
			h.Set("Content-Security-Policy", openapi.Policy)
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("Cache-Control", "no-cache")
			_, _ = w.Write(pick(all)) // the client may be gone
		})
	}
	page("/openapi.json", "application/json", func(d documentation) []byte { return d.json })
	page("/docs", "text/html; charset=utf-8", func(d documentation) []byte { return d.page })
	page("/docs/problems", "text/html; charset=utf-8", func(d documentation) []byte { return d.problems })
	page("/docs/style.css", "text/css; charset=utf-8", func(documentation) []byte { return openapi.Style })
	if s.Metrics != nil {
		r.Get("/metrics", func(w http.ResponseWriter, r *http.Request) {
			caller := CallerFrom(r.Context())
			if err := caller.mayUse(Route{Role: RoleViewer}); err != nil {
				s.refused(r, caller.Name, problem(err))
				s.fail(w, r, err)
				return
			}
			w.Header().Set("Cache-Control", "no-store")
			s.Metrics.ServeHTTP(w, r)
		})
	}
}

// documentation is what is made of Routes.
type documentation struct{ json, page, problems []byte }

func documented(version string) (documentation, error) {
	var d documentation
	doc := Document(version)
	var err error
	if d.json, err = json.MarshalIndent(doc, "", " "); err != nil {
		return d, err
	}
	if d.page, err = openapi.Page(doc); err != nil {
		return d, err
	}
	var codes []openapi.Failure
	for _, c := range api.Codes() {
		codes = append(codes, openapi.Failure{Code: string(c), Means: c.Means()})
	}
	d.problems, err = openapi.Problems(codes)
	return d, err
}
