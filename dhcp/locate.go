package dhcp

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// View is what Locate may know of the records. What it returns is not changed.
type View interface {
	HardwareByMAC(hardware.MAC) (*hardware.Hardware, bool)
	// HardwareByAddress finds the machine for which an address is reserved.
	HardwareByAddress(netip.Addr) (*hardware.Hardware, bool)
	Subnets() []*hardware.Subnet
}

// Link is what is known of the way a packet came in.
type Link struct {
	// Networks are the interface's IPv4 addresses with their prefix lengths.
	Networks []netip.Prefix
	// Source and Dest are the packet's IP addresses, SourcePort is its sender's port.
	Source, Dest netip.Addr
	SourcePort   uint16
	// ProxyPort: it came to port 4011, not 67.
	ProxyPort bool
	// RouteSource is our address towards a host that is not on the link. Nil, or the
	// zero Addr: there is none.
	RouteSource func(to netip.Addr) netip.Addr
}

// Place is who a packet came from and what is theirs.
type Place struct {
	// MAC is the client's.
	MAC hardware.MAC
	// Hardware is nil for a machine without a record that the Subnet lets in.
	Hardware *hardware.Hardware
	NIC      hardware.NIC
	Subnet   *hardware.Subnet
	// Addr is the reserved address; zero: none. Where Pooled says so it is filled in
	// from the Pool, between Locate and Decide.
	Addr netip.Addr
	// Denied says why a REQUEST of a Pool's address is told no.
	Denied string
	// Term is how long the address is given for; the Subnet's lease time where 0.
	Term time.Duration
	// Server is our address as this client is told: option 54, siaddr and URLs.
	Server netip.Addr
}

// UID is the machine's, or what stands for it.
func (p *Place) UID() string {
	if p.Hardware == nil {
		return hardware.StrangerUID(p.MAC)
	}
	return p.Hardware.Meta.UID
}

// Name is the machine's name; for one without a record its MAC.
func (p *Place) Name() string {
	if p.Hardware == nil {
		return p.MAC.String()
	}
	return p.Hardware.Meta.Name
}

// term is for how long the client has its address.
func (p *Place) term() time.Duration {
	if p.Term != 0 {
		return p.Term
	}
	return p.Subnet.Lease()
}

// Proxied reports whether another server gives this client its address.
func (p *Place) Proxied() bool { return p.Subnet != nil && p.Subnet.Proxy() }

// Locate finds the machine, its Subnet and our address there. With a Reason the
// packet is met with silence; detail, where there is any, completes the Reason's
// sentence. booting reports whether a machine without a record has begun to boot in a
// Subnet, whose later packets do not show that; nil: none has.
func Locate(c *Class, link Link, v View, booting func(*hardware.Subnet) bool) (p Place, r hardware.Reason, detail string) {
	p.MAC = c.MAC
	hw, known := v.HardwareByMAC(c.MAC)
	if known {
		p.Hardware = hw
		if p.NIC, known = hw.NIC(c.MAC); !known {
			return p, hardware.ReasonUnknownMachine, "" // the record has just changed
		}
		if !p.NIC.Answered() {
			return p, hardware.ReasonNICOff, ""
		}
	}
	if !fromRelay(c, link, v.Subnets()) {
		return p, hardware.ReasonNoSubnet, "relay " + c.GIAddr.String()
	}
	p.Subnet = pickSubnet(c, link, p.NIC, v.Subnets())
	boots := c.Netboots()
	if !known && !boots && booting != nil && p.Subnet != nil && p.Subnet.Spec.Discovery && !p.Subnet.LendsTo(false, false) {
		boots = booting(p.Subnet)
	}
	switch {
	case p.Subnet == nil && !known:
		return p, hardware.ReasonUnknownMachine, ""
	case p.Subnet == nil:
		return p, hardware.ReasonNoSubnet, whence(c, link)
	case !known && !p.Subnet.LendsTo(false, boots) && !(p.Proxied() && p.Subnet.Spec.Discovery && c.Netboots()):
		return p, hardware.ReasonUnknownMachine, ""
	case p.Subnet.Spec.Mode == hardware.ModeOff:
		return p, hardware.ReasonSubnetOff, p.Subnet.Meta.Name
	}
	if !p.Proxied() {
		p.Addr, _ = p.NIC.Reservation(p.Subnet)
		if !p.Addr.IsValid() && c.Type != dhcpv4.MessageTypeInform && !p.Subnet.LendsTo(known, boots) {
			return p, hardware.ReasonNoReservation, p.Subnet.Meta.Name
		}
	}
	p.Server, r, detail = serverAddr(c, link, p.Subnet)
	return p, r, detail
}

// Pooled reports whether the client's address comes from the Subnet's Pool.
func (p *Place) Pooled() bool {
	_, reserved := p.NIC.Reservation(p.Subnet)
	return !reserved && p.Subnet.Spec.Mode == hardware.ModePool
}

// pickSubnet finds the Subnet a client is in: what the relay or the client says
// of its link, else the address it uses where it wrote to us directly (a renewal,
// which may have come over routers), else the interface's own networks. Where
// several Subnets share one link, the one that reserves an address wins.
func pickSubnet(c *Class, link Link, n hardware.NIC, all []*hardware.Subnet) *hardware.Subnet {
	at := c.Link
	if !at.IsValid() {
		at = c.GIAddr
	}
	if !at.IsValid() && c.CIAddr.IsValid() && link.Dest.IsValid() && !link.isBroadcast() {
		at = c.CIAddr
	}
	if !at.IsValid() && link.ProxyPort {
		at = link.from()
	}
	var found *hardware.Subnet
	for _, s := range all {
		if !covers(s.Spec.Prefix, at, link) {
			continue
		}
		if _, ok := n.Reservation(s); ok {
			return s
		}
		if found == nil {
			found = s
		}
	}
	return found
}

// covers reports whether a Subnet is the one of the address, or, without one, a
// network of the interface.
func covers(subnet netip.Prefix, at netip.Addr, link Link) bool {
	if at.IsValid() {
		return subnet.Contains(at)
	}
	for _, p := range link.Networks {
		if subnet.Contains(p.Addr()) {
			return true
		}
	}
	return false
}

// whence says where a packet came from, for ReasonNoSubnet.
func whence(c *Class, link Link) string {
	switch {
	case c.Link.IsValid():
		return "link " + c.Link.String()
	case c.GIAddr.IsValid():
		return "relay " + c.GIAddr.String()
	}
	return "the interface has " + join(link.Networks)
}

// serverAddr finds our own address for a client. It refuses to guess between
// two: an installation would then work or not by the order of `ip addr`.
func serverAddr(c *Class, link Link, s *hardware.Subnet) (netip.Addr, hardware.Reason, string) {
	if s.Spec.Advertise.IsValid() {
		return s.Spec.Advertise, "", ""
	}
	var ours []netip.Addr
	for _, p := range link.Networks {
		if s.Spec.Prefix.Contains(p.Addr()) {
			ours = append(ours, p.Addr())
		}
	}
	switch {
	case len(ours) == 1:
		return ours[0], "", ""
	case len(ours) > 1:
		return netip.Addr{}, hardware.ReasonTwoAddresses, join(ours) + " are in subnet " + s.Meta.Name
	}
	far := c.GIAddr
	if !far.IsValid() {
		far = c.CIAddr
	}
	if !far.IsValid() && link.ProxyPort {
		far = link.from()
	}
	if far.IsValid() && link.RouteSource != nil {
		if a := link.RouteSource(far); a.Is4() {
			return a, "", ""
		}
	}
	return netip.Addr{}, hardware.ReasonNoServerAddress, "set advertise of subnet " + s.Meta.Name
}

// fromRelay reports whether replies may go to the relay's address, or there is none.
// A relay stands in a Subnet that we know (one with mode off will do), or it is who
// sent the packet: whoever can only make up giaddr cannot make us write anywhere.
func fromRelay(c *Class, link Link, all []*hardware.Subnet) bool {
	g := c.GIAddr
	if !g.IsValid() {
		return true
	}
	if !g.IsGlobalUnicast() {
		return false
	}
	return g == link.Source || slices.ContainsFunc(all, func(s *hardware.Subnet) bool { return isHost(s, g) })
}

// from is the packet's sender; the zero Addr where it has no address yet.
func (l Link) from() netip.Addr {
	if !l.Source.Is4() || l.Source.IsUnspecified() {
		return netip.Addr{}
	}
	return l.Source
}

// isBroadcast reports whether the packet was sent to everybody on the link.
func (l Link) isBroadcast() bool {
	if l.Dest == limitedBroadcast {
		return true
	}
	for _, p := range l.Networks {
		if l.Dest == lastAddr(p) {
			return true
		}
	}
	return false
}

// has reports whether a is an address of the receiving interface.
func (l Link) has(a netip.Addr) bool {
	for _, p := range l.Networks {
		if p.Addr() == a {
			return true
		}
	}
	return false
}

// join prints a list for people.
func join[T interface{ String() string }](list []T) string {
	if len(list) == 0 {
		return "no IPv4 address"
	}
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return strings.Join(out, " and ")
}

// lastAddr is the broadcast address of an IPv4 prefix.
func lastAddr(p netip.Prefix) netip.Addr {
	a := p.Masked().Addr()
	if !a.Is4() {
		return a
	}
	b := a.As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(b)
}
