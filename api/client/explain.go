package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/rackstrap/rackstrap/api"
)

// Explain says why a machine is where it is, and what to type.
func (c *Client) Explain(ctx context.Context, name string) (*api.Explanation, error) {
	out := new(api.Explanation)
	if err := c.call(ctx, request{method: http.MethodGet, path: c.Hardware.path(name) + "/explain"}, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Planned is an install that is only thought of; all fields may be empty.
type Planned struct {
	// Image is the name of an image, or an http(s) URL.
	Image string
	// Template, or Format, which has one: cloud-config, ignition or talos.
	Template, Format string
	// Disk is smallest, largest, /dev/… or serial=….
	Disk string
	// Reinstall allows a machine that is provisioned.
	Reinstall bool
}

// Validate says what is missing before a machine can be installed.
func (c *Client) Validate(ctx context.Context, name string, p Planned) (*api.Validation, error) {
	q := query("image", p.Image, "template", p.Template, "format", p.Format, "disk", p.Disk)
	if p.Reinstall {
		q.Set("reinstall", "true")
	}
	out := new(api.Validation)
	if err := c.call(ctx, request{method: http.MethodGet, path: c.Hardware.path(name) + "/validate", query: q}, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// IssueFilter selects issues; empty fields select all.
type IssueFilter struct{ Kind, Severity, Selector string }

// Issues lists what keeps machines from getting on, the worst first.
func (c *Client) Issues(ctx context.Context, f IssueFilter) ([]api.MachineIssue, error) {
	var out api.List[api.MachineIssue]
	q := query("kind", f.Kind, "severity", f.Severity, "selector", f.Selector)
	err := c.call(ctx, request{method: http.MethodGet, path: "/issues", query: q}, nil, &out)
	return out.Items, err
}

// Reasons says what every Reason means and what to do about it.
func (c *Client) Reasons(ctx context.Context) ([]api.ReasonText, error) {
	var out api.List[api.ReasonText]
	err := c.call(ctx, request{method: http.MethodGet, path: "/reasons"}, nil, &out)
	return out.Items, err
}

// query has the pairs of name and value whose value is not empty.
func query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}
