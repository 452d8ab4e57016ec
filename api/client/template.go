package client

import (
	"context"
	"net/http"

	"github.com/rackstrap/rackstrap/api"
)

// ActionKinds lists what an action can do, and the variables that every template has.
func (c *Client) ActionKinds(ctx context.Context) (*api.ActionKinds, error) {
	out := new(api.ActionKinds)
	if err := c.call(ctx, request{method: http.MethodGet, path: "/action-kinds"}, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// TemplateSummaries lists every template with what was made of it.
func (c *Client) TemplateSummaries(ctx context.Context) ([]api.TemplateSummary, error) {
	var out api.List[api.TemplateSummary]
	err := c.call(ctx, request{method: http.MethodGet, path: "/template-summaries"}, nil, &out)
	return out.Items, err
}

// RenderTemplate says what a template would do on a machine, and writes nothing;
// api.CodeInvalid where the template or its parameters are wrong, CodeNotFound.
func (c *Client) RenderTemplate(ctx context.Context, in api.RenderTemplate) (*api.RenderedTemplate, error) {
	out := new(api.RenderedTemplate)
	if err := c.call(ctx, request{method: http.MethodPost, path: "/templates/render"}, in, out); err != nil {
		return nil, err
	}
	return out, nil
}
