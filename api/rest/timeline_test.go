package rest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/workflow"
)

func TestTimeline(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	ev := func(s int, boot string, r hardware.Reason, action string, bytes int64) workflow.Event {
		return workflow.Event{ID: fmt.Sprint(s), First: at.Add(time.Duration(s) * time.Second), Boot: boot, Reason: r, Action: action, Bytes: bytes}
	}
	events := []workflow.Event{
		ev(-5, "", hardware.ReasonRecordCreated, "", 0),
		ev(0, "B1", hardware.ReasonBootStarted, "", 0),
		ev(2, "B1", hardware.ReasonAcked, "", 0),
		ev(3, "B1", hardware.ReasonProgramSent, "", 1e6),
		ev(4, "", hardware.ReasonRecordChanged, "", 0),
		ev(7, "B1", hardware.ReasonScriptSent, "", 0),
		ev(8, "B1", hardware.ReasonKernelSent, "", 8e6),
		ev(9, "B1", hardware.ReasonInitramfsSent, "", 20e6),
		ev(14, "B1", hardware.ReasonWorkerConnected, "", 0),
		ev(15, "B1", hardware.ReasonActionStarted, "wipe", 0),
		ev(16, "B1", hardware.ReasonActionFailed, "wipe", 0),
		ev(17, "B1", hardware.ReasonActionStarted, "wipe", 0),
		ev(19, "B1", hardware.ReasonActionSucceeded, "wipe", 0),
		ev(19, "B1", hardware.ReasonActionStarted, "write", 0),
		ev(60, "B2", hardware.ReasonBootStarted, "", 0),
		ev(75, "B2", hardware.ReasonWorkerConnected, "", 0),
		ev(76, "B2", hardware.ReasonActionStarted, "write", 0),
	}
	// the order in which the store has them does not matter
	events[1], events[9] = events[9], events[1]
	got := Timeline("m1", events, at.Add(80*time.Second))
	var b strings.Builder
	for _, boot := range got.Boots {
		fmt.Fprintf(&b, "%q %d lines:", boot.Boot, len(boot.Lines))
		for _, s := range boot.Split {
			fmt.Fprintf(&b, " %s %v %d %v,", s.Name, time.Duration(s.Took), s.Bytes, s.Ended)
		}
		b.WriteString("\n")
	}
	want := `"" 1 lines:
"B1" 13 lines: address 2s 0 true, boot program 1s 1000000 true, boot script 4s 0 true, kernel 1s 8000000 true, initramfs 1s 20000000 true, worker start 5s 0 true, wipe 1s 0 true, wipe 2s 0 true,
"B2" 3 lines: worker start 15s 0 true, write 4s 0 false,
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	if empty := Timeline("m1", nil, at); empty.Boots == nil || len(empty.Boots) != 0 {
		t.Errorf("got %+v", empty)
	}
}

// From being switched on to the system's being up, over boots that came to nothing.
func TestTimelineWhole(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	n := 0
	ev := func(s int, boot string, r hardware.Reason, detail string) workflow.Event {
		n++
		when := at.Add(time.Duration(s) * time.Second)
		return workflow.Event{ID: fmt.Sprintf("%03d", n), First: when, Last: when, Boot: boot, Reason: r, Detail: detail, Count: 1}
	}
	events := []workflow.Event{
		ev(0, "", hardware.ReasonWorkflowCreated, ""),
		ev(0, "", hardware.ReasonPowerByHand, "switch m1 on, or off and on again if it is on"),
		ev(600, "B1", hardware.ReasonBootStarted, ""),
		ev(601, "B1", hardware.ReasonAcked, "10.0.0.5"),
		ev(601, "B1", hardware.ReasonUnknownFirmware, ""),
		ev(700, "B2", hardware.ReasonBootStarted, ""),
		ev(701, "B2", hardware.ReasonAcked, "10.0.0.5"),
		ev(701, "B2", hardware.ReasonBootProgram, "snponly.efi"),
		ev(703, "B2", hardware.ReasonProgramSent, ""),
		ev(1100, "", hardware.ReasonIssueOpened, "boot-stuck"),
		ev(1110, "", hardware.ReasonPowerDone, "status: on"),
		ev(1120, "", hardware.ReasonPowerDone, "cycle, next boot from network"),
		ev(1121, "B2", hardware.ReasonWorkerLost, "late"),
		ev(1150, "", hardware.ReasonRecordChanged, ""),
		ev(1180, "B3", hardware.ReasonBootStarted, ""),
		ev(1190, "B3", hardware.ReasonWorkerConnected, ""),
		ev(1190, "B3", hardware.ReasonWorkflowStarted, ""),
		ev(1300, "B3", hardware.ReasonWorkflowSucceeded, ""),
		ev(1340, "B3", hardware.ReasonOSSeen, ""),
		ev(1370, "", hardware.ReasonOSUp, "phoned home from 10.0.0.5"),
		ev(9999, "B4", hardware.ReasonBootStarted, ""),
		ev(9999, "B4", hardware.ReasonSentToDisk, ""),
	}
	tell := func(events []workflow.Event, now int) string {
		var b strings.Builder
		for _, boot := range Timeline("m1", events, at.Add(time.Duration(now)*time.Second)).Boots {
			fmt.Fprintf(&b, "%q from %d:", boot.Boot, int(boot.Started.Sub(at).Seconds()))
			for _, l := range boot.Lines {
				fmt.Fprintf(&b, " +%d %s", int(time.Duration(l.At).Seconds()), l.Reason)
			}
			b.WriteString("\n")
			for _, s := range boot.Split {
				fmt.Fprintf(&b, "  %s %v %v\n", s.Name, time.Duration(s.Took), s.Ended)
				if s.At < 0 || s.Ended && s.Name == "worker start" && s.At != hardware.Duration(time.Minute) {
					fmt.Fprintf(&b, "  at %v\n", time.Duration(s.At))
				}
			}
			if boot.Ended != "" {
				fmt.Fprintf(&b, "  ended: %s (%t)\n", boot.Ended, boot.Fix != "")
			}
		}
		return b.String()
	}
	want := `"" from 0: +0 workflow-created
"B1" from 0: +0 power-by-hand +600 boot-started +601 acked +601 unknown-firmware
  somebody switches it on 10m0s true
  address 1s true
  ended: the firmware's architecture code has no boot program (true)
"B2" from 700: +0 boot-started +1 acked +1 boot-program +3 boot-program-sent +400 issue-opened +410 power-done +421 worker-lost
  address 1s true
  boot program 2s true
  ended: the last that was seen of it: sent the boot program (true)
"B3" from 1120: +0 power-done +30 record-changed +60 boot-started +70 worker-connected +70 workflow-started +180 workflow-succeeded +220 os-seen +250 os-up
  power on 1m0s true
  worker start 10s true
  restart into the system 40s true
  first start of the system 30s true
"B4" from 9999: +0 boot-started +0 sent-to-disk
`
	if got := tell(events, 10_000); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// the order in which they come does not matter, not even at one moment
	back := slices.Clone(events)
	slices.Reverse(back)
	if got := tell(back, 10_000); got != want {
		t.Errorf("reversed: got\n%s", got)
	}
	// the restart goes on, until nobody waits for it any more
	if got := tell(events[:18], 1310); !strings.Contains(got, "  restart into the system 10s false\n") {
		t.Errorf("restarting: got\n%s", got)
	}
	if got := tell(events[:18], 99_999); strings.Contains(got, "restart into") {
		t.Errorf("long ago: got\n%s", got)
	}
	// what a boot on its way does now is a part that goes on, until nobody waits for it
	if got := tell(events[:9], 710); !strings.Contains(got, "  boot program 2s true\n  boot script 7s false\n") {
		t.Errorf("booting: got\n%s", got)
	}
	if got := tell(events[:9], 99_999); strings.Contains(got, "boot script") {
		t.Errorf("booting for days: got\n%s", got)
	}
	// a boot that goes on is not over
	if got := tell(events[:9], 710); strings.Contains(got, "ended: the last") {
		t.Errorf("goes on: got\n%s", got)
	}
}

// TestTimelineOfARestart: the restart into what was installed is a boot of its own
// where the firmware asks the network first.
func TestTimelineOfARestart(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	ev := func(s int, boot string, r hardware.Reason) workflow.Event {
		return workflow.Event{ID: fmt.Sprintf("%03d", s), First: at.Add(time.Duration(s) * time.Second), Boot: boot, Reason: r}
	}
	got := Timeline("m1", []workflow.Event{
		ev(0, "B1", hardware.ReasonBootStarted), ev(9, "B1", hardware.ReasonWorkflowSucceeded),
		ev(10, "B2", hardware.ReasonBootStarted), ev(11, "B2", hardware.ReasonAcked), ev(31, "B2", hardware.ReasonOSUp),
	}, at.Add(time.Hour))
	last := got.Boots[len(got.Boots)-1].Split
	if len(last) != 2 || last[1].Name != "first start of the system" || time.Duration(last[1].Took) != 20*time.Second {
		t.Errorf("%+v", last)
	}
}

// TestTimelineOfASlowController: it answers when the machine has asked for its address
// already, and what switched that boot on did not switch on the next one.
func TestTimelineOfASlowController(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	ev := func(s int, boot string, r hardware.Reason) workflow.Event {
		return workflow.Event{ID: fmt.Sprintf("%03d", s), First: at.Add(time.Duration(s) * time.Second), Boot: boot, Reason: r}
	}
	power := ev(20, "", hardware.ReasonPowerDone)
	power.Detail, power.Took = "cycle, next boot from network", hardware.Duration(18*time.Second)
	got := Timeline("m1", []workflow.Event{
		ev(0, "", hardware.ReasonWorkflowCreated),
		ev(12, "B1", hardware.ReasonBootStarted), power, ev(22, "B1", hardware.ReasonWorkerConnected), ev(30, "B1", hardware.ReasonWorkflowSucceeded),
		ev(32, "B2", hardware.ReasonBootStarted), ev(33, "B2", hardware.ReasonSentToDisk),
	}, at.Add(time.Hour))
	var b strings.Builder
	for _, boot := range got.Boots {
		fmt.Fprintf(&b, "%q from %d:", boot.Boot, int(boot.Started.Sub(at).Seconds()))
		for _, l := range boot.Lines {
			fmt.Fprintf(&b, " +%d %s", int(time.Duration(l.At).Seconds()), l.Reason)
		}
		for _, s := range boot.Split {
			fmt.Fprintf(&b, ", %s %v", s.Name, time.Duration(s.Took))
		}
		b.WriteString("\n")
	}
	want := `"" from 0: +0 workflow-created
"B1" from 2: +0 power-done +10 boot-started +20 worker-connected +28 workflow-succeeded, power on 10s, worker start 10s
"B2" from 32: +0 boot-started +1 sent-to-disk
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
