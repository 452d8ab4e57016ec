package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/document"
)

// edit is `rackstrap KIND edit`.
func (r records[T]) edit() *cobra.Command {
	word := r.kind.Word()
	return &cobra.Command{
		Use: "edit NAME", Short: "Change a " + word + " in an editor", Args: takes("NAME"),
		Long: `Open the record as YAML in $VISUAL or $EDITOR, and write it back. What is wrong is shown
at the top of the file, which is opened again; an empty file gives up. Secrets read
(redacted), and left so they are kept. A record that somebody else changes meanwhile is
not overwritten.`,
		Example: fmt.Sprintf("  EDITOR=nano rackstrap %s edit NAME", word),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := r.a.client()
			defer c.Close()
			v, err := r.of(c).Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			raw, err := api.Marshal(r.kind, v)
			if err != nil {
				return err
			}
			text, err := document.EncodeYAML(raw)
			if err != nil {
				return err
			}
			return r.a.edit(cmd.Context(), text, func(ctx context.Context, changed []byte) error {
				if _, err := r.of(c).ReplaceDocument(ctx, args[0], bytes.NewReader(changed)); err != nil {
					return err
				}
				_, err := fmt.Fprintf(r.a.Out, "%s/%s changed\n", word, args[0])
				return err
			})
		},
	}
}

// edit lets a person change text until save takes it or the person gives up. What was
// typed and not taken stays in its file.
func (a *app) edit(ctx context.Context, text []byte, save func(context.Context, []byte) error) (err error) {
	dir, err := os.MkdirTemp("", "rackstrap-edit-")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "record.yaml")
	typed := false
	defer func() {
		if err != nil && typed {
			err = fmt.Errorf("%w (what you typed is in %s)", err, path)
			return
		}
		_ = os.RemoveAll(dir)
	}()
	shown := text
	for {
		if err := os.WriteFile(path, shown, 0o600); err != nil {
			return err
		}
		if err := a.editor(ctx, path); err != nil {
			return err
		}
		after, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		after = uncommented(after)
		switch {
		case len(bytes.TrimSpace(after)) == 0:
			return fmt.Errorf("the file is empty: nothing was changed")
		case bytes.Equal(after, uncommented(text)):
			_, err := fmt.Fprintln(a.Out, "nothing was changed")
			return err
		case bytes.Equal(after, uncommented(shown)):
			return fmt.Errorf("it is still wrong: nothing was changed")
		}
		typed = true
		err = save(ctx, after)
		var p *api.Problem
		if !errors.As(err, &p) || p.Status >= 500 || p.Code == api.CodeConflict || p.Code == api.CodeNotFound || p.Code == api.CodeForbidden {
			return err
		}
		shown = append(complaint(p), after...)
	}
}

// complaint is what is wrong, as comments.
func complaint(p *api.Problem) []byte {
	lines := []string{p.Detail}
	if len(p.Errors) > 1 {
		lines = []string{"these are wrong:"}
		for _, e := range p.Errors {
			lines = append(lines, "  "+e.Field+": "+e.Detail)
		}
	}
	if p.Hint != "" {
		lines = append(lines, "hint: "+p.Hint)
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString("#! " + oneLine(l) + "\n")
	}
	return []byte(b.String())
}

// uncommented is text without our complaints.
func uncommented(text []byte) []byte {
	for bytes.HasPrefix(text, []byte("#! ")) {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text
}

// editor runs the person's editor; a setting may have arguments.
func (a *app) editor(ctx context.Context, path string) error {
	words := strings.Fields(a.Getenv("VISUAL"))
	if len(words) == 0 {
		words = strings.Fields(a.Getenv("EDITOR"))
	}
	if len(words) == 0 {
		words = []string{"vi"}
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out, a.Err
	if err := cmd.Run(); err != nil {
		return usageHint("set the variable EDITOR to one that is installed", "the editor %s: %v", words[0], err)
	}
	return nil
}
