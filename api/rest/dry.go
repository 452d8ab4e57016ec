package rest

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rackstrap/rackstrap/api"
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
	d.Blobs, d.Log = dryBlobs{s.Blobs}, slog.New(slog.DiscardHandler)
	d.Audit, d.Note = nil, nil
	out := newServer(d)
	out.dry = true
	return out, nil
}

// isDry reports whether a request, which was not refused, was a dry run: a route that
// makes none refuses the parameter.
func isDry(r *http.Request) bool {
	dry, _ := boolean(r.URL.Query(), "dryRun")
	return dry
}

// dryBlobs are image files of which none is taken or deleted.
type dryBlobs struct{ Blobs }

// Put implements Blobs.
func (dryBlobs) Put(context.Context, io.Reader, string) (string, int64, error) {
	return "", 0, badRequest("leave dryRun out", "a file cannot be uploaded as a dry run")
}

// Delete implements Blobs.
func (dryBlobs) Delete(context.Context, string) error { return fs.ErrNotExist }

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
