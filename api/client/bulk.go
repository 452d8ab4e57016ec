package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/rackstrap/rackstrap/api"
)

// Bulk does one verb with many machines and says what came of each. in.Confirm must be
// their number: else api.CodeConflict, with the machines in Problem.Results, and
// nothing is done. Where it failed for some the error is an *api.Problem with all
// Results in it.
func (c *Client) Bulk(ctx context.Context, in api.Bulk) ([]api.Applied, error) {
	return c.bulk(ctx, nil, in)
}

// DryBulk says what Bulk would do with each machine; what would fail is in the
// results.
func (c *Client) DryBulk(ctx context.Context, in api.Bulk) ([]api.Applied, error) {
	return c.bulk(ctx, url.Values{"dryRun": {"true"}}, in)
}

func (c *Client) bulk(ctx context.Context, q url.Values, in api.Bulk) ([]api.Applied, error) {
	var out api.ApplyResult
	err := c.call(ctx, request{method: http.MethodPost, path: "/bulk", query: q}, in, &out)
	return out.Results, err
}
