package workflow

import (
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

func TestNextBoot(t *testing.T) {
	t.Parallel()
	no := false
	for _, tt := range []struct {
		name   string
		spec   hardware.Netboot
		status hardware.Status
		active bool
		want   hardware.Target
		reason hardware.Reason
	}{
		{"active workflow", hardware.Netboot{}, hardware.Status{State: hardware.StateProvisioning}, true, hardware.TargetWorker, hardware.ReasonWorkflowActive},
		{"finished, allowPXE for ever", hardware.Netboot{}, hardware.Status{State: hardware.StateProvisioned}, false, hardware.TargetDisk, hardware.ReasonProvisioned},
		{"allowPXE false wins over a workflow", hardware.Netboot{AllowPXE: &no}, hardware.Status{}, true, hardware.TargetDisk, hardware.ReasonPXEDenied},
		{"allowWorkflow false", hardware.Netboot{AllowWorkflow: &no}, hardware.Status{}, true, hardware.TargetDisk, hardware.ReasonWorkflowDenied},
		{"pending", hardware.Netboot{}, hardware.Status{State: hardware.StatePending}, false, hardware.TargetNone, hardware.ReasonPendingApproval},
		{"hold", hardware.Netboot{}, hardware.Status{State: hardware.StateProvisioning, Hold: true}, true, hardware.TargetNone, hardware.ReasonOnHold},
		{"available", hardware.Netboot{}, hardware.Status{State: hardware.StateAvailable}, false, hardware.TargetDisk, hardware.ReasonNothingToDo},
		{"failed", hardware.Netboot{}, hardware.Status{State: hardware.StateFailed}, false, hardware.TargetDisk, hardware.ReasonLastFailed},
		{"retired", hardware.Netboot{}, hardware.Status{State: hardware.StateRetired}, true, hardware.TargetNone, hardware.ReasonRetired},
	} {
		h := &hardware.Hardware{Spec: hardware.Spec{Netboot: tt.spec}, Status: tt.status}
		if got := NextBoot(h, Circumstances{Active: tt.active}); got.Target != tt.want || got.Reason != tt.reason {
			t.Errorf("%s: got %+v", tt.name, got)
		}
	}
}

func TestSupersedes(t *testing.T) {
	t.Parallel()
	at := func(p hardware.Phase, age time.Duration) *hardware.Boot {
		return &hardware.Boot{ID: "b", XID: 7, Phase: p, Started: t0.Add(-age), Deadline: t0.Add(hardware.BootDeadline - age)}
	}
	closed := at(hardware.PhaseWorker, time.Minute)
	closed.Closed = true
	disk := func(age time.Duration) *hardware.Boot {
		b := at(hardware.PhaseAddress, age)
		b.Next.Target = hardware.TargetDisk
		return b
	}
	for _, tt := range []struct {
		name string
		b    *hardware.Boot
		xid  uint32
		ipxe bool
		want bool
	}{
		{"the first of all", nil, 7, false, true},
		{"a retransmission", at(hardware.PhaseAddress, 8*time.Second), 7, false, false},
		{"another power-on", at(hardware.PhaseAddress, 8*time.Second), 8, false, true},
		{"a flood of first packets", at(hardware.PhaseDHCP, time.Second), 8, false, false},
		{"a ROM with a fixed xid, after the program", at(hardware.PhaseProgram, 8*time.Second), 7, false, true},
		{"a ROM with a fixed xid, minutes later", at(hardware.PhaseAddress, 3*time.Minute), 7, false, true},
		{"our iPXE after the firmware", at(hardware.PhaseProgram, 8*time.Second), 9, true, false},
		{"iPXE in ROM, next power-on", at(hardware.PhaseScript, time.Minute), 9, true, true},
		{"iPXE in ROM asks again on its way to its disk", disk(20 * time.Second), 9, true, false},
		{"iPXE in ROM, next power-on after its disk", disk(4 * time.Minute), 9, true, true},
		{"after the end", closed, 7, true, true},
		{"after the deadline", at(hardware.PhaseAddress, 31*time.Minute), 7, true, true},
	} {
		if got := tt.b.Supersedes(tt.xid, tt.ipxe, t0); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestBootToken(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef0123456789abcdef")
	b := &hardware.Boot{ID: NewID(t0), Hardware: "h1"}
	tok := bootToken(key, b)
	if tok != bootToken(key, b) {
		t.Error("the same boot has two tokens")
	}
	boot, uid, ok := parseToken(key, tok)
	if !ok || boot != b.ID || uid != "h1" {
		t.Errorf("got %q %q %v", boot, uid, ok)
	}
	for i := range tok {
		bad := tok[:i] + string(tok[i]^1) + tok[i+1:]
		if _, _, ok := parseToken(key, bad); ok {
			t.Errorf("a token changed at byte %d is accepted", i)
		}
	}
	if _, _, ok := parseToken([]byte("another key"), tok); ok {
		t.Error("accepted under another key")
	}
}

func TestNewIDSorts(t *testing.T) {
	t.Parallel()
	a, b := NewID(t0), NewID(t0.Add(time.Millisecond))
	if len(a) != 26 || a >= b {
		t.Errorf("%s %s", a, b)
	}
}
