package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/document"
)

// patch is `rackstrap KIND patch`.
func (r records[T]) patch() *cobra.Command {
	var patch string
	var dry bool
	word := r.kind.Word()
	cmd := &cobra.Command{
		Use: "patch NAME", Short: "Change fields of a " + word, Args: takes("NAME"),
		Long: `Change the fields that -p names and leave the others: a JSON merge patch (RFC 7396),
as JSON or YAML. null deletes a field; a list is replaced as a whole.`,
		Example: fmt.Sprintf("  rackstrap %s patch NAME -p 'metadata: {labels: {tier: prod, spare: null}}'\n  rackstrap %s patch NAME --dry-run -p '{\"metadata\":{\"labels\":null}}'", word, word),
		RunE: func(cmd *cobra.Command, args []string) error {
			if patch == "" {
				return usage(cmd, "-p PATCH is missing (- is standard input)")
			}
			text := []byte(patch)
			if patch == "-" {
				var err error
				if text, err = io.ReadAll(r.a.In); err != nil {
					return err
				}
			}
			docs, err := document.YAML(text, document.DefaultLimits())
			if err != nil || len(docs) != 1 || docs[0].Type != document.Map {
				return usage(cmd, "-p %.60q is no map in JSON or YAML", patch)
			}
			raw, err := json.Marshal(docs[0].Any())
			if err != nil {
				return err
			}
			c := r.a.client()
			defer c.Close()
			if dry {
				done, err := r.of(c).Dry().Patch(cmd.Context(), args[0], 0, json.RawMessage(raw))
				if err != nil {
					return err
				}
				return r.a.printApplied(*done, true)
			}
			v, err := r.of(c).Patch(cmd.Context(), args[0], 0, json.RawMessage(raw))
			if err != nil {
				return err
			}
			if r.a.output != "" {
				return printRecords(r.a, r.kind, r.columns(), []T{*v}, false)
			}
			_, err = fmt.Fprintf(r.a.Out, "%s/%s patched\n", word, args[0])
			return err
		},
	}
	cmd.Flags().StringVarP(&patch, "patch", "p", "", "the fields to change; - is standard input")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would change, and change nothing")
	return cmd
}

// printApplied prints what was, or would be, done with one record.
func (a *app) printApplied(r api.Applied, dry bool) error {
	result := string(r.Result)
	if dry && r.Result != api.OutcomeUnchanged {
		result = "would be " + result
	}
	if _, err := fmt.Fprintf(a.Out, "%s/%s %s\n", r.Kind.Word(), r.Name, result); err != nil {
		return err
	}
	for _, c := range r.Changes {
		if _, err := fmt.Fprintf(a.Out, "  %s\n", changeText(c)); err != nil {
			return err
		}
	}
	for _, s := range r.Skipped {
		if _, err := fmt.Fprintf(a.Out, "  skipped: %s\n", s); err != nil {
			return err
		}
	}
	return nil
}
