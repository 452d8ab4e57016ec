package worker

import (
	"context"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/worker/action"
	"github.com/rackstrap/rackstrap/worker/pid1"
)

// ackLimit is how long a restart waits for the appliance to know of it. A machine
// that restarts before that comes back as one whose install broke off, although it
// is finished; so a day of maintenance is waited for.
const ackLimit = 24 * time.Hour

// ackReminder is how often the console says what is waited for.
const ackReminder = time.Minute

// factsLimit is how long a worker that could leave goes on looking at the machine, and
// telling of it: a disk may not answer at all.
const factsLimit = 30 * time.Second

// leave ends the session once the report of the last action is acknowledged, and what
// is in the machine: a short workflow is done before the disks were looked at.
func (s *Session) leave(ctx context.Context, seq uint64, what action.After) {
	limit := time.NewTimer(ackLimit)
	defer limit.Stop()
	remind := time.NewTicker(ackReminder)
	defer remind.Stop()
	started := time.Now()
	if !s.told(ctx) {
		return
	}
	e := End{What: pid1.Restart, Reason: "all actions are done"}
	if what == action.PowerOff {
		e.What = pid1.PowerOff
	}
	for {
		waiting, acked := s.out.Waiting(seq)
		if !waiting {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-acked:
			continue
		case <-remind.C:
			s.c.Say("all actions are done; %s waits for the appliance at %v to take the last report, for %v of at most %v (is it running?)",
				e.What, s.c.Server, time.Since(started).Round(time.Minute), ackLimit)
			continue
		case <-limit.C:
			e.Reason += ", though the appliance has not heard of it"
		}
		break
	}
	s.end(e)
}

// finish ends the session as the appliance wants it.
func (s *Session) finish(ctx context.Context, e End) {
	if s.told(ctx) {
		s.end(e)
	}
}

// told waits until the appliance has what was found in the machine, at most for
// factsLimit; false: ctx is done.
func (s *Session) told(ctx context.Context) bool {
	limit := time.NewTimer(factsLimit)
	defer limit.Stop()
	select {
	case <-s.haveFacts:
	case <-limit.C:
		return true
	case <-ctx.Done():
		return false
	}
	for {
		waiting, acked := s.out.Waiting(s.firstFacts)
		if !waiting {
			return true
		}
		select {
		case <-acked:
		case <-limit.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// waitFor waits until all of g has ended, at most for limit; it says whether it has.
// What hangs in the kernel, on a broken disk for instance, must not keep the machine.
func waitFor(g *sync.WaitGroup, limit time.Duration) bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.Wait()
	}()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-ended:
		return true
	case <-t.C:
		return false
	}
}
