package dhcp

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// TestSearchPacket: what we send is a DISCOVER of no firmware that asks for a broadcast
// answer, with a MAC that is nobody's and always the same.
func TestSearchPacket(t *testing.T) {
	t.Parallel()
	own := hardware.MAC{0x52, 0x54, 0, 1, 2, 3}
	mac := searchMAC(own)
	if mac != searchMAC(own) || mac == searchMAC(hardware.MAC{0x52, 0x54, 0, 1, 2, 4}) || mac[0] != 0x02 {
		t.Errorf("the MAC is %s", mac)
	}
	c, reason := Classify(discover(mac, 7))
	if reason != "" || c.Type != dhcpv4.MessageTypeDiscover || c.MAC != mac || c.XID != 7 || !c.Broadcast || c.Netboots() || c.Vendor != "" {
		t.Errorf("%s: %+v", reason, c)
	}
}

func TestReadOffer(t *testing.T) {
	t.Parallel()
	mac := hardware.MAC{2, 0, 0, 0, 0, 9}
	offer := func(change func(*dhcpv4.DHCPv4)) []byte {
		m, err := dhcpv4.FromBytes(discover(mac, 7))
		if err != nil {
			t.Fatal(err)
		}
		m.OpCode, m.YourIPAddr = dhcpv4.OpcodeBootReply, []byte{10, 77, 0, 200}
		m.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeOffer))
		m.UpdateOption(dhcpv4.OptServerIdentifier([]byte{10, 77, 0, 2}))
		change(m)
		return frame(netip.MustParseAddrPort("10.77.0.3:67"), netip.MustParseAddrPort("255.255.255.255:68"), m.ToBytes())
	}
	want := Rival{Server: netip.MustParseAddr("10.77.0.2"), Offered: netip.MustParseAddr("10.77.0.200")}
	fromHeader := want
	fromHeader.Server = netip.MustParseAddr("10.77.0.3")
	for _, tc := range []struct {
		name   string
		packet []byte
		want   Rival
		ok     bool
	}{
		{"an offer", offer(func(*dhcpv4.DHCPv4) {}), want, true},
		{"without an identifier", offer(func(m *dhcpv4.DHCPv4) { m.Options.Del(dhcpv4.OptionServerIdentifier) }), fromHeader, true},
		{"of a proxyDHCP server", offer(func(m *dhcpv4.DHCPv4) { m.YourIPAddr = []byte{0, 0, 0, 0} }), Rival{}, false},
		{"for another search", offer(func(m *dhcpv4.DHCPv4) { m.TransactionID = dhcpv4.TransactionID{9} }), Rival{}, false},
		{"for another client", offer(func(m *dhcpv4.DHCPv4) { m.ClientHWAddr[5]++ }), Rival{}, false},
		{"an ACK", offer(func(m *dhcpv4.DHCPv4) { m.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeAck)) }), Rival{}, false},
		{"a request", offer(func(m *dhcpv4.DHCPv4) { m.OpCode = dhcpv4.OpcodeBootRequest }), Rival{}, false},
		{"IPv6", append([]byte{0x60}, make([]byte, 60)...), Rival{}, false},
		{"cut", offer(func(*dhcpv4.DHCPv4) {})[:100], Rival{}, false},
		{"a long header of nothing", append([]byte{0x4f, 0, 0, 0, 0, 0, 0, 0, 0, 17}, make([]byte, 12)...), Rival{}, false},
		{"nothing", nil, Rival{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, ok := readOffer(tc.packet, mac, 7)
			if ok != tc.ok || (ok && !reflect.DeepEqual(got, tc.want)) {
				t.Errorf("got %v, %+v", ok, got)
			}
		})
	}
}

// A server that misses one search is still there, one that misses three is gone, and
// one that makes up an identifier for each answer costs nothing.
func TestRivalsComeAndGo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	r := rivals{}
	offer := Rival{Interface: "eth1", Server: netip.MustParseAddr("10.77.0.2")}
	if !r.heard(offer, now) || r.heard(offer, now.Add(time.Second)) {
		t.Error("it is new once")
	}
	for i := range 9 {
		now = now.Add(time.Minute)
		if i%missedLimit == 0 {
			r.heard(offer, now)
		}
		if gone := r.ended(now); len(gone) > 0 {
			t.Fatalf("search %d: gone %v", i, gone)
		}
	}
	gone := r.ended(now.Add(time.Minute))
	if len(gone) != 1 || gone[0].Server != offer.Server || len(r.list()) != 0 || !r.searched {
		t.Errorf("gone %v, left %v", gone, r.list())
	}
	for i := range 1000 {
		r.heard(Rival{Server: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})}, now)
	}
	if n := len(r.list()); n != maxRivals {
		t.Errorf("%d are remembered", n)
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	nets := func(mode hardware.SubnetMode) []*hardware.Subnet {
		far := SampleSubnet()
		far.Meta.Name, far.Spec.Prefix = "far", netip.MustParsePrefix("10.9.0.0/24")
		near := SampleSubnet()
		near.Spec.Mode = mode
		return []*hardware.Subnet{far, near}
	}
	link := []netip.Prefix{netip.MustParsePrefix("10.77.0.1/24")}
	r := Rival{Interface: "eth1", Server: netip.MustParseAddr("192.168.1.1"), Offered: netip.MustParseAddr("192.168.1.50")}
	name := SampleSubnet().Meta.Name
	for _, tc := range []struct {
		mode  hardware.SubnetMode
		heard []Rival
		want  []Finding
	}{
		{"", nil, nil},
		{"", []Rival{r}, []Finding{{name, "eth1", r}}},
		{hardware.ModeReservation, []Rival{r}, []Finding{{name, "eth1", r}}},
		{hardware.ModePool, []Rival{r}, []Finding{{name, "eth1", r}}},
		{hardware.ModeProxy, []Rival{r}, nil},
		{hardware.ModeProxy, nil, []Finding{{Subnet: name, Interface: "eth1"}}},
		{hardware.ModeOff, []Rival{r}, nil},
	} {
		if got := Findings("eth1", link, nets(tc.mode), tc.heard); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("mode %q, heard %d: %v", tc.mode, len(tc.heard), got)
		}
	}
}

// beside is a desk in whose network another server answers.
func beside(t *testing.T, change func(*hardware.Subnet), hw ...*hardware.Hardware) *desk {
	t.Helper()
	d := newDesk(t, toWorker, hw...)
	n := SampleSubnet()
	change(n)
	d.View.(*Records).Nets = []*hardware.Subnet{n}
	d.SearchEvery = time.Hour
	p := d.ports[0]
	p.networks = []netip.Prefix{netip.MustParsePrefix("10.77.0.1/24")}
	p.rivals.heard(Rival{Server: netip.MustParseAddr("10.77.0.2")}, d.Now())
	p.rivals.ended(d.Now())
	return d
}

func lending(n *hardware.Subnet) {
	no := false
	r, _ := hardware.ParseAddrRange("10.77.0.100-10.77.0.109")
	n.Spec.Mode, n.Spec.Pool = hardware.ModePool, &hardware.Pool{Ranges: []hardware.AddrRange{r}, Probe: &no}
}

// ask hands in a packet of a MAC and returns the answer's type, 0 for silence.
func (d *desk) ask(mac hardware.MAC, change func(*dhcpv4.DHCPv4)) dhcpv4.MessageType {
	d.t.Helper()
	m, err := dhcpv4.FromBytes(discover(mac, 7))
	if err != nil {
		d.t.Fatal(err)
	}
	change(m)
	j := &job{port: d.ports[0], link: Link{Networks: d.ports[0].networks, Dest: limitedBroadcast}}
	j.n = copy(j.buf[:], m.ToBytes())
	before := len(d.sent)
	d.handle(d.t.Context(), j)
	if len(d.sent) == before {
		return 0
	}
	return d.sent[len(d.sent)-1].MessageType()
}

// TestBesideRival: who is served while another server answers.
func TestBesideRival(t *testing.T) {
	t.Parallel()
	known, stranger := hardware.MAC{0x52, 0x54, 0, 0, 0, 2}, hardware.MAC{0x52, 0x54, 0, 0, 0, 3}
	reserved := func() *hardware.Hardware { return SampleHardware("m1", known.String(), "10.77.0.11") }
	unreserved := func() *hardware.Hardware {
		h := reserved()
		h.Spec.Interfaces[0].Addresses = nil
		return h
	}
	discovers := func(*dhcpv4.DHCPv4) {}
	remembers := func(a string) func(*dhcpv4.DHCPv4) { // INIT-REBOOT
		return func(m *dhcpv4.DHCPv4) {
			m.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeRequest))
			m.UpdateOption(dhcpv4.OptRequestedIPAddress(netip.MustParseAddr(a).AsSlice()))
		}
	}
	chose := func(a string) func(*dhcpv4.DHCPv4) {
		return func(m *dhcpv4.DHCPv4) {
			remembers(a)(m)
			m.UpdateOption(dhcpv4.OptServerIdentifier([]byte{10, 77, 0, 1}))
		}
	}
	const offered, acked, nak = dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeAck, dhcpv4.MessageTypeNak
	for _, tc := range []struct {
		name string
		hw   *hardware.Hardware
		mac  hardware.MAC
		ask  func(*dhcpv4.DHCPv4)
		want dhcpv4.MessageType
		told string // of known machines
	}{
		{"a reservation", reserved(), known, discovers, offered, "offered"},
		{"a reservation, remembered", reserved(), known, remembers("10.77.0.11"), acked, "acked"},
		{"a reservation, and an address of the other server", reserved(), known, remembers("10.77.0.200"), 0, "other-dhcp-server"},
		{"a reservation, and an address of our pool", reserved(), known, remembers("10.77.0.105"), nak, "wrong-address"},
		{"a reservation, and a wrong address that it chose from us", reserved(), known, chose("10.77.0.200"), nak, "wrong-address"},
		{"a record without a reservation", unreserved(), known, discovers, offered, "offered"},
		{"a stranger", nil, stranger, discovers, 0, "other-dhcp-server"},
		{"a stranger with an address of the other server", nil, stranger, remembers("10.77.0.200"), 0, "other-dhcp-server"},
		{"a stranger that chose us before", nil, stranger, chose("10.77.0.105"), 0, "other-dhcp-server"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var hw []*hardware.Hardware
			if tc.hw != nil {
				hw = append(hw, tc.hw)
			}
			d := beside(t, lending, hw...)
			if got := d.ask(tc.mac, tc.ask); got != tc.want {
				t.Errorf("answer %v, want %v", got, tc.want)
			}
			if told := d.told(); told != tc.told {
				t.Errorf("told %q, want %q", told, tc.told)
			}
		})
	}
}

// TestRivalGoes: a stranger that has a lease of ours keeps it, and when the other server
// is gone everybody is served.
func TestRivalGoes(t *testing.T) {
	t.Parallel()
	d := beside(t, lending)
	p := d.ports[0]
	stranger := hardware.MAC{0x52, 0x54, 0, 0, 0, 3}
	request := func(m *dhcpv4.DHCPv4) {
		m.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeRequest))
		m.UpdateOption(dhcpv4.OptRequestedIPAddress(d.sent[len(d.sent)-1].YourIPAddr))
	}
	other := p.rivals
	p.rivals = rivals{}
	if got := d.ask(stranger, func(*dhcpv4.DHCPv4) {}); got != 0 {
		t.Errorf("before the first search has ended: %v", got)
	}
	p.rivals.searched = true
	if got := d.ask(stranger, func(*dhcpv4.DHCPv4) {}); got != dhcpv4.MessageTypeOffer {
		t.Errorf("alone: %v", got)
	}
	if got := d.ask(stranger, func(m *dhcpv4.DHCPv4) {
		request(m)
		m.UpdateOption(dhcpv4.OptServerIdentifier([]byte{10, 77, 0, 1}))
	}); got != dhcpv4.MessageTypeAck {
		t.Fatalf("alone: %v", got)
	}
	p.rivals = other
	if got := d.ask(stranger, request); got != dhcpv4.MessageTypeAck {
		t.Errorf("its lease is not renewed: %v", got)
	}
	if got := d.ask(hardware.MAC{0x52, 0x54, 0, 0, 0, 4}, func(*dhcpv4.DHCPv4) {}); got != 0 {
		t.Errorf("another stranger: %v", got)
	}
}

// TestOwnSearch: nobody of us answers our own search, and it is no stranger.
func TestOwnSearch(t *testing.T) {
	t.Parallel()
	d := beside(t, lending)
	d.ports[0].rivals = rivals{searched: true}
	if got := d.ask(searchMAC(d.ports[0].mac), func(*dhcpv4.DHCPv4) {}); got != 0 || d.Strangers.len() != 0 {
		t.Errorf("answer %v, %d strangers", got, d.Strangers.len())
	}
}
