package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/hardware"
)

func (a *app) timelineCommand() *cobra.Command {
	var follow, all bool
	cmd := &cobra.Command{
		Use: "timeline HARDWARE", Short: "Tell what happened to a machine, boot by boot", Args: takes("HARDWARE"),
		Long: `Tell what happened to a machine since its last power-on: every step from the first
DHCP packet to the installed system, with the time since the boot began, and where the
time went. The boot that installed the system is shown with the restart into it.`,
		Example: "  rackstrap timeline m1\n  rackstrap timeline m1 --all -o wide\n  rackstrap timeline m1 --follow",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := a.client()
			defer c.Close()
			// the cursor first, so that nothing is lost between the two
			_, cursor, err := c.ListEvents(cmd.Context(), client.Filter{Hardware: args[0], Limit: 1})
			if err != nil {
				return err
			}
			t, err := c.Timeline(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !all {
				t.Boots = lastBoots(t.Boots)
			}
			if follow && a.output == "json" {
				return a.followJSON(cmd.Context(), c, cursor, t)
			}
			if done, err := a.printValue(t); done {
				return err
			}
			if err := a.printTimeline(t, !follow); err != nil || !follow {
				return err
			}
			return a.followTimeline(cmd.Context(), c, cursor, t)
		},
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with what happens")
	cmd.Flags().BoolVar(&all, "all", false, "all boots that are kept, not the last one only")
	return cmd
}

// lastBoots is the last boot; where it is the restart after a workflow, the boot
// in which that ran is with it.
func lastBoots(boots []api.BootTimeline) []api.BootTimeline {
	n := len(boots)
	if n < 2 {
		return boots
	}
	for _, l := range boots[n-2].Lines {
		if l.Reason == hardware.ReasonWorkflowSucceeded {
			return boots[n-2:]
		}
	}
	return boots[n-1:]
}

func (a *app) printTimeline(t *api.Timeline, split bool) error {
	if len(t.Boots) == 0 {
		_, err := fmt.Fprintf(a.Out, "nothing is known of %s yet: it was never seen on the network\n", t.Hardware)
		return err
	}
	for i, b := range t.Boots {
		if i > 0 {
			if _, err := fmt.Fprintln(a.Out); err != nil {
				return err
			}
		}
		if err := a.printBoot(b.Boot, b.Started); err != nil {
			return err
		}
		for _, l := range b.Lines {
			if err := a.printLine(time.Duration(l.At), l.Event); err != nil {
				return err
			}
		}
		if b.Ended != "" {
			if _, err := fmt.Fprintf(a.Out, "  ended without a worker: %s\n  what to do: %s\n", oneLine(b.Ended), b.Fix); err != nil {
				return err
			}
		}
		if split && len(b.Split) > 0 {
			if err := a.printSplit(b.Split); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *app) printBoot(id string, started time.Time) error {
	head := "boot " + id
	if id == "" {
		head = "before the first boot"
	}
	_, err := fmt.Fprintf(a.Out, "%s, from %s\n", head, started.Local().Format(time.DateTime))
	return err
}

func (a *app) printLine(at time.Duration, e api.Event) error {
	if a.output == "wide" {
		by := ""
		if e.By != "" {
			by = ", by " + e.By
		}
		_, err := fmt.Fprintf(a.Out, "%14s  %s  %-20s  %s%s\n", "+"+span(at), e.First.Local().Format("15:04:05.000"), e.Reason, eventWords(e), by)
		return err
	}
	_, err := fmt.Fprintf(a.Out, "%14s  %s\n", "+"+span(at), eventWords(e))
	return err
}

// printSplit is the table of where the time went.
func (a *app) printSplit(spans []api.Span) error {
	if _, err := fmt.Fprintln(a.Out, "  where the time went"); err != nil {
		return err
	}
	var lines [][]string
	var total time.Duration
	for _, s := range spans {
		d := time.Duration(s.Took)
		total += d
		took := span(d)
		if !s.Ended {
			took += " so far"
		}
		moved := ""
		if s.Bytes > 0 {
			moved = size(s.Bytes)
		}
		lines = append(lines, []string{s.Name, took, moved, rate(s.Bytes, d)})
	}
	lines = append(lines, []string{"together", span(total)})
	return aligned(a.Out, "    ", lines)
}

// followJSON prints what is known and then what happens, one event a line.
func (a *app) followJSON(ctx context.Context, c *client.Client, cursor uint64, t *api.Timeline) error {
	for _, b := range t.Boots {
		for _, l := range b.Lines {
			if err := a.printEvent(l.Event); err != nil {
				return err
			}
		}
	}
	return a.follow(ctx, c, cursor, client.Filter{Hardware: t.Hardware, OnRetry: a.retrying})
}

// followTimeline goes on with what happens, each boot with a heading.
func (a *app) followTimeline(ctx context.Context, c *client.Client, cursor uint64, t *api.Timeline) error {
	starts := map[string]time.Time{}
	current := ""
	shown := map[string]int{} // count by event id
	for _, b := range t.Boots {
		starts[b.Boot], current = b.Started, b.Boot
		for _, l := range b.Lines {
			shown[l.ID] = l.Count
		}
	}
	f := client.Filter{Hardware: t.Hardware, OnRetry: a.retrying}
	for m, err := range c.Events(ctx, cursor, f) {
		if err != nil {
			return err
		}
		e := m.Event
		if e == nil || shown[e.ID] >= max(e.Count, 1) {
			continue
		}
		shown[e.ID] = e.Count
		boot := e.Boot
		if boot == "" {
			boot = current
		}
		if _, known := starts[boot]; !known {
			starts[boot] = e.First
			if err := a.printBoot(boot, e.First); err != nil {
				return err
			}
		}
		current = boot
		if err := a.printLine(e.Last.Sub(starts[boot]), *e); err != nil {
			return err
		}
	}
	return nil
}
