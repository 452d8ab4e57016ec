package workflow

import (
	"fmt"
	"strings"

	"github.com/rackstrap/rackstrap/hardware"
)

// place is what DHCP can do for one NIC.
type place struct {
	nic    hardware.NIC
	subnet *hardware.Subnet // of the reservation, or the one that comes near
	ok     bool             // it can be answered
	text   string           // what is so, in words
	fix    string           // where it is not ok
}

// places looks at every NIC as DHCP will.
func (s *Snapshot) places() []place {
	var out []place
	for _, n := range s.hw().Spec.Interfaces {
		out = append(out, s.place(n))
	}
	return out
}

func (s *Snapshot) place(n hardware.NIC) place {
	p := place{nic: n}
	if !n.Answered() {
		p.text = fmt.Sprintf("NIC %s: the record says dhcp: false, so it is never answered", n.MAC)
		p.fix = "remove dhcp: false from one of its NICs, or boot from another one"
		return p
	}
	var off *hardware.Subnet
	for _, sub := range s.Subnets {
		if sub == nil {
			continue
		}
		a, ok := n.Reservation(sub)
		switch {
		case !ok:
		case sub.Spec.Mode == hardware.ModeOff:
			off = sub
		default:
			p.ok, p.subnet = true, sub
			p.text = fmt.Sprintf("NIC %s: %s is reserved for it in subnet %s (%s)", n.MAC, a, sub.Meta.Name, sub.Spec.Prefix)
			return p
		}
	}
	lent := s.lent()
	switch {
	case lent != nil && lent.Proxy():
		p.ok, p.subnet = true, lent
		p.text = fmt.Sprintf("NIC %s: another DHCP server gives it an address in subnet %s (%s)", n.MAC, lent.Meta.Name, lent.Spec.Prefix)
	case lent != nil:
		p.ok, p.subnet = true, lent
		p.text = fmt.Sprintf("NIC %s: the pool of subnet %s (%s) lends it an address", n.MAC, lent.Meta.Name, lent.Spec.Prefix)
	case off != nil:
		p.subnet = off
		p.text = fmt.Sprintf("NIC %s: its address is in subnet %s, whose mode is off", n.MAC, off.Meta.Name)
		p.fix = fmt.Sprintf("set spec.mode: reservation in the subnet (%s)", typeSubnet(off.Meta.Name))
	case len(n.Addresses) == 0:
		p.text = fmt.Sprintf("NIC %s: the record reserves no address for it", n.MAC)
		p.fix = "add one to spec.interfaces[].addresses, with the prefix length: 10.0.0.5/24"
	case len(s.Subnets) == 0:
		p.text = fmt.Sprintf("NIC %s: it has %s, and there is no Subnet record at all", n.MAC, addresses(n))
		p.fix = "make a Subnet record for its network: rackstrap apply -f subnet.yaml"
	default:
		p.text = fmt.Sprintf("NIC %s: %s is in no Subnet (there are %s)", n.MAC, addresses(n), s.subnetNames())
		p.fix = "correct the address, or make a Subnet record for its network: rackstrap apply -f subnet.yaml"
	}
	return p
}

// lent is the Subnet in which a NIC without a reservation gets an address: the one that
// the machine booted in, else the first that can be it; nil where there is none.
func (s *Snapshot) lent() *hardware.Subnet {
	var first *hardware.Subnet
	for _, sub := range s.Subnets {
		if sub == nil || !sub.Proxy() && !sub.LendsTo(true, true) {
			continue
		}
		if s.Boot != nil && sub.Spec.Prefix.Contains(s.Boot.Client) {
			return sub
		}
		if first == nil {
			first = sub
		}
	}
	return first
}

func addresses(n hardware.NIC) string {
	var out []string
	for _, a := range n.Addresses {
		out = append(out, a.String())
	}
	return strings.Join(out, " and ")
}

// subnetNames names some subnets with their networks.
func (s *Snapshot) subnetNames() string {
	const most = 4
	var out []string
	for i, sub := range s.Subnets {
		if i == most {
			out = append(out, fmt.Sprintf("%d more", len(s.Subnets)-most))
			break
		}
		if sub != nil {
			out = append(out, fmt.Sprintf("%s %s", sub.Meta.Name, sub.Spec.Prefix))
		}
	}
	return strings.Join(out, ", ")
}
