package netup

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// Lease is what a DHCP server gave us.
type Lease struct {
	Addr   netip.Prefix
	Server netip.Addr
	Routes []Route
	DNS    []netip.Addr
	Search []string
	MTU    int // 0: the card's own
	// Times since the ACK: renew, ask anybody, stop using.
	Renew, Rebind, Expire time.Duration
}

// Route is one entry of the routing table; an invalid Via is a route on the link.
type Route struct {
	To  netip.Prefix
	Via netip.Addr
}

func (l Lease) String() string {
	s := fmt.Sprintf("%v from %v for %v", l.Addr, l.Server, l.Expire.Round(time.Second))
	for _, r := range l.Routes {
		if r.To.Bits() == 0 {
			s += fmt.Sprintf(", gateway %v", r.Via)
		}
	}
	return s
}

// shortLease is the shortest lease time that is believed: a server that gives less
// would be asked all the time.
const shortLease = time.Minute

// noLeaseTime stands for a lease time that the server did not give.
const noLeaseTime = time.Hour

// parseLease reads an ACK. Its error says what the server left out.
func parseLease(p *dhcpv4.DHCPv4) (Lease, error) {
	var l Lease
	addr, ok := netip.AddrFromSlice(p.YourIPAddr.To4())
	if !ok || addr.IsUnspecified() || addr.IsMulticast() {
		return l, fmt.Errorf("dhcp: the server confirmed %v, which is no address", p.YourIPAddr)
	}
	bits := 0
	if m := p.SubnetMask(); m != nil {
		bits, _ = m.Size()
	}
	if bits == 0 {
		return l, fmt.Errorf("dhcp: the server gave %v without a subnet mask (option 1)", addr)
	}
	l.Addr = netip.PrefixFrom(addr, bits)
	l.Server, _ = netip.AddrFromSlice(p.ServerIdentifier().To4())
	l.Routes = routes(p)
	for _, ip := range p.DNS() {
		if a, ok := netip.AddrFromSlice(ip.To4()); ok {
			l.DNS = append(l.DNS, a)
		}
	}
	if s := p.DomainSearch(); s != nil {
		l.Search = s.Labels
	} else if d := p.DomainName(); d != "" {
		l.Search = []string{d}
	}
	if m, err := dhcpv4.GetUint16(dhcpv4.OptionInterfaceMTU, p.Options); err == nil && m >= 576 {
		l.MTU = int(m)
	}
	// RFC 2131 section 4.4.5: T1 and T2 are half and seven eighths of the lease
	// where the server does not say otherwise.
	l.Expire = max(p.IPAddressLeaseTime(noLeaseTime), shortLease)
	l.Renew = p.IPAddressRenewalTime(l.Expire / 2)
	l.Rebind = p.IPAddressRebindingTime(l.Expire * 7 / 8)
	if l.Renew <= 0 || l.Renew >= l.Rebind || l.Rebind >= l.Expire {
		l.Renew, l.Rebind = l.Expire/2, l.Expire*7/8
	}
	return l, nil
}

// routes reads option 121; who sends it means it instead of option 3 (RFC 3442).
func routes(p *dhcpv4.DHCPv4) []Route {
	var out []Route
	for _, r := range p.ClasslessStaticRoute() {
		if r.Dest == nil {
			continue
		}
		to, ok := netip.AddrFromSlice(r.Dest.IP.To4())
		bits, _ := r.Dest.Mask.Size()
		via, viaOK := netip.AddrFromSlice(r.Router.To4())
		if !ok || !viaOK {
			continue
		}
		if via.IsUnspecified() {
			via = netip.Addr{}
		}
		out = append(out, Route{netip.PrefixFrom(to, bits).Masked(), via})
	}
	if len(out) > 0 {
		return out
	}
	for _, ip := range p.Router() {
		if via, ok := netip.AddrFromSlice(ip.To4()); ok && !via.IsUnspecified() {
			return []Route{{netip.PrefixFrom(netip.IPv4Unspecified(), 0), via}}
		}
	}
	return nil
}
