package workflow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// lastEvents is how many of the last packets and steps are told.
const lastEvents = 6

// words is an event as it is told here: when, the Reason, the sentence.
func (s *Snapshot) words(e Event) string {
	text := fmt.Sprintf("%s (%s, %s", e.Text(), e.Reason, ago(e.Last, s.Now))
	if e.Count > 1 {
		text += fmt.Sprintf(", %d times", e.Count)
	}
	return strings.Join(strings.Fields(text), " ") + ")"
}

// lines are what is known, the more important first.
func (s *Snapshot) lines(next hardware.Next) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	st := &s.hw().Status
	state := fmt.Sprintf("state: %s %s", s.state(), lasts(s.since(), s.Now))
	if d := st.Deadline; !d.IsZero() && s.state().Moving() {
		if d.After(s.Now) {
			state += ", to be left within " + lasting(d.Sub(s.Now))
		} else {
			state += ", which should have ended " + ago(d, s.Now)
		}
	}
	add("%s", state)
	out = append(out, s.workflowLines()...)
	out = append(out, s.bootLines()...)
	add("next boot: %s, because %s", next.Target, next.Reason.Sentence())
	if s.state() != hardware.StateRetired {
		for _, p := range s.places() {
			add("%s", p.text)
		}
		if len(s.hw().Spec.Interfaces) == 0 {
			add("the record has no NIC")
		}
	}
	return append(out, s.switchLines()...)
}

func (s *Snapshot) workflowLines() []string {
	w := s.Workflow
	if w == nil {
		return nil
	}
	head := fmt.Sprintf("workflow %s (template %s%s): %s", w.Meta.Name, w.Spec.Template, purpose(w.Spec.Purpose), orWord(string(w.Status.State), string(StatePending)))
	switch {
	case w.Status.State.Ended():
		head += " " + ago(w.Status.Finished, s.Now)
	case !w.Status.Started.IsZero():
		head += " " + lasts(w.Status.Started, s.Now)
	default:
		head += ", created " + ago(w.Meta.Created, s.Now)
	}
	if w.Status.Message != "" {
		head += ": " + w.Status.Message
	}
	out := []string{head}
	if a, n := s.action(); a != nil {
		line := fmt.Sprintf("action %d of %d: %s (%s), attempt %d of %d", n, len(w.Status.Actions), a.Name, a.Kind, max(len(a.Attempts), 1), max(a.Retries+1, len(a.Attempts)))
		if t := a.last(); t != nil && t.State != StateRunning {
			line += fmt.Sprintf(", the last one %s %s", t.State, ago(t.Finished, s.Now))
			if t.Message != "" {
				line += ": " + t.Message
			}
		} else {
			line += s.progressWords()
		}
		out = append(out, line)
	}
	switch {
	case w.Status.State.Ended():
	case s.WorkerConnected:
		out = append(out, "worker: connected")
	case w.Status.State == StateRunning:
		out = append(out, "worker: gone, "+ago(s.WorkerLeft, s.Now))
	}
	return out
}

func purpose(p Purpose) string {
	if p == PurposeNone {
		return ""
	}
	return ", for " + string(p)
}

func (s *Snapshot) bootLines() []string {
	b := s.Boot
	if b == nil {
		return append([]string{"last boot: none was ever seen"}, s.eventLines()...)
	}
	line := fmt.Sprintf("last boot: %s, began %s on %s", orWord(string(b.Firmware), "unknown firmware"), ago(b.Started, s.Now), b.MAC)
	if b.Client.IsValid() {
		line += fmt.Sprintf(", address %s", b.Client)
	}
	if b.Next.Netboots() && b.Chain == hardware.ChainGRUB {
		line += ", through shim and GRUB"
	}
	line += fmt.Sprintf(", came to %q %s", b.Phase.Name(), ago(b.LastMoved(), s.Now))
	if b.Closed {
		line += ", is over"
	} else if b.Phase < hardware.PhaseWorker && b.Next.Target == hardware.TargetWorker {
		if b.Deadline.After(s.Now) {
			line += ", its token is good for " + lasting(b.Deadline.Sub(s.Now).Round(time.Second))
		} else {
			line += ", its token has expired"
		}
	}
	return append([]string{line}, s.eventLines()...)
}

// eventLines are the last packets and steps.
func (s *Snapshot) eventLines() []string {
	all := slices.DeleteFunc(s.relevant(), func(e Event) bool { return clerical(e.Reason) })
	all = all[max(len(all)-lastEvents, 0):]
	var out []string
	for _, e := range all {
		out = append(out, "seen: "+s.words(e))
	}
	return out
}

// clerical reports whether a Reason tells of records and requests, and not of the
// machine.
func clerical(r hardware.Reason) bool {
	for _, p := range []string{"record-", "issue-", "api-", "signed-", "session-"} {
		if strings.HasPrefix(string(r), p) {
			return true
		}
	}
	return r == hardware.ReasonStateChanged || r == hardware.ReasonWorkflowCreated
}

// switchLines are the switches that are not as they are by default, and who has the
// machine.
func (s *Snapshot) switchLines() []string {
	var out []string
	add := func(on bool, format string, args ...any) {
		if on {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	spec, st := &s.hw().Spec, &s.hw().Status
	add(!spec.Netboot.PXE(), "switch: spec.netboot.allowPXE is false: it gets an address and no boot program")
	add(!spec.Netboot.Workflow(), "switch: spec.netboot.allowWorkflow is false: no workflow can begin")
	add(spec.Netboot.IPXE != nil, "switch: spec.netboot.ipxe is set: the record's own script is booted, whatever else there is to do")
	add(spec.Netboot.Program != "", "switch: spec.netboot.program is %s: it is given that boot program", spec.Netboot.Program)
	add(spec.Netboot.SecureBoot == hardware.SecureBootOn || spec.Netboot.SecureBoot == hardware.SecureBootOff, "switch: spec.netboot.secureBoot is %s", spec.Netboot.SecureBoot)
	add(spec.Protect, "switch: spec.protect is true: nothing is written to its disks")
	add(st.Hold, "on hold: %s", orWord(st.HoldReason.Sentence(), "waits for a human"))
	add(st.Maintenance, "in maintenance%s: it is not picked for a claim, and nobody is told that it is late", note(st.MaintenanceNote))
	add(st.Unhealthy != "", "unhealthy: its last owner said: %s", st.Unhealthy)
	if r := st.Reserved; r != nil {
		add(true, "kept %s", reservedWords(r))
	}
	if p := st.Stopping; p.Awaited() {
		add(true, "claim %s ended %s; whether its system stopped is being found out until %s", p.Claim, ago(p.Since, s.Now), clock(p.Until))
	} else if p != nil {
		add(true, "claim %s ended %s: %s", p.Claim, ago(p.Since, s.Now), stoppedWords(p.Stopped.By))
	}
	add(st.Failures > 0, "failures in a row: %d of %d before it is in quarantine", st.Failures, hardware.Quarantine)
	if n := &st.Netboots; n.Count > 0 && n.Target == hardware.TargetWorker && !st.Hold {
		add(true, "boots in vain: %s; after %d it is stopped", loopWords(n), hardware.NetbootLimit)
	}
	for _, c := range st.Conflicts {
		add(!c.Accepted.IsZero(), "accepted %s: %s", ago(c.Accepted, s.Now), c.Detail)
	}
	if c := st.Claim; c != nil {
		add(true, "claimed by %s (%s) %s", orWord(c.Owner, "somebody"), c.ID, lasts(c.Since, s.Now))
	}
	if w := st.Wiped; w != nil {
		add(true, "wiped and read back: %d disks, %s", len(w.Disks), ago(w.At, s.Now))
	}
	return append(out, s.powerLines()...)
}

func (s *Snapshot) powerLines() []string {
	p := &s.hw().Status.Power
	driver := s.Power
	if c := s.hw().Spec.Power; driver == "" && c != nil {
		driver = c.Driver
	}
	if s.byHand() {
		line := "power: a person switches it"
		if p.Asked != "" {
			line += fmt.Sprintf("; asked for %s %s", p.Asked, ago(p.AskedAt, s.Now))
		}
		return []string{line}
	}
	line := fmt.Sprintf("power: %s says %s", driver, orWord(string(p.State), "nothing yet"))
	if !p.Checked.IsZero() {
		line += ", " + ago(p.Checked, s.Now)
	}
	if p.Asked != "" {
		line += fmt.Sprintf("; asked for %s %s", p.Asked, ago(p.AskedAt, s.Now))
	}
	if p.Error != "" {
		line += "; failed: " + p.Error
	}
	return []string{line}
}
