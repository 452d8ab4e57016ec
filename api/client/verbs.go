package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

// Version says what the daemon is.
func (c *Client) Version(ctx context.Context) (api.VersionInfo, error) {
	var out api.VersionInfo
	err := c.call(ctx, request{method: http.MethodGet, path: "/version"}, nil, &out)
	return out, err
}

// Apply creates or changes every record of a stream of YAML or JSON documents.
// Where some were refused the error is an *api.Problem with all Results in it.
func (c *Client) Apply(ctx context.Context, documents io.Reader) ([]api.Applied, error) {
	var out api.ApplyResult
	// JSON is YAML; but a JSON body is better read as what it is, so the daemon looks.
	err := c.call(ctx, request{method: http.MethodPost, path: "/apply", body: documents}, nil, &out)
	return out.Results, err
}

// Hold puts a machine on hold, or takes it off.
func (c *Client) Hold(ctx context.Context, name string, hold bool) (*hardware.Hardware, error) {
	out := new(hardware.Hardware)
	if err := c.call(ctx, request{method: http.MethodPost, path: c.Hardware.path(name) + "/hold"}, api.Hold{Hold: &hold}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Timeline tells what happened to a machine.
func (c *Client) Timeline(ctx context.Context, name string) (*api.Timeline, error) {
	out := new(api.Timeline)
	if err := c.call(ctx, request{method: http.MethodGet, path: c.Hardware.path(name) + "/timeline"}, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// CancelWorkflow asks for the end of a workflow; an ended one is returned as it is.
func (c *Client) CancelWorkflow(ctx context.Context, name, reason string) (*api.Workflow, error) {
	out := new(api.Workflow)
	if err := c.call(ctx, request{method: http.MethodPost, path: c.Workflows.path(name) + "/cancel"}, api.Cancel{Reason: reason}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// BootFiles lists the files that machines are sent on their way to the worker.
func (c *Client) BootFiles(ctx context.Context) ([]api.BootFile, error) {
	var out api.List[api.BootFile]
	err := c.call(ctx, request{method: http.MethodGet, path: "/boot-files"}, nil, &out)
	return out.Items, err
}

// LeaseFilter selects leases; what is empty selects all.
type LeaseFilter struct {
	Subnet string
	MAC    string
	// Machine is the name of a Hardware record.
	Machine string
	State   []string
}

// Leases lists what DHCP has confirmed.
func (c *Client) Leases(ctx context.Context, f LeaseFilter) ([]api.Lease, error) {
	q := url.Values{}
	for k, v := range map[string]string{"subnet": f.Subnet, "mac": f.MAC, "machine": f.Machine, "state": strings.Join(f.State, ",")} {
		if v != "" {
			q.Set(k, v)
		}
	}
	var out api.List[api.Lease]
	err := c.call(ctx, request{method: http.MethodGet, path: "/leases", query: q}, nil, &out)
	return out.Items, err
}

// RevokeLease takes a lease back. client is the MAC or the address; the lease is
// returned as it was.
func (c *Client) RevokeLease(ctx context.Context, subnet, client string) (*api.Lease, error) {
	out := new(api.Lease)
	path := "/leases/" + url.PathEscape(subnet) + "/" + url.PathEscape(client)
	if err := c.call(ctx, request{method: http.MethodDelete, path: path}, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Strangers lists the machines that asked for an address and have no record, the
// latest heard first.
func (c *Client) Strangers(ctx context.Context) ([]api.Stranger, error) {
	var out api.List[api.Stranger]
	err := c.call(ctx, request{method: http.MethodGet, path: "/strangers"}, nil, &out)
	return out.Items, err
}

// Filter selects events.
type Filter struct {
	Hardware string // name
	Workflow string
	Boot     string
	// By is who asked: socket, or the name of a token.
	By     string
	Reason hardware.Reason
	// Limit is how many of the newest are listed; the daemon's default where 0.
	Limit int
	// OnRetry, if not nil, is called when a stream broke and is made again.
	OnRetry func(error)
}

func (f Filter) query() url.Values {
	q := url.Values{}
	for k, v := range map[string]string{"hardware": f.Hardware, "workflow": f.Workflow, "boot": f.Boot, "by": f.By, "reason": string(f.Reason)} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return q
}

// ListEvents lists what is stored, and the cursor to go on from with Events.
func (c *Client) ListEvents(ctx context.Context, f Filter) ([]api.Event, uint64, error) {
	var out api.List[api.Event]
	err := c.call(ctx, request{method: http.MethodGet, path: "/events", query: f.query()}, nil, &out)
	return out.Items, out.Cursor, err
}

// Backup writes a backup of all records to w. sent, if not nil, is called with the
// bytes that came so far. An archive that was cut off is noticed by whoever reads it
// (store/backup), and is mostly an error here already.
func (c *Client) Backup(ctx context.Context, in api.Backup, w io.Writer, sent func(int64)) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	resp, err := c.send(ctx, request{method: http.MethodPost, path: "/backup", body: bytes.NewReader(raw), contentType: "application/json"})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var body io.Reader = resp.Body
	if sent != nil {
		body = &counting{r: body, note: sent}
	}
	_, err = io.Copy(w, body)
	return err
}
