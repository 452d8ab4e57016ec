package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/api/document"
	"github.com/rackstrap/rackstrap/hardware"
)

func (a *app) ruleCommand() *cobra.Command {
	r := records[hardware.Rule]{a, api.KindRule, func(c *client.Client) *client.Records[hardware.Rule] { return c.Rules }, ruleColumns}
	return r.command("What becomes of discovered machines", `A rule says what becomes of a machine that discovery found, by what is in it: labels,
whether it is accepted without a human, and what is installed then. All rules that match
apply, the greatest priority first; the first that sets something wins.`,
		"  rackstrap apply -f rules.yaml\n  rackstrap rule list\n  rackstrap rule test -f rules.yaml m1", r.apply(), a.ruleTest())
}

// apply is `rackstrap apply` for one kind, for who looks for it there.
func (r records[T]) apply() *cobra.Command {
	cmd := r.a.applyCommand()
	cmd.Example = fmt.Sprintf("  rackstrap %s apply -f it.yaml --dry-run", r.kind.Word())
	return cmd
}

func ruleColumns() []column[hardware.Rule] {
	return []column[hardware.Rule]{
		{head: "NAME", value: func(r hardware.Rule) string { return r.Meta.Name }},
		{head: "PRIORITY", value: func(r hardware.Rule) string { return strconv.Itoa(r.Spec.Priority) }},
		{head: "MATCH", value: func(r hardware.Rule) string { return matchText(&r.Spec.Match) }},
		{head: "LABELS", value: func(r hardware.Rule) string { return labelsText(r.Spec.Labels) }},
		{head: "ACCEPT", value: func(r hardware.Rule) string { return yesOrDash(r.Spec.Accept) }},
		{head: "PROVISION", value: func(r hardware.Rule) string { return provisionText(r.Spec.Provision) }},
	}
}

// matchText is what a rule asks for, in a few words.
func matchText(m *hardware.RuleMatch) string {
	if m.All {
		return "all"
	}
	var out []string
	if m.Subnet != "" {
		out = append(out, "subnet="+m.Subnet)
	}
	if m.Selector != "" {
		out = append(out, m.Selector)
	}
	if flags := api.ClaimFlags(&hardware.ClaimSpec{Requirements: m.Requirements}); flags != "" {
		out = append(out, strings.ReplaceAll(flags, "--", ""))
	}
	for _, k := range slices.Sorted(maps.Keys(m.Facts)) {
		out = append(out, fmt.Sprintf("%s=%q", k, m.Facts[k]))
	}
	return strings.Join(out, " ")
}

func labelsText(labels map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, k+"="+labels[k])
	}
	return strings.Join(out, ",")
}

func provisionText(p *hardware.RuleProvision) string {
	if p == nil {
		return ""
	}
	return p.Template
}

func yesOrDash(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

// fewMachines is how many are explained without being asked.
const fewMachines = 5

func (a *app) ruleTest() *cobra.Command {
	var file string
	var t api.TestRules
	cmd := &cobra.Command{
		Use: "test [HARDWARE...]", Short: "Say what the rules would make of machines, and change nothing", Args: cobra.ArbitraryArgs,
		Long: `Judge the machines that are named, or all of which facts are known, by the rules: which
match, what would follow, and why the others do not. A rule from a file is judged with
those that are there, in place of the one of its name. Nothing is changed.`,
		Example: "  rackstrap rule test\n  rackstrap rule test -f flash.yaml m1 m2\n  rackstrap rule test -l rack=a1 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				var err error
				if t.Rule, err = a.ruleFrom(file); err != nil {
					return err
				}
			}
			t.Hardware = args
			c := a.client()
			defer c.Close()
			out, err := c.TestRules(cmd.Context(), t)
			if err != nil {
				return err
			}
			if done, err := a.printValue(out); done || err != nil {
				return err
			}
			return a.printRuled(out)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "a rule that is not saved; - is standard input")
	cmd.Flags().StringVarP(&t.Selector, "selector", "l", "", "only machines with these labels")
	return cmd
}

// ruleFrom reads a document of kind Rule.
func (a *app) ruleFrom(file string) (*hardware.Rule, error) {
	text, err := os.ReadFile(file)
	if file == "-" {
		text, err = io.ReadAll(a.In)
	}
	if err != nil {
		return nil, err
	}
	docs, err := document.YAML(text, document.DefaultLimits())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(docs) != 1 {
		return nil, usageHint("put each rule in a file of its own, or apply them: rackstrap apply -f "+file+" --dry-run", "%s has %d documents, test takes one rule", file, len(docs))
	}
	n := docs[0]
	if k := n.Get("kind"); k != nil && k.Value != string(api.KindRule) {
		return nil, usageHint("", "%s:%d: kind is %.40q, wanted %s", file, k.Line, k.Value, api.KindRule)
	}
	if n.Type == document.Map {
		n.Cut("apiVersion")
		n.Cut("kind")
	}
	r := new(hardware.Rule)
	if errs := document.Decode(n, r); len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", file, &hardware.Invalid{Kind: api.KindRule.Word(), Name: r.Meta.Name, Errors: errs})
	}
	return r, nil
}

func (a *app) printRuled(out *api.RulesTested) error {
	err := table(a.Out, []column[api.RuledMachine]{
		{head: "HARDWARE", value: func(m api.RuledMachine) string { return m.Hardware }},
		{head: "STATE", value: func(m api.RuledMachine) string { return string(m.State) }},
		{head: "SUBNET", value: func(m api.RuledMachine) string { return m.Subnet }},
		{head: "RULES", value: func(m api.RuledMachine) string { return strings.Join(m.Verdict.Rules, ",") }},
		{head: "LABELS", value: func(m api.RuledMachine) string { return labelsText(m.Verdict.Labels) }},
		{head: "ACCEPT", value: func(m api.RuledMachine) string { return yesOrDash(m.Verdict.Accept) }},
		{head: "PROVISION", value: func(m api.RuledMachine) string { return provisionText(m.Verdict.Provision) }},
	}, out.Machines, false)
	if err != nil {
		return err
	}
	switch {
	case len(out.Machines) == 0:
		a.errf("there is no machine of which facts are known (boot its worker once: rackstrap hardware inspect HARDWARE)")
	case len(out.Machines) > fewMachines && a.output != "wide":
		a.errf("hint: to see why, name machines, or add -o wide")
		return nil
	}
	var b strings.Builder
	for _, m := range out.Machines {
		v := &m.Verdict
		var lines []string
		for _, why := range m.But {
			lines = append(lines, "but "+why)
		}
		lines = append(lines, v.LeftOut...)
		for _, name := range slices.Sorted(maps.Keys(v.Against)) {
			lines = append(lines, "rule "+name+" does not match: "+v.Against[name])
		}
		if len(lines) > 0 {
			b.WriteString("\n" + m.Hardware + "\n")
		}
		for _, l := range lines {
			b.WriteString("  " + oneLine(l) + "\n")
		}
	}
	if out.Left > 0 {
		fmt.Fprintf(&b, "\n%d more machines were not looked at (name them, or choose with -l)\n", out.Left)
	}
	_, err = fmt.Fprint(a.Out, b.String())
	return err
}
