package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

func (a *app) leaseCommand() *cobra.Command {
	cmd := a.group("lease", "The addresses that DHCP has confirmed",
		`The addresses that DHCP has confirmed: those that records reserve, and those lent from
the pool of a Subnet. A lease is active until it ends; expired or released, it is
remembered, so that the machine gets the same address again, until another needs it.
A quarantined address is used by somebody who does not have it from us; it is lent to
nobody for an hour.`,
		"  rackstrap lease list --state active,quarantined\n  rackstrap lease revoke 10.0.0.117")
	cmd.Aliases = []string{"leases"}
	cmd.AddCommand(a.leaseList(), a.leaseRevoke())
	return cmd
}

func (a *app) leaseList() *cobra.Command {
	var f client.LeaseFilter
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the leases", Args: takes(),
		Example: "  rackstrap lease list --subnet lab --state active -o wide\n  rackstrap lease list --machine m1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := a.client()
			defer c.Close()
			rows, err := c.Leases(cmd.Context(), f)
			if err != nil {
				return err
			}
			if done, err := a.printValue(api.List[api.Lease]{APIVersion: api.Version, Kind: "LeaseList", Items: rows}); done {
				return err
			}
			return table(a.Out, leaseColumns(time.Now()), rows, a.output == "wide")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Subnet, "subnet", "", "only those in this Subnet")
	flags.StringVar(&f.MAC, "mac", "", "only that of this MAC")
	flags.StringVar(&f.Machine, "machine", "", "only those of the machine with this name")
	flags.StringSliceVar(&f.State, "state", nil, "only those in one of these states: active, expired, released, quarantined")
	return cmd
}

func (a *app) leaseRevoke() *cobra.Command {
	var subnet string
	cmd := &cobra.Command{
		Use: "revoke MAC|ADDRESS...", Short: "Take leases back, or end a quarantine", Args: takes("MAC|ADDRESS..."),
		Long: `Take leases back, named by the client's MAC or by the address.

The client is not asked: it uses the address until it renews its lease, after half of
the lease time at the latest, and is told no then; it begins anew and gets an address,
the same one if that is still free. Until then the address may be lent to another only
after nobody answered there.

An address in quarantine is free again at once. It is asked after before it is lent.

An address that a record reserves cannot be taken back: change the record.`,
		Example: "  rackstrap lease revoke 52:54:00:12:34:56\n  rackstrap lease revoke 10.0.0.117 10.0.0.118",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			all, err := c.Leases(cmd.Context(), client.LeaseFilter{Subnet: subnet})
			if err != nil {
				return err
			}
			for _, arg := range args {
				in, err := subnetOf(all, arg)
				if err != nil {
					return err
				}
				l, err := c.RevokeLease(cmd.Context(), in, arg)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintln(a.Out, revoked(l)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&subnet, "subnet", "", "only in this Subnet, for a MAC that has leases in several")
	return cmd
}

// subnetOf is where the lease of a MAC or an address is.
func subnetOf(all []api.Lease, arg string) (string, error) {
	mac, _ := hardware.ParseMAC(arg)
	in := map[string]bool{}
	name := ""
	for _, l := range all {
		if l.Addr.String() == arg || (!mac.IsZero() && l.MAC == mac) {
			name = l.Subnet
			in[name] = true
		}
	}
	switch len(in) {
	case 0:
		return "", &failure{exitError, "list them: rackstrap lease list", fmt.Errorf("%s has no lease", arg)}
	case 1:
		return name, nil
	}
	return "", &failure{exitError, "choose one: rackstrap lease revoke --subnet " + name + " " + arg, fmt.Errorf("%s has leases in %d subnets", arg, len(in))}
}

func revoked(l *api.Lease) string {
	if l.State == hardware.LeaseQuarantined {
		return fmt.Sprintf("%s in subnet %s is not in quarantine any more", l.Addr, l.Subnet)
	}
	return fmt.Sprintf("%s in subnet %s was taken back from %s", l.Addr, l.Subnet, l.MAC)
}

func leaseColumns(now time.Time) []column[api.Lease] {
	mac := func(m hardware.MAC) string {
		if m.IsZero() {
			return "-"
		}
		return m.String()
	}
	return []column[api.Lease]{
		{head: "ADDRESS", value: func(l api.Lease) string { return l.Addr.String() }},
		{head: "MAC", value: func(l api.Lease) string {
			if l.Declined {
				return "-"
			}
			return l.MAC.String()
		}},
		{head: "SUBNET", value: func(l api.Lease) string { return l.Subnet }},
		{head: "MACHINE", value: func(l api.Lease) string { return orDash(l.Machine) }},
		{head: "NAME", value: func(l api.Lease) string { return orDash(l.Hostname) }},
		{head: "STATE", value: func(l api.Lease) string { return string(l.State) }},
		{head: "ENDS", value: func(l api.Lease) string { return ago(l.Expires, now) }},
		{head: "USED BY", wide: true, value: func(l api.Lease) string { return mac(l.UsedBy) }},
		{head: "DECLINED BY", wide: true, value: func(l api.Lease) string { return mac(l.DeclinedBy) }},
		{head: "RESERVED", wide: true, value: func(l api.Lease) string {
			if l.Reservation {
				return "yes"
			}
			return "no"
		}},
		{head: "CLIENT ID", wide: true, value: func(l api.Lease) string { return orDash(l.ClientID) }},
	}
}
