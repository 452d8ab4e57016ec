package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

// paint is text in the colour of a severity, on a terminal only.
func (a *app) paint(s hardware.Severity, text string) string {
	code := map[hardware.Severity]string{hardware.SeverityError: "31", hardware.SeverityWarning: "33", hardware.SeverityInfo: "36"}[s]
	if code == "" || !isTTY(a.Out) || a.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (a *app) bold(text string) string {
	if !isTTY(a.Out) || a.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "explain HARDWARE", Short: "Say why a machine does not get on, and what to type", Args: takes("HARDWARE"),
		Long: `Say why a machine is where it is, what it waits for, and what to type. The answer is in
the first line; then comes what is known, the more important first.`,
		Example: "  rackstrap explain m1\n  rackstrap explain m1 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			e, err := c.Explain(cmd.Context(), args[0])
			if err != nil {
				return notAClaim(err, args[0])
			}
			if done, err := a.printValue(e); done || err != nil {
				return err
			}
			var b strings.Builder
			b.WriteString(a.bold(e.Summary) + "\n")
			for _, l := range e.Lines {
				b.WriteString("  " + a.paintLine(oneLine(l)) + "\n")
			}
			for i, d := range e.Do {
				if i == 0 {
					b.WriteString("type:\n")
				}
				b.WriteString("  " + d + "\n")
			}
			_, err = fmt.Fprint(a.Out, b.String())
			return err
		},
	}
}

// paintLine colours a line that begins with a severity.
func (a *app) paintLine(l string) string {
	word, _, _ := strings.Cut(l, " ")
	return a.paint(hardware.Severity(word), l)
}

// notAClaim adds, to "there is no such machine", where claims are explained: a name
// that is no machine's may be meant as a claim's, and we do not guess.
func notAClaim(err error, name string) error {
	var p *api.Problem
	if !errors.As(err, &p) || p.Code != api.CodeNotFound {
		return err
	}
	hint := p.Hint
	if hint != "" {
		hint += "; "
	}
	return &failure{exitNotFound, hint + "for a claim: rackstrap claim explain " + name, err}
}

func (a *app) validateCommand() *cobra.Command {
	var p client.Planned
	cmd := &cobra.Command{
		Use: "validate HARDWARE", Short: "Say what is missing before a machine can be installed", Args: takes("HARDWARE"),
		Long: `Look at everything that an install needs, before it begins: record, network, switches,
image, disk, login, power. It ends with exit code 1 if something is missing; what may
be missing is a warning.`,
		Example: "  rackstrap validate m1\n  rackstrap validate m1 --image debian-12 --disk smallest",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			v, err := c.Validate(cmd.Context(), args[0], p)
			if err != nil {
				return err
			}
			if done, err := a.printValue(v); err != nil {
				return err
			} else if !done {
				if err := a.printChecks(v); err != nil {
					return err
				}
			}
			if !v.Ready {
				return &failure{exitError, "", fmt.Errorf("%s is not ready to be installed", v.Hardware)}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.Image, "image", "", "the image to be installed: a name or a URL")
	f.StringVar(&p.Template, "template", "", "the template to be used; the format's where empty")
	f.StringVar(&p.Format, "format", "", "cloud-config, ignition or talos")
	f.StringVar(&p.Disk, "disk", "", "smallest, largest, /dev/… or serial=…; the only one where empty")
	f.BoolVar(&p.Reinstall, "reinstall", false, "it may be provisioned")
	return cmd
}

func (a *app) printChecks(v *api.Validation) error {
	var lines [][]string
	for _, c := range v.Checks {
		word := "missing"
		switch {
		case c.OK:
			word = "ok"
		case c.Warning:
			word = "warning"
		}
		lines = append(lines, []string{word, c.Name, oneLine(c.Detail)})
		if !c.OK && c.Fix != "" {
			lines = append(lines, []string{"", "", "→ " + oneLine(c.Fix)})
		}
	}
	if err := aligned(a.Out, "", lines); err != nil {
		return err
	}
	if v.Ready {
		_, err := fmt.Fprintf(a.Out, "%s is ready to be installed\n", v.Hardware)
		return err
	}
	return nil
}

func (a *app) issueCommand() *cobra.Command {
	cmd := a.group("issue", "What keeps machines from getting on", "What keeps machines from getting on.", "  rackstrap issue list\n  rackstrap issue explain boot-stuck")
	cmd.Aliases = []string{"issues"}
	cmd.AddCommand(a.issueListCommand(), a.issueExplainCommand())
	return cmd
}

func (a *app) issueListCommand() *cobra.Command {
	var f client.IssueFilter
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the issues of all machines, the worst first", Args: takes(),
		Example: "  rackstrap issue list\n  rackstrap issue list --severity error -l rack=r7",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := a.client()
			defer c.Close()
			all, err := c.Issues(cmd.Context(), f)
			if err != nil {
				return err
			}
			return a.printIssues(all)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Kind, "kind", "", "of this kind only")
	fl.StringVar(&f.Severity, "severity", "", "error, warning or info only")
	fl.StringVarP(&f.Selector, "selector", "l", "", "of machines with these labels only: rack=r7,!gpu")
	return cmd
}

func (a *app) printIssues(all []api.MachineIssue) error {
	if done, err := a.printValue(api.List[api.MachineIssue]{APIVersion: api.Version, Kind: "IssueList", Items: all}); done || err != nil {
		return err
	}
	return table(a.Out, []column[api.MachineIssue]{
		{head: "SEVERITY", value: func(i api.MachineIssue) string { return string(i.Severity) }},
		{head: "HARDWARE", value: func(i api.MachineIssue) string { return i.Hardware }},
		{head: "KIND", value: func(i api.MachineIssue) string { return string(i.Kind) }},
		{head: "SINCE", value: func(i api.MachineIssue) string { return i.Since.Local().Format("2006-01-02 15:04:05") }},
		{head: "DETAIL", value: func(i api.MachineIssue) string { return i.Detail }},
		{head: "STATE", wide: true, value: func(i api.MachineIssue) string { return string(i.State) }},
		{head: "FIX", wide: true, value: func(i api.MachineIssue) string { return i.Fix }},
	}, all, a.output == "wide")
}

// issueExplainCommand needs no daemon: the kinds are a closed set.
func (a *app) issueExplainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "explain [KIND]", Short: "Say what a kind of issue means; all kinds where none is given",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(cmd, "takes one KIND, got also %q", args[1])
			}
			return nil
		},
		Example: "  rackstrap issue explain\n  rackstrap issue explain boot-stuck",
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds := hardware.IssueKinds()
			if len(args) == 0 {
				var lines [][]string
				for _, k := range kinds {
					lines = append(lines, []string{string(k), k.Title()})
				}
				return aligned(a.Out, "", lines)
			}
			k := hardware.IssueKind(args[0])
			if k.Title() == string(k) {
				var names []string
				for _, k := range kinds {
					names = append(names, string(k))
				}
				hint := "all kinds: rackstrap issue explain"
				if near := hardware.Nearest(args[0], names); len(near) > 0 {
					hint = "did you mean: rackstrap issue explain " + near[0]
				}
				return usageHint(hint, "%q is no kind of issue", args[0])
			}
			if _, err := fmt.Fprintf(a.Out, "%s: %s\nhow it is found and mended: deploy/docs/issues.md#%s\n", k, k.Title(), k); err != nil {
				return err
			}
			return a.machinesWith(cmd.Context(), k)
		},
	}
}

// machinesWith lists the machines that have an issue, if the daemon runs.
func (a *app) machinesWith(ctx context.Context, k hardware.IssueKind) error {
	c := a.client()
	defer c.Close()
	all, err := c.Issues(ctx, client.IssueFilter{Kind: string(k)})
	var u *client.Unreachable
	if errors.As(err, &u) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, i := range all {
		if _, err := fmt.Fprintf(a.Out, "%s: %s; %s\n", i.Hardware, i.Detail, i.Fix); err != nil {
			return err
		}
	}
	return nil
}
