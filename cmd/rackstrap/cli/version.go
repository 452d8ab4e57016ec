package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api/client"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the versions of this command and of the daemon", Args: takes(), Example: "  rackstrap version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := struct {
				Client      string `json:"client"`
				Daemon      string `json:"daemon,omitempty"`
				Fingerprint string `json:"fingerprint,omitempty"`
				// Installation is the first part of every provider id.
				Installation string `json:"installation,omitempty"`
			}{Client: a.Version}
			c := a.client()
			defer c.Close()
			info, err := c.Version(cmd.Context())
			var u *client.Unreachable
			if err != nil && !errors.As(err, &u) {
				return err
			}
			v.Daemon, v.Fingerprint, v.Installation = info.Version, info.Fingerprint, info.Installation
			if done, err := a.printValue(v); done {
				return err
			}
			if v.Daemon == "" {
				v.Daemon = "not running"
			}
			text := fmt.Sprintf("rackstrap %s\ndaemon    %s\n", v.Client, v.Daemon)
			if v.Fingerprint != "" {
				text += "https     sha256 " + v.Fingerprint + "\n"
			}
			if v.Installation != "" {
				text += "id        " + v.Installation + "\n"
			}
			_, err = fmt.Fprint(a.Out, text)
			return err
		},
	}
}
