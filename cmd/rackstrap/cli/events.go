package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
)

func (a *app) eventsCommand() *cobra.Command {
	var f client.Filter
	var follow bool
	cmd := &cobra.Command{
		Use: "events [list]", Aliases: []string{"event"}, Short: "Print what happened", Args: cobra.MatchAll(cobra.OnlyValidArgs, cobra.MaximumNArgs(1)), ValidArgs: []string{"list"},
		Long:    "Print what happened, the oldest first. -o json prints one event a line.",
		Example: "  rackstrap events\n  rackstrap events --hardware m1 --follow\n  rackstrap events --by ci --reason api-change\n  rackstrap events --follow -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := a.client()
			defer c.Close()
			events, cursor, err := c.ListEvents(cmd.Context(), f)
			if err != nil {
				return err
			}
			for _, e := range events {
				if err := a.printEvent(e); err != nil {
					return err
				}
			}
			if !follow {
				return nil
			}
			f.OnRetry = a.retrying
			return a.follow(cmd.Context(), c, cursor, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Hardware, "hardware", "", "of this machine only")
	fl.StringVar(&f.Workflow, "workflow", "", "of this workflow only")
	fl.StringVar(&f.By, "by", "", "asked for by this caller only: socket, or the name of a token")
	fl.StringVar((*string)(&f.Reason), "reason", "", "with this reason only: api-change and api-refused are the audit")
	fl.IntVar(&f.Limit, "limit", 100, "how many of the newest, up to 10000")
	fl.BoolVar(&follow, "follow", false, "go on with what happens")
	return cmd
}

func (a *app) retrying(err error) {
	_, _ = fmt.Fprintf(a.Err, "the stream broke (%v), trying again\n", err)
}

func (a *app) follow(ctx context.Context, c *client.Client, cursor uint64, f client.Filter) error {
	for m, err := range c.Events(ctx, cursor, f) {
		switch {
		case err != nil:
			return err
		case m.Compacted:
			_, err = fmt.Fprintln(a.Err, "events were missed; what is kept follows")
		case m.Event != nil:
			err = a.printEvent(*m.Event)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printEvent(e api.Event) error {
	switch a.output {
	case "json":
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.Out, string(raw))
		return err
	case "yaml":
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.Out, "---"); err != nil {
			return err
		}
		return printYAML(a.Out, []json.RawMessage{raw})
	}
	who := e.Machine
	if who == "" {
		who = "appliance"
	}
	if e.By != "" {
		who += " by " + e.By
	}
	_, err := fmt.Fprintf(a.Out, "%s  %s  %s\n", e.Last.Local().Format(time.DateTime), who, eventWords(e))
	return err
}

// eventWords is the event with its figures.
func eventWords(e api.Event) string {
	text := oneLine(e.Sentence)
	if e.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	took := time.Duration(e.Took)
	if e.Bytes > 0 {
		text += ", " + size(e.Bytes)
	}
	if took > 0 {
		text += ", " + span(took)
	}
	if r := rate(e.Bytes, took); r != "" {
		text += ", " + r
	}
	if e.Count > 1 {
		text += fmt.Sprintf(" (%d times)", e.Count)
	}
	return text
}
