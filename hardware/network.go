package hardware

import (
	"fmt"
	"net/netip"
	"slices"
)

// StaticNetwork is what one install says of the network of its system besides the
// record. Its zero value says nothing.
type StaticNetwork struct {
	// Addresses replace, on their NICs, those of the record of the same family, and DHCP
	// for IPv4.
	Addresses []StaticAddress `json:"addresses,omitempty"`
	// Nameservers are those of all NICs, instead of what the Subnets say.
	Nameservers []netip.Addr `json:"nameservers,omitempty"`
	// Search are the search domains of all NICs, instead of what the Subnets say.
	Search []string `json:"search,omitempty"`
}

// StaticAddress is one address of one NIC.
type StaticAddress struct {
	// NIC is the index in the record's interfaces, from 0; the first that DHCP answers,
	// which is the one that netboots, where it is left out.
	NIC *int `json:"nic,omitempty"`
	// Address has the prefix length of its network: 10.0.0.5/24.
	Address netip.Prefix `json:"address"`
	// Gateway, where given, is the default route of the address's family. Left out: this
	// NIC has none of it.
	Gateway netip.Addr `json:"gateway,omitzero"`
}

// Limits on one StaticNetwork.
const (
	maxStaticAddresses = 64
	maxStaticServers   = 8
	maxStaticSearch    = 16
)

// IsZero reports whether it says nothing.
func (n *StaticNetwork) IsZero() bool {
	return n == nil || len(n.Addresses)+len(n.Nameservers)+len(n.Search) == 0
}

// NetbootNIC is the index of the NIC that netboots, as far as the record knows it: the
// first that DHCP answers.
func (h *Hardware) NetbootNIC() int {
	return max(0, slices.IndexFunc(h.Spec.Interfaces, NIC.Answered))
}

// On is the index of the NIC that the address is for.
func (a StaticAddress) On(h *Hardware) int {
	if a.NIC != nil {
		return *a.NIC
	}
	return h.NetbootNIC()
}

// CheckFor says everything that keeps the network from being that of h.
func (n *StaticNetwork) CheckFor(c *Checker, at string, h *Hardware) {
	if len(n.Addresses) > maxStaticAddresses || len(n.Nameservers) > maxStaticServers || len(n.Search) > maxStaticSearch {
		c.Addf(at, "has more than %d addresses, %d nameservers or %d search domains", maxStaticAddresses, maxStaticServers, maxStaticSearch)
		return
	}
	seen, via := map[netip.Addr]int{}, map[bool]StaticAddress{}
	for i, a := range n.Addresses {
		field := fmt.Sprintf("%s.addresses[%d]", at, i)
		addr, four := a.Address.Addr(), a.Address.Addr().Is4()
		if first, ok := seen[addr]; ok {
			c.Addf(field, "%s is also in addresses[%d]", addr, first)
		}
		seen[addr] = i
		if err := usableAddress(a.Address); err != nil {
			c.Add(field+".address", err)
			continue
		}
		if on := a.On(h); on < 0 || on >= len(h.Spec.Interfaces) {
			c.Addf(field+".nic", "is %d, and hardware %q has the interfaces 0 to %d (choose one of them, or add the NIC to its record)", on, h.Meta.Name, len(h.Spec.Interfaces)-1)
		}
		if !a.Gateway.IsValid() {
			continue
		}
		if err := a.checkGateway(); err != nil {
			c.Add(field+".gateway", err)
		}
		if other, ok := via[four]; ok && (other.Gateway != a.Gateway || other.On(h) != a.On(h)) {
			c.Addf(field+".gateway", "%s is a second default route besides %s (leave one of them out)", a.Gateway, other.Gateway)
		}
		via[four] = a
	}
	for i, a := range n.Nameservers {
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" {
			c.Addf(fmt.Sprintf("%s.nameservers[%d]", at, i), "%s cannot be a nameserver", PlainText(a.String(), 60))
		}
	}
	for i, d := range n.Search {
		c.Add(fmt.Sprintf("%s.search[%d]", at, i), ValidHostname(d))
	}
}

func (a StaticAddress) checkGateway() error {
	g := a.Gateway
	switch {
	case g.Zone() != "":
		return fmt.Errorf("%s has a zone (leave out %%%s: the NIC says where it is)", g.WithZone(""), PlainText(g.Zone(), 20))
	case g.Is4() != a.Address.Addr().Is4() || g.Is4In6():
		return fmt.Errorf("%s is not of the family of %s", g, a.Address)
	case g == a.Address.Addr():
		return fmt.Errorf("%s is the machine's own address", g)
	case !a.Address.Contains(g) && !g.IsLinkLocalUnicast():
		return fmt.Errorf("%s is not in %s, so that the machine cannot reach it (correct the prefix length or the gateway of the pool)", g, a.Address.Masked())
	}
	return nil
}
