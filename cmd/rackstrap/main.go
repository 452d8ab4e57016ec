// Command rackstrap is the appliance and its command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/rackstrap/rackstrap/cmd/rackstrap/cli"
)

// version is set by the linker: -X main.version=1.2.3.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := cli.Main(ctx, cli.Env{
		Version: version, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, ReadBackup: readBackup,
	}, os.Args[1:], newServeCommand(), newInitCommand(), newRestoreCommand(), newDoctorCommand())
	stop()
	os.Exit(code)
}
