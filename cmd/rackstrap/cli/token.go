package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := a.group(
		"token", "Who may use the daemon over the network", "Tokens let people and programs use the daemon over HTTPS. Each has a role:\n\n"+
			"  viewer    reads everything but secrets\n  operator  changes records, installs, releases\n  admin     also makes tokens and backups\n"+
			"  claimer   claims machines that a selector matches, for owners with a prefix, and\n            works with those; the Cluster API provider is one\n\n"+
			"On the daemon's own machine root needs none: its socket is root's.",
		"  rackstrap token create ci --role operator --expires 90d\n  rackstrap token list\n  rackstrap token revoke ci",
	)
	cmd.Aliases = []string{"tokens"}
	cmd.AddCommand(a.tokenCreate(), a.tokenList(), a.tokenRevoke())
	return cmd
}

func (a *app) tokenCreate() *cobra.Command {
	var spec api.NewTokenSpec
	var role string
	cmd := &cobra.Command{
		Use: "create NAME", Aliases: []string{"add"}, Short: "Make a token and print it, once", Args: takes("NAME"),
		Long: `Make a token and print it. Nobody can print it again: only a hash of it is kept.
The token alone goes to standard output, everything else to standard error.`,
		Example: "  rackstrap token create ci --role operator --expires 90d > token\n" +
			"  rackstrap token create capi --role claimer --owner-prefix capi/ --selector pool=capi --expires never",
		RunE: func(cmd *cobra.Command, args []string) error {
			if role == "" {
				return usage(cmd, "--role is missing (admin, operator, viewer or claimer)")
			}
			spec.Role = hardware.Role(role)
			c := a.client()
			defer c.Close()
			t, err := c.CreateToken(cmd.Context(), args[0], spec)
			if err != nil {
				return err
			}
			if done, err := a.printValue(t); done {
				return err
			}
			_, _ = fmt.Fprintf(a.Err, "token/%s created, role %s, %s\n", t.Meta.Name, t.Spec.Role, ends(t.Token))
			if t.Fingerprint != "" {
				_, _ = fmt.Fprintf(a.Err, "fingerprint of the daemon's certificate: sha256 %s\n", t.Fingerprint)
			}
			_, err = fmt.Fprintln(a.Out, t.Secret)
			return err
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&role, "role", "", "admin, operator, viewer or claimer")
	fl.StringVar(&spec.Expires, "expires", "", "when it ends: 90d, 12h, 2027-01-31T00:00:00Z or never; a year where not given")
	fl.StringVar(&spec.OwnerPrefix, "owner-prefix", "", "of a claimer: what the owners of its claims begin with")
	fl.StringVar(&spec.Selector, "selector", "", "of a claimer: the labels of the machines that it sees and can claim")
	return cmd
}

func (a *app) tokenList() *cobra.Command {
	sessions := false
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the tokens, without their secrets", Args: takes(), Example: "  rackstrap token list -o wide\n  rackstrap token list --sessions",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := a.client()
			defer c.Close()
			rows, err := c.Tokens(cmd.Context(), sessions)
			if err != nil {
				return err
			}
			columns := tokenColumns()
			if sessions {
				columns = append(columns, column[hardware.Token]{head: "SESSION OF", value: func(t hardware.Token) string { return t.Spec.SessionOf }})
			}
			return printRecords(a, api.KindToken, columns, rows, true)
		},
	}
	cmd.Flags().BoolVar(&sessions, "sessions", false, "also the sessions of signed-in browsers")
	return cmd
}

func (a *app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME...", Aliases: []string{"delete", "rm"}, Short: "End a token, at once", Args: takes("NAME..."), Example: "  rackstrap token revoke ci",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			for _, name := range args {
				if err := c.RevokeToken(cmd.Context(), name); err != nil {
					return err
				}
				if _, err := fmt.Fprintf(a.Out, "token/%s revoked\n", name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func tokenColumns() []column[hardware.Token] {
	return []column[hardware.Token]{
		{head: "NAME", value: func(t hardware.Token) string { return t.Meta.Name }},
		{head: "ROLE", value: func(t hardware.Token) string { return string(t.Spec.Role) }},
		{head: "ENDS", value: ends},
		{head: "USED", value: func(t hardware.Token) string {
			if t.Status.LastUsed.IsZero() {
				return "never"
			}
			return span(time.Since(t.Status.LastUsed)) + " ago"
		}},
		{head: "OWNERS", value: func(t hardware.Token) string { return t.Spec.OwnerPrefix }},
		{head: "SELECTOR", value: func(t hardware.Token) string { return t.Spec.Selector }},
		{head: "ID", wide: true, value: func(t hardware.Token) string { return t.Status.ID }},
		{head: "CREATED", wide: true, value: func(t hardware.Token) string { return t.Meta.Created.Local().Format(time.DateTime) }},
	}
}

// ends says when a token ends.
func ends(t hardware.Token) string {
	switch left := time.Until(t.Spec.Expires); {
	case t.Spec.Expires.IsZero():
		return "never ends"
	case left <= 0:
		return "ended"
	default:
		return "ends in " + span(left)
	}
}
