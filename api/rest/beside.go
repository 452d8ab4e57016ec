package rest

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// serveBeside adds what is served beside the API.
func (s *server) serveBeside(r chi.Router) {
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
