package dhcp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// The BOOTP header (RFC 951, RFC 2131 section 2).
const (
	xidOffset    = 4
	flagsOffset  = 10
	ciaddrOffset = 12
	giaddrOffset = 24
	chaddrOffset = 28
	snameOffset  = 44
	snameSize    = 64
	fileOffset   = 108
	fileSize     = 128
	headerSize   = 240 // with the magic cookie

	minMaxSize = 576 // RFC 2132 section 9.10
)

var cookie = []byte{0x63, 0x82, 0x53, 0x63}

// Class is what a client's packet says, read once.
type Class struct {
	Type      dhcpv4.MessageType
	MAC       hardware.MAC
	XID       uint32
	Broadcast bool // the client cannot take unicast before it has an address

	CIAddr    netip.Addr // the address it uses; zero: none
	GIAddr    netip.Addr // the relay; zero: none
	Requested netip.Addr // option 50
	ServerID  netip.Addr // option 54
	// Link is the network the client is on where a relay or the client says so
	// apart from GIAddr: option 82 sub-option 5 of a relay, else option 118.
	Link netip.Addr
	// RelayServerID is option 82 sub-option 11: the relay wants to be our identifier
	// (RFC 5107).
	RelayServerID netip.Addr

	Firmware hardware.Firmware
	// Arch is the first architecture code of option 93, else of option 60, that we have
	// a program for, else its first.
	Arch uint16
	// NoArch: the client says HTTPClient and no architecture.
	NoArch bool
	// HTTP: the client says HTTPClient; its boot file is a URL.
	HTTP bool
	// BootItem is the type and layer of the boot server that is asked for: option 43
	// sub-option 71 (PXE 2.1, table 2-5).
	BootItem []byte

	Vendor   string // option 60, printable
	Hostname string // option 12, printable
	ClientID []byte // option 61
	GUID     []byte // option 97, as sent
	Relay    []byte // option 82, as sent
	Select   []byte // option 118, as sent
	Params   []byte // option 55
	// MaxSize is the largest IP datagram the client takes: option 57, at least 576.
	MaxSize int
	flags   uint16
}

// Netboots reports whether the sender is firmware or iPXE, not an operating system.
func (c *Class) Netboots() bool { return c.Firmware != hardware.FirmwareNone }

// IPXE reports whether the sender is an iPXE of any kind.
func (c *Class) IPXE() bool {
	return c.Firmware == hardware.FirmwareIPXE || c.Firmware == hardware.FirmwareIPXEMin
}

// Classify reads a UDP payload that came to the server port. The Reason is
// empty, ReasonMalformed or ReasonNotForUs; the Class is only good where it is
// empty. Nothing of it aliases b.
func Classify(b []byte) (Class, hardware.Reason) {
	if len(b) < headerSize {
		return Class{}, hardware.ReasonMalformed
	}
	if b[0] != byte(dhcpv4.OpcodeBootRequest) {
		return Class{}, hardware.ReasonNotForUs
	}
	if !bytes.Equal(b[headerSize-4:headerSize], cookie) {
		return Class{}, hardware.ReasonNotForUs // plain BOOTP
	}
	if b[1] != 1 || b[2] != 6 {
		return Class{}, hardware.ReasonNotEthernet
	}
	o, err := readOptions(b)
	if err != nil {
		return Class{}, hardware.ReasonMalformed
	}
	c := Class{
		MAC:     hardware.MAC(b[chaddrOffset : chaddrOffset+6]),
		XID:     binary.BigEndian.Uint32(b[xidOffset:]),
		CIAddr:  addr4(b[ciaddrOffset : ciaddrOffset+4]),
		GIAddr:  addr4(b[giaddrOffset : giaddrOffset+4]),
		MaxSize: minMaxSize,
		flags:   binary.BigEndian.Uint16(b[flagsOffset:]),
	}
	c.Broadcast = c.flags&0x8000 != 0
	if c.MAC.IsZero() || c.MAC.IsMulticast() {
		return Class{}, hardware.ReasonMalformed
	}
	switch t := o[optMessageType]; {
	case len(t) == 0:
		return Class{}, hardware.ReasonNotForUs // plain BOOTP
	case len(t) != 1:
		return Class{}, hardware.ReasonMalformed
	default:
		c.Type = dhcpv4.MessageType(t[0])
	}
	switch c.Type {
	case dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeDecline,
		dhcpv4.MessageTypeRelease, dhcpv4.MessageTypeInform:
	default:
		return Class{}, hardware.ReasonNotForUs
	}
	c.readAddresses(o)
	c.readClient(o)
	return c, ""
}

func (c *Class) readAddresses(o dhcpv4.Options) {
	c.Requested = optAddr(o[optRequestedIP])
	c.ServerID = optAddr(o[optServerID])
	c.Select = o[optLinkSelect]
	c.Link = optAddr(c.Select)
	if relay := o[optRelay]; len(relay) > 0 {
		c.Relay = relay
		// Switches add the option too, and clients can. Who is no relay is not believed
		// where the client is, nor who we are.
		if !c.GIAddr.IsValid() {
			return
		}
		sub := subOptions(relay)
		if a := optAddr(sub[relayLinkSelect]); a.IsValid() {
			c.Link = a
		}
		c.RelayServerID = optAddr(sub[relayServerID])
	}
}

func (c *Class) readClient(o dhcpv4.Options) {
	c.Params = o[optParams]
	c.ClientID = o[optClientID]
	// RFC 4578 says 17 bytes with a leading 0; ROMs send nothing, 16 bytes, or all
	// ones. It is echoed as it came and used for nothing.
	c.GUID = o[optClientGUID]
	c.Vendor = hardware.PlainText(strings.TrimRight(string(o[optVendorClass]), "\x00"), 64)
	c.Hostname = hardware.PlainText(strings.TrimRight(string(o[optHostname]), "\x00"), 253)
	if v := o[optMaxSize]; len(v) == 2 {
		c.MaxSize = max(minMaxSize, int(binary.BigEndian.Uint16(v)))
	}
	as := archs(o[optClientArch])
	if len(as) == 0 {
		as = vendorArch(c.Vendor)
	}
	c.Arch = pickArch(as)
	if c.Arch == archBIOS && isPi(c.GUID) {
		c.Arch = archPi
	}
	c.Firmware = firmware(c.Vendor, userClasses(o[optUserClass]), o[optIPXE], as, c.Arch)
	c.HTTP = strings.HasPrefix(c.Vendor, "HTTPClient") && !c.IPXE()
	c.NoArch = c.HTTP && len(as) == 0
	if v := subOptions(o[optVendorInfo])[pxeBootItem]; len(v) == 4 && strings.HasPrefix(c.Vendor, "PXEClient") {
		c.BootItem = v
	}
}

// firmware says what a client is.
//
// Any of option 60 PXEClient or HTTPClient, option 93, or iPXE's own marks makes
// it a netboot client. Options 94 and 97 alone do not: some operating systems
// send a GUID, and some ROMs leave it out.
func firmware(vendor string, users []string, ipxe []byte, as []uint16, arch uint16) hardware.Firmware {
	if len(ipxe) > 0 || slices.ContainsFunc(users, isIPXE) {
		// The user class can be set to anything by whoever built the iPXE, so its
		// feature list decides; one that says nothing is taken for the least.
		if v := subOptions(ipxe)[ipxeFeatureHTTP]; len(v) > 0 && v[0] != 0 {
			return hardware.FirmwareIPXE
		}
		return hardware.FirmwareIPXEMin
	}
	http := strings.HasPrefix(vendor, "HTTPClient")
	if !http && !strings.HasPrefix(vendor, "PXEClient") && len(as) == 0 {
		return hardware.FirmwareNone
	}
	if len(as) == 0 && !http && arch == archBIOS {
		return hardware.FirmwareBIOS // before RFC 4578 there was nothing else
	}
	f := architectures[arch].pxe
	if http {
		f = architectures[arch].http
	}
	if f == "" || len(as) == 0 && http {
		return hardware.FirmwareUnknown
	}
	return f
}

func isIPXE(s string) bool { return s == "iPXE" || s == "gPXE" }
