package dhcp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// Whatever comes: no panic, and a reply only to a known machine, with its xid and
// hardware address, within its size, with its reserved address or none, to nobody
// else.
func FuzzDecide(f *testing.F) {
	for _, path := range goldenFiles(f) {
		p := readStory(f, path).packet(f)
		f.Add(p, true, "disk")
		f.Add(p, false, "worker")
	}
	f.Fuzz(func(t *testing.T, packet []byte, known bool, target string) {
		const mac = "52:54:00:00:00:01"
		w := world{
			view: &Records{Hardware: []*hardware.Hardware{SampleHardware("m1", mac, "10.77.0.10")}, Nets: []*hardware.Subnet{SampleSubnet()}},
			link: Link{
				Networks: []netip.Prefix{netip.MustParsePrefix("10.77.0.1/24")}, Source: netip.IPv4Unspecified(), Dest: limitedBroadcast,
				RouteSource: func(netip.Addr) netip.Addr { return netip.MustParseAddr("192.0.2.1") },
			},
			boot: &hardware.Boot{ID: "01BOOT", Next: hardware.Next{Target: hardware.Target(target), Reason: hardware.ReasonProvisioned}},
		}
		m, _ := hardware.ParseMAC(mac)
		if len(packet) >= headerSize {
			packet = bytes.Clone(packet)
			if known {
				copy(packet[chaddrOffset:], m[:])
			}
			known = bytes.Equal(packet[chaddrOffset:chaddrOffset+6], m[:])
		}
		o := w.decide(packet)
		d := o.decision
		if !d.Reason.Known() || (d.Boot != "" && !d.Boot.Known()) {
			t.Fatalf("reasons %q and %q", d.Reason, d.Boot)
		}
		if d.Reply == nil {
			return
		}
		if !known {
			t.Fatal("a reply to a stranger")
		}
		checkReply(t, packet, &o)
	})
}

func checkReply(t *testing.T, packet []byte, o *outcome) {
	t.Helper()
	d := &o.decision
	out := d.Reply.ToBytes()
	got, err := dhcpv4.FromBytes(out)
	if err != nil {
		t.Fatalf("our reply does not parse: %v", err)
	}
	if out[0] != 2 || !bytes.Equal(out[xidOffset:xidOffset+4], packet[xidOffset:xidOffset+4]) ||
		!bytes.Equal(out[chaddrOffset:chaddrOffset+16], append(bytes.Clone(packet[chaddrOffset:chaddrOffset+6]), make([]byte, 10)...)) {
		t.Fatalf("the reply is not for this packet: %x", out)
	}
	if limit := min(max(o.class.MaxSize, 576), 1500) - ipUDPHeader; len(out) > limit {
		t.Fatalf("%d bytes, the client takes %d", len(out), limit)
	}
	if e := got.Options[optRelay]; len(e) > 0 && !bytes.Equal(e, o.class.Relay) {
		t.Fatalf("option 82 became %x", e)
	}
	own, ours := o.place.Addr, netip.MustParsePrefix("10.77.0.0/24")
	yi, _ := netip.AddrFromSlice(got.YourIPAddr.To4())
	ci, _ := netip.AddrFromSlice(got.ClientIPAddr.To4())
	to := Route(&o.class, o.link, d.Reply)
	switch got.MessageType() {
	case dhcpv4.MessageTypeNak:
		if !yi.IsUnspecified() || !ci.IsUnspecified() || !got.ServerIPAddr.IsUnspecified() || got.Options.Has(dhcpv4.OptionIPAddressLeaseTime) || got.Options.Has(dhcpv4.OptionSubnetMask) {
			t.Fatalf("a NAK with an address:\n%s", got.Summary())
		}
	case dhcpv4.MessageTypeOffer:
		if yi != own || d.Lease != nil {
			t.Fatalf("offered %s, reserved is %s, lease %v", yi, own, d.Lease)
		}
	case dhcpv4.MessageTypeAck:
		switch {
		case o.class.Type == dhcpv4.MessageTypeInform:
			if !yi.IsUnspecified() || !ours.Contains(ci) || got.Options.Has(dhcpv4.OptionIPAddressLeaseTime) {
				t.Fatalf("an INFORM got a lease:\n%s", got.Summary())
			}
		case yi != own || d.Lease == nil || d.Lease.Addr != own:
			t.Fatalf("confirmed %s, reserved is %s, lease %v", yi, own, d.Lease)
		}
	default:
		t.Fatalf("a reply of type %s", got.MessageType())
	}
	switch a := to.To.Addr(); {
	case a == limitedBroadcast, a == own:
	case o.class.GIAddr.IsValid() && a == o.class.GIAddr:
	case o.class.Type == dhcpv4.MessageTypeInform && ours.Contains(a):
	default:
		t.Fatalf("a reply to %s", to.To)
	}
}

// frame's checksums hold for the receiver: the sum over header and data is all ones.
func FuzzFrame(f *testing.F) {
	f.Add(uint32(0x0a4d0001), uint32(0x0a4d000a), []byte("payload"))
	f.Add(uint32(0), ^uint32(0), []byte{})
	f.Add(^uint32(0), ^uint32(0), []byte{0xff})
	f.Fuzz(func(t *testing.T, src, dst uint32, payload []byte) {
		payload = payload[:min(len(payload), maxReply)] // more is never sent
		addr := func(v uint32) netip.Addr { return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, v))) }
		b := frame(netip.AddrPortFrom(addr(src), 67), netip.AddrPortFrom(addr(dst), 68), payload)
		if s := Sum(0, b[:20]); s != 0xffff {
			t.Errorf("IP header sums to %#04x", s)
		}
		pseudo := append(append([]byte{}, b[12:20]...), 0, 17, b[24], b[25])
		if s := Sum(Sum(0, pseudo), b[20:]); s != 0xffff {
			t.Errorf("UDP sums to %#04x", s)
		}
		if int(binary.BigEndian.Uint16(b[2:])) != len(b) || !bytes.Equal(b[28:], payload) {
			t.Errorf("length or payload: %x", b)
		}
	})
}

func BenchmarkDecideAndEncode(b *testing.B) {
	s := readStory(b, "testdata/ovmf-discover.txt")
	w, packet := s.world(b), s.packet(b)
	b.ReportAllocs()
	for b.Loop() {
		if o := w.decide(packet); len(o.decision.Reply.ToBytes()) < 300 {
			b.Fatal(o.words())
		}
	}
}
