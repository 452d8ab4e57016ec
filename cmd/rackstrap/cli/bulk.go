package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rackstrap/rackstrap/api"
)

// choice makes a command that takes names of machines take a selector instead: it then
// prints what would happen to which machine, and asks before it happens. options are
// the verb's, read when the flags are.
func (a *app) choice(cmd *cobra.Command, verb string, options func() (any, error)) *cobra.Command {
	var in api.Bulk
	var yes, dry bool
	flags := cmd.Flags()
	flags.StringVarP(&in.Selector, "selector", "l", "", "instead of names: machines with these labels, like rack=a1,tier!=test")
	flags.StringSliceVar(&in.State, "state", nil, "instead of names: machines in this state; with -l: only those")
	flags.BoolVarP(&yes, "yes", "y", false, "with -l or --state: do not ask")
	flags.BoolVar(&dry, "dry-run", false, "say what would be done with each machine, and do nothing")
	one, args := cmd.RunE, cmd.Args
	chosen := func() bool { return in.Selector != "" || len(in.State) > 0 }
	cmd.Args = func(cmd *cobra.Command, names []string) error {
		if chosen() {
			return nil
		}
		return args(cmd, names)
	}
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		if !chosen() && !dry {
			return one(cmd, names)
		}
		if _, in.Names = machineNames(verb, names); chosen() && len(in.Names) > 0 {
			return usage(cmd, "%q is a name beside a selector (give one of them)", in.Names[0])
		}
		o, err := options()
		if err != nil {
			return err
		}
		if in.Options, err = asMap(o); err != nil {
			return err
		}
		in.Verb = verb
		return a.bulk(cmd, in, yes, dry)
	}
	return cmd
}

// machineNames are the arguments that name machines: those of label that do not are
// read by its options.
func machineNames(verb string, args []string) (rest, names []string) {
	if verb != "label" {
		return nil, args
	}
	for _, arg := range args {
		if isLabel(arg) {
			rest = append(rest, arg)
		} else {
			names = append(names, arg)
		}
	}
	return rest, names
}

func asMap(v any) (map[string]any, error) {
	if v == nil {
		return nil, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(raw, &out)
}

// bulk previews a verb, asks, and does it with the machines that were shown: others
// that fit the selector by then are left alone.
func (a *app) bulk(cmd *cobra.Command, in api.Bulk, yes, dry bool) error {
	c := a.client()
	defer c.Close()
	preview, err := c.DryBulk(cmd.Context(), in)
	if err != nil {
		return err
	}
	if len(preview) == 0 {
		return &failure{exitNotFound, "list the labels: rackstrap hardware list -o wide", errors.New("no machine matches")}
	}
	if shown, err := a.printValue(api.ApplyResult{Results: preview, DryRun: true}); err != nil || (shown && dry) {
		return err
	}
	var names []string
	bad := 0
	for _, r := range preview {
		switch r.Result {
		case api.OutcomeError:
			bad++
		case api.OutcomeUnchanged:
		default:
			names = append(names, r.Name)
		}
	}
	cannot := func() error {
		if bad == 0 {
			return nil
		}
		return fmt.Errorf("%s is not possible for %s", in.Verb, plural(bad, "machine"))
	}
	if err := a.printBulk(preview, true); err != nil {
		return err
	}
	if dry || len(names) == 0 {
		return cannot()
	}
	if !yes {
		ok, err := a.confirm(cmd, fmt.Sprintf("%s %s?", in.Verb, plural(len(names), "machine")))
		if err != nil || !ok {
			return err
		}
	}
	n := len(names)
	done, err := c.Bulk(cmd.Context(), api.Bulk{Verb: in.Verb, Names: names, Options: in.Options, Confirm: &n})
	var p *api.Problem
	if errors.As(err, &p) && p.Results != nil {
		done = p.Results
	}
	if perr := a.printBulk(done, false); perr != nil {
		return perr
	}
	if err != nil {
		return err
	}
	return cannot()
}

// printBulk prints a line for each machine, and errors where they belong.
func (a *app) printBulk(results []api.Applied, preview bool) error {
	if a.output == "json" || a.output == "yaml" {
		if preview {
			return nil
		}
		_, err := a.printValue(api.ApplyResult{Results: results})
		return err
	}
	lines := [][]string{{"MACHINE", "STATE", "RESULT", "DETAIL"}}
	for _, r := range results {
		result := string(r.Result)
		if preview && r.Result != api.OutcomeError && r.Result != api.OutcomeUnchanged {
			result = "would be " + result
		}
		var detail []string
		if r.Detail != "" {
			detail = append(detail, oneLine(r.Detail))
		}
		for _, ch := range r.Changes {
			detail = append(detail, changeText(ch))
		}
		for _, s := range r.Skipped {
			detail = append(detail, "skipped: "+s)
		}
		lines = append(lines, []string{r.Name, orDash(string(r.State)), result, orDash(strings.Join(detail, "; "))})
	}
	return aligned(a.Out, "", lines)
}

// changeText is one changed field in words.
func changeText(c api.Change) string {
	switch {
	case c.From == nil && c.To == nil:
		return c.Field
	case c.From == nil:
		return fmt.Sprintf("%s: + %s", c.Field, valueText(c.To))
	case c.To == nil:
		return fmt.Sprintf("%s: - %s", c.Field, valueText(c.From))
	}
	return fmt.Sprintf("%s: %s → %s", c.Field, valueText(c.From), valueText(c.To))
}

func valueText(v any) string {
	if s, ok := v.(string); ok && s != "" && oneLine(s) == s {
		return s
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// confirm asks a person; no is false.
func (a *app) confirm(cmd *cobra.Command, question string) (bool, error) {
	in, ok := a.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return false, usageHint("add --yes", "there is no terminal to ask on: %s", question)
	}
	if _, err := fmt.Fprintf(a.Err, "%s [y/N] ", question); err != nil {
		return false, err
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		return false, err
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	if answer != "y" && answer != "yes" {
		a.errf("nothing was done")
		return false, nil
	}
	return true, cmd.Context().Err()
}
