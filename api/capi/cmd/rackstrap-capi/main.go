// Command rackstrap-capi is the Cluster API infrastructure provider of Rackstrap.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is set by the linker.
var version = "dev"

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	c := &cobra.Command{
		Use:   "rackstrap-capi",
		Short: "The Cluster API infrastructure provider of Rackstrap",
		Long: "rackstrap-capi turns free Hardware of Rackstrap appliances into the nodes of Cluster API clusters, and gives it back wiped.\n" +
			"Without a command it runs the controllers.",
		Version: version, SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
	}
	o := managerFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error { return o.run(c.Context()) }
	c.AddCommand(convertCommand())
	return c
}
