package client

import (
	"context"
	"net/http"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

// verb calls POST /hardware/{name}/{verb}.
func verb[Out any](ctx context.Context, c *Client, name, verb string, in any) (*Out, error) {
	out := new(Out)
	if err := c.call(ctx, request{method: http.MethodPost, path: c.Hardware.path(name) + "/" + verb}, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Accept vouches for a machine: a pending one becomes available, one in quarantine
// may be picked again.
func (c *Client) Accept(ctx context.Context, name, note string) (*hardware.Hardware, error) {
	return verb[hardware.Hardware](ctx, c, name, "accept", api.Note{Note: note})
}

// Maintenance says that a human works on a machine, or does no more.
func (c *Client) Maintenance(ctx context.Context, name string, on bool, note string) (*hardware.Hardware, error) {
	return verb[hardware.Hardware](ctx, c, name, "maintenance", api.Note{Note: note, Off: !on})
}

// Retire ends a machine's life in the appliance; api.CodeInUse without force where
// it has an owner or data on it.
func (c *Client) Retire(ctx context.Context, name string, force bool, note string) (*api.Retired, error) {
	return verb[api.Retired](ctx, c, name, "retire", api.Note{Note: note, Force: force})
}

// Release gives a machine back; it returns when the wipe is arranged, not done.
func (c *Client) Release(ctx context.Context, name string, in api.Release) (*api.Released, error) {
	return verb[api.Released](ctx, c, name, "release", in)
}

// Provision installs an operating system; it returns when the workflow is made.
func (c *Client) Provision(ctx context.Context, name string, in api.Provision) (*api.Provisioned, error) {
	return verb[api.Provisioned](ctx, c, name, "provision", in)
}

// Inspect boots the worker once, to learn what is in the machine.
func (c *Client) Inspect(ctx context.Context, name string) (*api.Workflow, error) {
	return verb[api.Workflow](ctx, c, name, "inspect", nil)
}

// Power switches a machine, or asks whether it is on; api.CodePowerFailed where its
// controller refuses or does not answer.
func (c *Client) Power(ctx context.Context, name string, in api.Power) (*api.PowerResult, error) {
	return verb[api.PowerResult](ctx, c, name, "power", in)
}
