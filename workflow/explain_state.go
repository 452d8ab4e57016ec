package workflow

import (
	"fmt"

	"github.com/rackstrap/rackstrap/hardware"
)

// isBooting is a boot on its way to the worker, or one that ended on it.
func (s *Snapshot) isBooting() (verdict, bool) {
	b := s.boot()
	if b == nil || b.Phase >= hardware.PhaseWorker || b.LastMoved().Before(s.poweredOn()) {
		return verdict{}, false
	}
	if d, ok := s.diagnose(); ok {
		return verdict{
			why: fmt.Sprintf("does not get beyond %q: %s", b.Phase.Name(), s.words(d.event)), fix: d.fix, do: []string{d.command(s), typeFollow(s.name())},
		}, true
	}
	moved := ago(b.LastMoved(), s.Now)
	if s.Now.Sub(b.LastMoved()) < BootStuckAfter {
		return verdict{why: fmt.Sprintf("boots: its last step was %q, %s", b.Phase.Name(), moved), do: []string{typeFollow(s.name())}}, true
	}
	return verdict{
		why: fmt.Sprintf("hangs in its boot: its last step was %q, %s, and nothing came since", b.Phase.Name(), moved),
		fix: s.bootAdvice(b), do: s.start(),
	}, true
}

// start are the commands that make the machine boot anew.
func (s *Snapshot) start() []string {
	if s.byHand() {
		return []string{typeFollow(s.name())}
	}
	return []string{typePower(s.name(), "status"), typePower(s.name(), "cycle"), typeFollow(s.name())}
}

// isAway is a workflow that waits for a machine which is not there.
func (s *Snapshot) isAway() (verdict, bool) {
	w := s.active()
	if w == nil {
		return verdict{}, false
	}
	b := s.boot()
	if (b != nil && b.Phase >= hardware.PhaseWorker) || (b == nil && w.Status.State == StateRunning) {
		detail, fix := s.lostText()
		left := latest(s.WorkerLeft, w.Status.Started)
		return verdict{why: fmt.Sprintf("lost its worker %s: %s", ago(left, s.Now), detail), fix: fix, do: s.start()}, true
	}
	if d, ok := s.diagnose(); ok {
		return verdict{why: "asks for an address and cannot boot: " + s.words(d.event), fix: d.fix, do: []string{d.command(s), typeFollow(s.name())}}, true
	}
	if f, ok := s.noAddress(); ok {
		detail, fix := f.text()
		return verdict{why: "cannot be answered by DHCP: " + detail, fix: fix, do: []string{typeGet(s.name()), typeSubnets}}, true
	}
	p := &s.hw().Status.Power
	if p.Error != "" {
		detail, fix := s.powerFailed().text()
		return verdict{why: "cannot be switched: " + detail, fix: fix, do: []string{typePower(s.name(), "status"), typePower(s.name(), "cycle")}}, true
	}
	detail, fix := s.neverSeenText()
	if s.byHand() {
		return verdict{why: "waits to be switched on: " + detail, fix: fix, do: []string{typeStrangers, typeFollow(s.name())}}, true
	}
	if on := s.poweredOn(); !on.IsZero() && s.Now.Sub(on) < NeverSeenAfter {
		return verdict{why: fmt.Sprintf("starts: its power was asked for %s (%s), and no packet came yet", ago(on, s.Now), p.Asked), do: []string{typeFollow(s.name())}}, true
	}
	return verdict{why: "is not seen on the network: " + detail, fix: fix, do: append([]string{typeStrangers}, s.start()...)}, true
}

func (s *Snapshot) isAwaitingOS() (verdict, bool) {
	if !s.hw().Status.AwaitOS {
		return verdict{}, false
	}
	since := s.noOS()[0].since
	v := verdict{why: fmt.Sprintf("restarts into its system: everything was written %s, and it is provisioned when that phones home", ago(since, s.Now)), do: []string{typeFollow(s.name())}}
	if s.Now.Sub(since) >= OSUpAfter {
		_, v.fix = s.noOSText()
		v.why = fmt.Sprintf("does not come up: everything was written %s, and its system has not phoned home", ago(since, s.Now))
		v.do = append(s.start(), typeRelease(s.name()))
	}
	return v, true
}

func (s *Snapshot) isFailed() (verdict, bool) {
	if s.state() != hardware.StateFailed && !s.hw().Status.Quarantined() {
		return verdict{}, false
	}
	detail, fix := s.failed().text()
	v := verdict{why: fmt.Sprintf("failed %s: %s", ago(s.since(), s.Now), detail), fix: fix, do: []string{typeTimeline(s.name())}}
	if s.hw().Status.Quarantined() {
		q, qfix := s.quarantined().text()
		v.why = fmt.Sprintf("is in quarantine and is not picked for anything: %s", q)
		if s.hw().Status.Failures > 0 {
			v.why += "; the last: " + detail
		}
		v.fix, v.do = qfix, append(v.do, typeAccept(s.name()))
		return v, true
	}
	if again := s.again(); again != "" {
		v.do = append(v.do, again)
	}
	v.do = append(v.do, typeRelease(s.name()))
	return v, true
}

// again is the command that does the last install once more; empty where it cannot
// be said in one line.
func (s *Snapshot) again() string {
	if w := s.Workflow; w != nil && w.installs() && w.Spec.Purpose != PurposeRelease {
		if image, ok := w.Spec.Params["image"].(string); ok && hardware.ValidName(image) == nil {
			return typeProvision(s.name(), image)
		}
	}
	return ""
}

// isCustom is a machine that boots what the operator wrote.
func (s *Snapshot) isCustom() (verdict, bool) {
	if s.next().Target != hardware.TargetCustom {
		return verdict{}, false
	}
	if d, ok := s.diagnose(); ok {
		return verdict{why: "cannot boot its record's own iPXE script: " + s.words(d.event), fix: d.fix, do: []string{d.command(s), typeFollow(s.name())}}, true
	}
	return verdict{why: "boots its record's own iPXE script (spec.netboot.ipxe), and nothing of ours", do: []string{typeGet(s.name())}}, true
}

// isLooping is a system that does not start.
func (s *Snapshot) isLooping() (verdict, bool) {
	if !s.looping() {
		return verdict{}, false
	}
	detail, fix := s.diskLoop().text()
	return verdict{why: "does not start from its disk: " + detail, fix: fix, do: []string{typeTimeline(s.name()), typeAccept(s.name())}}, true
}

// isStopping is a machine that was given back and whose system may still run.
func (s *Snapshot) isStopping() (verdict, bool) {
	st := s.hw().Status.Stopping
	if !st.Awaited() || s.WorkerConnected {
		return verdict{}, false
	}
	v := verdict{
		why: fmt.Sprintf("was given back (claim %s), and its system is being stopped %s: ", st.Claim, lasts(st.Since, s.Now)),
		do:  []string{typePower(s.name(), "status"), typeFollow(s.name())},
	}
	p := &s.hw().Status.Power
	switch {
	case s.byHand():
		v.why += "it is proven when its worker comes"
		v.fix, v.do = "restart it, with the network first in its boot order", []string{typeFollow(s.name())}
	case p.Error != "":
		v.why += "its controller fails: " + p.Error
		v.fix = "mend the controller, or restart the machine by hand: that its worker comes is a proof too"
	default:
		v.why += "its controller was told to switch it off and says " + orWord(string(p.State), "nothing yet")
	}
	v.why += "; without a proof it is on hold at " + clock(st.Until)
	return v, true
}

// isKept is a machine that waits for a claim of its group.
func (s *Snapshot) isKept() (verdict, bool) {
	r := s.hw().Status.Reserved
	if r == nil || s.hw().Status.Claim != nil || s.active() != nil {
		return verdict{}, false
	}
	v := verdict{why: "is kept " + reservedWords(r), do: []string{typeRelease(s.name())}}
	if r.KeepDisks {
		v.why += "; nothing on them starts, and they are wiped when the time is over"
	}
	return v, true
}

// isAdrift is a moving state that nothing moves.
func (s *Snapshot) isAdrift() (verdict, bool) {
	if !s.state().Moving() || s.active() != nil {
		return verdict{}, false
	}
	return verdict{
		why: fmt.Sprintf("is %s %s, and no workflow runs for it", s.state(), lasts(s.since(), s.Now)),
		fix: "look at its timeline for what ended it, then wipe it or install it again", do: []string{typeTimeline(s.name()), typeRelease(s.name())},
	}, true
}

func (s *Snapshot) isProvisioned() (verdict, bool) {
	if s.state() != hardware.StateProvisioned {
		return verdict{}, false
	}
	st := &s.hw().Status
	v := verdict{why: "is provisioned and boots its disk"}
	switch {
	case !st.OSUp.IsZero():
		v.why += fmt.Sprintf("; its system is up %s", lasts(st.OSUp, s.Now))
	case !st.Installed:
		v.why += "; its system was not installed by us"
	case s.Now.Sub(s.since()) < OSUpAfter:
		v.why += "; its system starts"
		v.do = []string{typeFollow(s.name())}
	default:
		v.why += "; its system was not heard of, which is normal for one with a fixed address that does not phone home"
	}
	return s.withLast(v), true
}

// isAvailable is a machine that has nothing to do.
func (s *Snapshot) isAvailable() verdict {
	st := &s.hw().Status
	v := verdict{why: "is available and has nothing to do: no workflow waits for it", do: []string{typeValidate(s.name())}}
	if c := st.Claim; c != nil {
		v.why = fmt.Sprintf("is claimed by %s (%s) and waits to be provisioned", orWord(c.Owner, "somebody"), c.ID)
	}
	if st.Maintenance {
		v.why = "is in maintenance" + note(st.MaintenanceNote) + ": it is not picked for a claim"
		v.do = []string{typeMaintained(s.name())}
		return v
	}
	return s.withLast(v)
}

// withLast adds a last workflow that did not succeed.
func (s *Snapshot) withLast(v verdict) verdict {
	w := s.Workflow
	if w == nil || (w.Status.State != StateFailed && w.Status.State != StateTimedOut) {
		return v
	}
	v.why += fmt.Sprintf("; its last workflow (%s) %s %s: %s", w.Meta.Name, w.Status.State, ago(w.Status.Finished, s.Now), orWord(w.Status.Message, "nothing is known of it"))
	v.do = append([]string{typeTimeline(s.name())}, v.do...)
	return v
}

func note(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}
