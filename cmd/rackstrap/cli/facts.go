package cli

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/hardware"
)

func (a *app) factsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "facts NAME", Short: "Show what is in a machine", Args: takes("NAME"),
		Long: `Show what the worker found in a machine when it last booted there, and what speaks
against its being the machine of its record. What is on its disks is as the worker left
it; a system that was installed may have changed it since.`,
		Example: "  rackstrap hardware facts m1\n  rackstrap hardware facts m1 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			h, err := c.Hardware.Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if done, err := a.printValue(h.Facts); done || err != nil {
				return err
			}
			if h.Facts == nil {
				_, err := fmt.Fprintf(a.Out, "no worker has run on %s yet\n", h.Meta.Name)
				return err
			}
			var b strings.Builder
			for _, l := range factLines(h) {
				fmt.Fprintf(&b, "%-12s %s\n", l[0], oneLine(l[1]))
			}
			for _, c := range h.Status.Conflicts {
				severity := hardware.SeverityWarning
				if !c.Accepted.IsZero() {
					severity = hardware.SeverityInfo
				}
				fmt.Fprintf(&b, "%-12s %s\n", "conflict", a.paint(severity, oneLine(c.Detail)+accepted(c)))
			}
			_, err = fmt.Fprint(a.Out, b.String())
			return err
		},
	}
}

func accepted(c hardware.IdentityConflict) string {
	if c.Accepted.IsZero() {
		return ""
	}
	return " (accepted)"
}

// factLines are the facts that are there, each with a name.
func factLines(h *hardware.Hardware) [][2]string {
	f := h.Facts
	var out [][2]string
	add := func(name string, words ...string) {
		var said []string
		for _, w := range words {
			if w != "" {
				said = append(said, w)
			}
		}
		if len(said) > 0 {
			out = append(out, [2]string{name, strings.Join(said, ", ")})
		}
	}
	labelled := func(label, v string) string {
		if v == "" {
			return ""
		}
		return label + " " + v
	}
	add("machine", strings.TrimSpace(f.Vendor+" "+f.Product), labelled("serial", f.Serial), labelled("asset tag", f.AssetTag))
	add("uuid", f.UUID)
	add("board", labelled("serial", f.BoardSerial))
	add("chassis", labelled("serial", f.ChassisSerial))
	add("processor", f.CPUModel, plural(f.CPUs, "CPU"), f.Arch)
	add("memory", size(int64(f.MemoryBytes)))
	add("firmware", f.Firmware, labelled("Secure Boot", f.SecureBoot), f.BIOS)
	if b := f.BMC; b != nil {
		words := []string{"no address", "", "", labelled("firmware", b.Firmware)}
		if b.Address.IsValid() {
			words[0] = b.Address.String()
		}
		if !b.MAC.IsZero() {
			words[1] = b.MAC.String()
		}
		if b.VLAN != 0 {
			words[2] = fmt.Sprintf("VLAN %d", b.VLAN)
		}
		add("bmc", words...)
	}
	for _, d := range f.Disks {
		var traits []string
		for _, t := range []struct {
			is   bool
			word string
		}{{d.Rotational, "rotates"}, {d.ReadOnly, "read-only"}, {d.Removable, "removable"}} {
			if t.is {
				traits = append(traits, t.word)
			}
		}
		add("disk", append([]string{d.Path, size(int64(d.Bytes)), d.Transport, d.Model, labelled("serial", d.Serial)}, traits...)...)
		if l := d.Layout; l != nil {
			add("", "on "+path.Base(d.Path)+": "+l.Words())
			for _, p := range l.Partitions {
				add("", hardware.PartitionName(d.Path, p.Number)+" "+size(int64(p.Bytes)), p.Type, labelled("name", p.Name), string(p.Content), labelled("label", p.Label))
			}
			if l.More > 0 {
				add("", "and "+plural(l.More, "more partition"))
			}
		}
	}
	for _, n := range f.NICs {
		link := "no link"
		if n.Link {
			link = "link"
			if n.Mbps > 0 {
				link = fmt.Sprintf("link at %d Mbit/s", n.Mbps)
			}
		}
		permanent := ""
		if !n.Permanent.IsZero() {
			permanent = "made with " + n.Permanent.String()
		}
		add("nic", n.Name, n.MAC.String(), permanent, link, n.Driver)
	}
	add("worker", labelled("version", f.Worker), labelled("kernel", f.Kernel), f.Collected.Local().Format(time.DateTime))
	return out
}
