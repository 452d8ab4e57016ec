package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

const waitHelp = `It shows the progress in words and ends when the workflow does: with exit code 0 if it
succeeded, 4 if not, 5 if --timeout passed first (the workflow goes on then).`

func (a *app) workflowWaitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait NAME", Short: "Wait for the end of a workflow", Args: takes("NAME"), Long: "Wait for the end of a workflow.\n\n" + waitHelp,
		Example: "  rackstrap workflow wait NAME --timeout 30m",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			return a.wait(cmd.Context(), c, args[0], timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up waiting after that long; 0 never does")
	return cmd
}

func (a *app) waitCommand() *cobra.Command {
	var timeout time.Duration
	var state string
	cmd := &cobra.Command{
		Use: "wait HARDWARE", Short: "Wait for the end of a machine's workflow, or for a state", Args: takes("HARDWARE"), Long: "Wait for the end of the workflow that a machine has, or, with --state, until it is in\nthat state (or failed).\n\n" + waitHelp,
		Example: "  rackstrap wait m1 --timeout 30m\n  rackstrap wait m1 --state available",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			if state != "" {
				if !slices.Contains(hardware.States(), hardware.State(state)) {
					return usage(cmd, "--state %q is not known (%s)", state, wanted(hardware.States()))
				}
				return a.waitState(cmd.Context(), c, args[0], timeout, hardware.State(state))
			}
			h, err := c.Hardware.Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if h.Status.Workflow == "" {
				return &failure{exitError, "rackstrap workflow create --hardware " + h.Meta.Name + " --template NAME", fmt.Errorf("hardware %q has no workflow", h.Meta.Name)}
			}
			return a.wait(cmd.Context(), c, h.Status.Workflow, timeout)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "wait until the machine is in that state: available, provisioned, …")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up waiting after that long; 0 never does")
	return cmd
}

// wait shows the workflow until it ends; what it shows goes to standard error.
func (a *app) wait(ctx context.Context, c *client.Client, name string, timeout time.Duration) error {
	outer := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	v := newView(a.Err)
	w, err := c.WaitWorkflow(ctx, name, v.see)
	v.end()
	if errors.Is(err, context.DeadlineExceeded) && outer.Err() == nil {
		return &failure{exitTimeout, "rackstrap workflow wait " + name, fmt.Errorf("workflow %q has not ended after %s; it goes on", name, span(timeout))}
	}
	if err != nil {
		return err
	}
	return ended(w)
}

// ended is nil for a workflow that succeeded.
func ended(w *api.Workflow) error {
	if w.Status.State == workflow.StateSucceeded {
		return nil
	}
	text := fmt.Sprintf("workflow %q %s", w.Meta.Name, w.Status.State)
	if w.Status.Message != "" {
		text += ": " + w.Status.Message
	}
	hint := "rackstrap timeline " + w.Spec.Hardware
	if at, err := chooseAttempt(w, "", 0); err == nil && w.Status.Actions[at.action].Attempts[at.attempt-1].LogBytes > 0 {
		hint = "rackstrap workflow logs " + w.Meta.Name
	}
	return &failure{exitFailed, hint, errors.New(text)}
}
