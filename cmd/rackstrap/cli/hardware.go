package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

func (a *app) hardwareCommand() *cobra.Command {
	r := records[hardware.Hardware]{a, api.KindHardware, func(c *client.Client) *client.Records[hardware.Hardware] { return c.Hardware }, hardwareColumns}
	cmd := r.command("The records of the machines", "", "  rackstrap hardware list\n  rackstrap hardware get m1", a.holdCommand(true), a.holdCommand(false), a.labelCommand(),
		a.acceptCommand(), a.maintenanceCommand(), a.retireCommand(), a.inspectCommand(), a.cancelCommand(), a.factsCommand())
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

// pendingColumns show what a human needs to know before accepting a machine.
func pendingColumns() []column[hardware.Hardware] {
	now := time.Now()
	fact := func(of func(f *hardware.Facts) string) func(hardware.Hardware) string {
		return func(h hardware.Hardware) string {
			if h.Facts == nil {
				return ""
			}
			return of(h.Facts)
		}
	}
	return []column[hardware.Hardware]{
		{head: "NAME", value: func(h hardware.Hardware) string { return h.Meta.Name }},
		hardwareColumns()[2], // MAC
		{head: "VENDOR", value: fact(func(f *hardware.Facts) string { return f.Vendor })},
		{head: "PRODUCT", value: fact(func(f *hardware.Facts) string { return f.Product })},
		{head: "SERIAL", value: fact(func(f *hardware.Facts) string { return f.Serial })},
		{head: "CPUS", value: fact(func(f *hardware.Facts) string { return strconv.Itoa(f.CPUs) })},
		{head: "MEMORY", value: fact(func(f *hardware.Facts) string { return size(int64(f.MemoryBytes)) })},
		{head: "DISKS", value: fact(diskWords)},
		{head: "NICS", value: fact(nicWords)},
		{head: "FOUND", value: func(h hardware.Hardware) string {
			if h.Status.Discovered.IsZero() {
				return "by hand"
			}
			return ago(h.Status.Discovered, now)
		}},
		{head: "DOUBT", value: func(h hardware.Hardware) string {
			var out []string
			for _, c := range h.Status.Conflicts {
				if c.Accepted.IsZero() {
					out = append(out, string(c.Kind))
				}
			}
			return strings.Join(out, ",")
		}},
		{head: "ARCH", wide: true, value: func(h hardware.Hardware) string { return h.Arch() }},
		{head: "FIRMWARE", wide: true, value: fact(func(f *hardware.Facts) string {
			if f.SecureBoot == "on" {
				return f.Firmware + ", Secure Boot"
			}
			return f.Firmware
		})},
		{head: "UUID", wide: true, value: fact(func(f *hardware.Facts) string { return f.UUID })},
		{head: "UID", wide: true, value: func(h hardware.Hardware) string { return h.Meta.UID }},
	}
}

// diskWords are how many fixed disks there are, and their size together.
func diskWords(f *hardware.Facts) string {
	n, bytes := 0, uint64(0)
	for _, d := range f.Disks {
		if !d.Removable {
			n++
			bytes += d.Bytes
		}
	}
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, %s", n, size(int64(min(bytes, math.MaxInt64))))
}

// nicWords are how many NICs there are, and how many have a cable.
func nicWords(f *hardware.Facts) string {
	up := 0
	for _, n := range f.NICs {
		if n.Link {
			up++
		}
	}
	return fmt.Sprintf("%d, %d with link", len(f.NICs), up)
}

func stateWords(h hardware.Hardware) string {
	s := string(h.Status.State)
	if s == "" {
		s = string(hardware.StateAvailable) // the engine had nothing to do with it yet
	}
	if h.Status.Hold {
		s += ", on hold"
	}
	if h.Status.Reserved != nil {
		s += ", kept"
	}
	if h.Status.Maintenance {
		s += ", in maintenance"
	}
	if h.Status.Quarantined() {
		s += ", in quarantine"
	}
	if h.Status.Disputed() {
		s += ", in doubt"
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
