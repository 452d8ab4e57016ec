package dhcp

import (
	"encoding/hex"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// Decision is the answer to one packet of a known machine.
type Decision struct {
	// Reason says why the packet got its answer, Detail completes it.
	Reason hardware.Reason
	Detail string
	// Boot says why a netbooting client got its boot file or none; empty for others.
	// BootDetail, where there is any, completes it.
	Boot       hardware.Reason
	BootDetail string
	// File is the boot file that was named.
	File string
	// Reply is nil for silence. It is sent after Lease is durable.
	Reply *dhcpv4.DHCPv4
	// Lease is what changed about the machine's address; nil: nothing.
	Lease *hardware.Lease
	// Drop: the client's own lease is forgotten once Lease is durable.
	Drop bool
	// Client is the address that this boot is known by from now on; zero: what was
	// known stays.
	Client netip.Addr
}

// Files is what Decide knows of the boot files.
type Files struct {
	HTTPPort uint16
	// Programs are the operator's boot programs, by architecture code (option 93).
	Programs map[uint16]string
}

// Type is the reply's message type; 0 for silence.
func (d *Decision) Type() dhcpv4.MessageType {
	if d.Reply == nil {
		return dhcpv4.MessageTypeNone
	}
	return d.Reply.MessageType()
}

// needsBoot reports whether Decide wants to know the machine's boot: the client
// is firmware, and the answer can name a boot file.
func needsBoot(c *Class, link Link) bool {
	switch c.Type {
	case dhcpv4.MessageTypeDiscover:
		return c.Netboots()
	case dhcpv4.MessageTypeRequest:
		return c.Netboots() && (!c.CIAddr.IsValid() || link.ProxyPort || c.asksBootServer())
	case dhcpv4.MessageTypeInform:
		return c.Netboots() && link.ProxyPort
	default:
		return false
	}
}

// Decide answers a packet of the machine at p. boot is its current boot, nil
// where the client does not netboot.
func Decide(c *Class, link Link, p *Place, boot *hardware.Boot, f Files, now time.Time) Decision {
	if link.ProxyPort || p.Proxied() && c.asksBootServer() {
		return bootServer(c, link, p, boot, f)
	}
	if p.Proxied() {
		return proxied(c, p, boot, f)
	}
	switch c.Type {
	case dhcpv4.MessageTypeDiscover:
		return offer(c, p, boot, f)
	case dhcpv4.MessageTypeRequest:
		return request(c, link, p, boot, f, now)
	case dhcpv4.MessageTypeInform:
		return inform(c, link, p)
	case dhcpv4.MessageTypeRelease:
		// RFC 2131 section 4.3.4: there is no answer to a release.
		if c.CIAddr != p.Addr {
			return Decision{Reason: hardware.ReasonWrongAddress, Detail: wrong(c.CIAddr, p)}
		}
		l := leaseOf(c, p, now)
		l.Released, l.Expires = true, now
		return Decision{Reason: hardware.ReasonReleased, Detail: p.Addr.String(), Lease: l}
	case dhcpv4.MessageTypeDecline:
		// Section 4.3.3. A reserved address has no substitute: the timeline tells
		// people that somebody else uses it.
		if c.ServerID.IsValid() && !isOurs(c, link, p) {
			return Decision{Reason: hardware.ReasonOtherServer, Detail: c.ServerID.String()}
		}
		d := Decision{Reason: hardware.ReasonDeclined, Detail: c.Requested.String()}
		if p.Pooled() {
			d.Lease, d.Drop = quarantined(p, p.Addr, now), true
			d.Lease.DeclinedBy = c.MAC
		}
		return d
	default:
		return Decision{Reason: hardware.ReasonNotForUs}
	}
}

func offer(c *Class, p *Place, boot *hardware.Boot, f Files) Decision {
	d := Decision{Reason: hardware.ReasonOffered, Detail: p.Addr.String()}
	d.grant(dhcpv4.MessageTypeOffer, c, p, boot, f)
	return d
}

// request answers the four forms of REQUEST (RFC 2131 section 4.3.2, table 4).
// For the addresses it reserves the record is authoritative: it says no.
func request(c *Class, link Link, p *Place, boot *hardware.Boot, f Files, now time.Time) Decision {
	var asked netip.Addr
	switch {
	case c.ServerID.IsValid(): // SELECTING
		if !isOurs(c, link, p) {
			return Decision{Reason: hardware.ReasonOtherServer, Detail: c.ServerID.String()}
		}
		if asked = c.Requested; !asked.IsValid() {
			asked = c.CIAddr // renewals of clients that keep option 54 against the RFC
		}
	case c.CIAddr.IsValid(): // RENEWING, REBINDING
		asked = c.CIAddr
	case c.Requested.IsValid(): // INIT-REBOOT
		asked = c.Requested
	default:
		return Decision{Reason: hardware.ReasonMalformed, Detail: "a REQUEST that names no address"}
	}
	if asked != p.Addr {
		return nak(c, p, asked)
	}
	d := Decision{Reason: hardware.ReasonAcked, Detail: p.Addr.String(), Lease: leaseOf(c, p, now)}
	d.grant(dhcpv4.MessageTypeAck, c, p, boot, f)
	if c.CIAddr == p.Addr {
		d.Reply.ClientIPAddr = ip4(c.CIAddr) // table 3
	}
	return d
}

// nak tells the client to begin anew. Table 3: no addresses and nothing that is
// configuration; behind a relay the broadcast bit is set, because the client has
// no address that the relay could write to (section 4.3.2).
func nak(c *Class, p *Place, asked netip.Addr) Decision {
	r := newReply(dhcpv4.MessageTypeNak)
	r.put(optServerID, serverID(c, p).AsSlice()...)
	r.put(optMessage, []byte("address is reserved for another machine or network")...)
	r.echo(c)
	d := Decision{Reason: hardware.ReasonWrongAddress, Detail: wrong(asked, p), Reply: r.packet(c)}
	if c.GIAddr.IsValid() {
		d.Reply.SetBroadcast()
	}
	return d
}

// inform gives options to a client that has an address by other means: no
// yiaddr, no times (section 4.3.5). Some leave ciaddr empty and only send from
// their address. It must be one of the Subnet: we write to no others unasked.
func inform(c *Class, link Link, p *Place) Decision {
	at := c.CIAddr
	if !at.IsValid() {
		at = link.Source
	}
	if !isHost(p.Subnet, at) {
		return Decision{Reason: hardware.ReasonWrongAddress, Detail: "an INFORM from " + at.String()}
	}
	r := newReply(dhcpv4.MessageTypeAck)
	r.put(optServerID, serverID(c, p).AsSlice()...)
	r.network(c, p)
	r.echo(c)
	d := Decision{Reason: hardware.ReasonInformed, Detail: at.String(), Reply: r.packet(c)}
	d.Reply.ClientIPAddr = ip4(at)
	return d
}

// grant builds an OFFER or ACK of the reserved address.
func (d *Decision) grant(t dhcpv4.MessageType, c *Class, p *Place, boot *hardware.Boot, f Files) {
	r := newReply(t)
	r.yiaddr = p.Addr
	r.put(optServerID, serverID(c, p).AsSlice()...)
	r.lease(c, p.term())
	r.network(c, p)
	r.echo(c)
	if boot != nil && c.Netboots() {
		d.File, d.Boot, d.BootDetail = bootFile(c, p, boot, f)
		r.bootOptions(c, d.File, p.Server)
	}
	d.Reply = r.packet(c)
}

// serverID is option 54 of our replies; a relay may ask to stand in for us.
func serverID(c *Class, p *Place) netip.Addr {
	if c.RelayServerID.IsValid() {
		return c.RelayServerID
	}
	return p.Server
}

// isOurs reports whether option 54 names us: by what we tell this client, or by
// any address of the interface, which an advertise setting may have replaced
// since the offer.
func isOurs(c *Class, link Link, p *Place) bool {
	return c.ServerID == serverID(c, p) || c.ServerID == p.Server || link.has(c.ServerID)
}

func wrong(asked netip.Addr, p *Place) string {
	if p.Denied != "" {
		return p.Denied
	}
	return "asked for " + asked.String() + ", its address is " + p.Addr.String()
}

// owner is the uid of the machine's record; empty where it has none.
func (p *Place) owner() string {
	if p.Hardware == nil {
		return ""
	}
	return p.Hardware.Meta.UID
}

// leaseOf is the lease that an ACK at now confirms.
func leaseOf(c *Class, p *Place, now time.Time) *hardware.Lease {
	return &hardware.Lease{
		MAC:         c.MAC,
		Subnet:      p.Subnet.Meta.Name,
		Addr:        p.Addr,
		Hardware:    p.owner(),
		Hostname:    c.Hostname,
		ClientID:    hex.EncodeToString(c.ClientID),
		Reservation: !p.Pooled(),
		Expires:     now.Add(p.term()),
		Updated:     now,
	}
}
