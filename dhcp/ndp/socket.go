package ndp

import (
	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/hardware"
)

// allRoutersMAC is where solicitations go: ff02::2 as Ethernet has it (RFC 2464
// section 7).
var allRoutersMAC = hardware.MAC{0x33, 0x33, 0, 0, 0, 2}

// solicitations lets through ICMPv6 of type 133 that comes straight from its
// sender, so that the rest of a network's IPv6 traffic does not wake us.
var solicitations = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 6}, // next header and hop limit
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: icmpv6<<8 | hopLimit, Jf: 3},
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: ipv6Header},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: typeSolicitation, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 16},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
}

// joinRouters makes the kernel report us as member of ff02::2, because switches
// that snoop on MLD send solicitations to members only (RFC 4541 section 3). It
// returns the descriptor that holds the membership; -1 where the interface has no
// IPv6, which leaves what the packet socket hears.
func joinRouters(index int) int {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	group := unix.IPv6Mreq{Multiaddr: [16]byte{0: 0xff, 1: 0x02, 15: 2}, Interface: uint32(index)}
	if err := unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &group); err != nil {
		_ = unix.Close(fd)
		return -1
	}
	return fd
}
