package rest

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

func (s *server) version(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, api.VersionInfo{Version: s.Version, Installation: s.Installation, Fingerprint: s.fingerprint()})
}

func (s *server) hold(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "name")
	var in api.Hold
	if err := options(w, r, "hold", &in); err != nil {
		return err
	}
	h, err := s.hardware.find(r.Context(), name)
	if err != nil {
		return err
	}
	if err := s.Engine.SetHold(r.Context(), h.Meta.UID, in.Hold == nil || *in.Hold); err != nil {
		return err
	}
	return s.hardware.answer(r.Context(), w, http.StatusOK, name)
}

func (s *server) cancel(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "name")
	var in api.Cancel
	if err := options(w, r, "cancel", &in); err != nil {
		return err
	}
	if _, err := s.workflows.find(r.Context(), name); err != nil {
		return err
	}
	if _, err := s.Engine.CancelWorkflow(r.Context(), name, cancelReason(in)); err != nil {
		return err
	}
	return s.workflows.answer(r.Context(), w, http.StatusOK, name)
}

// cancelReason is what the timeline shows of why a workflow was ended.
func cancelReason(in api.Cancel) string {
	if why := hardware.PlainText(strings.TrimSpace(in.Reason), 200); why != "" {
		return why
	}
	return "cancelled by an operator"
}
