package cli

import (
	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

func (a *app) subnetCommand() *cobra.Command {
	r := records[hardware.Subnet]{a, api.KindSubnet, func(c *client.Client) *client.Records[hardware.Subnet] { return c.Subnets }, subnetColumns}
	return r.command("The networks in which DHCP answers", "", "  rackstrap subnet list")
}

func subnetColumns() []column[hardware.Subnet] {
	return []column[hardware.Subnet]{
		{head: "NAME", value: func(s hardware.Subnet) string { return s.Meta.Name }},
		{head: "PREFIX", value: func(s hardware.Subnet) string { return s.Spec.Prefix.String() }},
		{head: "MODE", value: func(s hardware.Subnet) string {
			if s.Spec.Mode == "" {
				return string(hardware.ModeReservation)
			}
			return string(s.Spec.Mode)
		}},
		{head: "GATEWAY", value: func(s hardware.Subnet) string {
			if !s.Spec.Gateway.IsValid() {
				return ""
			}
			return s.Spec.Gateway.String()
		}},
		{head: "LEASE", wide: true, value: func(s hardware.Subnet) string { return span(s.Lease()) }},
		{head: "UID", wide: true, value: func(s hardware.Subnet) string { return s.Meta.UID }},
	}
}
