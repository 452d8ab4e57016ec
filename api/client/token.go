package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

// WhoAmI says what this client may do.
func (c *Client) WhoAmI(ctx context.Context) (api.WhoAmI, error) {
	var out api.WhoAmI
	err := c.call(ctx, request{method: http.MethodGet, path: "/whoami"}, nil, &out)
	return out, err
}

// CreateToken makes a token. Its secret is in the answer and nowhere else;
// api.CodeExists, CodeInvalid.
func (c *Client) CreateToken(ctx context.Context, name string, spec api.NewTokenSpec) (*api.CreatedToken, error) {
	in := api.NewToken{APIVersion: api.Version, Kind: api.KindToken, Metadata: api.NewTokenMeta{Name: name}, Spec: spec}
	out := new(api.CreatedToken)
	if err := c.call(ctx, request{method: http.MethodPost, path: "/tokens"}, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Tokens lists every token, and with sessions those of browsers too.
func (c *Client) Tokens(ctx context.Context, sessions bool) ([]hardware.Token, error) {
	var out api.List[hardware.Token]
	rq := request{method: http.MethodGet, path: "/tokens"}
	if sessions {
		rq.query = query("sessions", "true")
	}
	err := c.call(ctx, rq, nil, &out)
	return out.Items, err
}

// Token reads one; api.CodeNotFound.
func (c *Client) Token(ctx context.Context, name string) (*hardware.Token, error) {
	out := new(hardware.Token)
	if err := c.call(ctx, request{method: http.MethodGet, path: "/tokens/" + url.PathEscape(name)}, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// RevokeToken ends a token at once; api.CodeNotFound.
func (c *Client) RevokeToken(ctx context.Context, name string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/tokens/" + url.PathEscape(name)}, nil, nil)
}
