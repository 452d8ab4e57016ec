package worker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/worker/action"
	"github.com/rackstrap/rackstrap/worker/pid1"
)

// An appliance that is away for a day is waited for, and the console says so.
func TestLeave(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		what  action.After
		found time.Duration // the facts; acknowledged a second later. Negative: never
		acked time.Duration // 0: never
		ends  time.Duration
		end   End
		lines int
	}{
		{"no facts", action.Reboot, -1, time.Second, factsLimit, End{What: pid1.Restart, Reason: "all actions are done"}, 0},
		{"at once", action.Reboot, 0, time.Second, time.Second, End{What: pid1.Restart, Reason: "all actions are done"}, 0},
		{"before the facts", action.PowerOff, 10 * time.Second, time.Second, 11 * time.Second, End{What: pid1.PowerOff, Reason: "all actions are done"}, 0},
		{"after an outage", action.PowerOff, 0, 23*time.Hour + time.Second, 23*time.Hour + time.Second, End{What: pid1.PowerOff, Reason: "all actions are done"}, 23 * 60},
		{"never", action.Reboot, 0, 0, ackLimit, End{What: pid1.Restart, Reason: "all actions are done, though the appliance has not heard of it"}, 24*60 - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				s, err := NewSession(Config{Say: func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }})
				if err != nil {
					t.Fatal(err)
				}
				started := time.Now()
				if tt.found >= 0 {
					time.AfterFunc(tt.found, func() {
						n := s.out.Add(&workerpb.Up{Body: &workerpb.Up_Facts{Facts: &workerpb.Facts{}}})
						s.firstFacts = n
						close(s.haveFacts)
						time.AfterFunc(time.Second, func() { s.out.Ack(n) })
					})
				}
				seq := s.out.Add(&workerpb.Up{Body: &workerpb.Up_Report{Report: &workerpb.Report{}}})
				if tt.acked > 0 {
					time.AfterFunc(tt.acked, func() { s.out.Ack(seq) })
				}
				s.leave(t.Context(), seq, tt.what)
				if e := <-s.ends; e != tt.end || time.Since(started) != tt.ends {
					t.Errorf("after %v: %+v", time.Since(started), e)
				}
				// The last reminder and the limit come at the same time.
				if n := len(lines); n != tt.lines && n != tt.lines+1 || n > 0 && !strings.Contains(lines[n-1], "waits for the appliance") {
					t.Errorf("%d lines", n)
				}
			})
		})
	}
}

// A session that is told to end does not wait for the acknowledgement.
func TestLeaveStops(t *testing.T) {
	t.Parallel()
	s, err := NewSession(Config{})
	if err != nil {
		t.Fatal(err)
	}
	seq := s.out.Add(&workerpb.Up{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.leave(ctx, seq, action.Reboot)
	if len(s.ends) != 0 {
		t.Error("the session ended itself")
	}
}

func TestWaitFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g sync.WaitGroup
		free := make(chan struct{})
		g.Go(func() { <-free })
		started := time.Now()
		if waitFor(&g, stopLimit) || time.Since(started) != stopLimit {
			t.Errorf("something that hangs: %v", time.Since(started))
		}
		close(free)
		if !waitFor(&g, stopLimit) {
			t.Error("something that ended was not noticed")
		}
	})
}

// Whatever hangs in the worker, and whatever breaks, the machine is left.
func TestGuardIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &life{console: pid1.NewConsole(func() time.Duration { return 0 }, nil, nil)}
		free := make(chan struct{})
		l.wg.Go(func() { <-free })
		e := l.guard(fmt.Errorf("mount /proc"))
		if e.What != pid1.Restart || !e.Fault || !strings.Contains(e.Reason, "mount /proc") {
			t.Errorf("%+v", e)
		}
		close(free)
	})
}
