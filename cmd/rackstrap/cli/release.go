package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

func (a *app) releaseCommand() *cobra.Command {
	var in api.Release
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "release HARDWARE...", Short: "Give machines back: wipe every disk, read it back, make them available", Args: takes("HARDWARE..."),
		Long: `Give machines back. The claim ends at once, a running install is cancelled, every
disk is wiped and read back, and only then is the machine available again; the proof
is in status.wiped of its record.

--force gives a machine up without a wipe. It is then failed and on hold, never
available, and what was skipped is printed.`,
		Example: "  rackstrap release m1 --wait\n  rackstrap release m1 --force --reason 'disk is dead'",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			for _, name := range args {
				out, err := c.Release(cmd.Context(), name, in)
				if err != nil {
					return err
				}
				if err := a.printReleased(out); err != nil {
					return err
				}
			}
			if !wait || in.Force {
				return nil
			}
			for _, name := range args {
				if err := a.waitState(cmd.Context(), c, name, timeout, hardware.StateAvailable); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.Claim, "claim", "", "release only if this claim holds it")
	f.StringVar(&in.Reason, "reason", "", "what the timeline shows")
	f.BoolVar(&in.Force, "force", false, "give it up without a wipe")
	f.BoolVar(&wait, "wait", false, "wait until it is available")
	f.DurationVar(&timeout, "timeout", 0, "with --wait: give up waiting after that long")
	return a.choice(cmd, "release", func() (any, error) {
		if wait {
			return nil, usage(cmd, "--wait goes with names only")
		}
		return in, nil
	})
}

func (a *app) printReleased(out *api.Released) error {
	if done, err := a.printValue(out); done {
		return err
	}
	text := "is available"
	switch s := out.Hardware.Status.State; {
	case out.Workflow != "":
		text = "is wiped by workflow/" + out.Workflow
	case s != hardware.StateAvailable:
		text = "is " + string(s)
	}
	for _, s := range out.Skipped {
		text += "\n  skipped: " + s
	}
	_, err := fmt.Fprintf(a.Out, "hardware/%s %s\n", out.Hardware.Meta.Name, text)
	return err
}

// waitState waits until a machine is in one of the states. It ends early, as a
// failure, where the machine stopped moving in another one.
func (a *app) waitState(ctx context.Context, c *client.Client, name string, timeout time.Duration, want ...hardware.State) error {
	outer := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var said string
	h, err := c.WaitHardware(ctx, name, func(h *hardware.Hardware) bool {
		words := stateWords(*h)
		if h.Status.AwaitOS {
			words += ": everything is written, waits for its system to phone home"
		}
		if words != said {
			said = words
			_, _ = fmt.Fprintf(a.Err, "%s: %s\n", name, words)
		}
		return slices.Contains(want, h.Status.State) || h.Status.State == hardware.StateFailed
	})
	if errors.Is(err, context.DeadlineExceeded) && outer.Err() == nil {
		return &failure{exitTimeout, "rackstrap explain " + name, fmt.Errorf("hardware %q is not %s after %s", name, wanted(want), span(timeout))}
	}
	if err != nil {
		return err
	}
	if !slices.Contains(want, h.Status.State) {
		return &failure{exitFailed, "rackstrap explain " + name, fmt.Errorf("hardware %q is %s, wanted %s", name, h.Status.State, wanted(want))}
	}
	return nil
}

func wanted(states []hardware.State) string {
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = string(s)
	}
	return strings.Join(words, " or ")
}
