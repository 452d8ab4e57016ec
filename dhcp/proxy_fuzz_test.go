package dhcp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// fuzzedWorld has one machine, on our link or behind a relay, in a Subnet of that mode.
func fuzzedWorld(mode hardware.SubnetMode, source netip.AddrPort, at4011 bool) world {
	s := SampleSubnet()
	s.Spec.Mode = mode
	return world{
		view: &Records{Hardware: []*hardware.Hardware{SampleHardware("m1", "52:54:00:00:00:01", "10.77.0.10")}, Nets: []*hardware.Subnet{s}},
		link: Link{
			Networks: []netip.Prefix{netip.MustParsePrefix("10.77.0.1/24")}, Source: source.Addr(), SourcePort: source.Port(),
			Dest: limitedBroadcast, ProxyPort: at4011, RouteSource: func(netip.Addr) netip.Addr { return netip.MustParseAddr("192.0.2.1") },
		},
		boot: &hardware.Boot{ID: "01BOOT", Next: hardware.Next{Target: hardware.TargetWorker, Reason: hardware.ReasonWorkflowActive}},
	}
}

// Whatever comes to port 67 or 4011, from wherever: in mode proxy there is no address,
// no lease and no NAK; a reply goes to the relay that we know or that sent the packet,
// to the sender at port 4011, to an address of the Subnet, or to everybody on the link.
func FuzzProxy(f *testing.F) {
	for _, path := range goldenFiles(f) {
		p := readStory(f, path).packet(f)
		f.Add(p, uint32(0), uint16(68), false, true)
		f.Add(p, uint32(0x0a4d000a), uint16(4011), true, true)
		f.Add(p, uint32(0x0a4d000a), uint16(4011), true, false)
	}
	f.Fuzz(func(t *testing.T, packet []byte, source uint32, port uint16, at4011, proxy bool) {
		mode := hardware.ModeReservation
		if proxy {
			mode = hardware.ModeProxy
		}
		if len(packet) >= headerSize {
			packet = bytes.Clone(packet)
			copy(packet[chaddrOffset:], []byte{0x52, 0x54, 0, 0, 0, 1})
		}
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, source))), port)
		o := fuzzedWorld(mode, from, at4011).decide(packet)
		if !o.decision.Reason.Known() || (o.decision.Boot != "" && !o.decision.Boot.Known()) {
			t.Fatalf("reasons %q and %q", o.decision.Reason, o.decision.Boot)
		}
		checkWhere(t, packet, &o, from)
	})
}

func checkWhere(t *testing.T, packet []byte, o *outcome, from netip.AddrPort) {
	t.Helper()
	d, c, ours := &o.decision, &o.class, netip.MustParsePrefix("10.77.0.0/24")
	if d.Client.IsValid() && (!ours.Contains(d.Client) || d.Client == o.place.Server) {
		t.Fatalf("the boot is known by %s", d.Client)
	}
	if d.Reply == nil {
		return
	}
	out := d.Reply.ToBytes()
	if len(out) < 300 || len(out) > max(300, min(c.MaxSize, 1500)-ipUDPHeader) {
		t.Fatalf("%d bytes, the client takes %d", len(out), c.MaxSize)
	}
	if !bytes.Equal(out[xidOffset:xidOffset+4], packet[xidOffset:xidOffset+4]) {
		t.Fatal("another transaction")
	}
	if o.place.Proxied() || o.link.ProxyPort {
		if d.Lease != nil || !d.Reply.YourIPAddr.IsUnspecified() || d.Type() == dhcpv4.MessageTypeNak ||
			d.Reply.Options.Has(dhcpv4.OptionIPAddressLeaseTime) || d.Reply.Options.Has(dhcpv4.OptionSubnetMask) || !c.Netboots() {
			t.Fatalf("beside another server:\n%s", d.Reply.Summary())
		}
	}
	switch to := Route(c, o.link, d.Reply).To; {
	case to.Addr() == limitedBroadcast && to.Port() == ClientPort:
	case o.link.ProxyPort && to == from && ours.Contains(to.Addr()):
	case to.Addr() == c.GIAddr && to.Port() == ServerPort && (ours.Contains(c.GIAddr) || c.GIAddr == from.Addr()):
	case !o.link.ProxyPort && to.Port() == ClientPort && ours.Contains(to.Addr()) && to.Addr() != lastAddr(ours):
	default:
		t.Fatalf("a reply to %s", to)
	}
}

// Addresses that anybody can write into a packet make us write to nobody else: not
// giaddr, not ciaddr, not a network named in options, not the sender of port 4011.
func TestForgedAddresses(t *testing.T) {
	t.Parallel()
	victim := netip.MustParseAddr("203.0.113.7")
	broadcast := netip.MustParseAddr("10.77.0.255")
	packets := map[string][]byte{}
	for _, golden := range []string{"proxy-ovmf-discover", "proxy-ovmf-request", "proxy-ovmf-4011", "proxy-boot-server", "ovmf-request", "windows-inform", "renew", "relayed"} {
		packets[golden] = readStory(t, "testdata/"+golden+".txt").packet(t)
	}
	for name, packet := range packets {
		copy(packet[chaddrOffset:], []byte{0x52, 0x54, 0, 0, 0, 1})
		for _, mode := range []hardware.SubnetMode{hardware.ModeReservation, hardware.ModeProxy} {
			for _, at4011 := range []bool{false, true} {
				for _, forged := range []netip.Addr{victim, broadcast, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("224.0.0.1"), limitedBroadcast} {
					for where, forge := range map[string]func(b []byte) []byte{
						"giaddr": func(b []byte) []byte { copy(b[giaddrOffset:], forged.AsSlice()); return b },
						"ciaddr": func(b []byte) []byte { copy(b[ciaddrOffset:], forged.AsSlice()); return b },
						"giaddr, with a network of ours in option 82": func(b []byte) []byte {
							copy(b[giaddrOffset:], forged.AsSlice())
							end := bytes.LastIndexByte(b, 255)
							return append(b[:end:end], 82, 6, 5, 4, 10, 77, 0, 0, 255)
						},
					} {
						from := netip.MustParseAddrPort("10.77.0.66:68")
						o := fuzzedWorld(mode, from, at4011).decide(forge(bytes.Clone(packet)))
						if o.decision.Reply == nil {
							continue
						}
						if to := Route(&o.class, o.link, o.decision.Reply).To; to.Addr() == forged && to.Addr() != limitedBroadcast {
							t.Errorf("%s in mode %s, port 4011 %t, %s of %s: a reply to %s", where, mode, at4011, name, forged, to)
						}
					}
					from := netip.AddrPortFrom(forged, 53)
					if o := fuzzedWorld(mode, from, at4011).decide(packet); o.decision.Reply != nil {
						if to := Route(&o.class, o.link, o.decision.Reply).To; to.Addr() == forged && to.Addr() != limitedBroadcast {
							t.Errorf("sender of %s forged as %s, mode %s: a reply to %s", name, forged, mode, to)
						}
					}
				}
			}
		}
	}
}

// Mode off is silence for every kind of message, on both ports, with its Reason.
func TestModeOff(t *testing.T) {
	t.Parallel()
	for _, golden := range []string{
		"ovmf-discover", "ovmf-request", "dhclient-discover", "windows-inform", "networkd-release", "decline", "renew", "init-reboot", "proxy-ovmf-4011", "proxy-boot-server",
	} {
		packet := readStory(t, "testdata/"+golden+".txt").packet(t)
		copy(packet[chaddrOffset:], []byte{0x52, 0x54, 0, 0, 0, 1})
		for _, at4011 := range []bool{false, true} {
			o := fuzzedWorld(hardware.ModeOff, netip.MustParseAddrPort("10.77.0.10:68"), at4011).decide(packet)
			if o.decision.Reply != nil || o.decision.Reason != hardware.ReasonSubnetOff || o.decision.Detail != "lab" {
				t.Errorf("%s, port 4011 %t: %+v", golden, at4011, o.decision)
			}
		}
	}
}
