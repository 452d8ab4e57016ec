package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Config is what an Engine is made of.
type Config struct {
	Store Store
	// Templates reads a Template by name; ErrNotFound.
	Templates func(ctx context.Context, name string) (*Template, error)
	// HardwareByName reads spec, status and facts; ErrNotFound.
	HardwareByName func(ctx context.Context, name string) (*hardware.Hardware, error)
	// Resolve replaces what only the appliance knows in the options of an action
	// that is about to be sent: images by URL and checksum, seeds by text. Its
	// error ends the attempt for good. It is asked of each action of a new workflow
	// too, which has no uid yet and whose machine may not have booted: an error
	// refuses the workflow then, and what only a boot tells must not be one. An error
	// quotes nothing of a seed.
	Resolve func(ctx context.Context, h *hardware.Hardware, w *Workflow, a *Action) (json.RawMessage, error)
	// Logs keeps what an attempt writes.
	Logs Logs
	// Note records an event that belongs to no change of state. It must not block.
	Note func(Event)
	// Power switches machines; nil is nothing at all.
	Power Power
	// Machines lists all machines, with spec and status, for the sweep that finds
	// issues. What it returns is shared and not changed.
	Machines func() []*hardware.Hardware
	// Subnets lists the networks, for the same.
	Subnets func() []*hardware.Subnet
	// Alike lists the machines that have a MAC, the UUID or the serial number of the
	// facts; nil knows none. What it returns is shared and not changed.
	Alike func(f *hardware.Facts) []*hardware.Hardware
	// Rules lists what is to become of discovered machines; nil are none.
	Rules func() []*hardware.Rule
	// StopWithin is how long after the end of a claim its machine has to be known to have
	// stopped; StopWithin where zero.
	StopWithin time.Duration
	// TokenKey authenticates boot tokens; 32 random bytes kept sealed.
	TokenKey []byte
	Now      func() time.Time
	Log      *slog.Logger
}

// Logs keeps the log text of attempts, bounded.
type Logs interface {
	Append(a Assignment, text []byte) error
}

// Engine is the one writer of workflow state, lifecycle state and boots. Its
// methods may be called at once; what concerns one machine is done in order.
type Engine struct {
	c Config

	mu       sync.Mutex
	machines map[string]*machine // by uid; never shrinks, it is bounded by the records
	progress map[string]Progress // by workflow name
	ready    chan struct{}
	began    time.Time
	// strangers are machines without a record, in memory only.
	strangers strangers
	// enrolling orders the making of records; enrolments bounds it.
	enrolling  sync.Mutex
	enrolments bucket
	// accepts bounds the machines that rules accept; mu guards it.
	accepts bucket
	// errands are calls to power controllers under way; Run waits for them.
	errands sync.WaitGroup
	running context.Context // Run's, for errands; nil before it
}

// machine is the engine's memory of one machine. Its mutex orders all decisions
// about it.
type machine struct {
	mu      sync.Mutex
	uid     string
	session *Session
	left    time.Time // when the last session ended
	active  string    // name of the active workflow
	wake    time.Time
	current *Assignment // the attempt that runs
	ended   bool        // a workflow ended since its issues were looked at
	// switching is the workflow for which its power controller is at work.
	switching string
	// stopWake is when stopNext wants to be called; zero is never. stopping says that its
	// controller is at it, stopAgain when it may be asked again, after stopTries.
	stopWake, stopAgain time.Time
	stopTries           int
	stopping            bool
	// controller is held by who asks its power controller for something: one at a time.
	controller chan struct{}
	// switches: what was asked of the controller by others than stopNext may switch it yet.
	// doubted is the worker that was connected at the end of that; see lookAgain.
	switches bool
	doubted  *Session
	look     time.Time
	// stops counts the proofs that its last system runs no more; what was asked of its
	// power before one is not done after it.
	stops uint64
	begun bucket // bounds its boots; see begins
	// reports bounds those of a machine that is not accepted.
	reports bucket
	// limited: a rule would accept it, and rules have accepted as many as they may.
	limited bool
	// reported is the boot whose worker has reported its facts.
	reported string
	// attached says that session is not nil, for who may not wait for mu. Of strangers only.
	attached atomic.Bool
}

// NewEngine makes an Engine; Run must be called for time to pass.
func NewEngine(c Config) *Engine {
	return &Engine{c: c, machines: map[string]*machine{}, progress: map[string]Progress{}, ready: make(chan struct{}), began: c.Now()}
}

// Ready is closed when the active workflows are loaded.
func (e *Engine) Ready() <-chan struct{} { return e.ready }

// Run loads the active workflows and lets time pass until ctx ends. It returns
// nil on cancel, and the store's error when the workflows cannot be read.
func (e *Engine) Run(ctx context.Context) error {
	active, err := e.c.Store.ActiveWorkflows(ctx)
	if err != nil {
		return fmt.Errorf("read the active workflows: %w", err)
	}
	e.mu.Lock()
	e.running = ctx
	e.mu.Unlock()
	defer e.errands.Wait()
	now := e.c.Now()
	for _, w := range active {
		m := e.machine(w.Status.HardwareUID)
		m.mu.Lock()
		m.active, m.wake, m.current = w.Meta.Name, now, running(w)
		m.mu.Unlock()
	}
	e.resume(ctx)
	close(e.ready)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	swept := time.Time{}
	for {
		select {
		case <-ctx.Done():
			e.closeSessions()
			return nil
		case <-tick.C:
			e.tick(ctx)
			if now := e.c.Now(); now.Sub(swept) >= sweepEvery {
				swept = now
				e.sweep(ctx)
			}
		}
	}
}

func (e *Engine) tick(ctx context.Context) {
	now := e.c.Now()
	for _, m := range e.all() {
		m.mu.Lock()
		if m.active != "" && !m.wake.IsZero() && !now.Before(m.wake) {
			if err := e.step(ctx, m, Input{}); err != nil {
				// the store refuses: keep the deadline and try again
				e.c.Log.Error("workflow not advanced", "workflow", m.active, "err", err)
				m.wake = now.Add(5 * time.Second)
			}
		}
		if err := e.lookAgain(ctx, m, now); err != nil {
			e.c.Log.Error("a worker is not looked at again", "hardware", m.uid, "err", err)
		}
		if !m.stopWake.IsZero() && !now.Before(m.stopWake) {
			if err := e.stopNext(ctx, m); err != nil {
				e.c.Log.Error("a machine that was given back is not stopped", "hardware", m.uid, "err", err)
				m.stopWake = now.Add(5 * time.Second)
			}
		}
		m.mu.Unlock()
	}
}

func (e *Engine) all() []*machine {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*machine, 0, len(e.machines))
	for _, m := range e.machines {
		out = append(out, m)
	}
	return out
}

func (e *Engine) closeSessions() {
	for _, m := range append(e.all(), e.strangers.machines()...) {
		m.mu.Lock()
		if m.session != nil {
			m.session.close("the appliance stops")
			m.session = nil
		}
		m.mu.Unlock()
	}
}

func (e *Engine) machine(uid string) *machine {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.machines[uid]
	if m == nil {
		m = &machine{uid: uid, controller: make(chan struct{}, 1)}
		e.machines[uid] = m
	}
	return m
}

// step applies one input to the machine's active workflow, writes what changed
// and tells the worker. The caller holds m.mu.
func (e *Engine) step(ctx context.Context, m *machine, in Input) error {
	if m.active == "" {
		return nil
	}
	for {
		w, err := e.c.Store.Workflow(ctx, m.active)
		if errors.Is(err, ErrNotFound) {
			m.active, m.wake = "", time.Time{}
			return nil
		}
		if err != nil {
			return err
		}
		c, err := e.context(ctx, m)
		if err != nil {
			return err
		}
		st := w.Next(in, c)
		if st.Changed {
			err = e.commitStep(ctx, m, w, st.Events)
			if errors.Is(err, ErrConflict) {
				continue
			}
			if err != nil {
				return err
			}
		}
		m.wake, m.current = st.Wake, running(w)
		e.after(ctx, m, w, st)
		return nil
	}
}

// context is what a step of this machine's workflow must know.
func (e *Engine) context(ctx context.Context, m *machine) (Context, error) {
	c := Context{Now: e.c.Now()}
	if m.session == nil || m.session.scope != hardware.ScopeWork {
		return c, nil // nobody there who may be given an action
	}
	c.Boot = m.session.boot
	h, _, err := e.load(ctx, m.uid)
	if err != nil {
		return c, err
	}
	if next := NextBoot(h, Circumstances{Active: true}); next.Target != hardware.TargetWorker {
		c.Paused = next.Reason
	}
	return c, nil
}

// running is the attempt of w that runs, nil if none does.
func running(w *Workflow) *Assignment {
	st := &w.Status
	if st.State != StateRunning || st.Current >= len(st.Actions) {
		return nil
	}
	n := len(st.Actions[st.Current].Attempts)
	if n == 0 || st.Actions[st.Current].Attempts[n-1].State != StateRunning {
		return nil
	}
	return &Assignment{Workflow: w.Meta.UID, Action: st.Current, Attempt: n - 1}
}

// commitStep writes the workflow, and the machine's state where it follows.
func (e *Engine) commitStep(ctx context.Context, m *machine, w *Workflow, events []Event) error {
	ch := &Change{Workflow: w, Events: events}
	h, mc, err := e.load(ctx, m.uid)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err == nil {
		before := mc.Status
		came := w.Status.State.Ended() || slices.ContainsFunc(events, func(ev Event) bool { return ev.Reason == hardware.ReasonActionSucceeded })
		gained := came && progress(mc)
		if follow(mc, w, h.Facts, e.c.Now()) || gained {
			ch.Machine = mc
			ch.Events = append(ch.Events, e.turns(h, &before, &mc.Status, w)...)
		}
	}
	return e.c.Store.Commit(ctx, ch)
}

// after does what a written step asks for.
func (e *Engine) after(ctx context.Context, m *machine, w *Workflow, st Step) {
	if st.Stop != nil && m.session != nil {
		m.session.send(Command{Cancel: st.Stop})
	}
	if w.Status.State.Ended() {
		m.active, m.wake, m.current, m.ended = "", time.Time{}, nil, true
		e.mu.Lock()
		delete(e.progress, w.Meta.Name)
		e.mu.Unlock()
		if m.session != nil {
			m.session.finish(finish(w))
		}
		e.releaseNext(ctx, m)
		return
	}
	if st.Start != nil && m.session != nil {
		e.assign(ctx, m, w, *st.Start)
	}
}

// assign sends an attempt to the worker, or ends it when its options cannot be
// resolved.
func (e *Engine) assign(ctx context.Context, m *machine, w *Workflow, at Assignment) {
	if m.session.scope != hardware.ScopeWork {
		return // it was let in to report what is in the machine, and is given nothing to do
	}
	a := &w.Status.Actions[at.Action]
	h, err := e.c.Store.Hardware(ctx, m.uid)
	var options json.RawMessage
	if err == nil && h.Spec.Protect && a.Kind.writesDisk() {
		err = fmt.Errorf("the record says protect: true (set it to false to allow writes to this machine's disks)")
	}
	if err == nil {
		options, err = e.c.Resolve(ctx, h, w, a)
	}
	if err != nil {
		r := Report{Assignment: at, Outcome: StateFailed, Message: err.Error(), Permanent: true, Untouched: true} // it was sent to nobody
		if err := e.step(ctx, m, Input{Report: &r}); err != nil {
			e.c.Log.Error("attempt not ended", "workflow", w.Meta.Name, "err", err)
		}
		return
	}
	m.session.send(Command{Assign: &Assign{
		Assignment: at, Name: a.Name, Kind: a.Kind, Options: options, Timeout: time.Duration(a.Timeout),
		WorkflowName: w.Meta.Name, Actions: len(w.Status.Actions),
	}})
}

// finish is what the worker does with the machine after the workflow.
func finish(w *Workflow) *Finish {
	last := w.Status.Actions[len(w.Status.Actions)-1].Kind
	switch {
	case w.Status.State != StateSucceeded:
		return &Finish{What: FinishWait, Reason: "workflow " + w.Meta.Name + " ended: " + w.Status.Message}
	case last == KindPowerOff:
		return &Finish{What: FinishPowerOff}
	default:
		return &Finish{What: FinishReboot}
	}
}

// Connected reports whether a worker of the machine is connected.
func (e *Engine) Connected(uid string) bool {
	m := e.machine(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.session != nil
}

// WorkerLeft is when the connection of the machine's last worker ended.
func (e *Engine) WorkerLeft(uid string) time.Time {
	m := e.machine(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	return e.workerLeft(m)
}

// workerLeft is this engine's start for a machine that has had no worker since, so
// that nobody is called lost before there was time to come back. The caller holds m.mu.
func (e *Engine) workerLeft(m *machine) time.Time {
	if m.left.IsZero() {
		return e.began
	}
	return m.left
}

// Stats counts what the engine has in hand.
type Stats struct {
	Workers int // connected
	Active  int // workflows that have not ended
}

// Stats counts the connected workers and the active workflows.
func (e *Engine) Stats() Stats {
	var s Stats
	for _, m := range append(e.all(), e.strangers.machines()...) {
		m.mu.Lock()
		if m.session != nil {
			s.Workers++
		}
		if m.active != "" {
			s.Active++
		}
		m.mu.Unlock()
	}
	return s
}

// AllProgress is the latest progress of every active workflow that reported any.
func (e *Engine) AllProgress() []Progress {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.progress))
}

// Progress is the latest progress of a workflow, if it reported any.
func (e *Engine) Progress(workflow string) (Progress, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok := e.progress[workflow]
	return p, ok
}
