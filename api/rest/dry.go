package rest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/workflow"
)

// forRequest is the server that a change is made on: this one, or, with dryRun=true,
// one whose writes are thrown away. What is checked is the same, because it is done.
func (s *server) forRequest(r *http.Request) (*server, error) {
	dry, err := boolean(r.URL.Query(), "dryRun")
	if err != nil || !dry {
		return s, err
	}
	return s.asDry(r.Context())
}

// asDry is a server like this one whose writes are thrown away. Whatever of Deps
// writes must be replaced here.
func (s *server) asDry(ctx context.Context) (*server, error) {
	if s.dry {
		return s, nil
	}
	if s.Dry == nil {
		return nil, &api.Problem{Status: http.StatusNotImplemented, Code: api.CodeUnavailable, Detail: "this daemon makes no dry runs"}
	}
	d := s.Deps
	var err error
	if d.Records, d.Engine, err = s.Dry(ctx); err != nil {
		return nil, err
	}
	d.Images, d.Log = dryImages{s.Images}, slog.New(slog.DiscardHandler)
	d.Audit, d.Note = nil, nil
	out := newServer(d)
	out.dry, toldOf(ctx).dry = true, true
	return out, nil
}

// dryImages are images of which no file is taken or fetched. Write asks about files
// only.
type dryImages struct{ Images }

// Upload implements Images.
func (dryImages) Upload(context.Context, *workflow.Image, io.Reader, string, func(context.Context) error) error {
	return badRequest("leave dryRun out", "a file cannot be uploaded as a dry run")
}

// Fetch implements Images.
func (dryImages) Fetch(context.Context, string) error {
	return badRequest("leave dryRun out", "an image cannot be fetched as a dry run")
}

func answerDry(w http.ResponseWriter, a api.Applied) error {
	return writeJSON(w, http.StatusOK, api.ApplyResult{Results: []api.Applied{a}, DryRun: true})
}

// boolean is a parameter that is true or false, false where it is missing; a
// parameter without a value is true.
func boolean(q url.Values, key string) (bool, error) {
	if !q.Has(key) {
		return false, nil
	}
	v := q.Get(key)
	if v == "" {
		return true, nil
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, badRequest("", "%s=%.40q is neither true nor false", key, v)
	}
	return b, nil
}
