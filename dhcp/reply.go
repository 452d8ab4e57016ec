package dhcp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"github.com/rackstrap/rackstrap/hardware"
)

// maxReply is the largest UDP payload we send: one Ethernet frame.
const maxReply = 1500 - ipUDPHeader

// ipUDPHeader is what option 57 counts beyond the payload.
const ipUDPHeader = 28

// rank is the order in which options claim their room in a reply; what comes
// last is dropped first. The first ones make the packet valid, then it must be
// usable, then it boots, then it goes back through its relay.
var rank = []byte{
	optMessageType, optServerID, optLeaseTime, optMask,
	optBootFile, optVendorClass, optVendorInfo, optTFTPServer, optIPXE,
	optRelay, optLinkSelect, optClientID, optClientGUID, optRouter, optRoutes, optDNS, optT1, optT2,
	optHostname, optDomain, optMTU, optBroadcast, optNTP, optSearch, optMessage,
}

// reply is an answer in the making: options by code, not yet known to fit.
type reply struct {
	yiaddr, siaddr netip.Addr
	file           string
	options        dhcpv4.Options
}

func newReply(t dhcpv4.MessageType) *reply {
	r := &reply{options: make(dhcpv4.Options, 24)}
	r.put(optMessageType, byte(t))
	return r
}

func (r *reply) put(code byte, value ...byte) {
	if len(value) > 0 {
		r.options[code] = value
	}
}

// echo returns what the client and its relay want back unchanged.
func (r *reply) echo(c *Class) {
	r.put(optClientID, c.ClientID...) // RFC 6842
	r.put(optClientGUID, c.GUID...)   // RFC 4578 section 2.3
	r.put(optLinkSelect, c.Select...) // RFC 3011 section 2: the client discards a reply without it
	r.put(optRelay, c.Relay...)       // RFC 3046 section 2.2; encoded last
}

// network puts in what the Subnet gives its clients, as far as they asked for it.
func (r *reply) network(c *Class, p *Place) {
	s := &p.Subnet.Spec
	mask := net.CIDRMask(s.Prefix.Bits(), 32)
	r.put(optMask, mask...)
	asked := func(code byte, value []byte) {
		if c.wants(code) {
			r.put(code, value...)
		}
	}
	asked(optRouter, addrBytes(s.Gateway))
	asked(optDNS, addrBytes(s.DNS...))
	if p.Hardware != nil {
		asked(optHostname, []byte(p.Hardware.HostName()))
	}
	asked(optDomain, []byte(s.Domain))
	asked(optBroadcast, addrBytes(lastAddr(s.Prefix)))
	asked(optNTP, addrBytes(s.NTP...))
	asked(optSearch, searchList(s.Search))
	if s.MTU > 0 {
		asked(optMTU, binary.BigEndian.AppendUint16(nil, s.MTU))
	}
	if len(s.Routes) > 0 {
		var v []byte
		for _, route := range s.Routes {
			v = classlessRoute(v, route.To, route.Via)
		}
		if s.Gateway.IsValid() && !slices.ContainsFunc(s.Routes, func(r hardware.Route) bool { return r.To.Bits() == 0 }) {
			v = classlessRoute(v, netip.PrefixFrom(netip.IPv4Unspecified(), 0), s.Gateway)
		}
		asked(optRoutes, v)
	}
}

// lease puts in the times, in seconds; T1 and T2 by RFC 2131 section 4.4.5.
func (r *reply) lease(c *Class, d time.Duration) {
	secs := uint32(d / time.Second)
	r.put(optLeaseTime, u32(secs)...)
	if c.wants(optT1) {
		r.put(optT1, u32(secs/2)...)
	}
	if c.wants(optT2) {
		r.put(optT2, u32(uint32(uint64(secs)*7/8))...)
	}
}

// packet fits the options into what the client can take, most important first.
func (r *reply) packet(c *Class) *dhcpv4.DHCPv4 {
	d := &dhcpv4.DHCPv4{
		OpCode:        dhcpv4.OpcodeBootReply,
		HWType:        iana.HWTypeEthernet,
		ClientHWAddr:  net.HardwareAddr(c.MAC[:]),
		Flags:         c.flags,
		ClientIPAddr:  ip4(netip.Addr{}),
		YourIPAddr:    ip4(r.yiaddr),
		ServerIPAddr:  ip4(r.siaddr),
		GatewayIPAddr: ip4(c.GIAddr),
		BootFileName:  r.file,
		Options:       make(dhcpv4.Options, len(r.options)),
	}
	binary.BigEndian.PutUint32(d.TransactionID[:], c.XID)
	room := min(c.MaxSize-ipUDPHeader, maxReply) - headerSize - 1 // the end marker
	for _, code := range rank {
		v, ok := r.options[code]
		if !ok {
			continue
		}
		// Beyond 255 bytes an option is split, with a header each (RFC 3396).
		need := len(v) + 2*((len(v)+254)/255)
		if need <= room {
			d.Options[code] = v
			room -= need
		}
	}
	return d
}

func ip4(a netip.Addr) net.IP {
	if !a.Is4() {
		return net.IPv4zero.To4()
	}
	return a.AsSlice()
}
