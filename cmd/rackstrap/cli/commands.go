package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/hardware"
)

const rootHelp = `Rackstrap turns a rack of empty servers into running machines.

One daemon (rackstrap serve) answers DHCP, hands out boot programs, boots a worker
on each machine and installs an operating system with it. All other commands talk
to that daemon: over its socket, or over HTTPS with a token (rackstrap login).

Exit codes: 0 done; 1 refused or failed; 2 the command line is wrong; 3 there is no
such record; 4 a workflow that was waited for did not succeed; 5 the wait ran out of
time; 6 the daemon cannot be reached; 130 interrupted.`

const rootExample = `  rackstrap apply -f rack.yaml
  rackstrap image add debian-12 ./debian-12.raw.zst
  rackstrap provision m1 --image debian-12 --wait
  rackstrap timeline m1 --follow`

// root has every command there is.
func (a *app) root(daemon []*cobra.Command) *cobra.Command {
	root := a.group("rackstrap", "Turn empty servers into running machines", rootHelp, rootExample)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = false
	a.connectFlags(root)
	root.PersistentFlags().StringVarP(&a.output, "output", "o", "", "table, wide, json or yaml")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, "%v", err) })
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if !slices.Contains([]string{"", "table", "wide", "json", "yaml"}, a.output) {
			return usage(cmd, "-o %q is not known (table, wide, json or yaml)", a.output)
		}
		if local(cmd) {
			return nil
		}
		return a.connect(cmd)
	}
	root.AddCommand(daemon...)
	root.AddCommand(
		a.applyCommand(), a.provisionCommand(), a.releaseCommand(), a.acceptCommand(), a.powerCommand(), a.backupCommand(),
		a.hardwareCommand(), a.subnetCommand(), a.templateCommand(), a.ruleCommand(), a.imageCommand(), a.workflowCommand(), a.claimCommand(), a.leaseCommand(), a.strangerCommand(), a.bootFileCommand(),
		a.explainCommand(), a.validateCommand(), a.issueCommand(),
		a.eventsCommand(), a.timelineCommand(), a.waitCommand(), a.versionCommand(),
		a.tokenCommand(), a.loginCommand(), a.logoutCommand(), a.whoamiCommand(),
	)
	return root
}

// group is a command that only has others below it.
func (a *app) group(use, short, long, example string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			var names []string
			for _, c := range cmd.Commands() {
				names = append(names, c.Name())
			}
			if near := hardware.Nearest(args[0], names); len(near) > 0 {
				return usageHint(fmt.Sprintf("did you mean: %s %s", cmd.CommandPath(), near[0]), "there is no command %q", cmd.CommandPath()+" "+args[0])
			}
			return usage(cmd, "there is no command %q (there are %s)", cmd.CommandPath()+" "+args[0], strings.Join(names, ", "))
		},
	}
}

// takes checks the arguments: the words of names, `NAME...` for one or more.
func takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		want := strings.Join(names, " ")
		many := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...")
		switch {
		case len(names) == 0 && len(args) > 0:
			return usage(cmd, "takes no arguments, got %q", args[0])
		case len(args) < len(names):
			return usage(cmd, "%s is missing", names[len(args)])
		case len(args) > len(names) && !many:
			return usage(cmd, "takes %s, got also %q", want, args[len(names)])
		}
		return nil
	}
}
