package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
)

func (a *app) loginCommand() *cobra.Command {
	return &cobra.Command{
		Use: "login URL", Short: "Use the daemon at URL, with a token", Args: takes("URL"),
		Long: `Use the daemon at URL from now on, with a token that is asked for, or read from
--token-file or RACKSTRAP_TOKEN. Both are kept in ~/.config/rackstrap/login.json, which
only you can read.

A certificate that nobody vouches for is shown by its fingerprint and, if you say so,
pinned: compare it with what ` + "`rackstrap version`" + ` prints on the appliance. Scripts say
--fingerprint, or --ca.`,
		Example: "  rackstrap login https://appliance.example:7443\n  rackstrap login appliance.example --token-file ./token --fingerprint 5f1c…",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.login(cmd, args[0])
		},
	}
}

func (a *app) login(cmd *cobra.Command, address string) error {
	server, err := client.ServerURL(address)
	if err != nil {
		return usage(cmd, "%v", err)
	}
	in := bufio.NewReader(a.In)
	c := a.connection
	caFile := c.caFile
	if caFile != "" {
		if caFile, err = filepath.Abs(caFile); err != nil {
			return err
		}
	}
	o := client.Options{URL: server, CAFile: caFile, Fingerprint: c.fingerprint}
	if o.Fingerprint == "" {
		if o.Fingerprint, err = a.pin(cmd, o, in); err != nil {
			return err
		}
	}
	if o.Token, err = a.token(); err == nil && o.Token == "" {
		o.Token, err = a.askToken(in)
	}
	if err != nil {
		return err
	}
	who := client.New(o)
	defer who.Close()
	me, err := who.WhoAmI(cmd.Context())
	if err != nil {
		return err
	}
	path, err := a.save(saved{Server: server, Token: o.Token, Fingerprint: o.Fingerprint, CAFile: o.CAFile})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "logged in at %s as %s\nkept in %s; forget it with: rackstrap logout\n", server, identity(me), path)
	return err
}

// pin is the fingerprint to pin, after somebody said yes to it; empty where a CA
// vouches for the certificate.
func (a *app) pin(cmd *cobra.Command, o client.Options, in *bufio.Reader) (string, error) {
	got, trusted, err := client.Certificate(cmd.Context(), o)
	if err != nil || trusted {
		return "", err
	}
	if o.CAFile != "" {
		return "", fmt.Errorf("%s does not vouch for the certificate of %s (sha256 %s)", o.CAFile, o.URL, got)
	}
	_, _ = fmt.Fprintf(a.Err, "Nobody vouches for the certificate of %s. Its fingerprint is\n  sha256 %s\nThe appliance says its own with: rackstrap version\nIs it the same? [y/N] ", o.URL, got)
	answer, err := in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if yes := strings.ToLower(strings.TrimSpace(answer)); yes != "y" && yes != "yes" {
		_, _ = fmt.Fprintln(a.Err)
		return "", &failure{exitError, "if it is right: rackstrap login " + o.URL + " --fingerprint " + got, errors.New("the certificate was not accepted")}
	}
	return got, nil
}

// askToken reads a token without showing it.
func (a *app) askToken(in *bufio.Reader) (string, error) {
	f, ok := a.In.(*os.File)
	if ok && term.IsTerminal(int(f.Fd())) {
		_, _ = fmt.Fprint(a.Err, "Token (not shown): ")
		raw, err := term.ReadPassword(int(f.Fd()))
		_, _ = fmt.Fprintln(a.Err)
		return strings.TrimSpace(string(raw)), err
	}
	line, err := in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line = strings.TrimSpace(line); line == "" {
		return "", &failure{exitUsage, "name it with --token-file FILE, or RACKSTRAP_TOKEN", errors.New("there is no token")}
	}
	return line, nil
}

func (a *app) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "Forget what login kept", Args: takes(), Example: "  rackstrap logout",
		Long: "Forget the server and the token that login kept. The token is good until it ends:\nrackstrap token revoke NAME ends it.",
		RunE: func(*cobra.Command, []string) error {
			path, err := a.savedPath()
			if err != nil {
				return err
			}
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			_, err = fmt.Fprintln(a.Out, "logged out")
			return err
		},
	}
}

func (a *app) whoamiCommand() *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Say who you are to the daemon, and what you may do", Args: takes(), Example: "  rackstrap whoami",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := a.client()
			defer c.Close()
			me, err := c.WhoAmI(cmd.Context())
			if err != nil {
				return err
			}
			if done, err := a.printValue(me); done {
				return err
			}
			_, err = fmt.Fprintln(a.Out, identity(me))
			return err
		},
	}
}

// identity is a caller in words.
func identity(me api.WhoAmI) string {
	text := fmt.Sprintf("%s, role %s", me.Name, me.Role)
	if me.OwnerPrefix != "" {
		text += fmt.Sprintf(", for owners within %s", me.OwnerPrefix)
	}
	if me.Selector != "" {
		text += fmt.Sprintf(", machines with %s", me.Selector)
	}
	if !me.Expires.IsZero() {
		text += ", until " + me.Expires.Local().Format("2006-01-02 15:04")
	}
	return text
}
