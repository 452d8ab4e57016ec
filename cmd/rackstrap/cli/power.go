package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
)

func (a *app) powerCommand() *cobra.Command {
	var next string
	actions := []string{"on", "off", "cycle", "status"}
	cmd := &cobra.Command{
		Use: "power HARDWARE... on|off|cycle|status", Short: "Switch machines on or off, or ask whether they are on", Args: takes("HARDWARE...", "ACTION"),
		Long: `Switch machines on or off through their power driver, or ask whether they are on.

With the manual driver (the default) nobody but a person can do it: the command prints
what to press. See deploy/docs/power.md for the webhook driver.`,
		Example: "  rackstrap power m1 status\n  rackstrap power m1 m2 cycle --next-boot network",
		RunE: func(cmd *cobra.Command, args []string) error {
			names, action := args[:len(args)-1], args[len(args)-1]
			if !slices.Contains(actions, action) || len(names) == 0 {
				return usage(cmd, "%q is no action (%s), which comes last", action, strings.Join(actions, ", "))
			}
			c := a.client()
			defer c.Close()
			for _, name := range names {
				out, err := c.Power(cmd.Context(), name, api.Power{Action: api.PowerAction(action), NextBoot: next})
				if err != nil {
					return err
				}
				if done, err := a.printValue(out); err != nil {
					return err
				} else if done {
					continue
				}
				text := string(out.State)
				switch {
				case out.Message != "":
					text = out.Message
				case text == "":
					text = "unknown"
				}
				if _, err := fmt.Fprintf(a.Out, "hardware/%s %s\n", name, text); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&next, "next-boot", "", "with on and cycle: boot from network or disk this once")
	return cmd
}
