package client

import (
	"context"
	"net/http"

	"github.com/rackstrap/rackstrap/api"
)

// TestRules says what the rules, and one that is not saved, would make of machines.
func (c *Client) TestRules(ctx context.Context, t api.TestRules) (*api.RulesTested, error) {
	out := new(api.RulesTested)
	if err := c.call(ctx, request{method: http.MethodPost, path: "/rules/test"}, t, out); err != nil {
		return nil, err
	}
	return out, nil
}
