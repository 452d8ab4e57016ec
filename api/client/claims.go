package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

// ClaimFilter picks claims; its zero value picks all.
type ClaimFilter struct {
	// Owner is a prefix: team has team and team/a.
	Owner string
	// Hardware is the name of the machine.
	Hardware string
	// Active true picks those that are held, false those that have ended.
	Active *bool
	// Selector picks by the claims' own labels.
	Selector string
}

// ListClaims lists the claims that match, by id.
func (c *Client) ListClaims(ctx context.Context, f ClaimFilter) ([]hardware.Claim, error) {
	q := url.Values{}
	for k, v := range map[string]string{"owner": f.Owner, "hardware": f.Hardware, "selector": f.Selector} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if f.Active != nil {
		q.Set("active", strconv.FormatBool(*f.Active))
	}
	var out api.List[hardware.Claim]
	err := c.call(ctx, request{method: http.MethodGet, path: "/claims", query: q}, nil, &out)
	return out.Items, err
}

// Claim takes a machine. Its name is the claim's id, and yours: after an answer that
// did not arrive send the same claim again, and get the machine that it has.
// api.CodeNoCandidate where no machine fits, CodeClaimEnded where the id was used
// before, CodeConflict where it is that of another claim, CodeForbidden, CodeInvalid.
func (c *Client) Claim(ctx context.Context, claim *hardware.Claim) (*hardware.Claim, error) {
	return c.Claims.Create(ctx, claim)
}

// ClaimHardware takes this machine; the errors are those of Claim.
func (c *Client) ClaimHardware(ctx context.Context, name string, in api.ClaimHardware) (*hardware.Claim, error) {
	return verb[hardware.Claim](ctx, c, name, "claim", in)
}

// ReleaseClaim gives the machine of a claim back: the claim ends at once, and the
// machine is wiped. For a claim that has ended already it says that. CodeNotFound.
func (c *Client) ReleaseClaim(ctx context.Context, id string) (*api.ClaimReleased, error) {
	out := new(api.ClaimReleased)
	if err := c.call(ctx, request{method: http.MethodDelete, path: c.Claims.path(id)}, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ReleaseClaimWith is ReleaseClaim that says what is to become of the machine. Asked
// again it says what the first time did, whatever is asked for. CodeNotFound (not with
// an Owner), CodeInvalid, and CodeForbidden where the group to reserve it for is another's.
func (c *Client) ReleaseClaimWith(ctx context.Context, id string, in api.ReleaseClaim) (*api.ClaimReleased, error) {
	out := new(api.ClaimReleased)
	if err := c.call(ctx, request{method: http.MethodPost, path: c.Claims.path(id) + "/release"}, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ExplainClaim says of each machine what speaks against giving it to a claim.
func (c *Client) ExplainClaim(ctx context.Context, id string) (*api.ClaimExplanation, error) {
	out := new(api.ClaimExplanation)
	if err := c.call(ctx, request{method: http.MethodGet, path: c.Claims.path(id) + "/explain"}, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ExplainClaimSpec says it for a claim that is not made.
func (c *Client) ExplainClaimSpec(ctx context.Context, spec hardware.ClaimSpec) (*api.ClaimExplanation, error) {
	out := new(api.ClaimExplanation)
	if err := c.call(ctx, request{method: http.MethodPost, path: "/claims/explain"}, api.ExplainClaim{Spec: spec}, out); err != nil {
		return nil, err
	}
	return out, nil
}
