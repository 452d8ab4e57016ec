package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
)

// isLabel tells k=v and k- from the name of a machine, which ends with no dash.
func isLabel(arg string) bool { return strings.Contains(arg, "=") || strings.HasSuffix(arg, "-") }

func (a *app) labelCommand() *cobra.Command {
	var words []string
	cmd := &cobra.Command{
		Use: "label NAME... KEY=VALUE... KEY-...", Short: "Set and remove labels of machines",
		Long: `Set labels with KEY=VALUE and remove them with KEY-. Selectors find machines by them:
hardware list -l, claims, and all verbs that take -l.`,
		Example: "  rackstrap hardware label m1 m2 rack=a1 tier=prod spare-\n  rackstrap hardware label -l rack=a1 row=7",
		Args: func(cmd *cobra.Command, args []string) error {
			_, names := machineNames("label", args)
			if len(names) == 0 {
				return usage(cmd, "NAME is missing (or -l)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			words, names := machineNames("label", args)
			in, err := labels(cmd, words)
			if err != nil {
				return err
			}
			set := map[string]any{}
			for k, v := range in.Set {
				set[k] = v
			}
			for _, k := range in.Remove {
				set[k] = nil
			}
			return a.each(cmd, names, func(ctx context.Context, c *client.Client, name string) (string, error) {
				_, err := c.Hardware.Patch(ctx, name, 0, map[string]any{"metadata": map[string]any{"labels": set}})
				return "labelled", err
			})
		},
	}
	out := a.choice(cmd, "label", func() (any, error) { return labels(cmd, words) })
	run := out.RunE
	out.RunE = func(cmd *cobra.Command, args []string) error {
		words, _ = machineNames("label", args)
		return run(cmd, args)
	}
	return out
}

// labels reads KEY=VALUE and KEY-.
func labels(cmd *cobra.Command, words []string) (api.Label, error) {
	out := api.Label{Set: map[string]string{}}
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok {
			out.Set[k] = v
			continue
		}
		out.Remove = append(out.Remove, strings.TrimSuffix(w, "-"))
	}
	if len(words) == 0 {
		return out, usage(cmd, "KEY=VALUE or KEY- is missing")
	}
	for _, k := range out.Remove {
		if _, twice := out.Set[k]; twice {
			return out, fmt.Errorf("label %q is set and removed", k)
		}
	}
	return out, nil
}
