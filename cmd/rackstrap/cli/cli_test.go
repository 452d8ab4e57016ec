package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rackstrap": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		code := Main(ctx, Env{Version: "1.2.3", In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, ReadBackup: readBackup}, os.Args[1:])
		stop()
		os.Exit(code)
	}})
}

// Each script is a story with a daemon of its own; see daemon_test.go for what it
// can do besides typing.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata", RequireExplicitExec: false, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TZ", "UTC")
			d, err := newDaemon(env)
			if err != nil {
				return err
			}
			env.Values[daemonKey{}] = d
			env.Setenv("RACKSTRAP_SOCKET", d.socket)
			env.Setenv("SOCKET", d.socket)
			env.Setenv("URL", d.remote.URL)
			sum := sha256.Sum256(d.remote.Certificate().Raw)
			env.Setenv("FINGERPRINT", hex.EncodeToString(sum[:]))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"boot": bootCmd, "act": actCmd, "says": saysCmd, "progress": progressCmd, "exits": exitsCmd, "stop": stopCmd, "found": foundCmd, "lend": lendCmd,
		},
	})
}

// Every command says what it does and shows how it is typed.
func TestHelp(t *testing.T) {
	t.Parallel()
	a := &app{Env: Env{Getenv: func(string) string { return "" }}}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s has no sentence or no example", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(a.root(nil))
}
