package dhcp

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/hardware"
)

// ARP for IPv4 over Ethernet (RFC 826): hardware and protocol type, their lengths,
// operation, then the sender's and the target's addresses.
const (
	arpSize      = 28
	arpOp        = 6
	arpSenderMAC = 8
	arpSenderIP  = 14
	arpTargetIP  = 24
	arpRequest   = 1
	arpReply     = 2
)

// arpProbe asks who has an address without saying that we have one (RFC 5227 section
// 2.1.1): the sender's IP address is 0, so that no cache learns from it.
func arpProbe(from hardware.MAC, target netip.Addr) []byte {
	b := []byte{0, 1, 8, 0, 6, 4, 0, arpRequest}
	b = append(b, from[:]...)
	b = append(b, make([]byte, 10)...)
	t := target.As4()
	return append(b, t[:]...)
}

// readARP tells who says in a request or a reply that it has an address; both mean that
// it is in use (RFC 5227 section 2.1.1).
func readARP(b []byte) (a netip.Addr, who hardware.MAC, ok bool) {
	if len(b) < arpSize || [6]byte(b[:6]) != [6]byte{0, 1, 8, 0, 6, 4} {
		return a, who, false
	}
	if op := binary.BigEndian.Uint16(b[arpOp:]); op != arpRequest && op != arpReply {
		return a, who, false
	}
	a = addr4(b[arpSenderIP : arpSenderIP+4])
	who = hardware.MAC(b[arpSenderMAC:arpSenderIP])
	return a, who, a.IsValid() && !who.IsZero() && !who.IsMulticast()
}

// arpClaims is the classic BPF program for readARP: IPv4 over Ethernet from somebody
// with an address. Offset 0 is the ARP packet.
func arpClaims() []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x00010800, Jf: 5},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x0604, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: arpSenderIP},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 128},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
}

// ICMP echo (RFC 792): type, code, checksum, identifier, sequence.
const (
	icmpSize      = 8
	icmpEcho      = 8
	icmpEchoReply = 0
)

func icmpProbe(id, seq uint16) []byte {
	b := make([]byte, icmpSize, icmpSize+16)
	b[0] = icmpEcho
	binary.BigEndian.PutUint16(b[4:], id)
	binary.BigEndian.PutUint16(b[6:], seq)
	b = append(b, "is it in use?..."...)
	binary.BigEndian.PutUint16(b[2:], ^Sum(0, b))
	return b
}

// readICMP reports whether a message answers an echo of ours. Some hosts leave the
// checksum to their hardware, so it is the kernel's business.
func readICMP(b []byte, id uint16) bool {
	return len(b) >= icmpSize && b[0] == icmpEchoReply && b[1] == 0 && binary.BigEndian.Uint16(b[4:]) == id
}

// echoReplies is the classic BPF program for readICMP. Offset 0 is the IP header.
func echoReplies(id uint16) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 0},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: icmpEchoReply << 8, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(id), Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 256},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
}
