package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func (a *app) workflowCommand() *cobra.Command {
	r := records[api.Workflow]{a, api.KindWorkflow, func(c *client.Client) *client.Records[api.Workflow] { return c.Workflows }, workflowColumns}
	cmd := r.command("The runs of templates on machines", "",
		"  rackstrap workflow create --hardware m1 --template install -p image=debian-12 --wait\n  rackstrap workflow list",
		a.workflowCreateCommand(), a.workflowCancelCommand(), a.workflowWaitCommand(), a.workflowLogsCommand())
	cmd.Aliases = append(cmd.Aliases, "wf")
	return cmd
}

func workflowColumns() []column[api.Workflow] {
	return []column[api.Workflow]{
		{head: "NAME", value: func(w api.Workflow) string { return w.Meta.Name }},
		{head: "HARDWARE", value: func(w api.Workflow) string { return w.Spec.Hardware }},
		{head: "TEMPLATE", value: func(w api.Workflow) string { return w.Spec.Template }},
		{head: "STATE", value: func(w api.Workflow) string {
			if w.Status.Cancelling && !w.Status.State.Ended() {
				return "being cancelled"
			}
			return string(w.Status.State)
		}},
		{head: "ACTION", value: actionWords},
		{head: "TOOK", value: func(w api.Workflow) string {
			if w.Status.Started.IsZero() || w.Status.Finished.IsZero() {
				return ""
			}
			return span(w.Status.Finished.Sub(w.Status.Started))
		}},
		{head: "MESSAGE", wide: true, value: func(w api.Workflow) string { return w.Status.Message }},
	}
}

// actionWords is where a workflow that has not ended is.
func actionWords(w api.Workflow) string {
	s := w.Status
	if s.State.Ended() || s.Current >= len(s.Actions) {
		return ""
	}
	out := fmt.Sprintf("%s (%d of %d)", s.Actions[s.Current].Name, s.Current+1, len(s.Actions))
	if p := w.Progress; p != nil && p.Action == s.Current && p.Total > 0 {
		out += fmt.Sprintf(" %d %%", p.Done*100/p.Total)
	}
	return out
}

func (a *app) workflowCreateCommand() *cobra.Command {
	var name string
	var spec workflow.WorkflowSpec
	var params []string
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "create --hardware NAME --template NAME", Short: "Run a template on a machine", Args: takes(),
		Long: `Run a template on a machine, as soon as the machine netboots.

Parameters are given with -p NAME=VALUE. -p NAME=@FILE takes the value from a file
(@- is standard input): do so with secrets, which would be seen in the list of
processes. NAME=@@x is the text @x.`,
		Example: `  rackstrap workflow create --hardware m1 --template install -p image=debian-12 --wait
  rackstrap workflow create --hardware m1 --template install -p image=debian-12 -p password=@secret.txt`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if spec.Hardware == "" || spec.Template == "" {
				return usage(cmd, "--hardware and --template are needed")
			}
			var err error
			if spec.Params, err = a.params(cmd, params); err != nil {
				return err
			}
			c := a.client()
			defer c.Close()
			w, err := c.Workflows.Create(cmd.Context(), &api.Workflow{Workflow: workflow.Workflow{Meta: hardware.Meta{Name: name}, Spec: spec}})
			if err != nil {
				return err
			}
			if a.output == "json" || a.output == "yaml" {
				err = printRecords(a, api.KindWorkflow, workflowColumns(), []api.Workflow{*w}, false)
			} else {
				_, err = fmt.Fprintf(a.Out, "workflow/%s created\n", w.Meta.Name)
			}
			if err != nil || !wait {
				return err
			}
			return a.wait(cmd.Context(), c, w.Meta.Name, timeout)
		},
	}
	f := cmd.Flags()
	f.StringVar(&spec.Hardware, "hardware", "", "the machine's record")
	f.StringVar(&spec.Template, "template", "", "the template")
	f.StringVar(&name, "name", "", "name of the workflow; made up where it is not given")
	f.StringArrayVarP(&params, "param", "p", nil, "NAME=VALUE or NAME=@FILE; may be given several times")
	f.BoolVar(&spec.Reinstall, "reinstall", false, "allow to destroy the disk of a machine that is provisioned")
	f.StringVar(&spec.Claim, "claim", "", "the claim that holds the machine")
	f.BoolVar(&wait, "wait", false, "wait for its end and show its progress")
	f.DurationVar(&timeout, "timeout", 0, "with --wait: give up waiting after that long")
	return cmd
}

// params reads NAME=VALUE and NAME=@FILE.
func (a *app) params(cmd *cobra.Command, given []string) (map[string]any, error) {
	out := map[string]any{}
	for _, p := range given {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usage(cmd, "-p %q is not NAME=VALUE", p)
		}
		if _, twice := out[name]; twice {
			return nil, usage(cmd, "-p %s is there twice", name)
		}
		switch {
		case strings.HasPrefix(value, "@@"):
			value = value[1:]
		case strings.HasPrefix(value, "@"):
			text, err := a.readFile(value[1:])
			if err != nil {
				return nil, err
			}
			value = text
		}
		out[name] = value
	}
	return out, nil
}

const maxParamFile = 1 << 20

// readFile reads text, byte by byte: what is not UTF-8 would be altered on its way in
// JSON.
func (a *app) readFile(path string) (string, error) {
	in := a.In
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxParamFile+1))
	if err != nil {
		return "", err
	}
	if len(raw) > maxParamFile {
		return "", fmt.Errorf("%s has more than %s", path, size(maxParamFile))
	}
	if !utf8.Valid(raw) {
		return "", &failure{exitError, "base64 -w0 " + path + ", as write_files content with `encoding: b64` (or gz+b64) in a #cloud-config; or put it into the image", fmt.Errorf("%s: is not UTF-8 text (compressed or binary data cannot be sent as it is)", path)}
	}
	return string(raw), nil
}

func (a *app) workflowCancelCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "cancel NAME", Short: "End a workflow; the machine is left as it is then", Args: takes("NAME"), Example: "  rackstrap workflow cancel NAME --reason 'wrong image'",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			w, err := c.CancelWorkflow(cmd.Context(), args[0], reason)
			if err != nil {
				return err
			}
			word := string(w.Status.State)
			if !w.Status.State.Ended() {
				word = "being cancelled"
			}
			_, err = fmt.Fprintf(a.Out, "workflow/%s %s\n", w.Meta.Name, word)
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "what the timeline shows")
	return cmd
}
