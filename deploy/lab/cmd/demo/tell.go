package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

// teller prints what happens, each line with the seconds since the start.
type teller struct {
	w     io.Writer
	start time.Time
}

func newTeller(w io.Writer) *teller { return &teller{w: w, start: time.Now()} }

func (t *teller) line(mark, s string) {
	fmt.Fprintf(t.w, "%7.1fs %s %s\n", time.Since(t.start).Seconds(), mark, s)
}

func (t *teller) step(s string) { t.line("==", s) }
func (t *teller) note(s string) { t.line("  ", s) }

// quiet are the Reasons that every packet repeats.
var quiet = map[hardware.Reason]bool{
	hardware.ReasonOffered: true, hardware.ReasonAcked: true, hardware.ReasonFileNotFound: true, hardware.ReasonRecordChanged: true,
}

// follow tells what happens to the machine until its workflow ends.
func (d *demo) follow(ctx context.Context) error {
	var failed error
	seen := map[string]bool{}
	last := time.Time{}
	err := d.rack.Await(ctx, machineName, func(e *api.Event, p *workflow.Progress) bool {
		if p != nil {
			if time.Since(last) >= 2*time.Second {
				last = time.Now()
				d.say.note(progressLine(p))
			}
			return false
		}
		if quiet[e.Reason] || seen[e.ID] {
			return false
		}
		seen[e.ID] = true
		d.say.note(eventLine(e))
		switch e.Reason {
		case hardware.ReasonWorkflowFailed, hardware.ReasonWorkflowTimeout, hardware.ReasonWorkflowCancelled:
			failed = errors.New(e.Sentence)
		case hardware.ReasonWorkflowSucceeded:
		default:
			return false
		}
		return true
	})
	return errors.Join(err, failed)
}

func eventLine(e *api.Event) string {
	s := e.Sentence
	took := time.Duration(e.Took)
	switch {
	case e.Bytes > 0 && took > 0:
		s += fmt.Sprintf(" (%.1f MB in %s, %.0f MB/s)", mb(e.Bytes), short(took), mb(e.Bytes)/took.Seconds())
	case took > 0:
		s += fmt.Sprintf(" (%s)", short(took))
	}
	return s
}

func progressLine(p *workflow.Progress) string {
	if p.Total <= 0 {
		return fmt.Sprintf("   … %.0f MB", mb(p.Done))
	}
	return fmt.Sprintf("   … %3.0f %%, %.0f of %.0f MB", 100*float64(p.Done)/float64(p.Total), mb(p.Done), mb(p.Total))
}

func short(d time.Duration) string {
	if d < 10*time.Millisecond {
		return "<0.01 s"
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
