package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// maxWorkflow bounds a new workflow in bytes of JSON: half of a store's value, so
// that its attempts have room.
const maxWorkflow = 512 << 10

// CreateWorkflow renders a template for a machine and makes it the machine's
// active workflow; a connected worker starts at once. An empty name is made from
// the machine's and the template's. It returns *hardware.Invalid, ErrExists,
// ErrInUse (the machine has an active workflow), or the store's error.
func (e *Engine) CreateWorkflow(ctx context.Context, name string, spec WorkflowSpec) (*Workflow, error) {
	switch spec.Purpose {
	case PurposeNone, PurposeInstall, PurposeInspect:
	default: // a release passes checks that are not for others; see Release
		c := hardware.NewChecker("workflow", name)
		c.Addf("spec.purpose", "%.40q cannot be asked for (install, inspect or empty; to give a machine back type: %s)", spec.Purpose, typeRelease(spec.Hardware))
		return nil, c.Err()
	}
	w, err := e.prepare(ctx, name, spec)
	if err != nil {
		return nil, err
	}
	m := e.machine(w.Status.HardwareUID)
	m.mu.Lock()
	defer m.mu.Unlock()
	return w, e.start(ctx, m, w)
}

// prepare makes the workflow, pending.
func (e *Engine) prepare(ctx context.Context, name string, spec WorkflowSpec) (*Workflow, error) {
	now := e.c.Now()
	if name == "" {
		id := strings.ToLower(NewID(now))
		name = spec.Template[:min(len(spec.Template), 24)] + "-" + spec.Hardware[:min(len(spec.Hardware), 24)] + "-" + id[len(id)-8:]
	}
	c := hardware.NewChecker("workflow", name)
	c.Add("metadata.name", hardware.ValidName(name))
	h, err := e.c.HardwareByName(ctx, spec.Hardware)
	if errors.Is(err, ErrNotFound) {
		c.Addf("spec.hardware", "there is no hardware %q (see `rackstrap hardware list`)", spec.Hardware)
	} else if err != nil {
		return nil, err
	}
	t, err := e.c.Templates(ctx, spec.Template)
	if errors.Is(err, ErrNotFound) {
		c.Addf("spec.template", "there is no template %q (see `rackstrap template list`)", spec.Template)
	} else if err != nil {
		return nil, err
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	actions, err := Render(t, spec.Params, h)
	if err != nil {
		return nil, err
	}
	w := &Workflow{
		Meta: hardware.Meta{Name: name, Created: now},
		Spec: spec,
		Status: Status{
			State: StatePending, HardwareUID: h.Meta.UID, Timeout: t.Spec.Timeout, Actions: actions,
			Message: "waits for the machine to netboot", SecretParams: t.secrets(),
		},
	}
	w.Spec.Params = maps.Clone(spec.Params)
	for i := range actions {
		// What is wrong is better known before the disk is wiped. That the image does not
		// fit is found here, and that a seed cannot be made.
		_, err := e.c.Resolve(ctx, h, w, &actions[i])
		c.Add(fmt.Sprintf("actions[%d] (%s)", i, actions[i].Name), err)
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	if b, err := json.Marshal(w); err != nil || len(b) > maxWorkflow {
		c.Addf("spec.params", "and the rendered actions have %d bytes together, the limit is %d", len(b), maxWorkflow)
		return nil, c.Err()
	}
	return w, nil
}

// start writes the new workflow if the machine may have it. The caller holds m.mu.
func (e *Engine) start(ctx context.Context, m *machine, w *Workflow) error {
	for {
		h, mc, err := e.load(ctx, m.uid)
		if err != nil {
			return err
		}
		if e.isActive(ctx, mc) {
			return fmt.Errorf("hardware %q has the active workflow %q: %w (wait for it, or type: rackstrap workflow cancel %s)", h.Meta.Name, mc.Status.Workflow, ErrInUse, mc.Status.Workflow)
		}
		if err := mayStart(h, w); err != nil {
			return err
		}
		mc.Status.Workflow = w.Meta.Name
		if w.installs() || w.releases() {
			mc.Status.AwaitOS = false
		}
		mc.Status.Power.Tries = 0
		mc.Status.Rule = "" // its workflow is this one, or not wanted any more
		mc.Status.Netboots = hardware.Netboots{}
		follow(mc, w, h.Facts, e.c.Now())
		ev := e.event(h, "", hardware.ReasonWorkflowCreated, fmt.Sprintf("template %s, %d actions", w.Spec.Template, len(w.Status.Actions)))
		ev.Workflow = w.Meta.Name
		w.Meta.Revision = 0
		err = e.c.Store.Commit(ctx, &Change{Machine: mc, Workflow: w, Events: []Event{ev}})
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		m.active, m.wake = w.Meta.Name, e.c.Now()
		e.restart(m, waits)
		if m.session == nil || m.session.scope != hardware.ScopeWork {
			e.netboot(m.uid, w.Meta.Name)
			return nil
		}
		// The workflow exists; what fails from here on is tried again by the clock.
		if err := e.step(context.WithoutCancel(ctx), m, Input{Worker: &WorkerInput{Boot: m.session.boot}}); err != nil {
			e.c.Log.Error("workflow not started at once", "workflow", w.Meta.Name, "err", err)
		}
		return nil
	}
}

// mayStart says why a machine may not have this workflow now, as *hardware.Invalid.
func mayStart(h *hardware.Hardware, w *Workflow) error {
	c := hardware.NewChecker("workflow", w.Meta.Name)
	s := h.Status
	switch {
	case s.State == hardware.StateReleasing && !w.releases():
		c.Addf("spec.hardware", "%q is being released (wait for it: %s)", h.Meta.Name, typeWaitState(h.Meta.Name, hardware.StateAvailable))
	case s.State == hardware.StatePending:
		c.Addf("spec.hardware", "%q is pending (accept it first: %s)", h.Meta.Name, typeAccept(h.Meta.Name))
	case s.State == hardware.StateRetired:
		c.Addf("spec.hardware", "%q is retired", h.Meta.Name)
	case w.releases():
	case s.Maintenance && w.Spec.Purpose != PurposeInspect:
		c.Addf("spec.hardware", "%q is in maintenance (%s; when that is over, type: %s)", h.Meta.Name, orNoNote(s.MaintenanceNote), typeMaintained(h.Meta.Name))
	case s.Quarantined():
		c.Addf("spec.hardware", "%q is in quarantine: %s (look into it, then type: %s)", h.Meta.Name, s.QuarantinedFor(), typeAccept(h.Meta.Name))
	case s.Hold:
		c.Addf("spec.hardware", "%q is on hold: %s (look into it, then type: %s)", h.Meta.Name, s.HoldReason.Sentence(), typeUnhold(h.Meta.Name))
	case s.Reserved != nil && s.Claim == nil:
		c.Addf("spec.hardware", "%q is kept for claims of %s until %s (claim it with --reuse %s, or have it wiped now: %s)", h.Meta.Name, s.Reserved.For, clock(s.Reserved.Until), s.Reserved.For, typeRelease(h.Meta.Name))
	case w.Spec.Claim != "" && (s.Claim == nil || s.Claim.ID != w.Spec.Claim):
		c.Addf("spec.claim", "%q does not hold %q (see: rackstrap claim list)", w.Spec.Claim, h.Meta.Name)
	case s.Claim != nil && w.Spec.Claim == "" && w.writesDisk():
		c.Addf("spec.claim", "%q is claimed by %s (name the claim to do it for that owner: %s)", h.Meta.Name, s.Claim.Owner, s.Claim.ID)
	}
	switch {
	case h.Spec.Protect && w.writesDisk():
		c.Addf("spec.hardware", "%q has protect: true, so nothing is written to its disks (set it to false if that is meant)", h.Meta.Name)
	case spared(h, w) != nil:
		c.Add("spec.params.disk", spared(h, w))
	case s.State == hardware.StateProvisioned && w.destroys() && !w.Spec.Reinstall && !s.KeptUnwiped():
		c.Addf("spec.reinstall", "%q is provisioned and this would destroy its disk (say reinstall: true if that is meant)", h.Meta.Name)
	}
	return c.Err()
}

func orNoNote(note string) string {
	if note == "" {
		return "nobody said why"
	}
	return note
}

// CancelWorkflow ends a workflow: at once, or when the worker has stopped the
// running action. An ended workflow is returned as it is.
func (e *Engine) CancelWorkflow(ctx context.Context, name, why string) (*Workflow, error) {
	w, err := e.c.Store.Workflow(ctx, name)
	if err != nil {
		return nil, err
	}
	m := e.machine(w.Status.HardwareUID)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.active == name {
		if err := e.step(ctx, m, Input{Cancel: &why}); err != nil {
			return nil, err
		}
	}
	return e.c.Store.Workflow(ctx, name)
}

// SetHold puts a machine on hold for a human, or takes it off.
func (e *Engine) SetHold(ctx context.Context, uid string, hold bool) error {
	m := e.machine(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	return e.hold(ctx, m, hold)
}

// hold is SetHold for a caller that holds m.mu.
func (e *Engine) hold(ctx context.Context, m *machine, hold bool) error {
	for {
		h, mc, err := e.load(ctx, m.uid)
		if err != nil {
			return err
		}
		if mc.Status.Hold == hold {
			return nil
		}
		if s := &mc.Status; s.HoldReason == hardware.ReasonNotStopped && s.State == hardware.StateFailed && s.Claim == nil && !s.KeptUnwiped() {
			// its wipe waited for this human until it was given up
			s.State, s.Since, s.Deadline = hardware.StateReleasing, e.c.Now(), e.c.Now().Add(StartWithin)
		}
		if st := mc.Status.Stopping; !hold && st.Awaited() {
			again := *st // the time that it was on hold does not count
			again.Until = e.c.Now().Add(e.stopWithin())
			mc.Status.Stopping = &again
		}
		mc.Status.Hold, mc.Status.HoldReason, mc.Status.HoldSince = hold, "", time.Time{}
		detail := "hold ended by an operator"
		if hold {
			mc.Status.HoldReason, detail = hardware.ReasonOnHold, "held by an operator"
			mc.Status.HoldSince = e.c.Now()
		} else {
			mc.Status.Netboots = hardware.Netboots{}
		}
		ev := e.event(h, "", hardware.ReasonStateChanged, detail)
		err = e.c.Store.Commit(ctx, &Change{Machine: mc, Events: []Event{ev}})
		if err == nil && !hold && m.active != "" && m.session == nil {
			e.netboot(m.uid, m.active)
		} else if err == nil && !hold {
			e.releaseNext(ctx, m)
		}
		if err == nil && !hold && mc.Status.Stopping.Awaited() {
			m.stopWake = e.c.Now()
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}
