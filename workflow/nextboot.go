package workflow

import "github.com/rackstrap/rackstrap/hardware"

// Circumstances are what NextBoot goes by besides the record.
type Circumstances struct {
	// Active: a workflow of the machine has not ended.
	Active bool
	// Discovery: the Subnet that the machine boots in lets pending machines boot the
	// worker.
	Discovery bool
}

// NextBoot says what a machine boots next. It is the only place that decides
// this: dhcp, ipxe and power control all ask it.
//
// allowPXE is never written by us, so a record that says allowPXE: true for ever
// goes to its disk because the machine is provisioned, not because a switch was
// turned.
func NextBoot(h *hardware.Hardware, c Circumstances) hardware.Next {
	s := &h.Status
	if next, stop := halted(h, c); stop {
		return next
	}
	switch {
	case s.State == hardware.StateRetired:
		return hardware.Next{Target: hardware.TargetNone, Reason: hardware.ReasonRetired}
	case !h.Spec.Netboot.PXE():
		return hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonPXEDenied}
	case s.Hold && s.HoldReason == hardware.ReasonBootLoop:
		return hardware.Next{Target: hardware.TargetNone, Reason: hardware.ReasonBootLoop}
	case s.Hold:
		return hardware.Next{Target: hardware.TargetNone, Reason: hardware.ReasonOnHold}
	case h.Spec.Netboot.IPXE != nil:
		return hardware.Next{Target: hardware.TargetCustom, Reason: hardware.ReasonOwnScript}
	case s.State == hardware.StatePending && c.Discovery:
		return hardware.Next{Target: hardware.TargetWorker, Scope: hardware.ScopeEnrol, Reason: hardware.ReasonDiscovery}
	case s.State == hardware.StatePending:
		return hardware.Next{Target: hardware.TargetNone, Reason: hardware.ReasonPendingApproval}
	case c.Active && h.Spec.Netboot.Workflow():
		return hardware.Next{Target: hardware.TargetWorker, Scope: hardware.ScopeWork, Reason: hardware.ReasonWorkflowActive}
	case c.Active:
		return hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonWorkflowDenied}
	case s.State == hardware.StateProvisioned:
		return hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonProvisioned}
	case s.State == hardware.StateFailed:
		return hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonLastFailed}
	default:
		return hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonNothingToDo}
	}
}

// halted is what a machine boots whose disks may hold what must not run: the system of
// an owner who gave it back. Firmware that is given nothing goes on to the disk, so it is
// given something that goes nowhere. It is false for a machine that boots otherwise. A
// record with a script of its own, or that forbids netbooting, goes before it.
func halted(h *hardware.Hardware, c Circumstances) (hardware.Next, bool) {
	s := &h.Status
	halt := func(r hardware.Reason) (hardware.Next, bool) {
		return hardware.Next{Target: hardware.TargetHalt, Reason: r}, true
	}
	left := s.Leftover() || s.KeptUnwiped() || s.State == hardware.StateReleasing
	switch {
	case !left || !h.Spec.Netboot.PXE():
		return hardware.Next{}, false
	case s.Hold && s.HoldReason == hardware.ReasonRestored:
		return hardware.Next{}, false // it may be in use since the backup was made
	case s.State == hardware.StateRetired:
		return halt(hardware.ReasonRetired)
	case s.Hold && s.HoldReason == hardware.ReasonNotStopped:
		return halt(hardware.ReasonNotStopped)
	case s.Hold && s.HoldReason == hardware.ReasonBootLoop:
		return halt(hardware.ReasonBootLoop)
	case s.Hold:
		return halt(hardware.ReasonOnHold)
	case h.Spec.Netboot.IPXE != nil, c.Active && h.Spec.Netboot.Workflow():
		return hardware.Next{}, false
	case s.State == hardware.StateReleasing:
		return halt(hardware.ReasonReleasing)
	case s.KeptUnwiped() && s.Stopping.Awaited() && h.Spec.Netboot.Workflow():
		// that the worker comes is the proof; there is nothing for it to do
		return hardware.Next{Target: hardware.TargetWorker, Scope: hardware.ScopeIdle, Reason: hardware.ReasonReserved}, true
	case s.KeptUnwiped():
		return halt(hardware.ReasonReserved)
	}
	return halt(hardware.ReasonLeftover)
}

// PickChain says how the firmware of a new boot is led to our kernel, and why where
// that is not by iPXE. h is nil for a machine without a record; before is its boot
// before this one, or nil.
//
// What firmware does under Secure Boot with a program that nobody signed differs, and
// none tells us: it takes the whole program, and then nothing is heard of iPXE. So a
// boot that ended there is followed by one through the other chain. Of a machine that
// we know nothing of we suppose the worst: shim and GRUB start under both.
//
// proxied: another server gives the addresses. After PXE, GRUB goes by that one's
// next-server and ends at its prompt where that is not us (ADR 17), so it is not tried
// on a guess. The disk for UEFI HTTP boot holds our address.
func PickChain(h *hardware.Hardware, fw hardware.Firmware, before *hardware.Boot, proxied bool) (hardware.Chain, string) {
	switch fw {
	case hardware.FirmwareUEFIARM, hardware.FirmwareHTTPARM:
		return hardware.ChainGRUB, "arm64"
	case hardware.FirmwareUEFI, hardware.FirmwareHTTP:
	default:
		return hardware.ChainIPXE, ""
	}
	if h != nil {
		switch h.Spec.Netboot.SecureBoot {
		case hardware.SecureBootOn:
			return hardware.ChainGRUB, "the record says secureBoot: on"
		case hardware.SecureBootOff:
			return hardware.ChainIPXE, ""
		}
		if h.Facts != nil && h.Facts.SecureBoot == "on" {
			return hardware.ChainGRUB, "Secure Boot is on"
		}
	}
	unknown := h == nil || (h.Facts == nil && h.Status.State == hardware.StatePending)
	// edk2 goes on from PXE to HTTP boot when a program does not start.
	alike := before != nil && (before.Firmware == hardware.FirmwareUEFI || before.Firmware == hardware.FirmwareHTTP)
	ours := alike && before.Chain != "" && before.Next.Netboots()
	switch {
	case ours && before.Phase == hardware.PhaseProgram && before.Chain == hardware.ChainIPXE:
		return hardware.ChainGRUB, "the firmware took iPXE the last time and did not start it, as under Secure Boot"
	case ours && before.Phase == hardware.PhaseProgram:
		return hardware.ChainIPXE, "the firmware took shim the last time and did not start it"
	case ours && before.Phase > hardware.PhaseProgram && before.Next.Scope != hardware.ScopeEnrol:
		return before.Chain, "that is what it started the last time"
	case unknown && (fw == hardware.FirmwareHTTP || !proxied):
		return hardware.ChainGRUB, "nothing is known of the machine's Secure Boot"
	}
	return hardware.ChainIPXE, ""
}
