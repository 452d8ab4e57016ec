package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

const claimHelp = `A claim is somebody's right to one machine. The caller chooses its id: the same id
asked again is the same claim, so a request whose answer got lost can be repeated.
The machine is chosen by what is asked for, or named. Releasing the claim wipes it.`

func (a *app) claimCommand() *cobra.Command {
	r := records[hardware.Claim]{a, api.KindClaim, func(c *client.Client) *client.Records[hardware.Claim] { return c.Claims }, claimColumns}
	cmd := a.group("claim", "Take machines for an owner, and give them back", claimHelp,
		"  rackstrap claim create --owner team/web -l tier=prod --cpus 8 --memory 32Gi\n  rackstrap claim list --active\n  rackstrap claim release ID")
	cmd.Aliases = []string{"claims"}
	cmd.AddCommand(a.claimCreateCommand(), a.claimListCommand(), r.get(), a.claimReleaseCommand(), a.claimExplainCommand())
	return cmd
}

func claimColumns() []column[hardware.Claim] {
	return []column[hardware.Claim]{
		{head: "ID", value: func(c hardware.Claim) string { return c.Meta.Name }},
		{head: "OWNER", value: func(c hardware.Claim) string { return c.Spec.Owner }},
		{head: "HARDWARE", value: func(c hardware.Claim) string { return c.Status.Hardware }},
		{head: "STATE", value: func(c hardware.Claim) string {
			if c.Status.Ended.IsZero() {
				return "held"
			}
			return "ended"
		}},
		{head: "SINCE", wide: true, value: func(c hardware.Claim) string { return c.Status.Claimed.Local().Format(time.DateTime) }},
		{head: "STOPPED", wide: true, value: func(c hardware.Claim) string {
			if s := c.Status.Stopped; s != nil {
				return string(s.By)
			}
			return ""
		}},
		{head: "PROVIDER ID", wide: true, value: func(c hardware.Claim) string { return c.Status.ProviderID }},
	}
}

func (a *app) claimCreateCommand() *cobra.Command {
	var labels []string
	f := claimFlags{}
	cmd := &cobra.Command{
		Use: "create [ID] --owner OWNER", Short: "Take a machine", Args: cobra.MaximumNArgs(1),
		Long: `Take a machine for an owner. Without an id one is made; a script chooses its own and
sends it again after a failure, until there is an answer.

The machine is one that is available and has what is asked for, as its worker reported
(rackstrap hardware inspect NAME). See why others were not taken:
rackstrap claim explain, with the same flags.`,
		Example: `  rackstrap claim create web-1 --owner team/web -l tier=prod --cpus 8 --memory 32Gi
  rackstrap claim create db-1 --owner team/db --disk 2x1T,nvme --failure-domain rack-b
  rackstrap claim create --owner me --hardware m1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.spec.Owner == "" {
				return usageHint("rackstrap claim create --owner team/service", "--owner is missing")
			}
			c := &hardware.Claim{Meta: hardware.Meta{Name: strings.ToLower(workflow.NewID(time.Now()))}}
			if len(args) > 0 {
				c.Meta.Name = args[0]
			}
			var err error
			if c.Spec, err = f.read(cmd); err != nil {
				return err
			}
			if c.Meta.Labels, err = labelFlags(cmd, labels); err != nil {
				return err
			}
			conn := a.client()
			defer conn.Close()
			got, err := conn.Claim(cmd.Context(), c)
			if err != nil {
				return err
			}
			if a.output != "" {
				return printRecords(a, api.KindClaim, claimColumns(), []hardware.Claim{*got}, false)
			}
			_, err = fmt.Fprintf(a.Out, "claim/%s has hardware/%s\n", got.Meta.Name, got.Status.Hardware)
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().StringArrayVar(&labels, "label", nil, "KEY=VALUE for the claim itself; may be given several times")
	return cmd
}

// labelFlags reads KEY=VALUE words.
func labelFlags(cmd *cobra.Command, words []string) (map[string]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			return nil, usage(cmd, "--label %q is not KEY=VALUE", w)
		}
		out[k] = v
	}
	return out, nil
}

func (a *app) claimListCommand() *cobra.Command {
	var f client.ClaimFilter
	var active, ended bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the claims; those that ended stay for 30 days", Args: takes(),
		Example: "  rackstrap claim list --active\n  rackstrap claim list --owner team/web -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if active && ended {
				return usage(cmd, "--active and --ended exclude each other")
			}
			if active || ended {
				f.Active = &active
			}
			c := a.client()
			defer c.Close()
			rows, err := c.ListClaims(cmd.Context(), f)
			if err != nil {
				return err
			}
			return printRecords(a, api.KindClaim, claimColumns(), rows, true)
		},
	}
	cmd.Flags().StringVar(&f.Owner, "owner", "", "owners that begin with this")
	cmd.Flags().StringVar(&f.Hardware, "hardware", "", "claims of this machine")
	cmd.Flags().StringVarP(&f.Selector, "selector", "l", "", "labels of the claims")
	cmd.Flags().BoolVar(&active, "active", false, "only those that hold a machine")
	cmd.Flags().BoolVar(&ended, "ended", false, "only those that have ended")
	return cmd
}

func (a *app) claimReleaseCommand() *cobra.Command {
	var in api.ReleaseClaim
	var reserve hardware.Reserve
	var within time.Duration
	cmd := &cobra.Command{
		Use: "release ID...", Aliases: []string{"delete", "rm"}, Short: "Give the machines of claims back: they are wiped, and available then", Args: takes("ID..."),
		Long: `Give the machines of claims back. What was installed on a machine is made sure to run
no more (the claim's status says how, and when), every disk is wiped and read back, and
then it is available. Asked again it says the same.

--reserve-for keeps the machine for the next claim that says --reuse with that group;
with --keep-disks as it is, switched off and not wiped before the time is over.
--unhealthy puts it into quarantine: it is wiped, and nobody gets it before a human
accepts it.`,
		Example: `  rackstrap claim release web-1
  rackstrap claim release web-1 --reserve-for team/web --keep-disks --within 1h
  rackstrap claim release web-1 --unhealthy 'its node never became ready'
  rackstrap wait m1 --state available`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if reserve.For == "" && (reserve.KeepDisks || within != 0) {
				return usage(cmd, "--keep-disks and --within go with --reserve-for GROUP")
			}
			if reserve.For != "" {
				reserve.Within, in.Reserve = hardware.Duration(within), &reserve
			}
			c := a.client()
			defer c.Close()
			for _, id := range args {
				out, err := c.ReleaseClaimWith(cmd.Context(), id, in)
				if err != nil {
					return err
				}
				if done, err := a.printValue(out); err != nil {
					return err
				} else if done {
					continue
				}
				if _, err := fmt.Fprintln(a.Out, releasedWords(out)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&reserve.For, "reserve-for", "", "keep the machine for the next claim of this group, an owner or the beginning of owners")
	f.BoolVar(&reserve.KeepDisks, "keep-disks", false, "with --reserve-for: do not wipe it before the time is over")
	f.DurationVar(&within, "within", 0, "with --reserve-for: how long it is kept, a day at most (default 1h)")
	f.StringVar(&in.Unhealthy, "unhealthy", "", "why nobody should get the machine before a human looked at it")
	f.StringVar(&in.Reason, "reason", "", "what the timeline shows")
	return cmd
}

// releasedWords is what became of the machine of a claim.
func releasedWords(out *api.ClaimReleased) string {
	said := "hardware/" + out.Claim.Status.Hardware + " is given back"
	if out.Workflow != "" {
		said = "hardware/" + out.Claim.Status.Hardware + " is wiped by workflow/" + out.Workflow
	}
	if s := out.Claim.Status.Stopped; s != nil {
		said += ", its system is stopped (" + string(s.By) + ")"
	}
	return fmt.Sprintf("claim/%s ended, %s", out.Claim.Meta.Name, said)
}

func (a *app) claimExplainCommand() *cobra.Command {
	f := claimFlags{}
	most := 20
	cmd := &cobra.Command{
		Use: "explain [ID]", Short: "Say of each machine why a claim was, or would be, given it or not", Args: cobra.MaximumNArgs(1),
		Example: "  rackstrap claim explain web-1\n  rackstrap claim explain -l tier=prod --memory 64Gi",
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := f.read(cmd)
			if err != nil {
				return err
			}
			c := a.client()
			defer c.Close()
			var out *api.ClaimExplanation
			if len(args) == 0 {
				out, err = c.ExplainClaimSpec(cmd.Context(), spec)
			} else if api.ClaimFlags(&spec) != "" {
				return usage(cmd, "a claim has a spec already: leave out %s", api.ClaimFlags(&spec))
			} else {
				out, err = c.ExplainClaim(cmd.Context(), args[0])
			}
			if err != nil {
				return err
			}
			return a.printExplanation(out, most)
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&most, "limit", most, "how many machines are printed; 0 is all")
	return cmd
}

// printExplanation prints the best machines first, and how many were left out.
func (a *app) printExplanation(out *api.ClaimExplanation, most int) error {
	if done, err := a.printValue(out); done {
		return err
	}
	if _, err := fmt.Fprintln(a.Out, out.Summary); err != nil {
		return err
	}
	lines := [][]string{{"HARDWARE", "FITS", "SCORE", "AGAINST"}}
	left := 0
	for i, c := range out.Candidates {
		if most > 0 && i >= most {
			left = len(out.Candidates) - i
			break
		}
		fits := "no"
		switch {
		case c.Hardware == out.Picked && out.Claim != "":
			fits = "has it"
		case c.Hardware == out.Picked:
			fits = "first"
		case c.Fits:
			fits = "yes"
		}
		words := strings.Join(c.Against, "; ")
		if c.Fits {
			words = c.Note
		}
		lines = append(lines, []string{c.Hardware, fits, fmt.Sprint(c.Score), orDash(oneLine(words))})
	}
	if len(out.Candidates) == 0 {
		return nil
	}
	if err := aligned(a.Out, "", lines); err != nil {
		return err
	}
	if left > 0 {
		_, err := fmt.Fprintf(a.Out, "… and %d more: --limit 0\n", left)
		return err
	}
	return nil
}
