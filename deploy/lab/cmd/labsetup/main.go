// Command labsetup installs the Debian packages that the lab needs, and any
// others named as arguments, as far as they are missing.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/rackstrap/rackstrap/deploy/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := lab.Install(ctx, os.Stdout, append(lab.Packages(), os.Args[1:]...)); err != nil {
		fmt.Fprintln(os.Stderr, "labsetup:", err)
		os.Exit(1)
	}
}
