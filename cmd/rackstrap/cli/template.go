package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/workflow"
)

func (a *app) templateCommand() *cobra.Command {
	r := records[workflow.Template]{a, api.KindTemplate, func(c *client.Client) *client.Records[workflow.Template] { return c.Templates }, templateColumns}
	return r.command("The lists of actions that workflows run", "", "  rackstrap template list\n  rackstrap template get install")
}

func templateColumns() []column[workflow.Template] {
	return []column[workflow.Template]{
		{head: "NAME", value: func(t workflow.Template) string { return t.Meta.Name }},
		{head: "PARAMETERS", value: func(t workflow.Template) string {
			var out []string
			for _, p := range t.Spec.Parameters {
				name := p.Name
				if p.Default != nil {
					name = "[" + name + "]"
				}
				out = append(out, name)
			}
			return strings.Join(out, " ")
		}},
		{head: "ACTIONS", value: func(t workflow.Template) string {
			var out []string
			for _, s := range t.Spec.Actions {
				out = append(out, string(s.Kind))
			}
			return strings.Join(out, " ")
		}},
		{head: "DESCRIPTION", wide: true, value: func(t workflow.Template) string { return t.Spec.Description }},
	}
}
