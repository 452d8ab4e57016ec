package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/rackstrap/rackstrap/api"
)

// Records are all records of one kind.
type Records[T any] struct {
	c    *Client
	kind api.Kind
}

// Kind is what they are.
func (r *Records[T]) Kind() api.Kind { return r.kind }

func (r *Records[T]) path(name string) string {
	return "/" + r.kind.Path() + "/" + url.PathEscape(name)
}

// List reads all of them.
func (r *Records[T]) List(ctx context.Context) ([]T, error) {
	var out api.List[T]
	err := r.c.call(ctx, request{method: http.MethodGet, path: "/" + r.kind.Path()}, nil, &out)
	return out.Items, err
}

// Get reads one; api.CodeNotFound.
func (r *Records[T]) Get(ctx context.Context, name string) (*T, error) {
	out := new(T)
	if err := r.c.call(ctx, request{method: http.MethodGet, path: r.path(name)}, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Create makes one and returns it as it was kept; api.CodeExists, CodeInvalid.
func (r *Records[T]) Create(ctx context.Context, v *T) (*T, error) {
	raw, err := api.Marshal(r.kind, v)
	if err != nil {
		return nil, err
	}
	out := new(T)
	if err := r.c.call(ctx, request{method: http.MethodPost, path: "/" + r.kind.Path()}, raw, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Replace writes the spec and labels of the one called name. Where v has a
// revision, it must still be the record's: api.CodeConflict.
func (r *Records[T]) Replace(ctx context.Context, name string, v *T) (*T, error) {
	raw, err := api.Marshal(r.kind, v)
	if err != nil {
		return nil, err
	}
	out := new(T)
	if err := r.c.call(ctx, request{method: http.MethodPut, path: r.path(name)}, raw, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Delete removes one, if it is at that revision, or at any for 0; api.CodeInUse,
// CodeConflict, CodeNotFound.
func (r *Records[T]) Delete(ctx context.Context, name string, revision uint64) error {
	return r.c.call(ctx, request{method: http.MethodDelete, path: r.path(name)}.insist(revision), nil, nil)
}
