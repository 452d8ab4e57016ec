package cli

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

// records has the verbs that all kinds share.
type records[T any] struct {
	a       *app
	kind    api.Kind
	of      func(*client.Client) *client.Records[T]
	columns func() []column[T]
}

// command is `rackstrap KIND` with list, get and delete, and more.
func (r records[T]) command(short, long, example string, more ...*cobra.Command) *cobra.Command {
	cmd := r.a.group(r.kind.Word(), short, long, example)
	if plural := r.kind.Path(); plural != r.kind.Word() {
		cmd.Aliases = []string{plural}
	}
	cmd.AddCommand(r.list(), r.get())
	if r.kind != api.KindWorkflow { // those are written once
		cmd.AddCommand(r.patch(), r.edit())
	}
	cmd.AddCommand(r.remove())
	cmd.AddCommand(more...)
	return cmd
}

func (r records[T]) list() *cobra.Command {
	word := r.kind.Word()
	var o client.ListOptions
	var search string
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List every " + word, Args: takes(),
		Example: fmt.Sprintf("  rackstrap %s list\n  rackstrap %s list -l rack=a1 --sort -created -o wide", word, word),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := r.a.client()
			defer c.Close()
			if search != "" {
				o.More = url.Values{"q": {search}}
			}
			var rows []T
			for v, err := range r.of(c).All(cmd.Context(), client.ListOptions{Selector: o.Selector, State: o.State, Sort: o.Sort, More: o.More}) {
				if err != nil {
					return err
				}
				if o.Limit > 0 && len(rows) == o.Limit {
					r.a.errf("there are more (leave --limit out, or choose with -l)")
					break
				}
				rows = append(rows, *v)
			}
			columns := r.columns()
			if other, ok := any(pendingColumns()).([]column[T]); ok && slices.Equal(o.State, []string{string(hardware.StatePending)}) {
				columns = other
			}
			return printRecords(r.a, r.kind, columns, rows, true)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.Selector, "selector", "l", "", "only those with these labels: rack=a1,tier!=test,gpu,!spare,row in (1,2)")
	flags.StringVar(&o.Sort, "sort", "", "sort by name, created or a field of the kind, backwards with a dash: -created")
	flags.IntVar(&o.Limit, "limit", 0, "print at most that many")
	if r.kind == api.KindHardware || r.kind == api.KindWorkflow {
		flags.StringSliceVar(&o.State, "state", nil, "only those in one of these states")
	}
	if r.kind == api.KindHardware {
		flags.StringVarP(&search, "query", "q", "", "only those with this in name, host name, MAC, address, serial number or asset tag")
	}
	return cmd
}

func (r records[T]) get() *cobra.Command {
	word := r.kind.Word()
	return &cobra.Command{
		Use: "get NAME...", Aliases: []string{"show"}, Short: "Print a " + word + ", as YAML that apply takes", Args: takes("NAME..."),
		Long: "Print a " + word + ". Without -o it is YAML; sent back with `rackstrap apply` it changes\n" +
			"nothing. Secrets read (redacted), and left so they are kept.",
		Example: fmt.Sprintf("  rackstrap %s get NAME > it.yaml\n  rackstrap apply -f it.yaml", word),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.a.output == "" {
				r.a.output = "yaml"
			}
			c := r.a.client()
			defer c.Close()
			var rows []T
			for _, name := range args {
				v, err := r.of(c).Get(cmd.Context(), name)
				if err != nil {
					return err
				}
				rows = append(rows, *v)
			}
			return printRecords(r.a, r.kind, r.columns(), rows, false)
		},
	}
}

func (r records[T]) remove() *cobra.Command {
	word := r.kind.Word()
	var force bool
	cmd := &cobra.Command{
		Use: "delete NAME...", Aliases: []string{"rm"}, Short: "Delete a " + word, Args: takes("NAME..."),
		Example: fmt.Sprintf("  rackstrap %s delete NAME", word),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := r.a.client()
			defer c.Close()
			for _, name := range args {
				var skipped []string
				var err error
				if force {
					skipped, err = r.of(c).DeleteForce(cmd.Context(), name, 0)
				} else {
					err = r.of(c).Delete(cmd.Context(), name, 0)
				}
				if err != nil {
					return err
				}
				if err := r.a.printApplied(api.Applied{Kind: r.kind, Name: name, Result: api.OutcomeDeleted, Skipped: skipped}, false); err != nil {
					return err
				}
			}
			return nil
		},
	}
	if r.kind == api.KindHardware || r.kind == api.KindSubnet {
		cmd.Flags().BoolVar(&force, "force", false, "also one that is in use; prints what was skipped")
	}
	if r.kind == api.KindHardware {
		return r.a.choice(cmd, "delete", func() (any, error) { return api.Delete{Force: force}, nil })
	}
	return cmd
}
