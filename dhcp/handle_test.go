package dhcp

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rackstrap/rackstrap/hardware"
)

// desk is a Server without sockets: packets go in, replies come out.
type desk struct {
	*Server
	t      *testing.T
	ledger *Ledger
	sent   []*dhcpv4.DHCPv4
}

func newDesk(t *testing.T, next hardware.Next, hw ...*hardware.Hardware) *desk {
	t.Helper()
	d := &desk{t: t, ledger: NewLedger(next)}
	var err error
	d.Server, err = New(Config{
		Interfaces: []string{"eth0"}, View: &Records{Hardware: hw, Nets: []*hardware.Subnet{SampleSubnet()}},
		Leases: d.ledger, Boots: d.ledger, Metrics: NewMetrics(prometheus.NewPedanticRegistry()),
	})
	if err != nil {
		t.Fatal(err)
	}
	d.transmit = func(_ *port, _ Destination, _ netip.Addr, b []byte) error {
		p, err := dhcpv4.FromBytes(b)
		if err != nil {
			t.Errorf("reply: %v", err)
		}
		d.sent = append(d.sent, p)
		return nil
	}
	return d
}

// receive handles the packet of a golden file and returns the reply or nil.
func (d *desk) receive(golden string) *dhcpv4.DHCPv4 {
	d.t.Helper()
	j := &job{port: d.ports[0], link: Link{
		Networks: []netip.Prefix{netip.MustParsePrefix("10.77.0.1/24")}, Dest: limitedBroadcast,
	}}
	j.n = copy(j.buf[:], readStory(d.t, "testdata/"+golden+".txt").packet(d.t))
	before := len(d.sent)
	d.handle(d.t.Context(), j)
	if len(d.sent) == before {
		return nil
	}
	return d.sent[len(d.sent)-1]
}

// told returns the reasons observed so far.
func (d *desk) told() string {
	var out []string
	for len(d.ledger.Observations) > 0 {
		out = append(out, string((<-d.ledger.Observations).Reason))
	}
	return strings.Join(out, " ")
}

// TestAPacketThatPanics is lost, and the next one is answered.
func TestAPacketThatPanics(t *testing.T) {
	t.Parallel()
	d := newDesk(t, toWorker, SampleHardware("m1", "52:54:00:00:00:02", "10.77.0.11"))
	send := d.transmit
	d.transmit = func(*port, Destination, netip.Addr, []byte) error { panic("no such reply") }
	j := &job{port: d.ports[0], link: Link{Networks: []netip.Prefix{netip.MustParsePrefix("10.77.0.1/24")}, Dest: limitedBroadcast}}
	j.n = copy(j.buf[:], readStory(t, "testdata/ovmf-discover.txt").packet(t))
	if parked := d.survive(t.Context(), j); !parked {
		t.Error("its job is used again")
	}
	d.transmit = send
	if d.receive("ovmf-discover") == nil {
		t.Error("the next packet of that machine is not answered")
	}
}

// TestAPanicInAPool gives the pools back: nobody would get an address any more.
func TestAPanicInAPool(t *testing.T) {
	t.Parallel()
	var p pools
	func() {
		defer func() { _ = recover() }()
		p.locked(func() { panic("no such pool") })
	}()
	if !p.mu.TryLock() {
		t.Error("the pools are locked for ever")
	}
}

var toWorker = hardware.Next{Target: hardware.TargetWorker, Reason: hardware.ReasonWorkflowActive}

func TestHandleBoot(t *testing.T) {
	t.Parallel()
	d := newDesk(t, toWorker, SampleHardware("m1", "52:54:00:00:00:02", "10.77.0.11"))
	if r := d.receive("ovmf-discover"); r == nil || r.BootFileName != ProgramUEFI {
		t.Fatalf("DISCOVER: %v", r)
	}
	if len(d.ledger.Leases) != 0 {
		t.Error("an offer wrote a lease")
	}
	if r := d.receive("ovmf-request"); r == nil || r.MessageType() != dhcpv4.MessageTypeAck {
		t.Fatalf("REQUEST: %v", r)
	}
	if l := <-d.ledger.Leases; l.Addr.String() != "10.77.0.11" || !l.Reservation {
		t.Errorf("lease %+v", l)
	}
	if r := d.receive("ipxe-snponly-discover"); r == nil || !strings.HasSuffix(r.BootFileName, "/auto.ipxe") {
		t.Fatalf("iPXE: %v", r)
	}
	if len(d.ledger.boots) != 1 {
		t.Errorf("%d boots, iPXE continues the firmware's", len(d.ledger.boots))
	}
	if a := d.ledger.acked; len(a) != 1 || !a[0].Program || a[0].Client.String() != "10.77.0.11" || a[0].Server.String() != "10.77.0.1" {
		t.Errorf("acked %+v", a)
	}
	if got, want := d.told(), "offered boot-program acked boot-program offered boot-script"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// When the store refuses: reservations go on, a worker is not started, because
// its token would not be known.
func TestHandleStoreFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, packet, mac string
		next              hardware.Next
		answered          bool
		told              string
	}{
		{"an OS", "udhcpc-request", "52:54:00:00:00:04", toWorker, true, "store-failed acked"},
		{"firmware to the worker", "ovmf-discover", "52:54:00:00:00:02", toWorker, false, "store-failed"},
		{"firmware to the disk", "ovmf-discover", "52:54:00:00:00:02", hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonProvisioned}, true, "offered provisioned"},
	} {
		addr := map[string]string{"52:54:00:00:00:04": "10.77.0.13", "52:54:00:00:00:02": "10.77.0.11"}[tt.mac]
		d := newDesk(t, tt.next, SampleHardware("m1", tt.mac, addr))
		d.ledger.Fail = errors.New("no space left on device")
		if r := d.receive(tt.packet); (r != nil) != tt.answered {
			t.Errorf("%s: reply %v", tt.name, r)
		}
		if got := d.told(); got != tt.told {
			t.Errorf("%s: told %q, want %q", tt.name, got, tt.told)
		}
	}
}

// A boot that was recorded but whose ACK cannot be: no worker either.
func TestHandleAckFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t, toWorker, SampleHardware("m1", "52:54:00:00:00:02", "10.77.0.11"))
	if d.receive("ovmf-discover") == nil {
		t.Fatal("no offer")
	}
	d.ledger.Fail = errors.New("no space left on device")
	if r := d.receive("ovmf-request"); r != nil {
		t.Errorf("an ACK that could not be kept: %s", r.Summary())
	}
}

func TestHandleStranger(t *testing.T) {
	t.Parallel()
	d := newDesk(t, toWorker)
	for range 3 {
		if r := d.receive("ovmf-discover"); r != nil {
			t.Errorf("a stranger got %s", r.Summary())
		}
	}
	got := d.Strangers.List()
	if len(got) != 1 || got[0].Count != 3 || got[0].Firmware != hardware.FirmwareUEFI {
		t.Errorf("remembered %+v", got)
	}
	if told := d.told(); told != "" || len(d.ledger.boots) != 0 {
		t.Errorf("a stranger reached the timeline: %q", told)
	}
}

func TestUserClasses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":               "",
		"69505845":       "iPXE",     // bare
		"0469505845":     "iPXE",     // RFC 3004
		"01610469505845": "a,iPXE",   // two
		"6950584500":     "iPXE",     // with a terminator
		"0569505845":     "\x05iPXE", // a length that lies
		"00":             "",
	} {
		b, err := hex.DecodeString(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(userClasses(b), ","); got != want {
			t.Errorf("userClasses(%s) = %q, want %q", in, got, want)
		}
	}
}

// A boot beside another server: the OFFER starts it, the REQUEST to the other one says
// its address, port 4011 belongs to it; when the DISCOVER was missed, port 4011 starts it.
func TestHandleProxyBoot(t *testing.T) {
	t.Parallel()
	d := newDesk(t, toWorker, SampleHardware("m1", "52:54:00:25:b8:b7", "10.77.0.11"))
	d.View.(*Records).Nets[0].Spec.Mode = hardware.ModeProxy
	if r := d.receive("proxy-ovmf-discover"); r == nil || !r.YourIPAddr.IsUnspecified() || r.BootFileName != ProgramUEFI {
		t.Fatalf("DISCOVER: %v", r)
	}
	if r := d.receive("proxy-ovmf-request"); r != nil {
		t.Fatalf("the REQUEST to the other server was answered: %s", r.Summary())
	}
	if a := d.ledger.AllAcked(); len(a) != 1 || a[0].Client.String() != "10.77.0.118" || a[0].Server.String() != "10.77.0.1" || !a[0].Program {
		t.Errorf("acked %+v", a)
	}
	at4011 := func() *dhcpv4.DHCPv4 {
		j := &job{port: d.ports[1], link: Link{
			Networks: []netip.Prefix{netip.MustParsePrefix("10.77.0.1/24")}, Source: netip.MustParseAddr("10.77.0.118"), SourcePort: 4011,
			Dest: netip.MustParseAddr("10.77.0.1"), ProxyPort: true,
		}}
		j.n = copy(j.buf[:], readStory(t, "testdata/proxy-ovmf-4011.txt").packet(t))
		before := len(d.sent)
		d.handle(t.Context(), j)
		if len(d.sent) == before {
			return nil
		}
		return d.sent[len(d.sent)-1]
	}
	if r := at4011(); r == nil || r.BootFileName != ProgramUEFI {
		t.Fatalf("port 4011: %v", r)
	}
	if len(d.ledger.boots) != 1 || len(d.ledger.Leases) != 0 {
		t.Errorf("%d boots, %d leases", len(d.ledger.boots), len(d.ledger.Leases))
	}
	if got, want := d.told(), "proxy-offered boot-program proxy-silent boot-program proxy-answered boot-program"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	// what is not on disk is not answered: the worker's token would go to nobody
	d.ledger.Fail = errors.New("no space left on device")
	if r := at4011(); r != nil {
		t.Errorf("an answer that could not be kept: %s", r.Summary())
	}
	if r := d.receive("proxy-ovmf-discover"); r != nil {
		t.Errorf("an offer of a boot that could not be kept: %s", r.Summary())
	}
	d.ledger.Fail = nil
	clear(d.ledger.boots)
	if r := at4011(); r == nil || len(d.ledger.boots) != 1 {
		t.Errorf("port 4011 after a DISCOVER that was missed: %v, %d boots", r, len(d.ledger.boots))
	}
}

// Once the script was given, a REQUEST with the machine's MAC moves its boot nowhere.
func TestProxyClientStays(t *testing.T) {
	t.Parallel()
	p := &Place{Subnet: SampleSubnet(), Server: netip.MustParseAddr("10.77.0.1")}
	mine, other := netip.MustParseAddr("10.77.0.50"), netip.MustParseAddr("10.77.0.51")
	b := &hardware.Boot{Client: mine, Phase: hardware.PhaseProgram}
	if got := proxyClient(p, b, other); got != other {
		t.Errorf("iPXE's other address: %s", got)
	}
	b.Phase = hardware.PhaseScript
	if got := proxyClient(p, b, other); got.IsValid() {
		t.Errorf("after the script the boot is known by %s", got)
	}
	for _, a := range []string{"10.77.0.1", "10.77.0.0", "10.77.0.255", "192.0.2.9"} {
		if got := proxyClient(p, &hardware.Boot{}, netip.MustParseAddr(a)); got.IsValid() {
			t.Errorf("the boot is known by %s", a)
		}
	}
}
