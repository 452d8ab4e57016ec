package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

func (a *app) leaseCommand() *cobra.Command {
	cmd := a.group("lease", "The addresses that DHCP has confirmed", "", "  rackstrap lease list")
	cmd.Aliases = []string{"leases"}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the leases", Args: takes(), Example: "  rackstrap lease list -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := a.client()
			defer c.Close()
			rows, err := c.Leases(cmd.Context())
			if err != nil {
				return err
			}
			if done, err := a.printValue(api.List[hardware.Lease]{APIVersion: api.Version, Kind: "LeaseList", Items: rows}); done {
				return err
			}
			return table(a.Out, leaseColumns(time.Now()), rows, a.output == "wide")
		},
	})
	return cmd
}

func leaseColumns(now time.Time) []column[hardware.Lease] {
	return []column[hardware.Lease]{
		{head: "ADDRESS", value: func(l hardware.Lease) string { return l.Addr.String() }},
		{head: "MAC", value: func(l hardware.Lease) string { return l.MAC.String() }},
		{head: "SUBNET", value: func(l hardware.Lease) string { return l.Subnet }},
		{head: "NAME", value: func(l hardware.Lease) string { return l.Hostname }},
		{head: "STATE", value: func(l hardware.Lease) string {
			switch {
			case l.Released:
				return "given back"
			case l.Expires.Before(now):
				return "expired"
			}
			return "ends in " + span(l.Expires.Sub(now))
		}},
		{head: "HARDWARE", wide: true, value: func(l hardware.Lease) string { return l.Hardware }},
		{head: "CLIENT ID", wide: true, value: func(l hardware.Lease) string { return l.ClientID }},
	}
}
