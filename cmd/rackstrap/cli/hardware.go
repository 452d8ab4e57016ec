package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

func (a *app) hardwareCommand() *cobra.Command {
	r := records[hardware.Hardware]{a, api.KindHardware, func(c *client.Client) *client.Records[hardware.Hardware] { return c.Hardware }, hardwareColumns}
	cmd := r.command("The records of the machines", "", "  rackstrap hardware list\n  rackstrap hardware get m1", a.holdCommand(true), a.holdCommand(false), a.labelCommand(),
		a.acceptCommand(), a.maintenanceCommand(), a.retireCommand(), a.inspectCommand())
	cmd.Aliases = []string{"hw"}
	return cmd
}

func hardwareColumns() []column[hardware.Hardware] {
	return []column[hardware.Hardware]{
		{head: "NAME", value: func(h hardware.Hardware) string { return h.Meta.Name }},
		{head: "STATE", value: stateWords},
		{head: "MAC", value: func(h hardware.Hardware) string {
			if len(h.Spec.Interfaces) == 0 {
				return ""
			}
			return h.Spec.Interfaces[0].MAC.String()
		}},
		{head: "ADDRESS", value: func(h hardware.Hardware) string {
			if len(h.Spec.Interfaces) == 0 || len(h.Spec.Interfaces[0].Addresses) == 0 {
				return ""
			}
			return h.Spec.Interfaces[0].Addresses[0].String()
		}},
		{head: "WORKFLOW", value: func(h hardware.Hardware) string { return h.Status.Workflow }},
		{head: "SINCE", wide: true, value: func(h hardware.Hardware) string {
			if h.Status.Since.IsZero() {
				return ""
			}
			return h.Status.Since.Local().Format(time.DateTime)
		}},
		{head: "ARCH", wide: true, value: func(h hardware.Hardware) string { return h.Arch() }},
		{head: "MACHINE", wide: true, value: factWords},
		{head: "UID", wide: true, value: func(h hardware.Hardware) string { return h.Meta.UID }},
	}
}

func stateWords(h hardware.Hardware) string {
	s := string(h.Status.State)
	if s == "" {
		s = string(hardware.StateAvailable) // the engine had nothing to do with it yet
	}
	if h.Status.Hold {
		s += ", on hold"
	}
	if h.Status.Maintenance {
		s += ", in maintenance"
	}
	if h.Status.Quarantined() {
		s += ", in quarantine"
	}
	if h.Spec.Protect {
		s += ", protected"
	}
	return s
}

func factWords(h hardware.Hardware) string {
	f := h.Facts
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%s %s, %s, %s, %s", f.Vendor, f.Product, plural(f.CPUs, "CPU"), size(int64(f.MemoryBytes)), plural(len(f.Disks), "disk"))
}

func (a *app) holdCommand(hold bool) *cobra.Command {
	use, short, done := "hold", "Put machines on hold: they wait for a human", "on hold"
	if !hold {
		use, short, done = "unhold", "Take machines off hold", "not on hold"
	}
	cmd := &cobra.Command{
		Use: use + " NAME...", Short: short, Args: takes("NAME..."), Example: "  rackstrap hardware " + use + " m1\n  rackstrap hardware " + use + " -l rack=a1",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			for _, name := range args {
				if _, err := c.Hold(cmd.Context(), name, hold); err != nil {
					return err
				}
				if _, err := fmt.Fprintf(a.Out, "hardware/%s %s\n", name, done); err != nil {
					return err
				}
			}
			return nil
		},
	}
	return a.choice(cmd, use, func() (any, error) { return nil, nil })
}
