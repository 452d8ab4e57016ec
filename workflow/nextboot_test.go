package workflow

import (
	"cmp"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

func TestNextBoot(t *testing.T) {
	t.Parallel()
	no := false
	own := &hardware.OwnScript{URL: "http://10.0.0.9/x.ipxe"}
	held := func(s hardware.State, why hardware.Reason) hardware.Status {
		return hardware.Status{State: s, Hold: true, HoldReason: why}
	}
	in := func(s hardware.State) hardware.Status { return hardware.Status{State: s} }
	left := func(s hardware.State) hardware.Status { // of an owner who is gone
		return hardware.Status{State: s, Dirty: []hardware.DiskRef{{Path: "/dev/sda"}}, Stopping: &hardware.Stopping{Stopped: &hardware.Stopped{By: hardware.StoppedByPowerOff}}}
	}
	keeps := func(stopped bool) hardware.Status {
		s := left(hardware.StateProvisioned)
		s.Reserved = &hardware.Reservation{For: "g", KeepDisks: true}
		if !stopped {
			s.Stopping = &hardware.Stopping{}
		}
		return s
	}
	active, discovery := Circumstances{Active: true}, Circumstances{Discovery: true}
	both := Circumstances{Active: true, Discovery: true}
	worker := func(s hardware.Scope, r hardware.Reason) hardware.Next {
		return hardware.Next{Target: hardware.TargetWorker, Scope: s, Reason: r}
	}
	next := func(to hardware.Target, r hardware.Reason) hardware.Next { return hardware.Next{Target: to, Reason: r} }
	for _, tt := range []struct {
		name   string
		spec   hardware.Netboot
		status hardware.Status
		c      Circumstances
		want   hardware.Next
	}{
		{"active workflow", hardware.Netboot{}, in(hardware.StateProvisioning), active, worker(hardware.ScopeWork, hardware.ReasonWorkflowActive)},
		{"finished, allowPXE for ever", hardware.Netboot{}, in(hardware.StateProvisioned), Circumstances{}, next(hardware.TargetDisk, hardware.ReasonProvisioned)},
		{"inspected while provisioned", hardware.Netboot{}, in(hardware.StateProvisioned), active, worker(hardware.ScopeWork, hardware.ReasonWorkflowActive)},
		{"allowPXE false wins over a workflow", hardware.Netboot{AllowPXE: &no}, in(""), active, next(hardware.TargetDisk, hardware.ReasonPXEDenied)},
		{"allowPXE false wins over a hold", hardware.Netboot{AllowPXE: &no}, held("", hardware.ReasonOnHold), active, next(hardware.TargetDisk, hardware.ReasonPXEDenied)},
		{"allowPXE false wins over its own script", hardware.Netboot{AllowPXE: &no, IPXE: own}, in(""), Circumstances{}, next(hardware.TargetDisk, hardware.ReasonPXEDenied)},
		{"allowWorkflow false", hardware.Netboot{AllowWorkflow: &no}, in(""), active, next(hardware.TargetDisk, hardware.ReasonWorkflowDenied)},
		{"pending", hardware.Netboot{}, in(hardware.StatePending), Circumstances{}, next(hardware.TargetNone, hardware.ReasonPendingApproval)},
		{"pending, where discovery is on", hardware.Netboot{}, in(hardware.StatePending), discovery, worker(hardware.ScopeEnrol, hardware.ReasonDiscovery)},
		{"pending and on hold", hardware.Netboot{}, held(hardware.StatePending, hardware.ReasonOnHold), discovery, next(hardware.TargetNone, hardware.ReasonOnHold)},
		{"available, where discovery is on", hardware.Netboot{}, in(hardware.StateAvailable), discovery, next(hardware.TargetDisk, hardware.ReasonNothingToDo)},
		{"a workflow, where discovery is on", hardware.Netboot{}, in(hardware.StateProvisioning), both, worker(hardware.ScopeWork, hardware.ReasonWorkflowActive)},
		{"hold", hardware.Netboot{}, held(hardware.StateProvisioning, hardware.ReasonOnHold), active, next(hardware.TargetNone, hardware.ReasonOnHold)},
		{"hold without a word", hardware.Netboot{}, held(hardware.StateProvisioning, ""), active, next(hardware.TargetNone, hardware.ReasonOnHold)},
		{"token stolen", hardware.Netboot{}, held(hardware.StateProvisioning, hardware.ReasonTokenStolen), active, next(hardware.TargetNone, hardware.ReasonOnHold)},
		{"boot loop", hardware.Netboot{}, held(hardware.StateProvisioning, hardware.ReasonBootLoop), active, next(hardware.TargetNone, hardware.ReasonBootLoop)},
		{"boot loop of a pending machine", hardware.Netboot{}, held(hardware.StatePending, hardware.ReasonBootLoop), discovery, next(hardware.TargetNone, hardware.ReasonBootLoop)},
		{"boot loop, and its own script", hardware.Netboot{IPXE: own}, held("", hardware.ReasonBootLoop), Circumstances{}, next(hardware.TargetNone, hardware.ReasonBootLoop)},
		{"its own script", hardware.Netboot{IPXE: own}, in(hardware.StateAvailable), Circumstances{}, next(hardware.TargetCustom, hardware.ReasonOwnScript)},
		{"its own script wins over a workflow", hardware.Netboot{IPXE: own}, in(hardware.StateProvisioning), active, next(hardware.TargetCustom, hardware.ReasonOwnScript)},
		{"its own script wins over provisioned", hardware.Netboot{IPXE: own}, in(hardware.StateProvisioned), Circumstances{}, next(hardware.TargetCustom, hardware.ReasonOwnScript)},
		{"its own script of a retired machine", hardware.Netboot{IPXE: own}, in(hardware.StateRetired), Circumstances{}, next(hardware.TargetNone, hardware.ReasonRetired)},
		{"releasing and on hold", hardware.Netboot{}, held(hardware.StateReleasing, hardware.ReasonNotStopped), active, next(hardware.TargetHalt, hardware.ReasonNotStopped)},
		{"releasing and restored from a backup", hardware.Netboot{}, held(hardware.StateReleasing, hardware.ReasonRestored), active, next(hardware.TargetNone, hardware.ReasonOnHold)},
		{"its wipe failed", hardware.Netboot{}, left(hardware.StateFailed), Circumstances{}, next(hardware.TargetHalt, hardware.ReasonLeftover)},
		{"its wipe failed, and is tried again", hardware.Netboot{}, left(hardware.StateFailed), active, worker(hardware.ScopeWork, hardware.ReasonWorkflowActive)},
		{"given up and retired", hardware.Netboot{}, left(hardware.StateRetired), Circumstances{}, next(hardware.TargetHalt, hardware.ReasonRetired)},
		{"given up, its record forbids netbooting", hardware.Netboot{AllowPXE: &no}, left(hardware.StateFailed), Circumstances{}, next(hardware.TargetDisk, hardware.ReasonPXEDenied)},
		{"kept for a group", hardware.Netboot{}, keeps(true), Circumstances{}, next(hardware.TargetHalt, hardware.ReasonReserved)},
		{"kept for a group, and being stopped", hardware.Netboot{}, keeps(false), Circumstances{}, worker(hardware.ScopeIdle, hardware.ReasonReserved)},
		{"kept for a group, which installs", hardware.Netboot{}, keeps(true), active, worker(hardware.ScopeWork, hardware.ReasonWorkflowActive)},
		{"releasing, its wipe waits", hardware.Netboot{}, in(hardware.StateReleasing), active, worker(hardware.ScopeWork, hardware.ReasonWorkflowActive)},
		{"releasing, no wipe", hardware.Netboot{}, in(hardware.StateReleasing), Circumstances{}, next(hardware.TargetHalt, hardware.ReasonReleasing)},
		{"releasing, no wipe allowed", hardware.Netboot{AllowWorkflow: &no}, in(hardware.StateReleasing), active, next(hardware.TargetHalt, hardware.ReasonReleasing)},
		{"available", hardware.Netboot{}, in(hardware.StateAvailable), Circumstances{}, next(hardware.TargetDisk, hardware.ReasonNothingToDo)},
		{"never written", hardware.Netboot{}, in(""), Circumstances{}, next(hardware.TargetDisk, hardware.ReasonNothingToDo)},
		{"restarts into its system", hardware.Netboot{}, hardware.Status{State: hardware.StateProvisioning, AwaitOS: true}, Circumstances{}, next(hardware.TargetDisk, hardware.ReasonNothingToDo)},
		{"failed", hardware.Netboot{}, in(hardware.StateFailed), Circumstances{}, next(hardware.TargetDisk, hardware.ReasonLastFailed)},
		{"failed, tried again", hardware.Netboot{}, in(hardware.StateFailed), active, worker(hardware.ScopeWork, hardware.ReasonWorkflowActive)},
		{"retired", hardware.Netboot{}, in(hardware.StateRetired), both, next(hardware.TargetNone, hardware.ReasonRetired)},
	} {
		h := &hardware.Hardware{Spec: hardware.Spec{Netboot: tt.spec}, Status: tt.status}
		if got := NextBoot(h, tt.c); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestPickChain(t *testing.T) {
	t.Parallel()
	const ipxe, grub = hardware.ChainIPXE, hardware.ChainGRUB
	machine := func(say hardware.SecureBoot, facts *hardware.Facts, state hardware.State) *hardware.Hardware {
		return &hardware.Hardware{Spec: hardware.Spec{Netboot: hardware.Netboot{SecureBoot: say}}, Facts: facts, Status: hardware.Status{State: state}}
	}
	known := machine("", &hardware.Facts{SecureBoot: "off"}, hardware.StateAvailable)
	fresh := machine("", nil, hardware.StateAvailable)
	on := machine("", &hardware.Facts{SecureBoot: "on"}, hardware.StateAvailable)
	pending := machine("", nil, hardware.StatePending)
	seen := func(fw hardware.Firmware, c hardware.Chain, p hardware.Phase, n hardware.Next) *hardware.Boot {
		return &hardware.Boot{Firmware: fw, Chain: c, Phase: p, Next: n}
	}
	work := hardware.Next{Target: hardware.TargetWorker, Scope: hardware.ScopeWork}
	enrol := hardware.Next{Target: hardware.TargetWorker, Scope: hardware.ScopeEnrol}
	disk := hardware.Next{Target: hardware.TargetDisk}
	const pxe, arm, http, httpARM = hardware.FirmwareUEFI, hardware.FirmwareUEFIARM, hardware.FirmwareHTTP, hardware.FirmwareHTTPARM
	for _, tt := range []struct {
		name   string
		h      *hardware.Hardware
		fw     hardware.Firmware
		before *hardware.Boot
		want   hardware.Chain
		why    bool
	}{
		{"BIOS", on, hardware.FirmwareBIOS, nil, ipxe, false},
		{"iPXE in ROM", on, hardware.FirmwareIPXE, nil, ipxe, false},
		{"iPXE without HTTP", known, hardware.FirmwareIPXEMin, nil, ipxe, false},
		{"unknown firmware", known, hardware.FirmwareUnknown, nil, ipxe, false},
		{"arm64", known, arm, nil, grub, true},
		{"arm64, secureBoot off", machine(hardware.SecureBootOff, nil, ""), arm, nil, grub, true},
		{"arm64 over HTTP", nil, httpARM, nil, grub, true},
		{"UEFI", fresh, pxe, nil, ipxe, false},
		{"UEFI, Secure Boot is off", known, pxe, nil, ipxe, false},
		{"UEFI, Secure Boot is on", on, pxe, nil, grub, true},
		{"UEFI over HTTP, Secure Boot is on", on, http, nil, grub, true},
		{"the record says on", machine(hardware.SecureBootOn, &hardware.Facts{SecureBoot: "off"}, ""), pxe, nil, grub, true},
		{"the record says off", machine(hardware.SecureBootOff, &hardware.Facts{SecureBoot: "on"}, ""), pxe, nil, ipxe, false},
		{"the record says auto", machine(hardware.SecureBootAuto, &hardware.Facts{SecureBoot: "on"}, ""), pxe, nil, grub, true},
		{"a stranger", nil, pxe, nil, grub, true},
		{"a stranger over HTTP", nil, http, nil, grub, true},
		{"a pending machine without facts over HTTP", pending, http, nil, grub, true},
		{"a stranger over HTTP whose shim was not started", nil, http, seen(http, grub, hardware.PhaseProgram, enrol), ipxe, true},
		{"UEFI over HTTP", fresh, http, nil, ipxe, false},
		{"a pending machine without facts", pending, pxe, nil, grub, true},
		{"iPXE was taken and not started", known, pxe, seen(pxe, ipxe, hardware.PhaseProgram, work), grub, true},
		{"iPXE was not taken to its end", known, pxe, seen(pxe, ipxe, hardware.PhaseAddress, work), ipxe, false},
		{"the record says off, and iPXE was not started", machine(hardware.SecureBootOff, nil, ""), pxe, seen(pxe, ipxe, hardware.PhaseProgram, work), ipxe, false},
		{"shim was taken and not started", known, pxe, seen(pxe, grub, hardware.PhaseProgram, work), ipxe, true},
		{"shim was not started, the facts say on", on, pxe, seen(pxe, grub, hardware.PhaseProgram, work), grub, true},
		{"a stranger whose shim was not started", nil, pxe, seen(pxe, grub, hardware.PhaseProgram, enrol), ipxe, true},
		{"GRUB ran the last time", known, pxe, seen(pxe, grub, hardware.PhaseKernel, work), grub, true},
		{"iPXE ran the last time", fresh, pxe, seen(pxe, ipxe, hardware.PhaseWorker, work), ipxe, true},
		{"GRUB ran because nothing was known", known, pxe, seen(pxe, grub, hardware.PhaseWorker, enrol), ipxe, false},
		{"iPXE was not started by HTTP boot", known, pxe, seen(http, ipxe, hardware.PhaseProgram, work), grub, true},
		{"iPXE was not started by PXE, now HTTP boot", known, http, seen(pxe, ipxe, hardware.PhaseProgram, work), grub, true},
		{"BIOS before", known, pxe, seen(hardware.FirmwareBIOS, ipxe, hardware.PhaseProgram, work), ipxe, false},
		{"it went to its disk", known, pxe, seen(pxe, ipxe, hardware.PhaseProgram, disk), ipxe, false},
		{"a boot of before there were chains", known, pxe, seen(pxe, "", hardware.PhaseProgram, work), ipxe, false},
	} {
		got, why := PickChain(tt.h, tt.fw, tt.before, false)
		if got != tt.want || (why != "") != tt.why {
			t.Errorf("%s: %s (%q), want %s", tt.name, got, why, tt.want)
		}
	}
	// GRUB beside another DHCP server may end at its prompt after PXE
	for fw, want := range map[hardware.Firmware]hardware.Chain{pxe: ipxe, http: grub} {
		if got, _ := PickChain(nil, fw, nil, true); got != want {
			t.Errorf("beside another DHCP server a machine that nobody knows is sent %s over %s", got, fw)
		}
	}
}

func TestSupersedes(t *testing.T) {
	t.Parallel()
	at := func(p hardware.Phase, age time.Duration) *hardware.Boot {
		return &hardware.Boot{ID: "b", XID: 7, Firmware: hardware.FirmwareUEFI, Phase: p, Started: t0.Add(-age), Deadline: t0.Add(hardware.BootDeadline - age)}
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
		fw   hardware.Firmware // PXE of UEFI where empty
	}{
		{"the first of all", nil, 7, false, true, ""},
		{"a retransmission", at(hardware.PhaseAddress, 8*time.Second), 7, false, false, ""},
		{"another power-on", at(hardware.PhaseAddress, 8*time.Second), 8, false, true, ""},
		{"a flood of first packets", at(hardware.PhaseDHCP, time.Second), 8, false, false, ""},
		{"a flood of first packets that were answered", at(hardware.PhaseAddress, time.Second), 8, false, false, ""},
		{"the next entry of the boot order, over HTTP", at(hardware.PhaseAddress, time.Second), 8, false, true, hardware.FirmwareHTTP},
		{"over HTTP, where PXE got nothing yet", at(hardware.PhaseDHCP, time.Second), 8, false, false, hardware.FirmwareHTTP},
		{"iPXE at once after the address", at(hardware.PhaseAddress, time.Second), 8, true, false, hardware.FirmwareIPXE},
		{"a ROM with a fixed xid, after the program", at(hardware.PhaseProgram, 8*time.Second), 7, false, true, ""},
		{"a ROM with a fixed xid, minutes later", at(hardware.PhaseAddress, 3*time.Minute), 7, false, true, ""},
		{"our iPXE after the firmware", at(hardware.PhaseProgram, 8*time.Second), 9, true, false, ""},
		{"iPXE in ROM, next power-on", at(hardware.PhaseScript, time.Minute), 9, true, true, ""},
		{"iPXE in ROM asks again on its way to its disk", disk(20 * time.Second), 9, true, false, ""},
		{"iPXE in ROM, next power-on after its disk", disk(4 * time.Minute), 9, true, true, ""},
		{"after the end", closed, 7, true, true, ""},
		{"after the deadline", at(hardware.PhaseAddress, 31*time.Minute), 7, true, true, ""},
	} {
		if got := tt.b.Supersedes(tt.xid, cmp.Or(tt.fw, hardware.FirmwareUEFI), tt.ipxe, t0); got != tt.want {
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
