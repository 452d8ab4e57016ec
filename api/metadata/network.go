package metadata

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/rackstrap/rackstrap/hardware"
)

type networkConfig struct {
	Version int `yaml:"version"`
	// Ethernets are written in the order of the numbers in their keys.
	Ethernets map[string]*ethernet `yaml:"ethernets"`
}

type ethernet struct {
	Match       match        `yaml:"match"`
	SetName     text         `yaml:"set-name,omitempty"`
	DHCP4       bool         `yaml:"dhcp4"`
	AcceptRA    *bool        `yaml:"accept-ra,omitempty"`
	Optional    bool         `yaml:"optional,omitempty"`
	MTU         uint16       `yaml:"mtu,omitempty"`
	Addresses   []text       `yaml:"addresses,omitempty"`
	Routes      []route      `yaml:"routes,omitempty"`
	Nameservers *nameservers `yaml:"nameservers,omitempty"`
}

type match struct {
	MAC text `yaml:"macaddress"`
}

type route struct {
	To  text `yaml:"to"`
	Via text `yaml:"via"`
}

type nameservers struct {
	Addresses []text `yaml:"addresses,omitempty"`
	Search    []text `yaml:"search,omitempty"`
}

// NetworkConfig is the machine's network as cloud-init network-config version 2,
// without the `network:` key around it: the form NoCloud wants. A NIC with
// reserved addresses has them as static ones, with gateway, DNS and routes of
// their Subnets; one without an IPv4 reservation asks by DHCP; one that we never
// answer and that has no address is left alone. static, where not nil, is what the
// install says besides. It errs only where a value cannot be written as YAML.
func NetworkConfig(h *hardware.Hardware, subnets []*hardware.Subnet, static *hardware.StaticNetwork) ([]byte, error) {
	if static == nil {
		static = &hardware.StaticNetwork{}
	}
	cfg := networkConfig{Version: 2, Ethernets: map[string]*ethernet{}}
	// One default route: netplan refuses a second one.
	gateway := slices.ContainsFunc(static.Addresses, func(a hardware.StaticAddress) bool { return a.Gateway.Is4() })
	for i, n := range h.Spec.Interfaces {
		given := slices.DeleteFunc(slices.Clone(static.Addresses), func(a hardware.StaticAddress) bool { return a.On(h) != i })
		n.Addresses = replaced(n.Addresses, given)
		e := newEthernet(n, i == 0)
		for _, s := range ownSubnets(n, subnets) {
			// Who gives an IPv4 address to a NIC says whether it has a default route too.
			own := slices.ContainsFunc(given, func(a hardware.StaticAddress) bool { return a.Address.Addr().Is4() })
			if had := e.add(s, gateway || own); !own {
				gateway = had
			}
		}
		e.give(given, static)
		if e.DHCP4 || len(e.Addresses) > 0 || e.SetName != "" {
			// The key is ours, not the record's: as a plain key, a NIC called `no` or
			// `1e3` would be read as something else than a string.
			cfg.Ethernets[fmt.Sprintf("nic%d", i)] = e
		}
	}
	return marshal(cfg)
}

// replaced are the addresses of a NIC, those that are given instead of those of the
// record of the same family.
func replaced(have []netip.Prefix, given []hardware.StaticAddress) []netip.Prefix {
	var out []netip.Prefix
	families := map[bool]bool{}
	for _, a := range given {
		out = append(out, a.Address)
		families[a.Address.Addr().Is4()] = true
	}
	for _, p := range have {
		if !families[p.Addr().Is4()] {
			out = append(out, p)
		}
	}
	return out
}

// give adds the default routes of the given addresses, and the nameservers and search
// domains of all NICs.
func (e *ethernet) give(given []hardware.StaticAddress, static *hardware.StaticNetwork) {
	done := map[netip.Addr]bool{}
	for _, a := range given {
		if !a.Gateway.IsValid() || done[a.Gateway] {
			continue
		}
		done[a.Gateway] = true
		to := text("::/0")
		if a.Gateway.Is4() {
			to = "0.0.0.0/0"
		}
		e.Routes = append(e.Routes, route{To: to, Via: text(a.Gateway.String())})
	}
	if len(static.Nameservers)+len(static.Search) == 0 {
		return
	}
	if e.Nameservers == nil {
		e.Nameservers = &nameservers{}
	}
	if len(static.Nameservers) > 0 {
		e.Nameservers.Addresses = texts(static.Nameservers)
	}
	if len(static.Search) > 0 {
		e.Nameservers.Search = nil
		for _, d := range static.Search {
			e.Nameservers.Search = append(e.Nameservers.Search, text(d))
		}
	}
}

func newEthernet(n hardware.NIC, first bool) *ethernet {
	e := &ethernet{
		Match:     match{MAC: text(n.MAC.String())},
		SetName:   text(n.Name),
		Addresses: texts(n.Addresses),
		DHCP4:     n.Answered(),
	}
	six := false
	for _, p := range n.Addresses {
		if p.Addr().Is4() {
			e.DHCP4 = false
		} else {
			six = true
		}
	}
	if len(e.Addresses) > 0 && !six {
		// With static addresses only, systemd-networkd has nothing else to wait for, so
		// it waits 12 s for an IPv6 router before it says that it is online. One that
		// asks by DHCP waits for that, and one with IPv6 addresses needs the router.
		e.AcceptRA = new(bool)
	}
	// systemd-networkd-wait-online holds the start of an installed system for two
	// minutes for a NIC without a cable, unless it is optional.
	e.Optional = !first && len(e.Addresses) == 0
	return e
}

// ownSubnets are the subnets in which the NIC has an IPv4 address, each once, in
// the order of the addresses.
func ownSubnets(n hardware.NIC, subnets []*hardware.Subnet) []*hardware.Subnet {
	var out []*hardware.Subnet
	seen := map[netip.Prefix]bool{}
	for _, p := range n.Addresses {
		for _, s := range subnets {
			if p.Addr().Is4() && s.Spec.Prefix.Contains(p.Addr()) && !seen[s.Spec.Prefix] {
				seen[s.Spec.Prefix] = true
				out = append(out, s)
			}
		}
	}
	return out
}

// add takes over what the subnet says and reports whether the machine has a
// default route now.
func (e *ethernet) add(s *hardware.Subnet, gateway bool) bool {
	sp := &s.Spec
	if e.MTU == 0 {
		e.MTU = sp.MTU
	}
	if sp.Gateway.IsValid() && !gateway {
		gateway = true
		// Not `to: default`: the ENI and networkd renderers of cloud-init 22.4 die of
		// it, and gateway4 is deprecated in netplan. All of them take this form.
		e.Routes = append(e.Routes, route{To: "0.0.0.0/0", Via: text(sp.Gateway.String())})
	}
	for _, r := range sp.Routes {
		if r.To.Bits() == 0 {
			if gateway {
				continue
			}
			gateway = true
		}
		e.Routes = append(e.Routes, route{To: text(r.To.String()), Via: text(r.Via.String())})
	}
	if search := searchList(sp); len(sp.DNS)+len(search) > 0 {
		if e.Nameservers == nil {
			e.Nameservers = &nameservers{}
		}
		e.Nameservers.Addresses = appendNew(e.Nameservers.Addresses, texts(sp.DNS))
		e.Nameservers.Search = appendNew(e.Nameservers.Search, search)
	}
	return gateway
}

// searchList is the subnet's search list, its domain where it has none.
func searchList(sp *hardware.SubnetSpec) []text {
	if len(sp.Search) == 0 && sp.Domain != "" {
		return []text{text(sp.Domain)}
	}
	var out []text
	for _, d := range sp.Search {
		out = append(out, text(d))
	}
	return out
}

func appendNew(list, more []text) []text {
	seen := map[text]bool{}
	for _, t := range list {
		seen[t] = true
	}
	for _, t := range more {
		if !seen[t] {
			seen[t] = true
			list = append(list, t)
		}
	}
	return list
}
