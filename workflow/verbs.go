package workflow

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// change decides and writes one change of a machine's own value, again where
// somebody else wrote it meanwhile. what returns the event, nil for "nothing to do".
// The caller holds m.mu.
func (e *Engine) change(ctx context.Context, uid string, what func(h *hardware.Hardware, mc *Machine) (*Event, error)) error {
	return e.changes(ctx, uid, func(h *hardware.Hardware, mc *Machine) ([]Event, error) {
		ev, err := what(h, mc)
		if ev == nil {
			return nil, err
		}
		return []Event{*ev}, err
	})
}

// changes is change with several events; none is "nothing to do".
func (e *Engine) changes(ctx context.Context, uid string, what func(h *hardware.Hardware, mc *Machine) ([]Event, error)) error {
	for {
		h, mc, err := e.load(ctx, uid)
		if err != nil {
			return err
		}
		state := mc.Status.State
		ev, err := what(h, mc)
		if err != nil || len(ev) == 0 {
			return err
		}
		if mc.Status.State != state {
			mc.Status.Since = e.c.Now()
		}
		if !mc.Status.State.Moving() {
			mc.Status.Deadline = time.Time{}
		}
		err = e.c.Store.Commit(ctx, &Change{Machine: mc, Events: ev})
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

func (e *Engine) told(h *hardware.Hardware, r hardware.Reason, note string) *Event {
	ev := e.event(h, "", r, hardware.PlainText(note, 512))
	return &ev
}

// cannot is a verb that the machine's state forbids, as *hardware.Invalid.
func cannot(h *hardware.Hardware, verb, format string, args ...any) error {
	c := hardware.NewChecker("hardware", h.Meta.Name)
	c.Addf(verb, format, args...)
	return c.Err()
}

// Accept vouches for a machine: a pending one becomes available, one in quarantine may
// be picked again, and one of which it was in doubt whether it is the machine of its
// record is. Anything else is left as it is. ErrNotFound;
// *hardware.Invalid for a retired one.
func (e *Engine) Accept(ctx context.Context, uid, note string) error {
	err := e.accept(ctx, uid, note)
	if err == nil {
		e.startByRule(ctx, uid)
	}
	return err
}

func (e *Engine) accept(ctx context.Context, uid, note string) error {
	m := e.machine(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	if done, err := e.vouch(ctx, m, note); done || err != nil {
		return err
	}
	if h, err := e.c.Store.Hardware(ctx, uid); err == nil && h.Status.Hold && h.Status.HoldReason == hardware.ReasonNotStopped {
		if err := e.hold(ctx, m, false); err != nil { // that human knows that it stopped
			return err
		}
	}
	return e.change(ctx, uid, func(h *hardware.Hardware, mc *Machine) (*Event, error) {
		s := &mc.Status
		vouched := s.State != hardware.StateRetired && s.Vouch(e.c.Now())
		if !s.Hold && s.Netboots.Looping() { // who sees to it is there; one on hold is taken off it
			s.Netboots, vouched = hardware.Netboots{}, true
		}
		switch {
		case s.State == hardware.StateRetired:
			return nil, cannot(h, "accept", "the machine is retired (delete the record and register it anew: rackstrap hardware delete %s)", h.Meta.Name)
		case s.Failures > 0 || s.Unhealthy != "" || missing(h, s.Dirty):
			// what a release misses was taken out of the machine, says a human
			s.Failures, s.Unhealthy, s.Dirty = 0, "", present(h, s.Dirty)
		case vouched:
		default:
			return nil, nil
		}
		return e.told(h, hardware.ReasonAccepted, note), nil
	})
}

// vouch is Accept of a pending machine: a human stands for what it reported, so its
// other NICs join its record, and its worker restarts. done is false for any other one.
// The caller holds m.mu.
func (e *Engine) vouch(ctx context.Context, m *machine, note string) (done bool, err error) {
	nics := true
	for {
		h, mc, err := e.load(ctx, m.uid)
		if err != nil || mc.Status.State != hardware.StatePending {
			return false, err
		}
		s := &mc.Status
		ch := &Change{Machine: mc}
		detail := note
		if more := e.ownNICs(h); nics && len(more) > 0 {
			h.Spec.Interfaces = append(slices.Clone(h.Spec.Interfaces), more...)
			ch.Hardware = h
			detail = strings.TrimPrefix(note+"; ", "; ") + fmt.Sprintf("%d more of its NICs join the record", len(more))
		}
		s.Rule = e.provisionedBy(h, mc)
		s.Vouch(e.c.Now())
		s.State, s.Since, s.Failures, s.Netboots = hardware.StateAvailable, e.c.Now(), 0, hardware.Netboots{}
		ch.Events = []Event{*e.told(h, hardware.ReasonAccepted, detail)}
		err = e.c.Store.Commit(ctx, ch)
		var taken *hardware.Invalid
		switch {
		case errors.Is(err, ErrConflict):
			continue
		case errors.As(err, &taken) && nics:
			nics = false // another record has one of them since
			continue
		case err != nil:
			return false, err
		}
		e.restart(m, "this machine was accepted")
		return true, nil
	}
}

// ownNICs are the NICs of a discovered machine, by its facts, that no record has. The
// USB NIC to a BMC has one address in whole series of machines.
func (e *Engine) ownNICs(h *hardware.Hardware) []hardware.NIC {
	if h.Status.Discovered.IsZero() || h.Facts == nil || e.c.Alike == nil {
		return nil
	}
	taken := map[hardware.MAC]bool{{}: true}
	for _, o := range append(e.c.Alike(&hardware.Facts{NICs: h.Facts.NICs}), h) {
		for _, n := range o.Spec.Interfaces {
			taken[n.MAC] = true
		}
	}
	var out []hardware.NIC
	for _, n := range h.Facts.NICs {
		mac := n.MAC
		if !n.Permanent.IsZero() {
			mac = n.Permanent
		}
		usb := strings.HasPrefix(n.Driver, "cdc_") || strings.HasPrefix(n.Driver, "rndis_")
		if taken[mac] || mac.IsMulticast() || usb || len(h.Spec.Interfaces)+len(out) >= hardware.MaxInterfaces {
			continue
		}
		taken[mac] = true
		out = append(out, hardware.NIC{MAC: mac})
	}
	return out
}

// present are the disks of d that are in the machine, by its facts; all of them where
// it has none.
func present(h *hardware.Hardware, d []hardware.DiskRef) []hardware.DiskRef {
	if h.Facts == nil {
		return d
	}
	return slices.DeleteFunc(slices.Clone(d), func(d hardware.DiskRef) bool {
		return !slices.ContainsFunc(h.Facts.Disks, func(x hardware.DiskFact) bool { return d.Is(hardware.DiskRef{Path: x.Path, Serial: x.Serial}) })
	})
}

func missing(h *hardware.Hardware, d []hardware.DiskRef) bool { return len(present(h, d)) < len(d) }

// SetMaintenance says that a human works on the machine, or does no more.
func (e *Engine) SetMaintenance(ctx context.Context, uid string, on bool, note string) error {
	m := e.machine(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	note = hardware.PlainText(note, 512)
	return e.change(ctx, uid, func(h *hardware.Hardware, mc *Machine) (*Event, error) {
		s := &mc.Status
		if s.Maintenance == on && (s.MaintenanceNote == note || !on) {
			return nil, nil
		}
		s.Maintenance, s.MaintenanceNote = on, note
		if !on {
			s.MaintenanceNote = ""
			return e.told(h, hardware.ReasonMaintenanceEnded, note), nil
		}
		return e.told(h, hardware.ReasonMaintenance, note), nil
	})
}

// Retire ends a machine's life in the appliance. One that has an owner, a running
// workflow or data that was not wiped is refused, unless force is set: then skipped
// names what was passed over. ErrNotFound, *hardware.Invalid, ErrInUse.
func (e *Engine) Retire(ctx context.Context, uid string, force bool, note string) (skipped []string, err error) {
	return e.leave(ctx, uid, force, note, hardware.ReasonRetiredNow)
}

// Drop makes a machine's record free to be deleted, whatever it is doing: its
// workflow ends at once, its claim ends, its worker is sent away. skipped names what
// was passed over, in sentences.
func (e *Engine) Drop(ctx context.Context, uid, why string) (skipped []string, err error) {
	return e.leave(ctx, uid, true, why, hardware.ReasonDropped)
}

func (e *Engine) leave(ctx context.Context, uid string, force bool, note string, r hardware.Reason) ([]string, error) {
	m := e.machine(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	h, mc, err := e.load(ctx, uid)
	if err != nil {
		return nil, err
	}
	skipped := left(h, &mc.Status, m.active)
	if len(skipped) > 0 && !force {
		return nil, fmt.Errorf("hardware %q: %s: %w (release it first: rackstrap release %s; or say --force)", h.Meta.Name, skipped[0], ErrInUse, h.Meta.Name)
	}
	// The state first: a retired machine is given no wipe when its workflow ends.
	err = e.changes(ctx, uid, func(h *hardware.Hardware, mc *Machine) ([]Event, error) {
		s := &mc.Status
		if s.State == hardware.StateRetired && r == hardware.ReasonRetiredNow {
			return nil, nil
		}
		ev := []Event{*e.told(h, r, note)}
		ev = append(ev, e.endClaim(ctx, m, h, s, hardware.StoppedByHold)...)
		ev = append(ev, e.proven(h, s, hardware.StoppedByHold, "")...)
		s.State, s.Reserved, s.AwaitOS, s.Before, s.Installing = hardware.StateRetired, nil, false, "", ""
		return ev, nil
	})
	if err != nil {
		return nil, err
	}
	if m.session != nil {
		m.session.close("the machine was retired")
		m.session = nil
	}
	if m.active != "" {
		why := "the machine was retired"
		if err := e.step(ctx, m, Input{Abort: &why}); err != nil {
			return nil, err
		}
	}
	return skipped, nil
}

// left is what stands against a machine's going, in sentences.
func left(h *hardware.Hardware, s *hardware.Status, active string) []string {
	var out []string
	if active != "" {
		out = append(out, fmt.Sprintf("its workflow %q runs", active))
	}
	if s.Claim != nil {
		out = append(out, fmt.Sprintf("%s has it (claim %s)", s.Claim.Owner, s.Claim.ID))
	}
	if Unwiped(s) {
		out = append(out, "its disks were not wiped")
	}
	if h.Spec.Protect {
		out = append(out, "it is protected")
	}
	return out
}

// Unwiped reports whether a machine's disks may hold what somebody wrote here.
func Unwiped(s *hardware.Status) bool {
	switch s.State {
	case hardware.StateProvisioning, hardware.StateProvisioned, hardware.StateReleasing, hardware.StateFailed:
		return true
	}
	return len(s.Dirty) > 0
}

// PhoneHome notes that the system which a workflow installed is up. It is told again
// at will; what an earlier install says changes nothing. ErrNotFound.
func (e *Engine) PhoneHome(ctx context.Context, uid, workflow string, from netip.Addr) error {
	m := e.machine(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	return e.change(ctx, uid, func(h *hardware.Hardware, mc *Machine) (*Event, error) {
		s := &mc.Status
		if s.Install == nil || s.Install.Workflow != workflow || !s.OSUp.IsZero() {
			return nil, nil
		}
		now := e.c.Now()
		s.OSUp, s.Netboots = now, hardware.Netboots{}
		if s.AwaitOS {
			s.AwaitOS, s.State, s.Failures = false, hardware.StateProvisioned, 0
		}
		boot := ""
		if mc.Boot != nil {
			boot = mc.Boot.ID
		}
		ev := e.event(h, boot, hardware.ReasonOSUp, "phoned home from "+from.String())
		ev.Workflow = workflow
		if w, err := e.c.Store.Workflow(ctx, workflow); err == nil && !w.Status.Finished.IsZero() {
			ev.Took = hardware.Duration(now.Sub(w.Status.Finished))
		}
		return &ev, nil
	})
}

// turns are the events of a change of state that a workflow brought about.
func (e *Engine) turns(h *hardware.Hardware, was, is *hardware.Status, w *Workflow) []Event {
	var out []Event
	add := func(r hardware.Reason, detail string) {
		ev := e.event(h, "", r, detail)
		ev.Workflow = w.Meta.Name
		out = append(out, ev)
	}
	switch {
	case !w.Status.State.Ended() || !w.releases():
	case is.State == hardware.StateAvailable:
		add(hardware.ReasonWiped, describe(is.Wiped))
	case w.Status.State == StateSucceeded:
		_, missing := w.proof(h.Facts, was.Dirty)
		add(hardware.ReasonNotWiped, notWiped(h, missing))
	}
	if is.Quarantined() && !was.Quarantined() {
		add(hardware.ReasonQuarantined, is.QuarantinedFor())
	}
	if was.State != is.State {
		add(hardware.ReasonStateChanged, fmt.Sprintf("%s, was %s", is.State, was.State))
	}
	return out
}

// notWiped says what a release left, and what to do where a disk is gone.
func notWiped(h *hardware.Hardware, missing []hardware.DiskRef) string {
	if len(missing) == 0 {
		return "its template wipes nothing in mode verified, or writes besides"
	}
	var names []string
	for _, d := range missing[:min(len(missing), 8)] {
		names = append(names, strings.TrimSpace(d.Path+" "+d.Serial))
	}
	return "not read back: " + strings.Join(names, ", ") + " (if that disk was taken out: rackstrap accept " + h.Meta.Name + ", then release it again)"
}

// describe is a wipe in words.
func describe(w *hardware.Wiped) string {
	if w == nil {
		return ""
	}
	var bytes, verified int64
	for _, d := range w.Disks {
		bytes += d.Bytes
		verified += d.Verified
	}
	return fmt.Sprintf("%d disks, %d MiB, of which %d MiB were read back", len(w.Disks), bytes>>20, verified>>20)
}
