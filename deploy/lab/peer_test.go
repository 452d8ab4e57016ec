package lab_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/deploy/lab"
)

// nth is the n-th address of the lab's LAN.
func nth(l *lab.Lab, n int) netip.Addr {
	a := l.Subnet().Addr()
	for range n {
		a = a.Next()
	}
	return a
}

func TestDnsmasqLends(t *testing.T) {
	t.Parallel()
	lab.Require(t, "dnsmasq", "udhcpc")
	l, ctx := newLab(t, lab.Options{})
	p, err := l.Dnsmasq(ctx, nth(l, 2), nth(l, 100), nth(l, 109))
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.AddVeth(ctx, "c", nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Command(ctx, "udhcpc", "-i", lab.ClientIface, "-f", "-n", "-q", "-s", "/bin/true").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "lease of 10.77.0.10") {
		t.Errorf("%v: %s", err, out)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if log, err := os.ReadFile(p.Log); err != nil || !strings.Contains(string(log), c.MAC.String()) {
		t.Errorf("%v: the log does not know %s: %s", err, c.MAC, log)
	}
}

// TestRelayCarriesDHCP: what comes to a server behind the relay, and that it can reach
// the LAN.
func TestRelayCarriesDHCP(t *testing.T) {
	t.Parallel()
	lab.Require(t, "udhcpc")
	l, ctx := newLab(t, lab.Options{})
	server, err := l.AddRouted(ctx, "server")
	if err != nil {
		t.Fatal(err)
	}
	pc, err := server.ListenPacket(ctx, "udp4", ":67")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	if _, err := l.Relay(ctx, server); err != nil {
		t.Fatal(err)
	}
	c, err := l.AddVeth(ctx, "c", nil)
	if err != nil {
		t.Fatal(err)
	}
	asks := c.Command(ctx, "udhcpc", "-i", lab.ClientIface, "-f", "-t", "100", "-T", "1", "-s", "/bin/true")
	if err := asks.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = asks.Process.Kill(); _ = asks.Wait() })
	if until, ok := ctx.Deadline(); ok {
		_ = pc.SetReadDeadline(until)
	}
	packet := make([]byte, 1500)
	n, from, err := pc.ReadFrom(packet)
	if err != nil || n < 240 || !strings.Contains(string(packet[28:34]), string(c.MAC)) {
		t.Fatalf("%d bytes from %v: %v", n, from, err)
	}
	if giaddr, _ := netip.AddrFromSlice(packet[24:28]); giaddr != l.Gateway() {
		t.Errorf("giaddr is %v, want %v", giaddr, l.Gateway())
	}
	ln, err := l.Listen(ctx, "tcp", netip.AddrPortFrom(l.Gateway(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := server.Dial(ctx, "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}
