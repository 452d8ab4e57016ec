package dhcp

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// Rival is another DHCP server that gives addresses on a link of ours.
type Rival struct {
	Interface string `json:"interface"`
	// Server is its identifier (option 54); MAC is what its offer came from, which may
	// be a relay's.
	Server  netip.Addr   `json:"server"`
	MAC     hardware.MAC `json:"mac"`
	Offered netip.Addr   `json:"offered"`
	First   time.Time    `json:"first,omitzero"`
	Last    time.Time    `json:"last,omitzero"`
	missed  int          // searches in a row that it did not answer
}

func (r Rival) String() string {
	return fmt.Sprintf("%s (%s) on %s, which offered %s", r.Server, r.MAC, r.Interface, r.Offered)
}

const (
	// searchTime is how long offers are waited for. Servers ask first whether somebody
	// uses the address: ISC's one second, dnsmasq three.
	searchTime = 4500 * time.Millisecond
	// searchAgain is when it is asked a second time: the first may be lost.
	searchAgain = 1500 * time.Millisecond
	// DefaultSearch is the pause between two searches, and searchSoon while a rival is
	// heard, so that we are the authority again soon after it is gone.
	DefaultSearch = 5 * time.Minute
	searchSoon    = time.Minute
	// searchLeast is the pause where an interface has changed.
	searchLeast = 10 * time.Second
	// missedLimit is how many searches in a row a rival does not answer before it is
	// taken for gone.
	missedLimit = 3
	// maxRivals bounds what is remembered for an interface: identifiers cost nothing.
	maxRivals = 16
)

// searchMAC is the client that searches on an interface: made up, and the same each
// time, so that it never uses up more than one address of anybody. We do not answer it,
// whichever process of ours it is.
func searchMAC(of hardware.MAC) hardware.MAC {
	f := fnv.New64a()
	_, _ = f.Write([]byte("rackstrap searches DHCP servers")) // never fails
	_, _ = f.Write(of[:])
	var m hardware.MAC
	binary.BigEndian.PutUint32(m[2:], uint32(f.Sum64()))
	m[0], m[1] = searchFirst, byte(f.Sum64()>>32)
	return m
}

// searchFirst is the first byte of searchMAC: locally administered, of one machine.
const searchFirst = 0x02

// discover is the DISCOVER of a search: no class, so that nobody takes it for firmware,
// and a broadcast answer, since nobody has that MAC. It is never followed by a REQUEST.
func discover(mac hardware.MAC, xid uint32) []byte {
	b := make([]byte, headerSize)
	b[0], b[1], b[2] = 1, 1, 6 // BOOTREQUEST, Ethernet
	binary.BigEndian.PutUint32(b[xidOffset:], xid)
	b[flagsOffset] = 0x80
	copy(b[chaddrOffset:], mac[:])
	copy(b[headerSize-len(cookie):], cookie)
	b = append(b, 53, 1, byte(dhcpv4.MessageTypeDiscover), 55, 4, 1, 3, 6, 51, 255)
	return append(b, make([]byte, 300-len(b))...) // RFC 1542 section 2.1: some relays drop shorter ones
}

// readOffer reads an IP packet: the offer of an address for our search. One without an
// address is of a proxyDHCP server, which is no rival.
func readOffer(b []byte, mac hardware.MAC, xid uint32) (r Rival, ok bool) {
	if len(b) < 20 || b[0]>>4 != 4 || b[9] != 17 {
		return r, false
	}
	head := int(b[0]&15) * 4
	if head < 20 || len(b) < head+8 {
		return r, false
	}
	m, err := dhcpv4.FromBytes(b[head+8:])
	if err != nil || m.OpCode != dhcpv4.OpcodeBootReply || m.MessageType() != dhcpv4.MessageTypeOffer {
		return r, false
	}
	if binary.BigEndian.Uint32(m.TransactionID[:]) != xid || slices.Compare(m.ClientHWAddr, mac[:]) != 0 {
		return r, false
	}
	r.Offered, _ = netip.AddrFromSlice(m.YourIPAddr.To4())
	r.Server, ok = netip.AddrFromSlice(m.ServerIdentifier().To4())
	if !ok || r.Server.IsUnspecified() {
		r.Server = netip.AddrFrom4([4]byte(b[12:16]))
	}
	return r, r.Offered.IsValid() && !r.Offered.IsUnspecified()
}

// rivals are those of one interface.
type rivals struct {
	// searched: a search has ended since the interface is there.
	searched bool
	known    map[netip.Addr]*Rival
	told     map[string]bool // what has been said, by Finding.key
}

// heard notes an offer, and reports whether the server was not known.
func (r *rivals) heard(o Rival, now time.Time) bool {
	if k := r.known[o.Server]; k != nil {
		k.MAC, k.Offered, k.Last, k.missed = o.MAC, o.Offered, now, 0
		return false
	}
	if len(r.known) >= maxRivals {
		return false
	}
	if r.known == nil {
		r.known = map[netip.Addr]*Rival{}
	}
	o.First, o.Last = now, now
	r.known[o.Server] = &o
	return true
}

// ended notes that a search that began at the time is over, and says who is gone.
func (r *rivals) ended(began time.Time) (gone []Rival) {
	r.searched = true
	for id, k := range r.known {
		if !k.Last.Before(began) {
			continue
		}
		if k.missed++; k.missed >= missedLimit {
			gone = append(gone, *k)
			delete(r.known, id)
		}
	}
	return sortRivals(gone)
}

// untold are the findings that are not as they were.
func (r *rivals) untold(now []Finding) (out []Finding) {
	told := map[string]bool{}
	for _, f := range now {
		told[f.key()] = true
		if !r.told[f.key()] {
			out = append(out, f)
		}
	}
	r.told = told
	return out
}

func (r *rivals) list() []Rival {
	var out []Rival
	for _, k := range r.known {
		out = append(out, *k)
	}
	return sortRivals(out)
}

func sortRivals(r []Rival) []Rival {
	slices.SortFunc(r, func(a, b Rival) int {
		return cmp.Or(strings.Compare(a.Interface, b.Interface), a.Server.Compare(b.Server))
	})
	return r
}

// Finding is what a search comes to in one Subnet.
type Finding struct {
	Subnet    string
	Interface string
	// Rival is the other server; its zero value: there is none, in a Subnet that wants
	// one.
	Rival Rival
}

func (f Finding) key() string { return f.Subnet + " " + f.Rival.Server.String() }

func (f Finding) String() string {
	if !f.Rival.Server.IsValid() {
		return fmt.Sprintf("subnet %s has mode proxy, and no DHCP server answers on %s: machines there get no address (switch the other server on, or: rackstrap subnet patch %s -p 'spec: {mode: pool, …}')", f.Subnet, f.Interface, f.Subnet)
	}
	return fmt.Sprintf("another DHCP server answers in subnet %s: %s; while it does, machines without a record get no address from us (switch it off, or: rackstrap subnet patch %s -p 'spec: {mode: proxy}')", f.Subnet, f.Rival, f.Subnet)
}

// Findings say what rivals mean for the Subnets of a link with these networks: unwanted
// where we give the addresses, missing where another should.
func Findings(iface string, networks []netip.Prefix, subnets []*hardware.Subnet, heard []Rival) []Finding {
	var out []Finding
	for _, n := range subnets {
		if !covers(n.Spec.Prefix, netip.Addr{}, Link{Networks: networks}) {
			continue
		}
		switch n.Spec.Mode {
		case hardware.ModeOff:
		case hardware.ModeProxy:
			if len(heard) == 0 {
				out = append(out, Finding{Subnet: n.Meta.Name, Interface: iface})
			}
		default:
			for _, r := range heard {
				out = append(out, Finding{n.Meta.Name, iface, r})
			}
		}
	}
	return out
}

// yields says why a packet is left to the other server, or to nobody while we look for
// one; empty: it is ours. leased: the client has a lease of ours that runs.
//
// Machines with a record go on as ever: a restart of ours beside a new router must not
// make a rack unbootable. A machine without one gets nothing new.
func yields(c *Class, p *Place, leased bool) string {
	if p.Hardware != nil || !p.Pooled() || leased {
		return ""
	}
	switch c.Type {
	case dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest:
		return "a machine without a record"
	}
	return ""
}

// yieldsNak reports whether a NAK is not ours to send beside another server: the client
// did not choose us, and the address is in no Pool and no record of ours.
func yieldsNak(c *Class, link Link, p *Place, d *Decision, reserved func(netip.Addr) bool) bool {
	if d.Type() != dhcpv4.MessageTypeNak || c.ServerID.IsValid() || (link.Dest.IsValid() && !link.isBroadcast()) {
		return false
	}
	asked, _ := requested(c)
	if asked == p.Addr || reserved(asked) {
		return false
	}
	if pool := p.Subnet.Spec.Pool; pool != nil && p.Subnet.Spec.Mode == hardware.ModePool {
		return !slices.ContainsFunc(pool.Ranges, func(r hardware.AddrRange) bool { return r.Contains(asked) })
	}
	return true
}
