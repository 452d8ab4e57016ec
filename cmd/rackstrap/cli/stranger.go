package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

func (a *app) strangerCommand() *cobra.Command {
	cmd := a.group("stranger", "The machines that ask for an address and have no record", "", "  rackstrap stranger list")
	cmd.Aliases = []string{"strangers"}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List who asked since the daemon started, the latest first", Args: takes(),
		Long: `List the MAC addresses that asked for an address since the daemon started and that no
Hardware record has. BOOT is how far a machine came that its Subnet lets boot the worker
(spec.discovery: true); when it has reported itself it is a pending Hardware and not listed
here any more. The others get no boot program. What a machine says of itself may be wrong.`,
		Example: "  rackstrap stranger list -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := a.client()
			defer c.Close()
			rows, err := c.Strangers(cmd.Context())
			if err != nil {
				return err
			}
			if done, err := a.printValue(api.List[api.Stranger]{APIVersion: api.Version, Kind: "StrangerList", Items: rows}); done {
				return err
			}
			if err := table(a.Out, strangerColumns(time.Now()), rows, a.output == "wide"); err != nil || len(rows) == 0 {
				return err
			}
			_, err = io.WriteString(a.Err, strangerHints(rows))
			return err
		},
	})
	return cmd
}

// strangerHints say what becomes of those that are let in, and what to do about the others.
func strangerHints(rows []api.Stranger) string {
	var out string
	var shut []api.Stranger
	for _, s := range rows {
		if s.Phase == "" {
			shut = append(shut, s)
		}
	}
	if n := len(rows) - len(shut); n > 0 {
		out = fmt.Sprintf("hint: %s the worker; see what it reports: rackstrap hardware list --state pending\n", plural(n, "machine")+" may boot")
	}
	if len(shut) > 0 {
		out += fmt.Sprintf("hint: to register one, put in its name and address: echo '%s' | rackstrap apply -f -\n", registration(shut))
		if slices.ContainsFunc(shut, func(s api.Stranger) bool { return s.Firmware != hardware.FirmwareNone }) {
			out += "hint: or let machines report themselves: rackstrap subnet patch SUBNET -p 'spec: {discovery: true}'\n"
		}
	}
	return out
}

// registration is a Hardware record in one line, for a stranger that netboots if
// there is one. The leading --- tells it from JSON.
func registration(rows []api.Stranger) string {
	i := max(0, slices.IndexFunc(rows, func(s api.Stranger) bool { return s.Firmware != hardware.FirmwareNone }))
	return fmt.Sprintf(`--- {kind: Hardware, metadata: {name: NAME}, spec: {interfaces: [{mac: "%s", addresses: [ADDRESS/24]}]}}`, rows[i].MAC)
}

func strangerColumns(now time.Time) []column[api.Stranger] {
	return []column[api.Stranger]{
		{head: "MAC", value: func(s api.Stranger) string { return s.MAC.String() }},
		{head: "FIRMWARE", value: func(s api.Stranger) string { return orDash(string(s.Firmware)) }},
		{head: "VENDOR", value: func(s api.Stranger) string { return orDash(s.Vendor) }},
		{head: "INTERFACE", value: func(s api.Stranger) string { return s.Interface }},
		{head: "FIRST", value: func(s api.Stranger) string { return ago(s.First, now) }},
		{head: "LAST", value: func(s api.Stranger) string { return ago(s.Last, now) }},
		{head: "COUNT", value: func(s api.Stranger) string { return strconv.Itoa(s.Count) }},
		{head: "BOOT", value: func(s api.Stranger) string { return orDash(s.Phase) }},
		{head: "NAME", wide: true, value: func(s api.Stranger) string { return s.Hostname }},
		{head: "ADDRESS", wide: true, value: func(s api.Stranger) string {
			if !s.Address.IsValid() {
				return "-"
			}
			return s.Address.String()
		}},
		{head: "RELAY", wide: true, value: func(s api.Stranger) string {
			if !s.Relay.IsValid() {
				return "-"
			}
			return s.Relay.String()
		}},
		{head: "REASON", wide: true, value: func(s api.Stranger) string { return string(s.Reason) }},
		{head: "DO", wide: true, value: func(s api.Stranger) string { return s.Do }},
	}
}
