package dhcp

import (
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// ProxyPort is where PXE firmware asks the server of a proxy offer for its boot file
// (PXE 2.1 section 2.2.3).
const ProxyPort = 4011

// proxied answers a packet in a Subnet where another server gives the addresses (PXE
// 2.1 section 2.2): firmware is offered a boot file, without an address, and nobody
// else gets anything. The REQUEST is for the other server, and tells us which address
// the boot will have. Nobody is ever told no.
func proxied(c *Class, p *Place, boot *hardware.Boot, f Files) Decision {
	d := Decision{Reason: hardware.ReasonProxySilent}
	switch c.Type {
	case dhcpv4.MessageTypeDiscover:
		if boot != nil {
			d.proxyOffer(c, p, boot, f)
		}
	case dhcpv4.MessageTypeRequest:
		asked := c.Requested
		if !asked.IsValid() {
			asked = c.CIAddr
		}
		d.Detail = "asked for " + asked.String()
		if boot != nil {
			d.Client = proxyClient(p, boot, asked)
			d.File, d.Boot, d.BootDetail = bootFile(c, p, boot, f)
		}
	default:
	}
	return d
}

// proxyClient is the address that a boot is known by from now on. Any machine of the
// network can forge a REQUEST, so it is one of the Subnet and not our own, and once the
// script was given nothing changes it any more.
func proxyClient(p *Place, boot *hardware.Boot, at netip.Addr) netip.Addr {
	if !isHost(p.Subnet, at) || at == p.Server || (boot.Client.IsValid() && boot.Phase >= hardware.PhaseScript) {
		return netip.Addr{}
	}
	return at
}

// isHost reports whether a may be a client's address in the subnet.
func isHost(s *hardware.Subnet, a netip.Addr) bool {
	return a.IsValid() && s.Spec.Prefix.Contains(a) && a != s.Spec.Prefix.Masked().Addr() && a != lastAddr(s.Spec.Prefix)
}

// proxyOffer offers the boot file beside the other server's offer of an address. A
// client that is to boot nothing of ours is left to the other server where it then goes
// on by itself: BIOS ROMs and iPXE take an address without a file as "nothing to boot".
func (d *Decision) proxyOffer(c *Class, p *Place, boot *hardware.Boot, f Files) {
	d.File, d.Boot, d.BootDetail = bootFile(c, p, boot, f)
	if d.File == "" && c.Firmware != hardware.FirmwareUEFI && c.Firmware != hardware.FirmwareUEFIARM {
		return
	}
	d.Reason = hardware.ReasonProxyOffered
	if d.File == ProgramShim || d.File == ProgramShimARM {
		// shim loads GRUB from the server of the offer, and GRUB its grub.cfg from the
		// one in the other server's ACK (siaddr), whatever that is.
		d.BootDetail = d.File + "; GRUB goes on at the next-server of the other DHCP server, which must be " + p.Server.String()
	}
	r := newReply(dhcpv4.MessageTypeOffer)
	// A relay's server identifier override (RFC 5107) is not for us: it serves
	// renewals, of which we get none, and port 4011 would be looked for at the relay.
	r.put(optServerID, p.Server.AsSlice()...)
	r.echo(c)
	r.proxyOptions(c, d.File, p.Server, false)
	d.Reply = r.packet(c)
	// There is no address that the offer could be sent to, by us or by a relay.
	d.Reply.SetBroadcast()
}

// bootServer answers what comes to port 4011, and the broadcast search for a boot
// server on port 67. Firmware comes here after a proxy offer, and some does after any
// answer that says PXEClient; where nobody is, it waits a minute and says PXE-E55.
func bootServer(c *Class, link Link, p *Place, boot *hardware.Boot, f Files) Decision {
	if boot == nil {
		return Decision{Reason: hardware.ReasonProxySilent}
	}
	at := c.CIAddr
	if !at.IsValid() {
		at = link.from()
	}
	switch {
	case at.IsValid() && !isHost(p.Subnet, at), link.from().IsValid() && at != link.from():
		return Decision{Reason: hardware.ReasonWrongAddress, Detail: at.String() + " asked from " + link.Source.String()}
	case p.Addr.IsValid() && at.IsValid() && at != p.Addr:
		return Decision{Reason: hardware.ReasonWrongAddress, Detail: wrong(at, p)}
	}
	d := Decision{Reason: hardware.ReasonProxyAnswered, Detail: "at " + at.String()}
	if !at.IsValid() {
		d.Detail = "before it has an address"
	} else if p.Proxied() {
		d.Client = proxyClient(p, boot, at)
	}
	d.File, d.Boot, d.BootDetail = bootFile(c, p, boot, f)
	r := newReply(dhcpv4.MessageTypeAck)
	r.put(optServerID, p.Server.AsSlice()...)
	r.echo(c)
	r.proxyOptions(c, d.File, p.Server, true)
	d.Reply = r.packet(c)
	d.Reply.ClientIPAddr = ip4(c.CIAddr)
	return d
}

// asksBootServer reports whether a REQUEST is a search for a boot server (PXE 2.1
// section 2.2.4): the client has its address and names the kind of server.
func (c *Class) asksBootServer() bool {
	return c.Type == dhcpv4.MessageTypeRequest && len(c.BootItem) > 0 && c.CIAddr.IsValid() && !c.ServerID.IsValid()
}

// proxyOptions writes the boot file into an answer without an address; final: the
// client asked us directly.
//
//   - BIOS ROMs and iPXE take the file from the offer where bit 3 of the discovery
//     control says so, and need not come to port 4011.
//   - UEFI PXE is offered PXEClient without option 43. Some of it drops offers that
//     say to bypass the search for a boot server, all of it takes this form, which is
//     Microsoft's (BINL): it asks port 4011 for the file.
//   - UEFI HTTP boot takes the URL from an offer that says HTTPClient.
func (r *reply) proxyOptions(c *Class, file string, server netip.Addr, final bool) {
	legacy := c.IPXE() || c.Firmware == hardware.FirmwareBIOS
	switch {
	case c.HTTP:
		r.put(optVendorClass, []byte("HTTPClient")...)
	case file == "" && c.IPXE():
		r.put(optVendorClass, []byte("PXEClient")...)
		return
	case file == "":
		r.localBoot()
		return
	default:
		r.put(optVendorClass, []byte("PXEClient")...)
		var info []byte
		if legacy {
			info = append(info, pxeDiscovery, 1, pxeDiscoveryBypass)
		}
		if final && len(c.BootItem) == 4 {
			// Type and layer come back as asked, without the bit that wants credentials.
			info = append(info, pxeBootItem, 4, c.BootItem[0], c.BootItem[1], c.BootItem[2]&0x7f, c.BootItem[3])
		}
		if len(info) > 0 {
			r.put(optVendorInfo, append(info, 255)...)
		}
	}
	r.bootFrom(file, server, c.Firmware == hardware.FirmwareBIOS)
}
