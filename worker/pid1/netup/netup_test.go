package netup

import (
	"bytes"
	"encoding/hex"
	"flag"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var testMAC = net.HardwareAddr{0x52, 0x54, 0, 0x12, 0x34, 0x56}

// golden compares got with a file; -update rewrites it and still fails.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) || *update {
		t.Errorf("%s (written anew: %v):\n%s", name, *update, got)
	}
}

func TestDiscoverGolden(t *testing.T) {
	t.Parallel()
	p := discover(testMAC, 7*time.Second)
	p.TransactionID = dhcpv4.TransactionID{1, 2, 3, 4}
	golden(t, "discover.txt", []byte(p.Summary()+"\n"+hex.Dump(frame(testMAC, p.ToBytes()))))
	// No class and no architecture: a server takes neither for a firmware.
	for _, o := range []dhcpv4.OptionCode{dhcpv4.OptionClassIdentifier, dhcpv4.OptionClientSystemArchitectureType, dhcpv4.OptionUserClassInformation} {
		if p.Options.Has(o) {
			t.Errorf("option %v is in the request", o)
		}
	}
}

func TestFramesRoundTrip(t *testing.T) {
	t.Parallel()
	p := discover(testMAC, 0)
	b := frame(testMAC, p.ToBytes())
	// Turned round: the server's port to ours.
	b[35], b[37] = serverPort, clientPort
	got, from, ok := payload(b)
	if !ok || !bytes.Equal(got, p.ToBytes()) || from != netip.IPv4Unspecified() {
		t.Errorf("payload is %x from %v, %v", got, from, ok)
	}
	for n := range b {
		if _, _, ok := payload(b[:n]); ok {
			t.Errorf("a frame cut to %d of %d bytes is taken", n, len(b))
		}
	}
}

// FuzzPayload: what is taken out of a frame lies within it.
func FuzzPayload(f *testing.F) {
	b := frame(testMAC, discover(testMAC, 0).ToBytes())
	f.Add(b)
	b = append([]byte(nil), b...)
	b[37] = clientPort
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, _, ok := payload(b); ok && !bytes.Contains(b, got) {
			t.Errorf("%x is not in the frame", got)
		}
	})
}

func ack(mods ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	p, err := dhcpv4.New(append([]dhcpv4.Modifier{
		dhcpv4.WithReply(discover(testMAC, 0)), dhcpv4.WithMessageType(dhcpv4.MessageTypeAck), dhcpv4.WithYourIP(net.IPv4(10, 0, 0, 9)),
		dhcpv4.WithNetmask(net.CIDRMask(24, 32)), dhcpv4.WithServerIP(net.IPv4(10, 0, 0, 1)),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 0, 0, 1))),
	}, mods...)...)
	if err != nil {
		panic(err)
	}
	return p
}

func TestParseLease(t *testing.T) {
	t.Parallel()
	l, err := parseLease(ack(
		dhcpv4.WithRouter(net.IPv4(10, 0, 0, 254)), dhcpv4.WithDNS(net.IPv4(10, 0, 0, 2)), dhcpv4.WithLeaseTime(3600),
		dhcpv4.WithDomainSearchList("a.example", "b.example"), dhcpv4.WithGeneric(dhcpv4.OptionInterfaceMTU, []byte{0x23, 0x28})))
	if err != nil {
		t.Fatal(err)
	}
	if l.Addr.String() != "10.0.0.9/24" || l.MTU != 9000 || strings.Join(l.Search, " ") != "a.example b.example" || len(l.DNS) != 1 ||
		l.Renew != 30*time.Minute || l.Rebind != 3150*time.Second || l.Expire != time.Hour {
		t.Errorf("lease is %+v", l)
	}
	if got := l.String(); got != "10.0.0.9/24 from 10.0.0.1 for 1h0m0s, gateway 10.0.0.254" {
		t.Errorf("in words: %s", got)
	}
	classless := []*dhcpv4.Route{
		{Dest: &net.IPNet{IP: net.IPv4(10, 9, 0, 0), Mask: net.CIDRMask(16, 32)}, Router: net.IPv4(10, 0, 0, 3)},
		{Dest: &net.IPNet{IP: net.IPv4(169, 254, 0, 0), Mask: net.CIDRMask(16, 32)}, Router: net.IPv4zero},
	}
	l, err = parseLease(ack(dhcpv4.WithRouter(net.IPv4(10, 0, 0, 254)), dhcpv4.WithOption(dhcpv4.OptClasslessStaticRoute(classless...))))
	if err != nil || len(l.Routes) != 2 || l.Routes[0].Via.String() != "10.0.0.3" || l.Routes[1].Via.IsValid() {
		t.Errorf("routes are %v, %v", l.Routes, err)
	}
	if l.Expire != noLeaseTime {
		t.Errorf("a lease without a time ends in %v", l.Expire)
	}
}

func TestParseLeaseRefuses(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]*dhcpv4.DHCPv4{
		"no address":  ack(dhcpv4.WithYourIP(net.IPv4zero)),
		"subnet mask": ack(dhcpv4.WithNetmask(net.CIDRMask(0, 32))),
	} {
		if _, err := parseLease(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	other := net.HardwareAddr{0x52, 0x54, 0, 0, 0, 1}
	all := []net.Interface{
		{Index: 1, Name: "lo", Flags: net.FlagLoopback, HardwareAddr: make([]byte, 6)},
		{Index: 2, Name: "bond0", HardwareAddr: testMAC},
		{Index: 3, Name: "eth0", HardwareAddr: other},
		{Index: 4, Name: "eth1", HardwareAddr: testMAC},
		{Index: 5, Name: "ib0", HardwareAddr: make([]byte, 20)},
	}
	hard := func(name string) bool { return name != "bond0" }
	names := func(mac hardware.MAC) (s string) {
		for _, n := range pick(all, mac, hard) {
			s += n.Name + " "
		}
		return s
	}
	if got := names(hardware.MAC(testMAC)); got != "eth1 " {
		t.Errorf("for the MAC: %s", got)
	}
	if got := names(hardware.MAC{}); got != "eth0 eth1 " {
		t.Errorf("for none: %s", got)
	}
	if got := names(hardware.MAC{2}); got != "" {
		t.Errorf("for a MAC that is not there: %s", got)
	}
	if got := describe(all[3:4]); got != "eth1 52:54:00:12:34:56" {
		t.Errorf("in words: %s", got)
	}
}
