package rest

import (
	"fmt"
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
