package workflow

import "github.com/rackstrap/rackstrap/hardware"

// NextBoot says what a machine boots next. It is the only place that decides
// this: dhcp, ipxe and power control all ask it. active says that a workflow of
// the machine has not ended.
//
// allowPXE is never written by us, so a record that says allowPXE: true for ever
// goes to its disk because the machine is provisioned, not because a switch was
// turned.
func NextBoot(h *hardware.Hardware, active bool) hardware.Next {
	s := &h.Status
	switch {
	case s.State == hardware.StateRetired:
		return hardware.Next{Target: hardware.TargetNone, Reason: hardware.ReasonRetired}
	case !h.Spec.Netboot.PXE():
		return hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonPXEDenied}
	case s.Hold:
		return hardware.Next{Target: hardware.TargetNone, Reason: hardware.ReasonOnHold}
	case s.State == hardware.StatePending:
		return hardware.Next{Target: hardware.TargetNone, Reason: hardware.ReasonPendingApproval}
	case s.State == hardware.StateReleasing && (!active || !h.Spec.Netboot.Workflow()):
		// what its last owner left on the disk must not run any more
		return hardware.Next{Target: hardware.TargetNone, Reason: hardware.ReasonReleasing}
	case active && h.Spec.Netboot.Workflow():
		return hardware.Next{Target: hardware.TargetWorker, Scope: hardware.ScopeWork, Reason: hardware.ReasonWorkflowActive}
	case active:
		return hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonWorkflowDenied}
	case s.State == hardware.StateProvisioned:
		return hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonProvisioned}
	case s.State == hardware.StateFailed:
		return hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonLastFailed}
	default:
		return hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonNothingToDo}
	}
}
