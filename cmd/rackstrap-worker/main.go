// Command rackstrap-worker is the init of the initramfs that Rackstrap boots on
// machines. It does nothing when it is started otherwise.
package main

import (
	"fmt"
	"os"

	"github.com/rackstrap/rackstrap/worker"
	"github.com/rackstrap/rackstrap/worker/pid1/module"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "devel"

func main() {
	if helper, err := module.Helper(os.Args, "/lib/modules"); helper {
		if err != nil {
			os.Exit(1)
		}
		return
	}
	// The kernel gives its init the words that it does not know as arguments, so
	// they mean nothing here unless a person wrote them.
	if os.Getpid() == 1 {
		worker.Life(version)
	}
	if len(os.Args) == 2 && (os.Args[1] == "-version" || os.Args[1] == "--version") {
		fmt.Println("rackstrap-worker", version)
		return
	}
	fmt.Fprintln(os.Stderr, "rackstrap-worker is the init of the initramfs that `rackstrap serve` boots on machines;\nit does nothing elsewhere. To see its version: rackstrap-worker -version")
	os.Exit(2)
}
