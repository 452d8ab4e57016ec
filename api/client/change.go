package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rackstrap/rackstrap/api"
)

// insist makes a request fail unless the record is at that revision; 0 is any.
func (rq request) insist(revision uint64) request {
	if revision != 0 {
		rq.header = http.Header{"If-Match": {`"` + strconv.FormatUint(revision, 10) + `"`}}
	}
	return rq
}

func (r *Records[T]) patch(name string, revision uint64) request {
	return request{method: http.MethodPatch, path: r.path(name)}.insist(revision)
}

// Patch changes the fields that a JSON merge patch (RFC 7396) has, any value that is
// such a patch as JSON; null deletes a field. Revision 0 is any: then it meets what
// others change meanwhile. api.CodeConflict, CodeInvalid, CodeNotFound.
func (r *Records[T]) Patch(ctx context.Context, name string, revision uint64, patch any) (*T, error) {
	out := new(T)
	if err := r.c.call(ctx, r.patch(name, revision), patch, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ReplaceDocument is Replace with a YAML or JSON document.
func (r *Records[T]) ReplaceDocument(ctx context.Context, name string, document io.Reader) (*T, error) {
	out := new(T)
	if err := r.c.call(ctx, request{method: http.MethodPut, path: r.path(name), body: document}, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteForce also removes one that is in use, where that is safe, and names what was
// skipped; api.CodeBadRequest where it is not.
func (r *Records[T]) DeleteForce(ctx context.Context, name string, revision uint64) ([]string, error) {
	rq := request{method: http.MethodDelete, path: r.path(name), query: url.Values{"force": {"true"}}}.insist(revision)
	var out api.Deleted
	err := r.c.call(ctx, rq, nil, &out)
	return out.Skipped, err
}

// Dry are dry runs: each says what the method of Records would do, or fails as it
// would, and nothing is written.
type Dry[T any] struct{ r *Records[T] }

// Dry makes dry runs.
func (r *Records[T]) Dry() Dry[T] { return Dry[T]{r} }

func (d Dry[T]) run(ctx context.Context, rq request, in any) (*api.Applied, error) {
	if rq.query == nil {
		rq.query = url.Values{}
	}
	rq.query.Set("dryRun", "true")
	var out api.ApplyResult
	if err := d.r.c.call(ctx, rq, in, &out); err != nil {
		return nil, err
	}
	if len(out.Results) != 1 || !out.DryRun {
		return nil, &api.Problem{Code: api.CodeInternal, Detail: "the daemon did not answer as to a dry run", Hint: "compare: rackstrap version"}
	}
	return &out.Results[0], nil
}

// Create says what Records.Create would do.
func (d Dry[T]) Create(ctx context.Context, v *T) (*api.Applied, error) {
	raw, err := api.Marshal(d.r.kind, v)
	if err != nil {
		return nil, err
	}
	return d.run(ctx, request{method: http.MethodPost, path: "/" + d.r.kind.Path()}, raw)
}

// Replace says what Records.Replace would do.
func (d Dry[T]) Replace(ctx context.Context, name string, v *T) (*api.Applied, error) {
	raw, err := api.Marshal(d.r.kind, v)
	if err != nil {
		return nil, err
	}
	return d.run(ctx, request{method: http.MethodPut, path: d.r.path(name)}, raw)
}

// Patch says what Records.Patch would do.
func (d Dry[T]) Patch(ctx context.Context, name string, revision uint64, patch any) (*api.Applied, error) {
	return d.run(ctx, d.r.patch(name, revision), patch)
}

// Delete says what Records.Delete would do, or DeleteForce.
func (d Dry[T]) Delete(ctx context.Context, name string, revision uint64, force bool) (*api.Applied, error) {
	rq := request{method: http.MethodDelete, path: d.r.path(name)}.insist(revision)
	if force {
		rq.query = url.Values{"force": {"true"}}
	}
	return d.run(ctx, rq, nil)
}

// DryApply says what Apply would do with each document, what it would change in
// which field, and all that is wrong.
func (c *Client) DryApply(ctx context.Context, documents io.Reader) ([]api.Applied, error) {
	var out api.ApplyResult
	err := c.call(ctx, request{method: http.MethodPost, path: "/apply", query: url.Values{"dryRun": {"true"}}, body: documents}, nil, &out)
	return out.Results, err
}
