package netup

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// Ports of DHCP (RFC 2131 section 4.1).
const (
	serverPort = 67
	clientPort = 68
)

const (
	etherLen = 14
	ipLen    = 20
	udpLen   = 8
)

// frame wraps a DHCP message of a client without an address: Ethernet broadcast
// from mac, IP from 0.0.0.0 to 255.255.255.255, UDP 68 to 67.
func frame(mac net.HardwareAddr, payload []byte) []byte {
	b := make([]byte, etherLen+ipLen+udpLen, etherLen+ipLen+udpLen+len(payload))
	for i := range 6 {
		b[i] = 0xff
	}
	copy(b[6:12], mac)
	binary.BigEndian.PutUint16(b[12:], 0x0800)

	ip := b[etherLen:]
	ip[0] = 0x45
	binary.BigEndian.PutUint16(ip[2:], uint16(ipLen+udpLen+len(payload)))
	ip[8], ip[9] = 64, 17
	copy(ip[16:20], []byte{255, 255, 255, 255})
	binary.BigEndian.PutUint16(ip[10:], checksum(ip[:ipLen]))

	udp := ip[ipLen:]
	binary.BigEndian.PutUint16(udp[0:], clientPort)
	binary.BigEndian.PutUint16(udp[2:], serverPort)
	// The checksum stays 0, "none" (RFC 768).
	binary.BigEndian.PutUint16(udp[4:], uint16(udpLen+len(payload)))
	return append(b, payload...)
}

// payload is the UDP payload of an Ethernet frame for the DHCP client's port, with
// the address that sent it; false for any other frame. UDP checksums are not
// judged: a hypervisor's bridge leaves them to a card that never sees the frame.
func payload(b []byte) ([]byte, netip.Addr, bool) {
	if len(b) < etherLen+ipLen+udpLen || binary.BigEndian.Uint16(b[12:]) != 0x0800 {
		return nil, netip.Addr{}, false
	}
	ip := b[etherLen:]
	head, total := int(ip[0]&0x0f)*4, int(binary.BigEndian.Uint16(ip[2:]))
	fragment := binary.BigEndian.Uint16(ip[6:]) & 0x3fff
	if ip[0]>>4 != 4 || head < ipLen || total > len(ip) || total < head+udpLen || ip[9] != 17 || fragment != 0 {
		return nil, netip.Addr{}, false
	}
	udp := ip[head:total]
	n := int(binary.BigEndian.Uint16(udp[4:]))
	if binary.BigEndian.Uint16(udp[2:]) != clientPort || n < udpLen || n > len(udp) {
		return nil, netip.Addr{}, false
	}
	return udp[udpLen:n], netip.AddrFrom4([4]byte(ip[12:16])), true
}

// checksum is the Internet checksum of an IP header (RFC 1071).
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
