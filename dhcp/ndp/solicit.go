package ndp

import (
	"encoding/binary"
	"net/netip"

	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
)

const (
	ipv6Header = 40
	hopLimit   = 255 // of every NDP packet: a router in between would have lowered it
	icmpv6     = 58

	typeSolicitation  = 133
	typeAdvertisement = 134
	optSourceLinkAddr = 1

	solicitationHeader  = 8
	advertisementHeader = 16
)

// Outcome is what became of a Router Solicitation; a metric label.
type Outcome string

// The outcomes.
const (
	// Answered: an advertisement left.
	Answered Outcome = "answered"
	// Malformed: no valid solicitation (RFC 4861 section 6.1.1).
	Malformed Outcome = "malformed"
	// NoUnicast: the sender has no link-local address yet, or not its own Ethernet
	// address. An answer would have to go to all hosts, and is not given.
	NoUnicast Outcome = "no-unicast"
	// NotBooting: a stranger, or a machine that is not in iPXE.
	NotBooting Outcome = "not-booting"
	// RateLimited: this machine has had enough answers for now.
	RateLimited Outcome = "rate-limited"
	// SendFailed: the kernel did not take the answer.
	SendFailed Outcome = "send-failed"
)

// Solicitation is a Router Solicitation that can be answered by unicast.
type Solicitation struct {
	MAC    hardware.MAC
	Source netip.Addr // link-local
}

// Parse reads a packet from its IPv6 header on; from is the Ethernet address that
// sent it. An Outcome that is not empty says why it gets no answer.
func Parse(packet []byte, from hardware.MAC) (Solicitation, Outcome) {
	if len(packet) < ipv6Header || packet[0]>>4 != 6 || packet[6] != icmpv6 || packet[7] != hopLimit {
		return Solicitation{}, Malformed
	}
	// What follows the payload is padding of a short Ethernet frame.
	end := ipv6Header + int(binary.BigEndian.Uint16(packet[4:]))
	if end < ipv6Header+solicitationHeader || end > len(packet) {
		return Solicitation{}, Malformed
	}
	packet = packet[:end]
	icmp := packet[ipv6Header:]
	if icmp[0] != typeSolicitation || icmp[1] != 0 || checksum(packet) != 0xffff {
		return Solicitation{}, Malformed
	}
	s := Solicitation{MAC: from, Source: netip.AddrFrom16([16]byte(packet[8:24]))}
	own := s.Source.IsLinkLocalUnicast()
	for opts := icmp[solicitationHeader:]; len(opts) > 0; {
		// The length counts units of eight bytes.
		if len(opts) < 8 || opts[1] == 0 || int(opts[1])*8 > len(opts) {
			return Solicitation{}, Malformed
		}
		if opts[0] == optSourceLinkAddr {
			if s.Source.IsUnspecified() {
				return Solicitation{}, Malformed
			}
			own = own && hardware.MAC(opts[2:8]) == from
		}
		opts = opts[int(opts[1])*8:]
	}
	if !own {
		return Solicitation{}, NoUnicast
	}
	return s, ""
}

// checksum sums an ICMPv6 packet with the pseudo header of RFC 8200 section 8.1;
// it is 0xffff over a packet whose checksum is right.
func checksum(packet []byte) uint16 {
	var upper [8]byte
	binary.BigEndian.PutUint32(upper[:], uint32(len(packet)-ipv6Header))
	upper[7] = icmpv6 // after three zero bytes
	return dhcp.Sum(dhcp.Sum(dhcp.Sum(0, packet[8:ipv6Header]), upper[:]), packet[ipv6Header:])
}
