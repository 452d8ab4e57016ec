package workflow

import (
	"fmt"
	"strings"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

func (s *Snapshot) held() finding {
	st := &s.hw().Status
	f := finding{kind: hardware.IssueHeld, severity: hardware.SeverityInfo, since: st.HoldSince}
	if f.since.IsZero() {
		f.since = s.since()
	}
	f.at = f.since
	if s.active() != nil {
		f.severity = hardware.SeverityWarning
	}
	f.text = func() (string, string) {
		detail := "it waits for a human"
		if st.HoldReason != "" && st.HoldReason != hardware.ReasonOnHold {
			detail = st.HoldReason.Sentence()
		}
		return detail, "look into it, then type: " + typeUnhold(s.name())
	}
	if st.HoldReason == hardware.ReasonTokenStolen {
		f.kind, f.severity = hardware.IssueTokenStolen, hardware.SeverityError
		f.text = func() (string, string) {
			return st.HoldReason.Sentence(), "find the other machine by the address in " + typeTimeline(s.name()) + ", then type: " + typeUnhold(s.name())
		}
	}
	if st.HoldReason == hardware.ReasonNotStopped {
		f.kind, f.severity, f.text = hardware.IssueNotStopped, hardware.SeverityError, s.notStoppedText
	}
	if st.HoldReason == hardware.ReasonBootLoop {
		f.kind, f.severity = hardware.IssueBootLoop, hardware.SeverityError
		f.text = s.loopText
	}
	return f
}

// notStoppedText is a machine of which nobody knows whether its last system runs.
func (s *Snapshot) notStoppedText() (string, string) {
	detail := hardware.ReasonNotStopped.Sentence()
	if p := s.hw().Status.Stopping; p != nil {
		detail = fmt.Sprintf("claim %s ended at %s, and until %s nothing showed that its system stopped", p.Claim, clock(p.Since), clock(p.Until))
	}
	return detail, "switch it off or restart it, then type: " + typeUnhold(s.name()) + "; its wipe goes on then"
}

// loopText is a machine that was stopped because it netboots again and again.
func (s *Snapshot) loopText() (string, string) {
	n := &s.hw().Status.Netboots
	return loopWords(n), phaseAdvice(n.Phase) + "; then type: " + typeUnhold(s.name())
}

// loopWords is how often a machine booted in vain, and how far it came.
func loopWords(n *hardware.Netboots) string {
	const at = "2006-01-02 15:04 UTC" // words must not change as time passes
	if n.Count == 0 {
		return "it booted from the network again and again"
	}
	if n.Count == 1 {
		return fmt.Sprintf("one boot, at %s, did not get past %q", n.Since.UTC().Format(at), n.Phase.Name())
	}
	return fmt.Sprintf("%d boots since %s, none got past %q", n.Count, n.Since.UTC().Format(at), n.Phase.Name())
}

// looping reports whether the machine is sent to its disk again and again. One on hold
// is given nothing, and says so.
func (s *Snapshot) looping() bool {
	st := &s.hw().Status
	return !st.Hold && st.Netboots.Looping() && st.Netboots.Target == hardware.TargetDisk
}

// diskLoop is a machine whose disk does not start.
func (s *Snapshot) diskLoop() finding {
	n := &s.hw().Status.Netboots
	return finding{kind: hardware.IssueBootLoop, severity: hardware.SeverityWarning, since: n.Since, at: n.Since, text: func() (string, string) {
		return fmt.Sprintf("it was sent to its disk %d times in a row and more, and came back: its disk does not start", hardware.NetbootLimit),
			"look at its console and boot order (is the right disk in it, as UEFI or BIOS, as it was installed?); when it runs, type: " + typeAccept(s.name())
	}}
}

// disputed is a machine that may not be the one of its record.
func (s *Snapshot) disputed() finding {
	var since time.Time
	var details []string
	for _, c := range s.hw().Status.Conflicts {
		if !c.Accepted.IsZero() {
			continue
		}
		details = append(details, c.Detail)
		if since.IsZero() || c.Since.Before(since) {
			since = c.Since
		}
	}
	return finding{kind: hardware.IssueConflict, severity: hardware.SeverityWarning, since: since, at: since, text: func() (string, string) {
		return strings.Join(details, "; "),
			"correct spec.interfaces of the record, or delete the record that should not be; if it is the right machine, type: " + typeAccept(s.name())
	}}
}

func (s *Snapshot) pending() finding {
	return finding{kind: hardware.IssuePending, severity: hardware.SeverityInfo, since: s.since(), at: s.since(), text: func() (string, string) {
		detail, fix := "nobody accepted it yet, so nothing is written to its disks", "make sure that it is yours, then type: "+typeAccept(s.name())
		if !s.hw().Status.Discovered.IsZero() {
			detail = "it was discovered (" + s.made() + "); " + detail
			fix += "; to forget it: " + typeDelete(s.name())
		}
		return detail, fix
	}}
}

// made is what a machine says that it is, in short.
func (s *Snapshot) made() string {
	f := s.hw().Facts
	if f == nil {
		return "nothing is known of it"
	}
	out := strings.TrimSpace(f.Vendor + " " + f.Product)
	if out == "" {
		out = "no vendor"
	}
	if serial := hardware.Unfilled(f.Serial); serial != "" {
		return out + ", serial number " + serial
	}
	return out + ", no serial number"
}

func (s *Snapshot) quarantined() finding {
	return finding{kind: hardware.IssueQuarantined, severity: hardware.SeverityError, since: s.since(), at: s.since(), text: func() (string, string) {
		return s.hw().Status.QuarantinedFor(),
			"find the cause (" + typeTimeline(s.name()) + "), then type: " + typeAccept(s.name())
	}}
}

func (s *Snapshot) failed() finding {
	f := finding{kind: hardware.IssueProvisionFailed, severity: hardware.SeverityError, since: s.since(), at: s.since()}
	w := s.Workflow
	f.text = func() (string, string) {
		detail := "its last workflow is not kept any more"
		if w != nil {
			detail = fmt.Sprintf("workflow %q: %s", w.Meta.Name, orWord(w.Status.Message, string(w.Status.State)))
		}
		return detail, "mend that, then install it again or wipe it: " + typeRelease(s.name())
	}
	say := func(k hardware.IssueKind, detail, fix string) {
		f.kind, f.text = k, func() (string, string) { return detail, fix }
	}
	install := f.text
	switch succeeded := w != nil && w.Status.State == StateSucceeded; {
	case s.hw().Status.HoldReason == hardware.ReasonReleasedUnwiped:
		say(hardware.IssueReleaseFailed, "it was given up without a verified wipe", "wipe it: "+typeUnhold(s.name())+" && "+typeRelease(s.name()))
	case succeeded && w.Spec.Purpose == PurposeRelease:
		say(hardware.IssueReleaseFailed, "its wipe proved nothing", "look at its timeline, then wipe it again: "+typeRelease(s.name()))
	case succeeded && w.Spec.WaitForPhoneHome && s.hw().Status.OSUp.IsZero():
		_, look := s.noOSText()
		say(hardware.IssueOSNotUp, "its system did not phone home in time", look)
	case succeeded:
		say(hardware.IssueReleaseFailed, "it was given up, and its disks were not wiped", "wipe it: "+typeRelease(s.name()))
	case w != nil && (w.Spec.Purpose == PurposeRelease || (w.Spec.Purpose == PurposeNone && !w.installs())):
		f.kind = hardware.IssueReleaseFailed
		f.text = func() (string, string) {
			detail, _ := install()
			return detail, "mend that, then wipe it again: " + typeRelease(s.name())
		}
	}
	return f
}

func (s *Snapshot) powerFailed() finding {
	p := &s.hw().Status.Power
	since := latest(p.AskedAt, p.Checked)
	if since.IsZero() {
		since = s.since()
	}
	return finding{kind: hardware.IssuePowerFailed, severity: hardware.SeverityError, since: since, at: since, text: func() (string, string) {
		return fmt.Sprintf("power %s: %s", orWord(p.Asked, "status"), p.Error),
			"look at spec.power of the record and at the controller, then type: " + typePower(s.name(), "status") + "; or switch the machine by hand"
	}}
}

func (s *Snapshot) denied() finding {
	w := s.active()
	return finding{kind: hardware.IssueNetbootDenied, severity: hardware.SeverityError, since: w.Meta.Created, at: w.Meta.Created, text: func() (string, string) {
		field := "allowWorkflow"
		switch n := s.hw().Spec.Netboot; {
		case !n.PXE():
			field = "allowPXE"
		case n.IPXE != nil:
			return fmt.Sprintf("workflow %q waits, and the record has an iPXE script of its own, which is booted instead", w.Meta.Name),
				"remove spec.netboot.ipxe, or give the workflow up: " + typeCancel(w.Meta.Name)
		}
		return fmt.Sprintf("workflow %q waits, and the record says spec.netboot.%s: false", w.Meta.Name, field),
			"set it to true, or give the workflow up: " + typeCancel(w.Meta.Name)
	}}
}

// noAddress is a machine that DHCP can answer on none of its NICs.
func (s *Snapshot) noAddress() (finding, bool) {
	nics := s.places()
	for _, n := range nics {
		if n.ok {
			return finding{}, false
		}
	}
	w := s.active()
	return finding{kind: hardware.IssueNoAddress, severity: hardware.SeverityError, since: w.Meta.Created, at: w.Meta.Created, text: func() (string, string) {
		if len(nics) == 0 {
			return "the record has no NIC", "add spec.interfaces with its MAC and address"
		}
		return nics[0].text, nics[0].fix
	}}, true
}

func (s *Snapshot) neverSeenText() (string, string) {
	seen := "it was never seen to boot"
	if s.Boot != nil {
		seen = "it was not seen to boot since"
	}
	w, tail := s.active(), "; compare its MACs with "+typeStrangers
	if s.byHand() {
		return fmt.Sprintf("workflow %q waits for it, and %s", w.Meta.Name, seen), "switch it on or restart it, with the network first in its boot order" + tail
	}
	detail := fmt.Sprintf("workflow %q waits for it, it was not switched on yet, and %s", w.Meta.Name, seen)
	if on := s.poweredOn(); !on.Before(w.Meta.Created) {
		detail = fmt.Sprintf("its power was asked for (%s), and %s", s.hw().Status.Power.Asked, seen)
	}
	return detail, "look at cable, VLAN and boot order" + tail + "; then type: " + typePower(s.name(), "cycle")
}

func (s *Snapshot) lostText() (string, string) {
	w := s.active()
	detail := fmt.Sprintf("workflow %q waits for its worker", w.Meta.Name)
	if a, n := s.action(); a != nil {
		detail = fmt.Sprintf("workflow %q waits for its worker in action %d of %d (%s)", w.Meta.Name, n, len(w.Status.Actions), a.Name)
	}
	fix := "it goes on when the machine netboots: look at its console and restart it"
	if !s.byHand() {
		fix = "it goes on when the machine netboots: " + typePower(s.name(), "cycle")
	}
	return detail, fix
}

func (s *Snapshot) noOSText() (string, string) {
	return "everything is written and the machine restarted; its system has not phoned home",
		"look at its console: does it boot the disk, has it an address, what does cloud-init say (/var/log/cloud-init.log)"
}

func (s *Snapshot) overdue() finding {
	st := &s.hw().Status
	return finding{kind: hardware.IssueOverdue, severity: hardware.SeverityError, since: st.Deadline, at: st.Deadline, text: func() (string, string) {
		detail := fmt.Sprintf("it should not be %s any more", s.state())
		w := s.active()
		if w == nil {
			return detail + ", and no workflow runs", "start anew: " + typeRelease(s.name())
		}
		return fmt.Sprintf("%s; workflow %q is %s", detail, w.Meta.Name, w.Status.State),
			"see what it waits for (" + typeExplain(s.name()) + "), or give it up: " + typeCancel(w.Meta.Name)
	}}
}

// retrying is an action that failed and is tried again.
func (s *Snapshot) retrying() []finding {
	a, n := s.action()
	if a == nil {
		return nil
	}
	failed, interrupted := a.failures()
	f := finding{kind: hardware.IssueActionRetrying, severity: hardware.SeverityWarning}
	w := s.active()
	where := fmt.Sprintf("action %d of %d (%s) of workflow %q", n, len(w.Status.Actions), a.Name, w.Meta.Name)
	switch {
	case len(failed) > 0:
		f.since = failed[0].Finished
		f.text = func() (string, string) {
			t := failed[len(failed)-1]
			return fmt.Sprintf("%s failed %s: %s", where, times(len(failed)), orWord(t.Message, string(t.State))),
				"it is tried again by itself; what it wrote: " + typeLogs(w.Meta.Name) + "; to give it up: " + typeCancel(w.Meta.Name)
		}
	case len(interrupted) > 1:
		f.since = interrupted[0].Finished
		f.text = func() (string, string) {
			return fmt.Sprintf("the machine restarted %s during %s", times(len(interrupted)), where),
				"look at its console, power supply and watchdog; to give it up: " + typeCancel(w.Meta.Name)
		}
	default:
		return nil
	}
	f.at = f.since
	return []finding{f}
}

// lastFailed is a workflow that failed and left the machine as it was.
func (s *Snapshot) lastFailed() []finding {
	w := s.Workflow
	if (w.Status.State != StateFailed && w.Status.State != StateTimedOut) || s.state().Moving() {
		return nil
	}
	return []finding{{
		kind: hardware.IssueWorkflowFailed, severity: hardware.SeverityWarning, since: w.Status.Finished, at: w.Status.Finished,
		text: func() (string, string) {
			return fmt.Sprintf("workflow %q: %s", w.Meta.Name, orWord(w.Status.Message, string(w.Status.State))),
				"see what it wrote (" + typeLogs(w.Meta.Name) + ") and the timeline (" + typeTimeline(s.name()) + "), mend that and start another one"
		},
	}}
}

func orWord(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
