package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rackstrap/rackstrap/hardware"
)

// poolDesk is a desk whose Subnet lends addresses, with a clock of its own. Who asks
// after an address is answered by squatters.
type poolDesk struct {
	*desk
	now       time.Time
	reg       *prometheus.Registry
	view      *Records
	net       *hardware.Subnet
	squatters map[string]hardware.MAC // by address
	asked     []string                // after these addresses
	parked    *job
}

func newPoolDesk(t *testing.T, ranges []string, known ...int) *poolDesk {
	t.Helper()
	d := &poolDesk{now: goldenTime, net: SampleSubnet(), view: &Records{}, squatters: map[string]hardware.MAC{}}
	d.net.Spec.Mode, d.net.Spec.Pool = hardware.ModePool, &hardware.Pool{}
	for _, r := range ranges {
		d.net.Spec.Pool.Ranges = append(d.net.Spec.Pool.Ranges, mustRange(r))
	}
	d.view.Nets = []*hardware.Subnet{d.net}
	for _, i := range known {
		d.know(i)
	}
	d.start(t, NewLedger(toWorker))
	return d
}

// start makes a Server that knows what is durable, and nothing else.
func (d *poolDesk) start(t *testing.T, l *Ledger) {
	t.Helper()
	d.desk = newDesk(t, toWorker)
	d.desk.ledger = l
	d.reg = prometheus.NewPedanticRegistry()
	s, err := New(Config{
		Interfaces: []string{"eth0"}, View: d.view, Leases: l, Boots: l,
		Metrics: NewMetrics(d.reg), Now: func() time.Time { return d.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.transmit, d.desk.Server = d.desk.Server.transmit, s
	s.ask = func(j *job, a netip.Addr, _ hardware.MAC, _ *port) bool {
		if len(d.asked) < 100 {
			d.asked = append(d.asked, a.String())
		}
		j.verdict = verdict{addr: a}
		d.parked = j
		return true
	}
}

// know makes a record without a reservation.
func (d *poolDesk) know(i int) {
	h := SampleHardware("m"+string(rune('a'+i)), testMAC(i).String(), "10.77.0.1")
	h.Spec.Interfaces[0].Addresses = nil
	d.view.Hardware = append(d.view.Hardware, h)
}

// packet is what machine i sends.
func packet(i int, t dhcpv4.MessageType, with ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	m := testMAC(i)
	p, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(m[:]), dhcpv4.WithMessageType(t)}, with...)...)
	if err != nil {
		panic(err)
	}
	return p
}

func asks(a string) dhcpv4.Modifier {
	return dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(netip.MustParseAddr(a).AsSlice()))
}

func uses(a string) dhcpv4.Modifier {
	return dhcpv4.WithClientIP(netip.MustParseAddr(a).AsSlice())
}

func selects(server string) dhcpv4.Modifier {
	return dhcpv4.WithOption(dhcpv4.OptServerIdentifier(netip.MustParseAddr(server).AsSlice()))
}

// send handles a packet and returns the reply or nil.
func (d *poolDesk) send(p *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
	d.t.Helper()
	d.sent = d.sent[:0]
	d.receivePacket(p)
	if len(d.sent) == 0 {
		return nil
	}
	return d.sent[len(d.sent)-1]
}

// receivePacket handles a packet, and lets it wait for its probe.
func (d *poolDesk) receivePacket(p *dhcpv4.DHCPv4) {
	d.t.Helper()
	j := &job{port: d.ports[0], link: Link{
		Networks: []netip.Prefix{netip.MustParsePrefix("10.77.0.1/24")}, Dest: limitedBroadcast,
	}}
	j.n = copy(j.buf[:], p.ToBytes())
	for d.handle(d.t.Context(), j) {
		j = d.parked
		if by, ok := d.squatters[j.verdict.addr.String()]; ok {
			j.verdict.in, j.verdict.usedBy = true, by
		} else {
			d.nobodyAt(j.verdict.addr, hardware.MAC(p.ClientHWAddr))
		}
	}
}

// lease takes a machine from DISCOVER to its ACK.
func (d *poolDesk) lease(i int) string {
	d.t.Helper()
	o := d.send(packet(i, dhcpv4.MessageTypeDiscover))
	if o == nil || o.MessageType() != dhcpv4.MessageTypeOffer {
		d.t.Fatalf("DISCOVER of %d: %v; %s", i, o, d.told())
	}
	a := o.YourIPAddr.String()
	r := d.send(packet(i, dhcpv4.MessageTypeRequest, asks(a), selects("10.77.0.1")))
	if r == nil || r.MessageType() != dhcpv4.MessageTypeAck || r.YourIPAddr.String() != a {
		d.t.Fatalf("REQUEST of %d for %s: %v; %s", i, a, r, d.told())
	}
	return a
}

// answer is a reply in a word.
func answer(r *dhcpv4.DHCPv4) string {
	if r == nil {
		return "silence"
	}
	return r.MessageType().String()
}

// A probe is made once for an address that nobody is known to have, and not for a
// lease that runs.
func TestLend(t *testing.T) {
	t.Parallel()
	d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.109"}, 1)
	a := d.lease(1)
	if len(d.asked) != 1 || d.asked[0] != a {
		t.Errorf("asked after %v", d.asked)
	}
	l, ok := d.ledger.Get("lab", testMAC(1))
	if !ok || l.Addr.String() != a || l.Reservation || l.Hardware == "" || !l.Expires.Equal(d.now.Add(10*time.Minute)) {
		t.Errorf("lease %+v", l)
	}
	if again := d.lease(1); again != a || len(d.asked) != 1 {
		t.Errorf("then %s, asked after %v", again, d.asked)
	}
	r := d.send(packet(1, dhcpv4.MessageTypeRelease, uses(a), selects("10.77.0.1")))
	if l, _ := d.ledger.Get("lab", testMAC(1)); r != nil || !l.Released || l.State(d.now) != hardware.LeaseReleased {
		t.Errorf("RELEASE: %s, %+v", answer(r), l)
	}
	if again := d.lease(1); again != a || len(d.asked) != 2 {
		t.Errorf("after the release %s, asked after %v", again, d.asked)
	}
	no := false
	d.net.Spec.Pool.Probe = &no
	d.lease(2)
	if len(d.asked) != 2 {
		t.Errorf("probe: false, and asked after %v", d.asked)
	}
	if got := d.send(packet(3, dhcpv4.MessageTypeInform, uses("10.77.0.200"))); answer(got) != "ACK" || !got.YourIPAddr.IsUnspecified() {
		t.Errorf("INFORM: %v", got)
	}
	families, err := d.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "rackstrap_dhcp_pool_addresses" {
				got[m.Label[0].GetValue()+" "+m.Label[1].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if want := "map[free lab:8 offered lab:0 quarantined lab:0 size lab:10 used lab:2]"; fmt.Sprint(got) != want {
		t.Errorf("metrics %v, want %s", got, want)
	}
}

func TestLendStranger(t *testing.T) {
	t.Parallel()
	d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.103"})
	d.net.Spec.LeaseTime = hardware.Duration(time.Hour)
	d.lease(1)
	l, _ := d.ledger.Get("lab", testMAC(1))
	if l.Hardware != "" || !l.Expires.Equal(d.now.Add(strangerTerm)) {
		t.Errorf("lease %+v", l)
	}
	if got := d.sent[0].IPAddressLeaseTime(0); got != strangerTerm {
		t.Errorf("lease time %v", got)
	}
	d.lease(2)
	if r := d.send(packet(3, dhcpv4.MessageTypeDiscover)); r != nil {
		t.Errorf("half is lent: %s", answer(r))
	}
	if s := d.Strangers.List(); s[0].Reason != hardware.ReasonPoolShare || s[1].Reason != hardware.ReasonAcked {
		t.Errorf("strangers %+v", s)
	}
	d.know(1) // it keeps its address, for as long as others
	d.send(packet(1, dhcpv4.MessageTypeRequest, uses(l.Addr.String())))
	if l, _ = d.ledger.Get("lab", testMAC(1)); l.Hardware == "" || !l.Expires.Equal(d.now.Add(time.Hour)) {
		t.Errorf("lease %+v", l)
	}
	d.net.Spec.Pool.Allow = hardware.PoolKnown
	if r := d.send(packet(4, dhcpv4.MessageTypeDiscover)); r != nil {
		t.Errorf("allow: known, and a stranger gets %s", answer(r))
	}
}

func TestLendConflict(t *testing.T) {
	t.Parallel()
	d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.104"}, 1)
	thief := hardware.MAC{0x52, 6, 6, 6, 6, 6}
	for _, a := range []string{"10.77.0.100", "10.77.0.101"} {
		d.squatters[a] = thief
	}
	r := d.send(packet(1, dhcpv4.MessageTypeDiscover, asks("10.77.0.100")))
	if answer(r) != "OFFER" || d.squatters[r.YourIPAddr.String()] != (hardware.MAC{}) {
		t.Fatalf("DISCOVER: %v", r)
	}
	if told := d.told(); !strings.HasPrefix(told, "address-in-use ") || !strings.HasSuffix(told, "offered") {
		t.Errorf("told %q", told)
	}
	q, ok := d.ledger.Get("lab", hardware.QuarantineMAC(netip.MustParseAddr("10.77.0.100")))
	if !ok || q.UsedBy != thief || q.State(d.now) != hardware.LeaseQuarantined || q.State(d.now.Add(quarantine)) != hardware.LeaseExpired {
		t.Errorf("quarantine %+v", q)
	}
	// Also after a restart, and for whoever asks.
	d.start(t, d.ledger)
	if r := d.send(packet(2, dhcpv4.MessageTypeRequest, asks("10.77.0.100"), selects("10.77.0.1"))); answer(r) != "NAK" {
		t.Errorf("REQUEST of what is in quarantine: %s", answer(r))
	}
	// Somebody answers for every address.
	for a := netip.MustParseAddr("10.77.0.100"); a.String() != "10.77.0.105"; a = a.Next() {
		d.squatters[a.String()] = thief
	}
	d.told()
	if r := d.send(packet(1, dhcpv4.MessageTypeDiscover)); r != nil {
		t.Errorf("all are in use: %s", answer(r))
	}
	if told := d.told(); !strings.Contains(told, "address-in-use") && !strings.Contains(told, "pool-empty") {
		t.Errorf("told %q", told)
	}
}

// What is revoked through the API is used to show that the pool follows the journal.
func TestLendRevoke(t *testing.T) {
	t.Parallel()
	d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.101"}, 1, 2, 3)
	a := d.lease(1)
	d.lease(2)
	if r := d.send(packet(3, dhcpv4.MessageTypeDiscover)); r != nil || !strings.Contains(d.told(), "pool-empty") {
		t.Errorf("the pool is empty: %s", answer(r))
	}
	if _, ok, err := d.Revoke(t.Context(), "lab", testMAC(9)); ok || err != nil {
		t.Errorf("nobody's lease: %v, %v", ok, err)
	}
	l, ok, err := d.Revoke(t.Context(), "lab", testMAC(1))
	if !ok || err != nil || l.Addr.String() != a || d.told() != "lease-revoked" {
		t.Errorf("%+v, %v, %v", l, ok, err)
	}
	for _, form := range []*dhcpv4.DHCPv4{
		packet(1, dhcpv4.MessageTypeRequest, uses(a)), packet(1, dhcpv4.MessageTypeRequest, uses(a), dhcpv4.WithBroadcast(true)),
	} {
		if r := d.send(form); answer(r) != "NAK" {
			t.Errorf("its renewal: %s", answer(r))
		}
	}
	if got := d.lease(3); got != a {
		t.Errorf("another gets %s, free is %s", got, a)
	}
	if r := d.send(packet(1, dhcpv4.MessageTypeRequest, asks(a))); answer(r) != "NAK" {
		t.Errorf("INIT-REBOOT with another's: %s", answer(r))
	}
}

func TestLendDecline(t *testing.T) {
	t.Parallel()
	d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.119"}, 1, 2)
	a := d.lease(1)
	decline := func(i int, a string) *dhcpv4.DHCPv4 {
		return packet(i, dhcpv4.MessageTypeDecline, asks(a), selects("10.77.0.1"))
	}
	d.told()
	if r := d.send(decline(2, a)); r != nil || d.told() != "no-lease" {
		t.Errorf("of somebody else's: %s", answer(r))
	}
	if r := d.send(decline(1, a)); r != nil || d.told() != "declined address-in-use" {
		t.Errorf("of its own: %s", answer(r))
	}
	q, ok := d.ledger.Get("lab", hardware.QuarantineMAC(netip.MustParseAddr(a)))
	if _, still := d.ledger.Get("lab", testMAC(1)); !ok || still || q.DeclinedBy != testMAC(1) {
		t.Errorf("quarantine %+v, its own lease is there: %v", q, still)
	}
	if b := d.lease(1); b == a {
		t.Errorf("it gets %s again", a)
	}
	if r := d.send(packet(2, dhcpv4.MessageTypeDiscover, asks(a))); r.YourIPAddr.String() == a {
		t.Errorf("another gets %s", a)
	}
	if _, _, err := d.Revoke(t.Context(), "lab", q.MAC); err != nil {
		t.Fatal(err)
	}
	if r := d.send(packet(2, dhcpv4.MessageTypeDiscover, asks(a))); r.YourIPAddr.String() == a {
		t.Error("an offer was changed for a wish")
	}
	d.know(3)
	if r := d.send(packet(3, dhcpv4.MessageTypeDiscover, asks(a))); r.YourIPAddr.String() != a {
		t.Errorf("the quarantine was ended, and it gets %s", r.YourIPAddr)
	}
}

// What an operator changes is told at the next renewal; a restart changes nothing.
func TestLendOperator(t *testing.T) {
	t.Parallel()
	renew := func(d *poolDesk, i int, a string) string {
		return answer(d.send(packet(i, dhcpv4.MessageTypeRequest, uses(a))))
	}
	for name, tt := range map[string]struct {
		change func(d *poolDesk, a string)
		want   string
	}{
		"nothing": {func(*poolDesk, string) {}, "ACK"},
		"restart": {func(d *poolDesk, _ string) { d.start(d.t, d.ledger) }, "ACK"},
		"another DNS server": {func(d *poolDesk, _ string) {
			n := *d.net
			n.Spec.DNS = nil
			d.view.Nets = []*hardware.Subnet{&n}
		}, "ACK"},
		"other ranges": {func(d *poolDesk, _ string) {
			n := *d.net
			n.Spec.Pool = &hardware.Pool{Ranges: []hardware.AddrRange{mustRange("10.77.0.150-10.77.0.159")}}
			d.view.Nets = []*hardware.Subnet{&n}
		}, "NAK"},
		"excluded": {func(d *poolDesk, a string) {
			n := *d.net
			n.Spec.Pool = &hardware.Pool{Ranges: n.Spec.Pool.Ranges, Exclude: []hardware.AddrRange{mustRange(a)}}
			d.view.Nets = []*hardware.Subnet{&n}
		}, "NAK"},
		"reserved for another": {func(d *poolDesk, a string) {
			d.view.Hardware = append(d.view.Hardware, SampleHardware("other", testMAC(77).String(), a))
		}, "NAK"},
		"reserved for itself": {func(d *poolDesk, a string) {
			d.view.Hardware[0] = SampleHardware("ma", testMAC(1).String(), a)
		}, "ACK"},
		"reserves another": {func(d *poolDesk, _ string) {
			d.view.Hardware[0] = SampleHardware("ma", testMAC(1).String(), "10.77.0.200")
		}, "NAK"},
		"expired": {func(d *poolDesk, _ string) { d.now = d.now.Add(24 * time.Hour) }, "ACK"},
	} {
		d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.109"}, 1)
		a := d.lease(1)
		tt.change(d, a)
		if got := renew(d, 1, a); got != tt.want {
			t.Errorf("%s: %s, want %s; %s", name, got, tt.want, d.told())
		}
	}
}

// TestReservedWhileLent: an address that is reserved for one machine while another one
// uses it is given to nobody else until that one was told no, or has it no more.
func TestReservedWhileLent(t *testing.T) {
	t.Parallel()
	discover := func(d *poolDesk) *dhcpv4.DHCPv4 { return d.send(packet(2, dhcpv4.MessageTypeDiscover)) }
	renew := func(d *poolDesk, i int, a string) string {
		return answer(d.send(packet(i, dhcpv4.MessageTypeRequest, uses(a))))
	}
	excluded := func(d *poolDesk, a string) {
		n := *d.net
		n.Spec.Pool = &hardware.Pool{Ranges: n.Spec.Pool.Ranges, Exclude: []hardware.AddrRange{mustRange(a)}}
		d.net, d.view.Nets = &n, []*hardware.Subnet{&n}
	}
	renewal := func(d *poolDesk, a string) {
		if got := renew(d, 1, a); got != "NAK" {
			t.Errorf("the renewal of who has it: %s; %s", got, d.told())
		}
	}
	expiry := func(d *poolDesk, _ string) { d.now = d.now.Add(10 * time.Minute) }
	for name, tt := range map[string]struct {
		before, end func(d *poolDesk, a string)
	}{
		"it is told no":                {nil, renewal},
		"told no after a restart":      {func(d *poolDesk, _ string) { d.start(d.t, d.ledger) }, renewal},
		"told no, and excluded":        {excluded, renewal},
		"excluded, and its lease ends": {excluded, expiry},
		"no pool any more, and its lease ends": {func(d *poolDesk, _ string) {
			n := *d.net
			n.Spec.Mode, n.Spec.Pool = hardware.ModeReservation, nil
			d.net, d.view.Nets = &n, []*hardware.Subnet{&n}
		}, expiry},
		"its lease ends": {nil, expiry},
		"it gives it back": {nil, func(d *poolDesk, a string) {
			d.send(packet(1, dhcpv4.MessageTypeRelease, uses(a)))
		}},
		"it is revoked": {nil, func(d *poolDesk, _ string) {
			if _, ok, err := d.Revoke(t.Context(), "lab", testMAC(1)); !ok || err != nil {
				t.Errorf("revoke: %v, %v", ok, err)
			}
		}},
		"it begins anew": {nil, func(d *poolDesk, _ string) { d.lease(1) }},
	} {
		d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.109"}, 1, 2)
		a, own := d.lease(1), d.lease(2)
		d.view.Hardware[1] = SampleHardware("mb", testMAC(2).String(), a)
		if tt.before != nil {
			tt.before(d, a)
		}
		d.told()
		if r := discover(d); r != nil {
			t.Errorf("%s: DISCOVER: %s", name, answer(r))
		}
		select {
		case o := <-d.ledger.Observations:
			if o.Reason != hardware.ReasonAddressLent || !strings.Contains(o.Detail, testMAC(1).String()+" (m") ||
				!strings.Contains(o.Detail, "rackstrap lease revoke --subnet lab "+testMAC(1).String()) {
				t.Errorf("%s: %+v", name, o)
			}
		default:
			t.Errorf("%s: nobody is told", name)
		}
		if got := renew(d, 2, own); got != "silence" { // it keeps what it has for so long
			t.Errorf("%s: a renewal of its other address: %s", name, got)
		}
		if r := d.send(packet(2, dhcpv4.MessageTypeRequest, asks(a), selects("10.77.0.1"))); r != nil {
			t.Errorf("%s: REQUEST: %s", name, answer(r))
		}
		if r := d.send(packet(2, dhcpv4.MessageTypeRequest, asks(own), selects("10.77.0.9"))); r != nil || !strings.HasSuffix(d.told(), "other-server") {
			t.Errorf("%s: it takes another server's offer: %s", name, answer(r))
		}
		tt.end(d, a)
		if got := d.lease(2); got != a {
			t.Errorf("%s: it gets %s, %s is reserved", name, got, a)
		}
		if got := renew(d, 2, a); got != "ACK" {
			t.Errorf("%s: its renewal: %s; %s", name, got, d.told())
		}
		if n := d.net.Spec; n.Mode == hardware.ModePool {
			if got := d.lease(1); got == a {
				t.Errorf("%s: both have %s", name, a)
			}
		}
	}
}

// TestReservedWhileOffered: who was offered an address just now may be taking it.
func TestReservedWhileOffered(t *testing.T) {
	t.Parallel()
	d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.109"}, 1, 2)
	a := d.send(packet(1, dhcpv4.MessageTypeDiscover)).YourIPAddr.String()
	d.view.Hardware[1] = SampleHardware("mb", testMAC(2).String(), a)
	d.told()
	if r := d.send(packet(2, dhcpv4.MessageTypeDiscover)); r != nil || d.told() != "address-lent" {
		t.Errorf("DISCOVER: %s", answer(r))
	}
	d.now = d.now.Add(offerTime)
	if got := d.lease(2); got != a {
		t.Errorf("it gets %s, %s is reserved", got, a)
	}
}

// TestReservedForAnother: a reservation that goes from one record to another one, as when a
// machine is replaced, is the record's to give.
func TestReservedForAnother(t *testing.T) {
	t.Parallel()
	d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.109"}, 1, 2)
	d.view.Hardware[0] = SampleHardware("ma", testMAC(1).String(), "10.77.0.105")
	a := d.lease(1)
	d.view.Hardware[0] = SampleHardware("ma", testMAC(1).String(), "10.77.0.106")
	d.view.Hardware[1] = SampleHardware("mb", testMAC(2).String(), a)
	if got := d.lease(2); got != a {
		t.Errorf("it gets %s, %s is reserved", got, a)
	}
}

// When the disk refuses writes nothing is promised that a restart would not know.
func TestLendDiskFails(t *testing.T) {
	t.Parallel()
	d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.109"}, 1, 2)
	a := d.lease(1)
	d.told()
	d.ledger.Fail = errors.New("no space left on device")
	d.now = d.now.Add(4 * time.Minute)
	r := d.send(packet(1, dhcpv4.MessageTypeRequest, uses(a)))
	if answer(r) != "ACK" || r.IPAddressLeaseTime(0) != 6*time.Minute || d.told() != "store-failed acked" {
		t.Errorf("renewal: %v", r)
	}
	d.now = d.now.Add(6 * time.Minute)
	if r := d.send(packet(1, dhcpv4.MessageTypeRequest, uses(a))); r != nil {
		t.Errorf("the lease on disk has ended: %s", answer(r))
	}
	o := d.send(packet(2, dhcpv4.MessageTypeDiscover))
	d.told()
	if r := d.send(packet(2, dhcpv4.MessageTypeRequest, asks(o.YourIPAddr.String()), selects("10.77.0.1"))); r != nil || d.told() != "store-failed" {
		t.Errorf("a new lease: %s", answer(r))
	}
	d.ledger.Fail = nil
	d.lease(2)
}

// The leases of those whose address went to others are forgotten: there are never more
// than addresses.
func TestLendForgets(t *testing.T) {
	t.Parallel()
	d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.103"}, 1, 2, 3, 4, 5, 6, 7, 8)
	for i := range 8 {
		d.lease(i + 1)
		d.now = d.now.Add(5 * time.Minute)
		if got := len(d.ledger.List()); got > 4 {
			t.Fatalf("%d leases of 4 addresses", got)
		}
	}
	// one that took another server's offer leaves nothing
	d.now = d.now.Add(time.Hour)
	o := d.send(packet(1, dhcpv4.MessageTypeDiscover))
	d.send(packet(1, dhcpv4.MessageTypeRequest, asks(o.YourIPAddr.String()), selects("10.77.0.9")))
	if u := d.Use(d.net); u.Offered != 0 || u.Free != 4 {
		t.Errorf("%+v", u)
	}
}

// A machine that discovery lets in goes on with a GRUB or a worker that ask as an
// operating system does.
func TestLendDiscovery(t *testing.T) {
	t.Parallel()
	d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.109"})
	d.net.Spec.Discovery, d.net.Spec.Pool.Allow = true, hardware.PoolKnown
	if r := d.send(packet(1, dhcpv4.MessageTypeDiscover)); r != nil {
		t.Errorf("it boots nothing, and gets %s", answer(r))
	}
	firmware := dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00000:UNDI:002001"))
	o := d.send(packet(1, dhcpv4.MessageTypeDiscover, firmware))
	if answer(o) != "OFFER" {
		t.Fatalf("firmware: %s", answer(o))
	}
	a := o.YourIPAddr.String()
	if r := d.send(packet(1, dhcpv4.MessageTypeRequest, firmware, asks(a), selects("10.77.0.1"))); answer(r) != "ACK" {
		t.Fatalf("firmware: %s", answer(r))
	}
	if got := d.lease(1); got != a {
		t.Errorf("the worker gets %s, the firmware had %s", got, a)
	}
	d.now = d.now.Add(strangerTerm / 2)
	if r := d.send(packet(1, dhcpv4.MessageTypeRequest, uses(a))); answer(r) != "ACK" {
		t.Errorf("the worker's renewal: %s", answer(r))
	}
	d.now = d.now.Add(2 * strangerTerm)
	if got := d.lease(1); got != a {
		t.Errorf("its boot is open, and it gets %s", got)
	}
	if r := d.send(packet(2, dhcpv4.MessageTypeDiscover)); r != nil {
		t.Errorf("another gets %s", answer(r))
	}
	d.start(t, d.ledger)
	d.ledger.boots = map[hardware.MAC]*hardware.Boot{}
	if r := d.send(packet(1, dhcpv4.MessageTypeRequest, uses(a))); answer(r) != "ACK" {
		t.Errorf("a lease that runs: %s", answer(r))
	}
	d.now = d.now.Add(2 * strangerTerm)
	if r := d.send(packet(1, dhcpv4.MessageTypeRequest, uses(a))); r != nil {
		t.Errorf("its lease and its boot are over: %s", answer(r))
	}
}

// What is reserved for one NIC of a machine is not lent to the other.
func TestLendSecondNIC(t *testing.T) {
	t.Parallel()
	d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.101"})
	h := SampleHardware("two", testMAC(1).String(), "10.77.0.100")
	h.Spec.Interfaces = append(h.Spec.Interfaces, hardware.NIC{MAC: testMAC(2)})
	d.view.Hardware = append(d.view.Hardware, h)
	if r := d.send(packet(2, dhcpv4.MessageTypeDiscover, asks("10.77.0.100"))); answer(r) != "OFFER" || r.YourIPAddr.String() != "10.77.0.101" {
		t.Errorf("the second NIC: %v", r)
	}
	if r := d.send(packet(2, dhcpv4.MessageTypeRequest, asks("10.77.0.100"), selects("10.77.0.1"))); answer(r) != "NAK" {
		t.Errorf("it takes the first one's: %s", answer(r))
	}
}

// slowConfirm is a disk that takes its time for one client.
type slowConfirm struct {
	*Ledger
	of          hardware.MAC
	begun, goOn chan struct{}
}

func (s *slowConfirm) Confirm(ctx context.Context, l hardware.Lease) error {
	if l.MAC == s.of {
		s.begun <- struct{}{}
		select {
		case <-s.goOn:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Ledger.Confirm(ctx, l)
}

// TestLastSecond: a renewal and another client meet as a lease ends, while the disk is
// slow. One of the two gets the address, and is the one whose lease is durable.
func TestLastSecond(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		left time.Duration // of the lease, when the first of the two comes
		slow int           // whose lease the disk is slow with
		want string        // what 1 is told at its renewal
	}{
		"a second before":             {time.Second, 1, "ACK"},
		"a nanosecond before":         {1, 1, "ACK"},
		"at the end":                  {0, 1, "ACK"},
		"a second after":              {-time.Second, 1, "ACK"},
		"while it is lent to another": {-time.Second, 2, "NAK"},
	} {
		d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.100"}, 1)
		b := 2
		for d.shard(testMAC(b)) == d.shard(testMAC(1)) {
			b++ // who shares it waits
		}
		d.know(b)
		a := d.lease(1)
		l, _ := d.ledger.Get("lab", testMAC(1))
		renews := packet(1, dhcpv4.MessageTypeRequest, uses(a))
		wants := packet(b, dhcpv4.MessageTypeRequest, asks(a), selects("10.77.0.1"))
		d.now = l.Expires.Add(-tt.left)
		first, slow := renews, testMAC(1)
		if tt.slow == 2 {
			if r := d.send(packet(b, dhcpv4.MessageTypeDiscover)); answer(r) != "OFFER" {
				t.Fatalf("%s: %s", name, answer(r))
			}
			first, slow = wants, testMAC(b)
		}
		disk := &slowConfirm{d.ledger, slow, make(chan struct{}), make(chan struct{})}
		d.Leases, d.sent = disk, nil
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.receivePacket(first)
		}()
		<-disk.begun
		d.now = d.now.Add(2 * time.Second)
		if tt.slow == 2 {
			d.receivePacket(renews)
		} else {
			d.receivePacket(packet(b, dhcpv4.MessageTypeDiscover))
			d.receivePacket(wants)
		}
		close(disk.goOn)
		<-done
		said := map[hardware.MAC]string{}
		for _, r := range d.sent {
			said[hardware.MAC(r.ClientHWAddr)] = answer(r)
		}
		other, has := "NAK", testMAC(1)
		if tt.want == "NAK" {
			other, has = "ACK", testMAC(b)
		}
		if said[testMAC(1)] != tt.want || said[testMAC(b)] != other {
			t.Errorf("%s: it is told %s, and the other one %s; %s", name, said[testMAC(1)], said[testMAC(b)], d.told())
		}
		var active []hardware.MAC
		for _, l := range d.ledger.List() {
			if l.Addr.String() == a && l.State(d.now) == hardware.LeaseActive {
				active = append(active, l.MAC)
			}
		}
		if len(active) != 1 || active[0] != has {
			t.Errorf("%s: the address is lent to %v, want %v", name, active, has)
		}
		// and so it is after a restart
		d.start(t, d.ledger)
		if got := answer(d.send(packet(1, dhcpv4.MessageTypeRequest, uses(a)))); got != tt.want {
			t.Errorf("%s: after a restart it is told %s", name, got)
		}
	}
}

// A store that hangs keeps the clients of a shard waiting for a bounded time.
type slowDelete struct{ *Ledger }

func (slowDelete) Delete(ctx context.Context, _ string, _ hardware.MAC) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return nil
	}
	return context.DeadlineExceeded
}

func TestRevokeIsBounded(t *testing.T) {
	t.Parallel()
	d := newPoolDesk(t, []string{"10.77.0.100-10.77.0.101"}, 1)
	d.lease(1)
	d.Leases = slowDelete{d.ledger}
	if _, _, err := d.Revoke(t.Context(), "lab", testMAC(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without an end: %v", err)
	}
}
