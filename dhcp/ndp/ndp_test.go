package ndp

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// What iPXE sends (captured from 1.0.0+git-20190125), and our answer to it as
// it was captured; tcpdump found its checksum right.
const (
	goldenSolicitation = `60000000 00103aff fe800000 00000000 505400ff fede4001 ff020000 00000000 00000000 00000002
		850058c7 00000000 01015254 00de4001`
	goldenAdvertisement = `60000000 00103aff fe800000 00000000 e85824ff fe92c74a fe800000 00000000 505400ff fede4001
		8600194a 00000000 00000000 00000000`
)

var (
	machine = hardware.MAC{0x52, 0x54, 0x00, 0xde, 0x40, 0x01}
	other   = hardware.MAC{0x52, 0x54, 0x00, 0xde, 0x40, 0x02}
	fe801   = netip.MustParseAddr("fe80::1")
)

// booting is the machines that are in iPXE.
type booting map[hardware.MAC]bool

func (b booting) Booting(m hardware.MAC) bool { return b[m] }

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// seal makes the lengths and the checksum of a changed packet right.
func seal(b []byte) []byte {
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-ipv6Header))
	b[42], b[43] = 0, 0
	binary.BigEndian.PutUint16(b[42:], ^checksum(b))
	return b
}

func TestJudge(t *testing.T) {
	t.Parallel()
	set := func(at int, v ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], v); return b }
	}
	sealed := func(f func([]byte) []byte) func([]byte) []byte {
		return func(b []byte) []byte { return seal(f(b)) }
	}
	for _, tt := range []struct {
		name   string
		change func([]byte) []byte
		from   hardware.MAC
		want   Outcome
	}{
		{"iPXE", set(0), machine, ""},
		{"no option", sealed(func(b []byte) []byte { return b[:48] }), machine, ""},
		{"another option", sealed(set(48, 14)), machine, ""},
		{"padded frame", func(b []byte) []byte { return append(b, 0, 0, 0, 0) }, machine, ""},
		{"not in iPXE", sealed(set(50, other[:]...)), other, NotBooting},
		{"speaks for another", set(0), other, NoUnicast},
		{"global source", sealed(set(8, 0x20, 0x01)), machine, NoUnicast},
		{"no address yet", sealed(func(b []byte) []byte { return append(append(b[:8:8], make([]byte, 16)...), b[24:48]...) }), machine, NoUnicast},
		{"no address but an option", sealed(set(8, make([]byte, 16)...)), machine, Malformed},
		{"empty", func([]byte) []byte { return nil }, machine, Malformed},
		{"header only", func(b []byte) []byte { return b[:40] }, machine, Malformed},
		{"cut", func(b []byte) []byte { return b[:55] }, machine, Malformed},
		{"IPv4", set(0, 0x45), machine, Malformed},
		{"TCP", set(6, 6), machine, Malformed},
		{"routed", set(7, 254), machine, Malformed},
		{"no length", set(4, 0, 0), machine, Malformed},
		{"advertisement", sealed(set(40, 134)), machine, Malformed},
		{"code", sealed(set(41, 1)), machine, Malformed},
		{"checksum", set(42, 0, 0), machine, Malformed},
		{"option of no length", sealed(set(49, 0)), machine, Malformed},
		{"option too long", sealed(set(49, 2)), machine, Malformed},
		{"half an option", sealed(func(b []byte) []byte { return b[:52] }), machine, Malformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, got := Judge(tt.change(unhex(t, goldenSolicitation)), tt.from, booting{machine: true})
			if got != tt.want {
				t.Fatalf("%q, want %q", got, tt.want)
			}
			if got == "" && (s.MAC != machine || s.Source.String() != "fe80::5054:ff:fede:4001") {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestAdvertise(t *testing.T) {
	t.Parallel()
	got := Advertise(netip.MustParseAddr("fe80::e858:24ff:fe92:c74a"), netip.MustParseAddr("fe80::5054:ff:fede:4001"))
	if want := unhex(t, goldenAdvertisement); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

func TestSource(t *testing.T) {
	t.Parallel()
	cidr := func(s string) net.Addr {
		ip, n, err := net.ParseCIDR(s)
		if err != nil {
			t.Fatal(err)
		}
		return &net.IPNet{IP: ip, Mask: n.Mask}
	}
	for _, tt := range []struct {
		name  string
		addrs []net.Addr
		want  string
	}{
		{"its own", []net.Addr{cidr("10.77.0.1/24"), cidr("2001:db8::1/64"), cidr("fe80::1/64")}, "fe80::1"},
		{"IPv6 off", []net.Addr{cidr("10.77.0.1/24"), cidr("169.254.0.1/16")}, "fe80::5054:ff:fede:4001"},
	} {
		if got := source(machine, tt.addrs); got.String() != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestLimiter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var l limiter
	passed := func(m hardware.MAC, at time.Time) (n int) {
		for range 3 * perSecond {
			if l.allow(m, at) {
				n++
			}
		}
		return n
	}
	for _, at := range []time.Duration{0, time.Second, -time.Hour} {
		if n := passed(machine, now.Add(at)); n != perSecond {
			t.Errorf("%d answers at %s", n, at)
		}
	}
	if n := passed(other, now.Add(-time.Hour)); n != perSecond {
		t.Errorf("%d answers to another machine", n)
	}
	for i := range 10 * sweepAt {
		now = now.Add(time.Second)
		l.allow(hardware.MAC{2, byte(i >> 8), byte(i)}, now)
	}
	if len(l.answers) > sweepAt {
		t.Errorf("%d machines remembered", len(l.answers))
	}
}

// Whatever comes: no panic, no answer to a stranger, and an answer that is valid,
// says nothing about the network, and goes to the sender alone.
func FuzzJudge(f *testing.F) {
	golden := unhex(f, goldenSolicitation)
	f.Add(golden, machine[:], false)
	f.Add(golden, other[:], false)
	f.Add(golden[:48], machine[:], true)
	f.Add(append(bytes.Clone(golden), golden[48:]...), machine[:], true)
	f.Fuzz(func(t *testing.T, packet, mac []byte, fix bool) {
		var from hardware.MAC
		copy(from[:], mac)
		packet = bytes.Clone(packet)
		if fix && len(packet) >= 48 && len(packet) < 1<<16 {
			// past the checksum, where the options are
			packet[0], packet[6], packet[7], packet[40], packet[41] = 0x60, icmpv6, hopLimit, typeSolicitation, 0
			packet = seal(packet)
		}
		s, outcome := Judge(packet, from, booting{machine: true})
		if outcome != "" {
			return
		}
		if from != machine || s.MAC != machine {
			t.Fatalf("%s is answered at %s", from, s.MAC)
		}
		if !bytes.Equal(s.Source.AsSlice(), packet[8:24]) || !s.Source.IsLinkLocalUnicast() {
			t.Fatalf("the answer goes to %s", s.Source)
		}
		b := Advertise(fe801, s.Source)
		if len(b) != 56 || checksum(b) != 0xffff || b[7] != 255 || b[40] != 134 || !bytes.Equal(b[24:40], packet[8:24]) {
			t.Fatalf("%x", b)
		}
		if !bytes.Equal(b[44:], make([]byte, 12)) {
			t.Fatalf("it says something: %x", b[44:])
		}
	})
}
