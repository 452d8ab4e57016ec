package worker

import (
	"fmt"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/action"
)

// showEvery is how often the console shows how far an action is: a serial line is
// read by people and by log collectors.
const showEvery = 5 * time.Second

// display is how far an attempt is, for the console.
type display struct {
	title string

	mu   sync.Mutex
	now  action.Progress
	at   time.Time
	prev action.Progress
	was  time.Time
}

func newDisplay(a *workerpb.Assign) *display {
	s := &display{title: fmt.Sprintf("%s (%s)", hardware.PlainText(a.GetName(), 64), hardware.PlainText(a.GetKind(), 64))}
	if n := a.GetActions(); n > 0 {
		s.title = fmt.Sprintf("%d/%d %s", a.GetAssignment().GetAction()+1, n, s.title)
	}
	if t := a.GetAssignment().GetAttempt(); t > 0 {
		s.title += fmt.Sprintf(", attempt %d", t+1)
	}
	return s
}

// Title names the attempt: "2/5 write (image.write), attempt 2".
func (s *display) Title() string { return s.title }

// Set replaces the progress.
func (s *display) Set(p action.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.at = p, time.Now()
}

// Line is the progress in words, with the speed since the last line; false when
// nothing was reported since.
func (s *display) Line() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || s.at.Equal(s.was) {
		return "", false
	}
	line := progressText(s.now, s.prev, s.at.Sub(s.was), s.was.IsZero())
	s.prev, s.was = s.now, s.at
	return s.title + ": " + line, true
}

// progressText says how far p is, and how fast it moved since prev.
func progressText(p, prev action.Progress, took time.Duration, first bool) string {
	var line string
	if p.Total > 0 {
		line = fmt.Sprintf("%d %% of %s", min(p.Done, p.Total)*100/p.Total, megabytes(p.Total))
	} else {
		line = megabytes(p.Done)
	}
	moved := max(p.Written-prev.Written, p.Done-prev.Done)
	if !first && took > 0 && moved > 0 {
		line += fmt.Sprintf(", %.0f MB/s", float64(moved)/1e6/took.Seconds())
	}
	if p.Note != "" {
		line += ", " + hardware.PlainText(p.Note, maxNote)
	}
	return line
}

func megabytes(n int64) string {
	if n >= 10_000_000_000 {
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.0f MB", float64(n)/1e6)
}

// show prints the status of a job until the returned function is called.
func (j *jobs) show(jb *job) (stop func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(showEvery)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				if line, ok := jb.shown.Line(); ok {
					j.c.Say("%s", line)
				}
			}
		}
	}()
	return func() {
		close(quit)
		<-gone
	}
}
