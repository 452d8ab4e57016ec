package worker

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rackstrap/rackstrap/api/workerpb"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/worker/action"
	"github.com/rackstrap/rackstrap/worker/pid1"
	"github.com/rackstrap/rackstrap/workflow"
)

// Protocol is the version of the worker protocol that this worker speaks.
const Protocol = 1

// Config is what a Session needs of the world.
type Config struct {
	Params
	Version string
	Runners map[workflow.Kind]action.Runner
	// Env is asked before each action; Log and Progress are set in what it gives.
	Env func() action.Env
	// Ready waits until the machine's disks are found; it is called before each
	// action. nil: they are.
	Ready func(context.Context)
	// Facts looks at the machine and reports what it finds, again where more comes to
	// light later; it is called once, after the first Welcome.
	Facts func(ctx context.Context, report func(hardware.Facts))
	// Look gives disks that were reported the layout that they have now, in seconds; nil:
	// what the actions did to them is not reported.
	Look func(ctx context.Context, disks []hardware.DiskFact)
	// SetClock sets the machine's clock.
	SetClock func(time.Time) error
	// Uptime is the time since the kernel's start.
	Uptime func() time.Duration
	// Say prints a line on the console.
	Say func(format string, args ...any)
	// Dial connects to the appliance; nil: from any address of this machine.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// End is how a Session ends.
type End struct {
	// What is to be done with the machine; empty when the context ended.
	What pid1.PowerAction
	// Reason says why, in words.
	Reason string
	// Fault: a human should read the reason before the machine restarts.
	Fault bool
}

// Session is the worker's life with the appliance, over any number of connections.
type Session struct {
	c     Config
	trust *Trust
	out   *outbox
	jobs  *jobs
	facts sync.Once
	// enrol: nobody accepted this machine yet, so no action is taken, whoever sends it.
	enrol atomic.Bool
	// haveFacts is closed once facts are in the outbox; firstFacts is their number.
	haveFacts  chan struct{}
	looked     sync.Once
	firstFacts uint64
	// latest are the facts that were reported last; nil before the first.
	latest atomic.Pointer[hardware.Facts]
	ends   chan End
	wg     sync.WaitGroup
}

// NewSession makes the worker's key; its error is that of the random source.
func NewSession(c Config) (*Session, error) {
	trust, err := NewTrust(c.CA)
	if err != nil {
		return nil, err
	}
	s := &Session{c: c, trust: trust, out: newOutbox(), ends: make(chan End, 1), haveFacts: make(chan struct{})}
	s.jobs = &jobs{c: &s.c, out: s.out, written: s.lookAgain}
	s.jobs.stuck = func(reason string) {
		s.end(End{What: pid1.Restart, Reason: reason + "; the machine restarts to get free of it", Fault: true})
	}
	return s, nil
}

// stopLimit is how long a running action may take to stop when the session ends, and
// the rest of the session after it.
const stopLimit = 30 * time.Second

// Run connects to the appliance, again and again, until there is a reason to leave
// this machine, or ctx is done.
func (s *Session) Run(ctx context.Context) End {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		if !waitFor(&s.wg, stopLimit) {
			s.c.Say("something of the connection does not stop; going on without it")
		}
	}()
	s.jobs.after = func(seq uint64, what action.After) {
		s.wg.Go(func() { s.leave(ctx, seq, what) })
	}
	s.wg.Go(func() { s.connect(ctx) })
	var e End
	select {
	case <-ctx.Done():
	case e = <-s.ends:
	}
	s.jobs.Stop(stopLimit)
	return e
}

// end ends the session; the first reason counts.
func (s *Session) end(e End) {
	select {
	case s.ends <- e:
	default:
	}
}

// connect keeps a connection until ctx is done or a failure is final.
func (s *Session) connect(ctx context.Context) {
	p := patience{started: time.Now()}
	var said string
	var saidAt time.Time
	for failures := 0; ; failures++ {
		welcomed, err := s.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if welcomed {
			failures = 0
		}
		p.note(time.Now(), welcomed, s.trust.Refused())
		if e, over := p.judge(time.Now(), err, s.jobs.Running() != nil); over {
			s.end(e)
			return
		}
		d := pauseAfter(failures, rand.Float64())
		if text := failureText(err); text != said || time.Since(saidAt) > time.Minute {
			s.c.Say("no connection to the appliance at %v: %s; trying again", s.c.Server, text)
			said, saidAt = text, time.Now()
		}
		t := time.NewTimer(d)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// pauseAfter is the pause before the next connection: half a second, doubled up to 15 s.
// r, 0 to 1, spreads the machines of a rack over it when the appliance comes back.
func pauseAfter(failures int, r float64) time.Duration {
	d := 15 * time.Second
	if failures < 5 {
		d = 500 * time.Millisecond << failures
	}
	return d/2 + time.Duration(r*float64(d)/2)
}

// handle obeys one message of the appliance.
func (s *Session) handle(ctx context.Context, m *workerpb.Down) {
	switch b := m.GetBody().(type) {
	case *workerpb.Down_Ack:
		s.out.Ack(b.Ack.GetSeq())
	case *workerpb.Down_Assign:
		if s.enrol.Load() {
			s.c.Say("an action was sent to a machine that was not accepted; it is not taken")
			return
		}
		s.jobs.Assign(ctx, b.Assign)
	case *workerpb.Down_Cancel:
		if r := b.Cancel.GetReason(); r != "" {
			s.c.Say("the appliance cancels the action: %s", r)
		}
		s.jobs.Cancel(b.Cancel.GetAssignment())
	case *workerpb.Down_Finish:
		switch b.Finish.GetWhat() {
		case workerpb.Finish_WHAT_REBOOT:
			s.wg.Go(func() { s.finish(ctx, End{What: pid1.Restart, Reason: b.Finish.GetReason()}) })
		case workerpb.Finish_WHAT_POWER_OFF:
			s.wg.Go(func() { s.finish(ctx, End{What: pid1.PowerOff, Reason: b.Finish.GetReason()}) })
		default:
			s.c.Say("waiting for work: %s", b.Finish.GetReason())
		}
	}
	// A message that this worker does not know comes from a newer appliance, which
	// must not rely on it: Hello said which protocol is spoken here.
}
