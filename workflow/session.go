package workflow

import (
	"context"
	"crypto/ed25519"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Refused says why a worker was not let in.
type Refused struct{ Reason hardware.Reason }

func (r *Refused) Error() string { return r.Reason.Sentence() }

// Admission is what a redeemed token gives.
type Admission struct {
	Boot    string
	UID     string // of the Hardware
	Machine string // its name
	Scope   hardware.Scope
}

// Redeem lets the worker of a boot in and binds the boot's token to its key. The
// same key again is no change. Another key means that the token was seen by
// somebody else: the machine goes on hold. It returns *Refused, or the store's
// error.
func (e *Engine) Redeem(ctx context.Context, token string, key ed25519.PublicKey, from netip.Addr) (Admission, error) {
	bootID, uid, ok := parseToken(e.c.TokenKey, token)
	if !ok || len(key) != ed25519.PublicKeySize {
		return Admission{}, &Refused{hardware.ReasonTokenUnknown}
	}
	if mac, stranger := hardware.StrangerMAC(uid); stranger {
		h := e.byMAC(mac)
		if h == nil {
			return e.redeemStranger(mac, bootID, key, from)
		}
		uid = h.Meta.UID // it has reported itself since
	}
	m := e.machine(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		adm, err := e.redeem(ctx, m, bootID, key, from)
		if !errors.Is(err, ErrConflict) {
			return adm, err
		}
	}
}

func (e *Engine) redeem(ctx context.Context, m *machine, bootID string, key ed25519.PublicKey, from netip.Addr) (Admission, error) {
	mc, err := e.c.Store.Machine(ctx, m.uid)
	if errors.Is(err, ErrNotFound) {
		return Admission{}, &Refused{hardware.ReasonTokenUnknown}
	}
	if err != nil {
		return Admission{}, err
	}
	h, err := e.c.Store.Hardware(ctx, m.uid)
	if err != nil {
		return Admission{}, err
	}
	now := e.c.Now()
	refuse := func(r hardware.Reason) (Admission, error) {
		e.note(h, bootID, r, "from "+from.String())
		return Admission{}, &Refused{r}
	}
	b := mc.Boot
	switch {
	case b == nil || b.ID != bootID:
		return refuse(hardware.ReasonTokenSuperseded)
	case b.WorkerKey != nil && subtle.ConstantTimeCompare(b.WorkerKey, key) != 1:
		if b.Closed || mc.Status.Hold {
			// an old recording of the token; nothing depends on it any more
			return refuse(hardware.ReasonTokenExpired)
		}
		return Admission{}, e.stolen(ctx, m, h, mc, from)
	case b.WorkerKey == nil && (now.After(b.Deadline) || b.Closed):
		return refuse(hardware.ReasonTokenExpired)
	case b.WorkerKey == nil:
		if next := e.next(ctx, h, mc); next.Target != hardware.TargetWorker {
			return refuse(next.Reason)
		}
	}
	if b.WorkerKey == nil {
		nb := *b
		nb.WorkerKey = key
		nb.Reach(hardware.PhaseWorker, now)
		mc.Boot = &nb
		ev := e.event(h, bootID, hardware.ReasonWorkerConnected, "from "+from.String())
		ev.Took = hardware.Duration(now.Sub(b.Started))
		if err := e.c.Store.Commit(ctx, &Change{Machine: mc, Events: []Event{ev}}); err != nil {
			return Admission{}, err
		}
	} else {
		e.note(h, bootID, hardware.ReasonWorkerConnected, "again, from "+from.String())
	}
	return Admission{Boot: b.ID, UID: m.uid, Machine: h.Meta.Name, Scope: b.Next.Scope}, nil
}

// stolen ends a boot whose token came with a second key. Which of the two keys is
// the machine's nobody can tell, so neither is good any more: the session is
// closed, the machine is on hold, and only another boot makes another token.
func (e *Engine) stolen(ctx context.Context, m *machine, h *hardware.Hardware, mc *Machine, from netip.Addr) error {
	b := *mc.Boot
	b.Closed, b.WorkerKey = true, nil
	held := *mc
	held.Boot = &b
	held.Status.Hold, held.Status.HoldReason, held.Status.HoldSince = true, hardware.ReasonTokenStolen, e.c.Now()
	ev := e.event(h, b.ID, hardware.ReasonTokenStolen, "from "+from.String())
	if err := e.c.Store.Commit(ctx, &Change{Machine: &held, Events: []Event{ev}}); err != nil {
		return err
	}
	if m.session != nil {
		m.session.close(hardware.ReasonTokenStolen.Sentence())
		m.session, m.left = nil, e.c.Now()
	}
	return &Refused{hardware.ReasonTokenStolen}
}

// TooOld notes that a worker speaks a protocol that is no longer spoken, if its
// token is genuine.
func (e *Engine) TooOld(ctx context.Context, token string, from netip.Addr) {
	boot, uid, ok := parseToken(e.c.TokenKey, token)
	if !ok {
		return
	}
	if h, err := e.c.Store.Hardware(ctx, uid); err == nil {
		e.note(h, boot, hardware.ReasonWorkerTooOld, "from "+from.String())
	}
}

// Command is one thing the appliance tells a worker; one field is set.
type Command struct {
	Assign *Assign
	Cancel *Assignment
	Finish *Finish
	// Close ends the stream: a newer boot took over, or the appliance stops.
	Close string
}

// Assign hands one attempt to the worker, with resolved options.
type Assign struct {
	Assignment
	Name         string
	Kind         Kind
	Options      json.RawMessage
	Timeout      time.Duration // 0 is none
	WorkflowName string
	Actions      int
}

// Finish says what the worker does with the machine when nothing is left to run.
type Finish struct {
	What   FinishWhat
	Reason string
}

// FinishWhat is one of the three ends.
type FinishWhat int

// The ends.
const (
	FinishReboot FinishWhat = iota
	FinishPowerOff
	FinishWait
)

// Session is one connected worker. Commands are delivered in order.
type Session struct {
	e     *Engine
	m     *machine
	name  string // of the Hardware
	boot  string
	scope hardware.Scope
	since time.Time
	away  bool // it was sent away; guarded by m.mu
	// leaving says that it was told to restart or switch off the machine, after which
	// another system runs; guarded by m.mu.
	leaving bool

	mu     sync.Mutex
	queue  []Command
	closed bool
	wake   chan struct{}
}

// Attach makes the worker of an admitted boot the machine's one session; an
// earlier one is closed. running is what the worker is busy with.
func (e *Engine) Attach(ctx context.Context, adm Admission, running *Assignment) (*Session, error) {
	if mac, stranger := hardware.StrangerMAC(adm.UID); stranger {
		return e.attachStranger(mac, adm)
	}
	m := e.machine(adm.UID)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session != nil {
		m.session.close("another connection of this machine took over")
	}
	s := e.newSession(m, adm)
	m.session = s
	if !m.stopping && !m.switches { // it may be switched yet, under whoever has it then; see isOff
		if err := e.stopped(ctx, m, hardware.StoppedByWorker); err != nil {
			m.session = nil
			return nil, err
		}
	}
	if m.active == "" || adm.Scope != hardware.ScopeWork {
		mc, err := e.c.Store.Machine(ctx, m.uid)
		if err != nil {
			m.session = nil
			return nil, err
		}
		s.finish(idle(mc.Status, adm.Scope, m.active != ""))
		return s, nil
	}
	if err := e.step(ctx, m, Input{Worker: &WorkerInput{Boot: adm.Boot, Running: running}}); err != nil {
		m.session = nil
		return nil, err
	}
	return s, nil
}

func (e *Engine) newSession(m *machine, adm Admission) *Session {
	return &Session{e: e, m: m, name: adm.Machine, boot: adm.Boot, scope: adm.Scope, since: e.c.Now(), wake: make(chan struct{}, 1)}
}

// waits is why a worker restarts that booted before there was a workflow.
const waits = "a workflow waits for this machine"

// idle is what a worker does whose machine has no workflow (any more), or that may not
// have one; active says that it has one all the same, made since it booted.
func idle(s hardware.Status, scope hardware.Scope, active bool) *Finish {
	switch {
	case scope == hardware.ScopeIdle && active:
		return &Finish{What: FinishReboot, Reason: waits}
	case scope != hardware.ScopeEnrol:
	case s.State == hardware.StatePending:
		return &Finish{What: FinishWait, Reason: hardware.ReasonPendingApproval.Sentence()}
	default:
		return &Finish{What: FinishReboot, Reason: "this machine was accepted"}
	}
	if s.KeptUnwiped() {
		return &Finish{What: FinishWait, Reason: hardware.ReasonReserved.Sentence()} // its disk must not be started
	}
	if s.State == hardware.StateProvisioned {
		return &Finish{What: FinishReboot, Reason: hardware.ReasonProvisioned.Sentence()}
	}
	return &Finish{What: FinishWait, Reason: "no workflow for this machine"}
}

// Wake is readable when Take may have something.
func (s *Session) Wake() <-chan struct{} { return s.wake }

// Take returns the commands that wait; after a Close command there are no more.
func (s *Session) Take() []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queue
	s.queue = nil
	return q
}

func (s *Session) send(c Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.queue = append(s.queue, c)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Session) close(why string) {
	s.send(Command{Close: why})
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
}

// sendAway tells the worker to restart the machine and, the next time, ends the
// connection of one that did not. The caller holds s.m.mu.
func (s *Session) sendAway(why string) {
	if s.away {
		s.close(why)
		return
	}
	s.away = true
	s.finish(&Finish{What: FinishReboot, Reason: why})
}

// finish tells the worker what to do with the machine. The caller holds s.m.mu.
func (s *Session) finish(f *Finish) {
	s.leaving = f.What != FinishWait
	s.send(Command{Finish: f})
}

// Detach says that the worker's connection ended.
func (s *Session) Detach() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.m.session != s {
		return
	}
	s.m.session, s.m.left = nil, s.e.c.Now()
	s.m.attached.Store(false)
	if s.m.active == "" {
		return // it was told to restart, or had nothing to do
	}
	if h, err := s.e.c.Store.Hardware(context.Background(), s.m.uid); err == nil {
		s.e.note(h, s.boot, hardware.ReasonWorkerLost, "the workflow waits for it to come back")
	}
}

// over is the error of a session that another one replaced. The caller holds s.m.mu.
func (s *Session) over() error {
	if s.m.session != s {
		return errors.New("the session is over: another connection of this machine took over")
	}
	return nil
}

// Report applies the end of an attempt; when it returns nil it is on disk and may
// be acknowledged.
func (s *Session) Report(ctx context.Context, r Report) error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if err := s.over(); err != nil {
		return err
	}
	if s.scope != hardware.ScopeWork {
		return fmt.Errorf("a worker of scope %s has no action to report on", s.scope)
	}
	return s.e.step(ctx, s.m, Input{Report: &r})
}

// Progress keeps the latest progress of the running attempt, in memory.
func (s *Session) Progress(p Progress) {
	s.m.mu.Lock()
	name := s.m.active
	current := s.m.session == s
	s.m.mu.Unlock()
	if name == "" || !current {
		return
	}
	p.Workflow, p.At = name, s.e.c.Now()
	p.Machine, p.HardwareUID = s.name, s.m.uid
	p.Note = hardware.PlainText(p.Note, 128)
	s.e.mu.Lock()
	s.e.progress[name] = p
	s.e.mu.Unlock()
}

// Log keeps a piece of the running attempt's log; what belongs to another attempt
// is dropped.
func (s *Session) Log(a Assignment, text []byte) {
	s.m.mu.Lock()
	mine := s.m.session == s && s.m.current != nil && *s.m.current == a
	s.m.mu.Unlock()
	if !mine {
		return
	}
	if err := s.e.c.Logs.Append(a, text); err != nil {
		s.e.c.Log.Warn("attempt log not written", "workflow", a.Workflow, "err", err)
	}
}
