package machine

import (
	"net/netip"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
	"github.com/rackstrap/rackstrap/hardware"
)

// refresh writes what was seen into the object. Nothing of it is needed to go on from:
// all of it is seen again.
func refresh(v *view) {
	o, s := v.object, v.seen
	if s == nil || s.claim == nil {
		return
	}
	if o.Status.Hardware == nil {
		o.Status.Hardware = &infrav1.HardwareStatus{}
	}
	st := o.Status.Hardware
	st.Name, st.UID = s.claim.Status.Hardware, s.claim.Status.UID
	if s.hardware != nil {
		st.State, st.Power = string(s.hardware.Status.State), power(s.hardware)
	}
	if s.install != nil {
		st.Workflow = s.install.Meta.Name
	}
	if !o.DeletionTimestamp.IsZero() || lost(v) != "" && o.Spec.ProviderID == "" {
		return
	}
	if joinable(v) && o.Spec.ProviderID == "" {
		o.Spec.ProviderID = s.claim.Status.ProviderID
	}
	if lost(v) == "" {
		o.Status.Addresses = addresses(s.hardware)
		o.Status.FailureDomain = failureDomain(v)
	}
	if isProvisioned(v) {
		o.Status.Initialization.Provisioned = ptr.To(true)
	}
}

func power(h *hardware.Hardware) string {
	if s := h.Status.Power.State; s != hardware.PowerUnknown {
		return string(s)
	}
	return "unknown"
}

// failureDomain is where the Hardware stands.
func failureDomain(v *view) string {
	label := hardware.DefaultFailureDomain
	if v.infra != nil {
		f := v.infra.Spec.FailureDomains
		if ptr.Deref(f.Disabled, false) {
			return ""
		}
		if f.Label != "" {
			label = f.Label
		}
	}
	return labelOf(v.seen.hardware, label)
}

// labelOf is a Hardware's value of a label. Without the label rack it stands in its
// spec.rack.
func labelOf(h *hardware.Hardware, label string) string {
	if value, ok := h.Meta.Labels[label]; ok || label != hardware.DefaultFailureDomain {
		return value
	}
	return h.Spec.Rack
}

// addresses are the host name and what is reserved for the machine's interfaces.
func addresses(h *hardware.Hardware) []clusterv1.MachineAddress {
	out := []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: h.HostName()}}
	seen := map[netip.Addr]bool{}
	for _, n := range h.Spec.Interfaces {
		for _, p := range n.Addresses {
			if a := p.Addr(); !seen[a] {
				seen[a] = true
				out = append(out, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: a.String()})
			}
		}
	}
	return out
}
