package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
)

func (a *app) applyCommand() *cobra.Command {
	var files []string
	var dry bool
	cmd := &cobra.Command{
		Use: "apply -f FILE...", Short: "Create or change every record of a YAML or JSON file", Args: takes(),
		Long: `Create or change every record of a file of YAML documents, separated by ---, or of
JSON. All documents of a file are checked before the first is written; with an error
in one of them nothing is written. What is as the file says stays as it is.`,
		Example: "  rackstrap apply -f rack.yaml --dry-run\n  rackstrap apply -f rack.yaml\n  rackstrap hardware get m1 | sed s/old/new/ | rackstrap apply -f -",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return usage(cmd, "-f FILE is missing (- is standard input)")
			}
			c := a.client()
			defer c.Close()
			for _, f := range files {
				if err := a.applyFile(cmd.Context(), c, f, dry); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&files, "file", "f", nil, "the file; - is standard input; may be given several times")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "check everything, say what would change, and write nothing")
	return cmd
}

func (a *app) applyFile(ctx context.Context, c *client.Client, path string, dry bool) error {
	in, name := a.In, "standard input"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		in, name = f, path
	}
	apply := c.Apply
	if dry {
		apply = c.DryApply
	}
	results, err := apply(ctx, io.NopCloser(in))
	var p *api.Problem
	if errors.As(err, &p) && p.Results != nil {
		results = p.Results
	}
	if err != nil && results == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if a.output == "json" || a.output == "yaml" {
		if _, perr := a.printValue(api.ApplyResult{Results: results, DryRun: dry}); perr != nil {
			return perr
		}
	}
	for _, r := range results {
		switch r.Result {
		case api.OutcomeError:
			a.applied(name, r)
		case api.OutcomeSkipped:
		default:
			if a.output == "json" || a.output == "yaml" {
				continue
			}
			if err := a.printApplied(r, dry); err != nil {
				return err
			}
		}
	}
	return err
}

// applied prints what is wrong with one document.
func (a *app) applied(file string, r api.Applied) {
	if len(r.Errors) < 2 {
		a.errf("%s:%d: %s", file, r.Line, r.Detail)
		return
	}
	a.errf("%s:%d: %s %q: %d things are wrong", file, r.Line, r.Kind.Word(), r.Name, len(r.Errors))
	for _, e := range r.Errors {
		_, _ = fmt.Fprintf(a.Err, "  %s: %s\n", e.Field, e.Detail)
	}
}
