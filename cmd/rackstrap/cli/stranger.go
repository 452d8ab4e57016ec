package cli

import (
	"fmt"
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
Hardware record has. They get no answer. What a machine says of itself may be wrong.`,
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
			_, err = fmt.Fprintf(a.Err, "hint: to register one, put in its name and address: echo '%s' | rackstrap apply -f -\n", registration(rows))
			return err
		},
	})
	return cmd
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
		{head: "NAME", wide: true, value: func(s api.Stranger) string { return s.Hostname }},
		{head: "RELAY", wide: true, value: func(s api.Stranger) string {
			if !s.Relay.IsValid() {
				return "-"
			}
			return s.Relay.String()
		}},
		{head: "REASON", wide: true, value: func(s api.Stranger) string { return string(s.Reason) }},
	}
}
