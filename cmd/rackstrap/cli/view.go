package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/workflow"
)

// view shows a workflow in words as it moves: a line for each thing that happened,
// and how far the running action is: always anew on a terminal's last line, every
// ten seconds elsewhere.
type view struct {
	w    io.Writer
	tty  bool
	open bool // the terminal's last line is ours

	state   workflow.State
	message string
	seen    map[string]bool // what was said
	rate    estimator
	action  int
	attempt int
	said    time.Time
}

func newView(w io.Writer) *view {
	return &view{w: w, tty: isTTY(w), seen: map[string]bool{}, action: -1}
}

func (v *view) say(format string, args ...any) {
	v.end()
	_, _ = fmt.Fprintf(v.w, format+"\n", args...)
}

// end leaves the terminal's last line empty.
func (v *view) end() {
	if v.open {
		_, _ = fmt.Fprint(v.w, "\r\x1b[K")
		v.open = false
	}
}

// see is told each state of the workflow.
func (v *view) see(w *api.Workflow) {
	s := &w.Status
	if s.State == workflow.StatePending && (v.state != s.State || v.message != s.Message) {
		v.say("%s: %s", w.Spec.Hardware, s.Message)
	}
	v.state, v.message = s.State, s.Message
	for i := range s.Actions {
		v.attempts(w, i)
	}
	if s.State.Ended() {
		took := ""
		if !s.Started.IsZero() {
			took = " after " + span(s.Finished.Sub(s.Started))
		}
		v.say("%s: workflow %s %s%s", w.Spec.Hardware, w.Meta.Name, s.State, took)
		return
	}
	if w.Progress != nil {
		v.progress(w, w.Progress)
	}
}

// attempts says what has begun and ended.
func (v *view) attempts(w *api.Workflow, i int) {
	a := &w.Status.Actions[i]
	head := fmt.Sprintf("%s: %s (%d of %d)", w.Spec.Hardware, a.Name, i+1, len(w.Status.Actions))
	for j, t := range a.Attempts {
		try := ""
		if j > 0 {
			try = fmt.Sprintf(", attempt %d", j+1)
		}
		if key := fmt.Sprintf("%d/%d began", i, j); !v.seen[key] {
			v.seen[key] = true
			if !t.State.Ended() {
				v.say("%s%s …", head, try)
			}
		}
		key := fmt.Sprintf("%d/%d ended", i, j)
		if !t.State.Ended() || v.seen[key] {
			continue
		}
		v.seen[key] = true
		d := t.Finished.Sub(t.Started)
		text := string(t.State)
		if t.State == workflow.StateSucceeded {
			text = "done"
		}
		text += " in " + span(d)
		if n := max(t.Result.WrittenBytes, t.Result.SourceBytes); n > 0 {
			text += ", " + size(n)
			if r := rate(n, d); r != "" {
				text += ", " + r
			}
		}
		if t.Message != "" && t.State != workflow.StateSucceeded {
			text += ": " + t.Message
		}
		v.say("%s%s %s", head, try, text)
	}
}

func (v *view) progress(w *api.Workflow, p *workflow.Progress) {
	if p.Action != v.action || p.Attempt != v.attempt {
		v.action, v.attempt, v.rate, v.said = p.Action, p.Attempt, estimator{}, p.At
	}
	v.rate.add(p.At, p.Done)
	name := "?"
	if p.Action >= 0 && p.Action < len(w.Status.Actions) {
		name = w.Status.Actions[p.Action].Name
	}
	text := fmt.Sprintf("%s: %s: %s", w.Spec.Hardware, name, amount(p.Done, p.Total, &v.rate))
	if p.Note != "" {
		text += ", " + p.Note
	}
	if v.tty {
		_, _ = fmt.Fprintf(v.w, "\r\x1b[K%s", text)
		v.open = true
		return
	}
	if p.At.Sub(v.said) >= 10*time.Second {
		v.said = p.At
		v.say("%s", text)
	}
}
