package machine

import (
	"net/netip"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/api/capi/internal/ipam"
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
		o.Status.Addresses = addresses(s.hardware, o.Spec.Network, v.pool, s.leases)
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

// addresses are the host name, what pools gave, and what is reserved for the machine's
// interfaces where no address of a pool took its place. What DHCP lent counts where
// there is nothing else.
func addresses(h *hardware.Hardware, network infrav1.Network, pool []ipam.Address, leases []api.Lease) []clusterv1.MachineAddress {
	out := []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: h.HostName()}}
	seen := map[netip.Addr]bool{}
	add := func(a netip.Addr) {
		if !seen[a] {
			seen[a] = true
			out = append(out, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: a.String()})
		}
	}
	type family struct {
		nic int
		six bool
	}
	replaced := map[family]bool{}
	for i, a := range pool {
		add(a.Prefix.Addr())
		if i < len(network.Addresses) {
			s := hardware.StaticAddress{}
			if n := network.Addresses[i].Interface; n != nil {
				s.NIC = ptr.To(int(*n))
			}
			replaced[family{s.On(h), a.Prefix.Addr().Is6()}] = true
		}
	}
	for i, n := range h.Spec.Interfaces {
		for _, p := range n.Addresses {
			if !replaced[family{i, p.Addr().Is6()}] {
				add(p.Addr())
			}
		}
	}
	if len(out) == 1 {
		for i := range leases {
			add(leases[i].Addr)
		}
	}
	return out
}
