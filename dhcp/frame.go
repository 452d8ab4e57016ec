package dhcp

import (
	"encoding/binary"
	"net/netip"
)

// frame puts an IPv4 and a UDP header before payload, for packet sockets: the
// kernel cannot send to a client that does not own its address yet.
func frame(src, dst netip.AddrPort, payload []byte) []byte {
	b := make([]byte, ipUDPHeader, ipUDPHeader+len(payload))
	b = append(b, payload...)
	s, d := src.Addr().As4(), dst.Addr().As4()

	ip := b[:20]
	ip[0] = 4<<4 | 5
	binary.BigEndian.PutUint16(ip[2:], uint16(len(b)))
	ip[6] = 0x40 // don't fragment: it fits, and some ROMs do not put fragments together
	ip[8] = 64   // hops
	ip[9] = 17   // UDP
	copy(ip[12:], s[:])
	copy(ip[16:], d[:])
	binary.BigEndian.PutUint16(ip[10:], ^Sum(0, ip))

	udp := b[20:]
	binary.BigEndian.PutUint16(udp[0:], src.Port())
	binary.BigEndian.PutUint16(udp[2:], dst.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	// The checksum covers a pseudo header (RFC 768).
	pseudo := Sum(Sum(17, s[:]), d[:])
	check := ^Sum(addOnes(pseudo, uint16(len(udp))), udp)
	if check == 0 {
		check = 0xffff // zero on the wire means "none"
	}
	binary.BigEndian.PutUint16(udp[6:], check)
	return b
}

// Sum continues the Internet checksum's one's complement sum over b (RFC 1071).
// The checksum is its complement; over a packet with its checksum it is 0xffff.
func Sum(acc uint16, b []byte) uint16 {
	s := uint32(acc)
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

func addOnes(a, b uint16) uint16 {
	s := uint32(a) + uint32(b)
	return uint16(s>>16 + s&0xffff)
}
