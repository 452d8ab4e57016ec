package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
)

// each does one thing with every machine that is named, and says what is true then.
func (a *app) each(cmd *cobra.Command, names []string, do func(context.Context, *client.Client, string) (string, error)) error {
	c := a.client()
	defer c.Close()
	for _, name := range names {
		said, err := do(cmd.Context(), c, name)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(a.Out, "hardware/%s %s\n", name, said); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) acceptCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "accept HARDWARE...", Short: "Vouch for machines: pending ones become available, those in quarantine may be picked again", Args: takes("HARDWARE..."),
		Example: "  rackstrap accept m1\n  rackstrap accept m1 --note 'new disk in bay 2'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.each(cmd, args, func(ctx context.Context, c *client.Client, name string) (string, error) {
				h, err := c.Accept(ctx, name, note)
				if err != nil {
					return "", err
				}
				return "accepted: it is " + stateWords(*h), nil
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what the timeline shows")
	return a.choice(cmd, "accept", func() (any, error) { return api.Note{Note: note}, nil })
}

func (a *app) maintenanceCommand() *cobra.Command {
	var note string
	var off bool
	cmd := &cobra.Command{
		Use: "maintenance NAME...", Short: "Say that a human works on machines: they are not picked, and nobody calls them late", Args: takes("NAME..."),
		Example: "  rackstrap hardware maintenance m1 --note 'new fan'\n  rackstrap hardware maintenance m1 --off",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.each(cmd, args, func(ctx context.Context, c *client.Client, name string) (string, error) {
				_, err := c.Maintenance(ctx, name, !off, note)
				if off {
					return "not in maintenance", err
				}
				return "in maintenance", err
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what others read")
	cmd.Flags().BoolVar(&off, "off", false, "end it")
	return a.choice(cmd, "maintenance", func() (any, error) { return api.Note{Note: note, Off: off}, nil })
}

func (a *app) cancelCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "cancel NAME...", Short: "End what runs on machines: their active workflows, whatever these are called", Args: takes("NAME..."),
		Example: "  rackstrap hardware cancel m1\n  rackstrap hardware cancel -l rack=a1 --reason 'wrong image'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.each(cmd, args, func(ctx context.Context, c *client.Client, name string) (string, error) {
				one := 1
				done, err := c.Bulk(ctx, api.Bulk{Verb: "cancel", Names: []string{name}, Options: map[string]any{"reason": reason}, Confirm: &one})
				if err != nil {
					return "", err
				}
				return done[0].Detail, nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "what the timeline shows")
	return a.choice(cmd, "cancel", func() (any, error) { return api.Cancel{Reason: reason}, nil })
}

func (a *app) retireCommand() *cobra.Command {
	var note string
	var force bool
	cmd := &cobra.Command{
		Use: "retire NAME...", Short: "End machines' lives here: they boot nothing any more", Args: takes("NAME..."),
		Long: `End machines' lives in the appliance. They boot nothing any more; delete their records
when they have left the rack. A machine with an owner or with data that was not wiped
is refused: release it first, or say --force, which prints what was skipped.`,
		Example: "  rackstrap hardware retire m1",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.each(cmd, args, func(ctx context.Context, c *client.Client, name string) (string, error) {
				out, err := c.Retire(ctx, name, force, note)
				if err != nil {
					return "", err
				}
				said := "retired"
				for _, s := range out.Skipped {
					said += "\n  skipped: " + s
				}
				return said, nil
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what the timeline shows")
	cmd.Flags().BoolVar(&force, "force", false, "also a machine with an owner, or with data that was not wiped")
	return a.choice(cmd, "retire", func() (any, error) { return api.Note{Note: note, Force: force}, nil })
}

func (a *app) inspectCommand() *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "inspect NAME", Short: "Boot the worker once, to learn what is in a machine", Args: takes("NAME"),
		Long: `Boot the worker once. It reports CPUs, memory, disks and NICs, which claims with
requirements look at, and writes nothing. The machine is switched off afterwards; one
that is provisioned restarts into its system.`,
		Example: "  rackstrap hardware inspect m1 --wait\n  rackstrap hardware get m1",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			w, err := c.Inspect(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(a.Out, "workflow/%s created\n", w.Meta.Name); err != nil || !wait {
				return err
			}
			return a.wait(cmd.Context(), c, w.Meta.Name, timeout)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for its end")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "with --wait: give up waiting after that long")
	return cmd
}
