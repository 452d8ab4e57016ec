package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/client"
	"github.com/rackstrap/rackstrap/workflow"
)

// logAgain is the pause before a followed log that was cut off is asked for again.
const logAgain = time.Second

func (a *app) workflowLogsCommand() *cobra.Command {
	l := logView{app: a}
	cmd := &cobra.Command{
		Use: "logs NAME", Aliases: []string{"log"}, Short: "Print what the attempts of a workflow wrote", Args: takes("NAME"),
		Long: `Print the log of one attempt: which disk was chosen and why, what the server answered,
what was found, written and read back. Without --action it is the action that failed, or
the one that runs, or the last one that ran; without --attempt its last attempt. Which
one that is goes to standard error.

With --follow it goes on with what comes. Without --action it then goes on with the
actions and attempts that come, until the workflow ends: with exit code 0 if it
succeeded, 4 if not.

The appliance keeps up to 4 MiB of each attempt for as long as the workflow's record.
What a machine writes cannot steer a terminal: control characters read as ?.`,
		Example: `  rackstrap workflow logs w1
  rackstrap workflow logs w1 --action image-write --attempt 1
  rackstrap workflow logs w1 --tail 20 --follow`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if l.attempt < 0 || l.tail < 0 {
				return usage(cmd, "--attempt and --tail are numbers from 1 on")
			}
			c := a.client()
			defer c.Close()
			return l.run(cmd.Context(), c, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&l.action, "action", "", "of this action: its name, or its number from 1 on")
	f.IntVar(&l.attempt, "attempt", 0, "of this attempt, from 1 on; else the last one")
	f.IntVar(&l.tail, "tail", 0, "only the last so many lines of what is there")
	f.BoolVarP(&l.follow, "follow", "f", false, "go on with what comes")
	return cmd
}

// logView prints logs.
type logView struct {
	*app
	action        string
	attempt, tail int
	follow        bool
}

// place is one attempt: the index of the action from 0, the number of the attempt from 1.
type place struct{ action, attempt int }

func (l *logView) run(ctx context.Context, c *client.Client, name string) error {
	w, err := c.Workflows.Get(ctx, name)
	if err != nil {
		return err
	}
	at, err := chooseAttempt(w, l.action, l.attempt)
	if errors.Is(err, errNotBegun) && l.follow && !w.Status.State.Ended() && l.action == "" {
		w, at, err = l.next(ctx, c, w, place{})
	}
	if err != nil {
		return err
	}
	for {
		if err := l.print(ctx, c, w, at); err != nil || !l.follow {
			return err
		}
		if l.action != "" || l.attempt > 0 {
			return nil
		}
		var last place
		if w, last, err = l.next(ctx, c, w, at); err != nil {
			return err
		}
		if last == at {
			return ended(w)
		}
		at, l.tail = last, 0
	}
}

// next waits for the attempt after at, or for the end of the workflow; then it is at.
func (l *logView) next(ctx context.Context, c *client.Client, w *api.Workflow, at place) (*api.Workflow, place, error) {
	waiting, enough := context.WithCancel(ctx)
	defer enough()
	var found *api.Workflow
	w, err := c.WaitWorkflow(waiting, w.Meta.Name, func(now *api.Workflow) {
		if _, ok := after(now, at); ok && found == nil {
			found = now
			enough()
		}
	})
	if found == nil || ctx.Err() != nil {
		return w, at, err
	}
	next, _ := after(found, at)
	return found, next, nil
}

// print prints one log, to the end of the attempt where it is followed.
func (l *logView) print(ctx context.Context, c *client.Client, w *api.Workflow, at place) error {
	act := &w.Status.Actions[at.action]
	t := &act.Attempts[at.attempt-1]
	_, _ = fmt.Fprintf(l.Err, "%s: %s (%d of %d), attempt %d of %d, %s\n", w.Spec.Hardware, act.Name, at.action+1, len(w.Status.Actions), at.attempt, len(act.Attempts), t.State)
	read := func(o client.LogOptions, to io.Writer) (int64, error) {
		log, err := c.AttemptLog(ctx, w.Meta.Name, at.action, at.attempt, o)
		if err != nil {
			return o.Offset, err
		}
		defer log.Close()
		n, err := io.Copy(to, log)
		return log.Offset + n, err
	}
	o := client.LogOptions{Follow: l.follow}
	if l.tail > 0 {
		var all bytes.Buffer
		next, err := read(client.LogOptions{}, &all)
		if p := (*api.Problem)(nil); errors.As(err, &p) && p.Code == api.CodeNotFound && l.follow {
			err = nil // nothing is there yet; asked again, it says so if nothing can come
		}
		if err != nil {
			return err
		}
		if _, err := l.Out.Write(lastLines(all.Bytes(), l.tail)); err != nil || !l.follow {
			return err
		}
		o.Offset = next
	}
	for {
		var err error
		o.Offset, err = read(o, l.Out)
		var p *api.Problem
		if err == nil || !l.follow || ctx.Err() != nil || (errors.As(err, &p) && p.Status < http.StatusInternalServerError) {
			return err
		}
		l.retrying(err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(logAgain):
		}
	}
}

var errNotBegun = errors.New("nothing of it ran yet")

// chooseAttempt is the attempt that was asked for, or the one that matters: the last one
// of the action that failed, runs, or ran last.
func chooseAttempt(w *api.Workflow, action string, attempt int) (place, error) {
	all := w.Status.Actions
	i := -1
	for j := range all {
		switch {
		case action == "" && len(all[j].Attempts) > 0, action != "" && all[j].Name == action:
			i = j
		}
	}
	if n, err := strconv.Atoi(action); i < 0 && err == nil && n >= 1 && n <= len(all) {
		i = n - 1
	}
	hint := "rackstrap workflow logs " + w.Meta.Name + " --follow"
	switch {
	case i < 0 && action != "":
		return place{}, &failure{exitError, "", fmt.Errorf("workflow %q has no action %q (it has %s)", w.Meta.Name, action, actionNames(all))}
	case i < 0:
		return place{}, &failure{exitError, hint, fmt.Errorf("workflow %q is %s: %w", w.Meta.Name, w.Status.State, errNotBegun)}
	}
	n := len(all[i].Attempts)
	switch {
	case n == 0:
		return place{}, &failure{exitError, hint, fmt.Errorf("action %q of workflow %q: %w", all[i].Name, w.Meta.Name, errNotBegun)}
	case attempt > n:
		return place{}, &failure{exitError, "", fmt.Errorf("action %q of workflow %q has %s, and no attempt %d", all[i].Name, w.Meta.Name, plural(n, "attempt"), attempt)}
	case attempt == 0:
		attempt = n
	}
	return place{i, attempt}, nil
}

func actionNames(all []workflow.Action) string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return strings.Join(names, ", ")
}

// after is the first attempt after p; false: there is none yet.
func after(w *api.Workflow, p place) (place, bool) {
	for i := p.action; i < len(w.Status.Actions); i++ {
		first := 1
		if i == p.action {
			first = p.attempt + 1
		}
		if len(w.Status.Actions[i].Attempts) >= first {
			return place{i, first}, true
		}
	}
	return p, false
}

// lastLines are the last n lines of a text.
func lastLines(text []byte, n int) []byte {
	end := bytes.TrimSuffix(text, []byte("\n"))
	for i := len(end); n > 0; n-- {
		if i = bytes.LastIndexByte(end[:i], '\n'); i < 0 {
			return text
		}
		if n == 1 {
			return text[i+1:]
		}
	}
	return nil
}
