package ipam

import (
	"fmt"
	"net/netip"

	"github.com/rackstrap/rackstrap/hardware"

	infrav1 "github.com/rackstrap/rackstrap/api/capi/v1beta1"
)

// Static is what the appliance is to make of a machine's network: nil where the spec
// says nothing, or has a whole configuration. got are the addresses as Ensure returns
// them. A family has one default route: by the gateway of the entry that asks for it,
// else by that of the first entry that does not refuse it. *InvalidError.
func Static(n infrav1.Network, got []Address) (*hardware.StaticNetwork, error) {
	out := &hardware.StaticNetwork{Search: n.SearchDomains}
	for i, s := range n.Nameservers {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return nil, &InvalidError{fmt.Sprintf("spec.network.nameservers[%d] %.64q is not an address", i, s)}
		}
		out.Nameservers = append(out.Nameservers, a)
	}
	routes, err := defaultRoutes(n.Addresses, got)
	if err != nil {
		return nil, err
	}
	for i, p := range n.Addresses {
		a := hardware.StaticAddress{Address: got[i].Prefix}
		if p.Interface != nil {
			nic := int(*p.Interface)
			a.NIC = &nic
		}
		if by, ok := routes[got[i].Prefix.Addr().Is4()]; ok && by == i {
			a.Gateway = got[i].Gateway
		}
		out.Addresses = append(out.Addresses, a)
	}
	if out.IsZero() {
		return nil, nil
	}
	return out, nil
}

// defaultRoutes says for each family which entry has its gateway: true is IPv4.
func defaultRoutes(asked []infrav1.PoolAddress, got []Address) (map[bool]int, error) {
	out := map[bool]int{}
	for i, p := range asked {
		four := got[i].Prefix.Addr().Is4()
		if p.Gateway == nil || !*p.Gateway {
			continue
		}
		if !got[i].Gateway.IsValid() {
			return nil, &InvalidError{fmt.Sprintf("spec.network.addresses[%d] wants a gateway, and the pool %s/%s has none (add it to the pool, or leave gateway out)", i, p.PoolRef.Kind, p.PoolRef.Name)}
		}
		if first, ok := out[four]; ok {
			return nil, &InvalidError{fmt.Sprintf("spec.network.addresses[%d] and [%d] both want to be the default route (write `gateway: false` in one of them)", first, i)}
		}
		out[four] = i
	}
	for i, p := range asked {
		four := got[i].Prefix.Addr().Is4()
		if _, ok := out[four]; !ok && p.Gateway == nil && got[i].Gateway.IsValid() {
			out[four] = i
		}
	}
	return out, nil
}
