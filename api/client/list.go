package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rackstrap/rackstrap/api"
)

// pageSize is how many records All asks for at once.
const pageSize = 500

// ListOptions select, sort and page a list. What a kind does not know it refuses:
// api.CodeBadRequest.
type ListOptions struct {
	// Selector picks by labels: `rack=a1,tier!=test`.
	Selector string
	// State keeps those in one of these states; hardware and workflows.
	State []string
	// Sort is name, created or one of the kind's own; with a dash before it backwards.
	Sort string
	// Limit is the size of a page; 0 is all.
	Limit int
	// Continue is api.List.Continue of the page before.
	Continue string
	// More are parameters of one kind, for example hold=true or q=52:54 for hardware.
	More url.Values
}

func (o ListOptions) query() url.Values {
	q := url.Values{}
	for k, v := range o.More {
		q[k] = v
	}
	for k, v := range map[string]string{"selector": o.Selector, "state": strings.Join(o.State, ","), "sort": o.Sort, "continue": o.Continue} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if o.Limit > 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	return q
}

// Page reads one page.
func (r *Records[T]) Page(ctx context.Context, o ListOptions) (*api.List[T], error) {
	out := new(api.List[T])
	if err := r.c.call(ctx, request{method: http.MethodGet, path: "/" + r.kind.Path(), query: o.query()}, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// All reads page after page, each when it is needed; Limit is the size of a page. A
// record that is created or changed meanwhile may be left out or come twice, others
// not. The error ends it.
func (r *Records[T]) All(ctx context.Context, o ListOptions) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if o.Limit == 0 {
			o.Limit = pageSize
		}
		for {
			p, err := r.Page(ctx, o)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range p.Items {
				if !yield(&p.Items[i], nil) {
					return
				}
			}
			if o.Continue = p.Continue; o.Continue == "" {
				return
			}
		}
	}
}
