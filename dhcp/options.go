package dhcp

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// The options we read or write, by the names of RFC 2132 and its successors.
const (
	optMask         = 1
	optRouter       = 3
	optDNS          = 6
	optHostname     = 12
	optDomain       = 15
	optMTU          = 26
	optBroadcast    = 28
	optNTP          = 42
	optVendorInfo   = 43
	optRequestedIP  = 50
	optLeaseTime    = 51
	optOverload     = 52
	optMessageType  = 53
	optServerID     = 54
	optParams       = 55
	optMessage      = 56
	optMaxSize      = 57
	optT1           = 58
	optT2           = 59
	optVendorClass  = 60
	optClientID     = 61
	optTFTPServer   = 66
	optBootFile     = 67
	optUserClass    = 77  // RFC 3004
	optRelay        = 82  // RFC 3046
	optClientArch   = 93  // RFC 4578 section 2.1
	optClientGUID   = 97  // RFC 4578 section 2.3
	optLinkSelect   = 118 // RFC 3011
	optSearch       = 119 // RFC 3397
	optRoutes       = 121 // RFC 3442
	optIPXE         = 175 // iPXE's encapsulated options, "Etherboot" with IANA
	relayLinkSelect = 5   // sub-option of 82, RFC 3527
	relayServerID   = 11  // sub-option of 82, RFC 5107

	// Sub-options of 175 (iPXE, src/include/ipxe/dhcp.h and features.h).
	ipxeFeatureHTTP = 0x13
	ipxeNoProxy     = 0xb0

	// Sub-options of 43 for PXEClient (PXE 2.1, table 2-1). Bits of the discovery
	// control: 0 and 1 are "do not search by broadcast", "by multicast"; 3 is "if
	// there is a boot file name, load it, ask nobody".
	pxeDiscovery       = 6
	pxeMenu            = 9
	pxePrompt          = 10
	pxeBootItem        = 71
	pxeDiscoveryBypass = 1 << 3
	pxeDiscoverNobody  = 1<<0 | 1<<1
)

// readOptions collects the options of a packet whose header was checked. With
// option 52 the file and sname fields hold options too; parts of one option are
// joined in the order options, file, sname (RFC 3396 section 5). A missing end
// marker is forgiven, an option cut off by the packet's end is not.
func readOptions(b []byte) (dhcpv4.Options, error) {
	o := make(dhcpv4.Options)
	if err := o.FromBytes(b[headerSize:]); err != nil {
		return nil, err
	}
	if ov := o[optOverload]; len(ov) == 1 {
		if ov[0]&1 != 0 {
			if err := o.FromBytes(b[fileOffset : fileOffset+fileSize]); err != nil {
				return nil, err
			}
		}
		if ov[0]&2 != 0 {
			if err := o.FromBytes(b[snameOffset : snameOffset+snameSize]); err != nil {
				return nil, err
			}
		}
	}
	return o, nil
}

// subOptions walks encapsulated options as 43, 82 and 175 carry them. What does
// not parse is left out: it is the client's business, and 82 is echoed as bytes.
func subOptions(b []byte) map[byte][]byte {
	out := map[byte][]byte{}
	for len(b) >= 2 {
		code, n := b[0], int(b[1])
		switch {
		case code == 0:
			b = b[1:]
			continue
		case code == 255 || len(b) < 2+n:
			return out
		}
		out[code] = b[2 : 2+n]
		b = b[2+n:]
	}
	return out
}

// optAddr reads an option of exactly one IPv4 address; the zero Addr otherwise.
func optAddr(b []byte) netip.Addr {
	if len(b) != 4 {
		return netip.Addr{}
	}
	return addr4(b)
}

// addr4 reads four bytes; 0.0.0.0 is the zero Addr, "none".
func addr4(b []byte) netip.Addr {
	a := netip.AddrFrom4([4]byte(b))
	if a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

// userClasses reads option 77 as RFC 3004 has it, a list with length bytes, or
// as the bare text that iPXE and many others send.
func userClasses(b []byte) []string {
	var out []string
	for rest := b; len(rest) > 0; {
		n := int(rest[0])
		if n == 0 || n > len(rest)-1 {
			return []string{strings.TrimRight(string(b), "\x00")}
		}
		out, rest = append(out, string(rest[1:1+n])), rest[1+n:]
	}
	return out
}

// archs reads option 93, a list of 16-bit codes (RFC 4578, IANA's "Processor
// Architecture Types").
func archs(b []byte) []uint16 {
	var out []uint16
	for ; len(b) >= 2; b = b[2:] {
		out = append(out, binary.BigEndian.Uint16(b))
	}
	return out
}

func addrBytes(as ...netip.Addr) []byte {
	var out []byte
	for _, a := range as {
		if a.Is4() {
			out = append(out, a.AsSlice()...)
		}
	}
	return out
}

func u32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }

// classlessRoute appends one entry of option 121: prefix length, the significant
// bytes of the network, the gateway (RFC 3442).
func classlessRoute(b []byte, to netip.Prefix, via netip.Addr) []byte {
	net := to.Masked().Addr().As4()
	b = append(b, byte(to.Bits()))
	b = append(b, net[:(to.Bits()+7)/8]...)
	return append(b, via.AsSlice()...)
}

// searchList is option 119: DNS labels, uncompressed, which RFC 3397 allows.
func searchList(domains []string) []byte {
	var out []byte
	for _, d := range domains {
		for label := range strings.SplitSeq(d, ".") {
			if len(label) == 0 || len(label) > 63 {
				return nil
			}
			out = append(append(out, byte(len(label))), label...)
		}
		out = append(out, 0)
	}
	return out
}

// wants reports whether the client asked for the option. Without a parameter
// request list (old ROMs) it is offered everything that fits.
func (c *Class) wants(code byte) bool {
	return len(c.Params) == 0 || slices.Contains(c.Params, code)
}
