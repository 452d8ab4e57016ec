package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"github.com/go-chi/chi/v5"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// tooLarge is an error of the store: a record is larger than it keeps.
type tooLarge interface {
	error
	TooLarge() bool
}

// problem is err as HTTP has it. It is the one place where that is decided.
// Errors that nobody planned for keep their text out of the answer.
func problem(err error) *api.Problem {
	var p *api.Problem
	var invalid *hardware.Invalid
	var syntax *document.SyntaxError
	var large *http.MaxBytesError
	var limit tooLarge
	switch {
	case errors.As(err, &p):
		return p
	case claimProblem(err) != nil:
		return claimProblem(err)
	case errors.As(err, &invalid):
		return &api.Problem{Status: http.StatusUnprocessableEntity, Code: api.CodeInvalid, Detail: invalid.Error(), Errors: invalid.Errors}
	case errors.As(err, &syntax):
		return &api.Problem{Status: http.StatusBadRequest, Code: api.CodeBadRequest, Detail: err.Error()}
	case errors.As(err, &large):
		return &api.Problem{
			Status: http.StatusRequestEntityTooLarge, Code: api.CodeTooLarge,
			Detail: fmt.Sprintf("the body has more than %d bytes", large.Limit), Hint: "split it into several requests",
		}
	case errors.As(err, &limit) && limit.TooLarge():
		return &api.Problem{
			Status: http.StatusRequestEntityTooLarge, Code: api.CodeTooLarge, Detail: limit.Error(),
			Hint: "one record takes 1 MiB at most, less what sealing adds: move large texts into the image, or have the machine fetch them",
		}
	case errors.Is(err, workflow.ErrNotFound):
		return &api.Problem{Status: http.StatusNotFound, Code: api.CodeNotFound, Detail: err.Error()}
	case errors.Is(err, workflow.ErrExists):
		return &api.Problem{Status: http.StatusConflict, Code: api.CodeExists, Detail: err.Error()}
	case errors.Is(err, workflow.ErrConflict):
		return &api.Problem{Status: http.StatusConflict, Code: api.CodeConflict, Detail: err.Error(), Hint: "read it again, then repeat the change"}
	case errors.Is(err, workflow.ErrInUse):
		return &api.Problem{Status: http.StatusConflict, Code: api.CodeInUse, Detail: err.Error()}
	case errors.Is(err, workflow.ErrCompacted):
		return &api.Problem{Status: http.StatusGone, Code: api.CodeCompacted, Detail: "the cursor is older than the event log", Hint: "list again without `after`"}
	case errors.As(err, new(altered)):
		return &api.Problem{
			Status: http.StatusUnprocessableEntity, Code: api.CodeInvalid, Detail: err.Error(), Hint: "the file was altered or cut short: fetch it again, or correct the checksum",
			Errors: []hardware.FieldError{{Field: "checksum", Detail: err.Error()}},
		}
	case errors.As(err, new(noRoom)), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &api.Problem{Status: http.StatusInsufficientStorage, Code: api.CodeStorageFull, Detail: err.Error(), Hint: "delete images that are not needed any more: rackstrap image list"}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &api.Problem{Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable, Detail: "the request was given up"}
	}
	return &api.Problem{Status: http.StatusInternalServerError, Code: api.CodeInternal, Detail: "internal error", Hint: "the daemon's log has the cause: journalctl -u rackstrap"}
}

// fail answers with a problem and logs what only we can mend.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		// nobody is there to read it, or the token ended meanwhile; no answer at all
		// would be a success
		err = context.Canceled
	}
	p := *problem(err)
	p.Title = http.StatusText(p.Status)
	p.Type = "/docs/problems#" + string(p.Code)
	if p.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.Log.Error("api request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	w.Header().Set("Content-Type", api.ProblemType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may be gone
}

// badRequest is a request that cannot be understood.
func badRequest(hint, format string, args ...any) error {
	return &api.Problem{Status: http.StatusBadRequest, Code: api.CodeBadRequest, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

// notFound says which name is not there and which ones are like it.
func notFound(k api.Kind, name string, names []string) error {
	p := &api.Problem{
		Status: http.StatusNotFound, Code: api.CodeNotFound,
		Detail: fmt.Sprintf("there is no %s %q", k.Word(), hardware.PlainText(name, 80)),
		Hint:   "list them: rackstrap " + k.Word() + " list",
	}
	if near := hardware.Nearest(name, names); len(near) > 0 {
		p.Hint = "did you mean " + strings.Join(near, " or ") + "? " + p.Hint
	}
	return p
}

func (s *server) noRoute(w http.ResponseWriter, r *http.Request) {
	var paths []string
	for _, route := range Routes() {
		paths = append(paths, api.Base+route.Path)
	}
	slices.Sort(paths)
	p := &api.Problem{
		Status: http.StatusNotFound, Code: api.CodeNoRoute,
		Detail: fmt.Sprintf("there is no %s", hardware.PlainText(r.URL.Path, 120)), Hint: "all routes are below " + api.Base,
	}
	if near := hardware.Nearest(r.URL.Path, slices.Compact(paths)); len(near) > 0 {
		p.Hint = "did you mean " + near[0] + "?"
	}
	s.fail(w, r, p)
}

func (s *server) noMethod(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if chi.RouteContext(r.Context()).Routes.Match(chi.NewRouteContext(), m, r.URL.Path) {
			allowed = append(allowed, m)
		}
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	s.fail(w, r, &api.Problem{
		Status: http.StatusMethodNotAllowed, Code: api.CodeMethod,
		Detail: fmt.Sprintf("%s is not possible here", r.Method), Hint: "use " + strings.Join(allowed, " or "),
	})
}
