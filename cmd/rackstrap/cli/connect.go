package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api/client"
)

// connection is how the command line says to reach the daemon.
type connection struct {
	socket, server, tokenFile, caFile, fingerprint string
	options                                        client.Options
}

// saved is what login keeps for later commands.
type saved struct {
	Server      string `json:"server"`
	Token       string `json:"token"`
	Fingerprint string `json:"fingerprint,omitempty"`
	CAFile      string `json:"caFile,omitempty"`
}

func (a *app) connectFlags(root *cobra.Command) {
	c, fl := &a.connection, root.PersistentFlags()
	fl.StringVar(&c.socket, "socket", a.Getenv("RACKSTRAP_SOCKET"), "the daemon's socket (environment: RACKSTRAP_SOCKET; default "+client.DefaultSocket+")")
	fl.StringVar(&c.server, "server", a.Getenv("RACKSTRAP_SERVER"), "the daemon's URL, instead of its socket (environment: RACKSTRAP_SERVER)")
	fl.StringVar(&c.tokenFile, "token-file", "", "a file that holds the token for --server (or environment: RACKSTRAP_TOKEN)")
	fl.StringVar(&c.caFile, "ca", a.Getenv("RACKSTRAP_CA"), "trust the certificates in this PEM file only (environment: RACKSTRAP_CA)")
	fl.StringVar(&c.fingerprint, "fingerprint", a.Getenv("RACKSTRAP_FINGERPRINT"), "the SHA-256 that the daemon's certificate must have (environment: RACKSTRAP_FINGERPRINT)")
}

// local are the commands that need no daemon, or find theirs in another way.
func local(cmd *cobra.Command) bool {
	for c := cmd; c != nil; c = c.Parent() {
		switch c.Name() {
		case "serve", "init", "login", "logout", "completion", "help", "restore", "doctor":
			return true
		}
	}
	return false
}

// connect decides how the daemon is reached: flags and environment first, then what
// login saved, then the socket.
func (a *app) connect(cmd *cobra.Command) error {
	c := &a.connection
	socketAsked := cmd.Flags().Changed("socket") || a.Getenv("RACKSTRAP_SOCKET") != ""
	if c.server != "" && cmd.Flags().Changed("socket") && cmd.Flags().Changed("server") {
		return usage(cmd, "--socket and --server are two ways to the daemon (give one)")
	}
	if cmd.Flags().Changed("socket") {
		c.server = ""
	}
	if c.server == "" && socketAsked {
		c.options = client.Options{Socket: c.socket}
		return nil
	}
	s, err := a.saved()
	if err != nil {
		return err
	}
	server := c.server
	if server == "" {
		server = s.Server
	}
	if server == "" {
		c.options = client.Options{Socket: c.socket}
		return nil
	}
	if server, err = client.ServerURL(server); err != nil {
		return usage(cmd, "--server: %v", err)
	}
	o := client.Options{URL: server, CAFile: c.caFile, Fingerprint: c.fingerprint}
	if server == s.Server {
		o.Token = s.Token
		if o.CAFile == "" && o.Fingerprint == "" {
			o.CAFile, o.Fingerprint = s.CAFile, s.Fingerprint
		}
	}
	if token, err := a.token(); err != nil {
		return err
	} else if token != "" {
		o.Token = token
	}
	if o.Token == "" {
		return usageHint("rackstrap login "+server, "there is no token for %s", server)
	}
	c.options = o
	return nil
}

// token is the one that flags or environment name; it is never an argument, because
// everybody on the machine can read those.
func (a *app) token() (string, error) {
	if a.connection.tokenFile == "" {
		return strings.TrimSpace(a.Getenv("RACKSTRAP_TOKEN")), nil
	}
	var raw []byte
	var err error
	if a.connection.tokenFile == "-" {
		raw, err = io.ReadAll(io.LimitReader(a.In, 4096))
	} else {
		raw, err = os.ReadFile(a.connection.tokenFile)
	}
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", fmt.Errorf("%s: there is no token in it", a.connection.tokenFile)
	}
	return token, nil
}

// savedPath is where login keeps the token.
func (a *app) savedPath() (string, error) {
	dir := a.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := a.Getenv("HOME")
		if home == "" {
			return "", errors.New("there is no HOME to keep the login in (set HOME or XDG_CONFIG_HOME)")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "rackstrap", "login.json"), nil
}

// saved is what login kept; the zero value where it kept nothing.
func (a *app) saved() (saved, error) {
	var s saved
	path, err := a.savedPath()
	if err != nil {
		return s, nil // nobody can have logged in
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return s, &failure{exitError, "rackstrap logout", fmt.Errorf("%s: %w", path, err)}
	}
	return s, nil
}

// save keeps a login where nobody else can read it.
func (a *app) save(s saved) (string, error) {
	path, err := a.savedPath()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "login-*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(raw, '\n'))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return path, nil
}
