package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rackstrap/rackstrap/api/client"
)

// Env is what a command has of the world.
type Env struct {
	Version  string
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// ReadBackup reads a backup to its end and checks it; it works in files in dir.
	// With a passphrase it also opens the key in it.
	ReadBackup func(ctx context.Context, r io.Reader, dir, passphrase string) (BackupInfo, error)
}

// Exit codes; `rackstrap --help` documents them.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitFailed      = 4 // a workflow that was waited for did not succeed
	exitTimeout     = 5
	exitUnreachable = 6
	exitInterrupted = 130
)

// app is one run of the command line.
type app struct {
	Env
	connection connection
	output     string
}

// Main runs one command line and returns the exit code. daemon are the commands
// that run or set up the daemon.
func Main(ctx context.Context, env Env, args []string, daemon ...*cobra.Command) int {
	a := &app{Env: env}
	root := a.root(daemon)
	root.SetArgs(args)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	return a.report(ctx, root.ExecuteContext(ctx))
}

// client is a connection to the daemon that the flags name.
func (a *app) client() *client.Client { return client.New(a.connection.options) }

// isTTY reports whether w is a terminal, whose last line can be written again.
func isTTY(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
