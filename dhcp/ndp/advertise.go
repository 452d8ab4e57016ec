package ndp

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/rackstrap/rackstrap/hardware"
)

// Advertise makes the Router Advertisement from us to a link-local address, from
// its IPv6 header on. Every field of it says "unspecified" or "none": the hop
// limit, the flags for DHCPv6, the timers, and the lifetime, which of zero means
// that we are no default router (RFC 4861 section 4.2). There are no options, so
// no prefix, route or DNS server either.
func Advertise(from, to netip.Addr) []byte {
	b := make([]byte, ipv6Header+advertisementHeader)
	b[0] = 6 << 4
	binary.BigEndian.PutUint16(b[4:], advertisementHeader)
	b[6], b[7] = icmpv6, hopLimit
	src, dst := from.As16(), to.As16()
	copy(b[8:], src[:])
	copy(b[24:], dst[:])
	icmp := b[ipv6Header:]
	icmp[0] = typeAdvertisement
	binary.BigEndian.PutUint16(icmp[2:], ^checksum(b))
	return b
}

// source is the link-local address that an interface with these addresses speaks
// from. Where IPv6 is off it has none: then the one it would make from its MAC
// (RFC 4291 appendix A), because an advertisement must come from one.
func source(mac hardware.MAC, addrs []net.Addr) netip.Addr {
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if ip, _ := netip.AddrFromSlice(n.IP); ip.Unmap().Is6() && ip.IsLinkLocalUnicast() {
				return ip
			}
		}
	}
	return netip.AddrFrom16([16]byte{
		0xfe, 0x80, 8: mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5],
	})
}

// Booting knows which machines to answer.
type Booting interface {
	// Booting reports whether the machine with that MAC has an open boot that did
	// not fetch its boot script yet. It is called by one goroutine for each
	// interface and must not wait for long.
	Booting(mac hardware.MAC) bool
}

// Judge decides whether a packet is answered. The Outcome is empty where it is.
func Judge(packet []byte, from hardware.MAC, b Booting) (Solicitation, Outcome) {
	s, outcome := Parse(packet, from)
	if outcome == "" && !b.Booting(s.MAC) {
		outcome = NotBooting
	}
	return s, outcome
}
