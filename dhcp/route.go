package dhcp

import (
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// The UDP ports (RFC 2131 section 4.1).
const (
	ServerPort = 67
	ClientPort = 68
)

var limitedBroadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// Destination is where a reply goes.
type Destination struct {
	To netip.AddrPort
	// MAC is the Ethernet destination where the client cannot answer ARP yet;
	// all ones for broadcast. The zero MAC: the kernel's routing finds it.
	MAC hardware.MAC
}

// replyFrom is the address of ours that a reply leaves from: as the client knows us,
// and on port 4011 the one that it asked, which some firmware compares.
func replyFrom(link Link, p *Place) netip.Addr {
	if link.ProxyPort && link.has(link.Dest) {
		return link.Dest
	}
	return p.Server
}

var broadcastMAC = hardware.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Route finds the destination of a reply by RFC 2131 section 4.1: the relay; for
// a NAK everybody on the link; the address in use; everybody, where the client
// says that it must be so; else the new address at the client's MAC.
//
// The address in use is the one in the reply, which Decide has checked: ciaddr as
// the client wrote it could make us write to anybody.
func Route(c *Class, link Link, reply *dhcpv4.DHCPv4) Destination {
	everybody := Destination{To: netip.AddrPortFrom(limitedBroadcast, ClientPort), MAC: broadcastMAC}
	switch {
	case link.ProxyPort:
		// To whoever asked, where Decide has checked the address. Nobody relays this port.
		if from := link.from(); from.IsValid() {
			return Destination{To: netip.AddrPortFrom(from, link.SourcePort)}
		}
		return everybody
	case c.GIAddr.IsValid():
		return Destination{To: netip.AddrPortFrom(c.GIAddr, ServerPort)}
	case reply.MessageType() == dhcpv4.MessageTypeNak:
		return everybody
	}
	if a, _ := netip.AddrFromSlice(reply.ClientIPAddr.To4()); a.IsValid() && !a.IsUnspecified() {
		return Destination{To: netip.AddrPortFrom(a, ClientPort)}
	}
	yiaddr, _ := netip.AddrFromSlice(reply.YourIPAddr.To4())
	if c.Broadcast || yiaddr.IsUnspecified() { // a proxy offer has no address
		return everybody
	}
	return Destination{To: netip.AddrPortFrom(yiaddr, ClientPort), MAC: c.MAC}
}
