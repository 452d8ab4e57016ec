package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
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
	cmd.AddCommand(r.list(), r.get(), r.remove())
	cmd.AddCommand(more...)
	return cmd
}

func (r records[T]) list() *cobra.Command {
	word := r.kind.Word()
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List every " + word, Args: takes(),
		Example: fmt.Sprintf("  rackstrap %s list\n  rackstrap %s list -o wide", word, word),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := r.a.client()
			defer c.Close()
			rows, err := r.of(c).List(cmd.Context())
			if err != nil {
				return err
			}
			return printRecords(r.a, r.kind, r.columns(), rows, true)
		},
	}
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
	return &cobra.Command{
		Use: "delete NAME...", Aliases: []string{"rm"}, Short: "Delete a " + word, Args: takes("NAME..."),
		Example: fmt.Sprintf("  rackstrap %s delete NAME", word),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := r.a.client()
			defer c.Close()
			for _, name := range args {
				if err := r.of(c).Delete(cmd.Context(), name, 0); err != nil {
					return err
				}
				if _, err := fmt.Fprintf(r.a.Out, "%s/%s deleted\n", word, name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
