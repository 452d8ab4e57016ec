package dhcp_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
)

// rom is firmware that netboots in the client's namespace, as far as DHCP goes.
type rom struct {
	n    *lan
	conn net.PacketConn
	mac  net.HardwareAddr
}

// newROM opens a port as firmware does: it hears broadcasts without an address.
func (n *lan) newROM(port int) *rom {
	n.t.Helper()
	r := &rom{n: n}
	r.mac, _ = net.ParseMAC(clientMAC)
	lc := net.ListenConfig{Control: func(_, _ string, rc syscall.RawConn) error {
		return rc.Control(func(fd uintptr) { _ = unix.BindToDevice(int(fd), lab.ClientIface) })
	}}
	err := n.client.Do(func() (err error) {
		r.conn, err = lc.ListenPacket(n.t.Context(), "udp4", fmt.Sprintf("0.0.0.0:%d", port))
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = r.conn.Close() })
	return r
}

// uefi are the options by which firmware is UEFI PXE on x64.
func uefi() []dhcpv4.Modifier {
	return []dhcpv4.Modifier{
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003016")),
		dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, 7}),
		dhcpv4.WithBroadcast(true),
	}
}

func (r *rom) send(p *dhcpv4.DHCPv4, to string) {
	r.n.t.Helper()
	if _, err := r.conn.WriteTo(p.ToBytes(), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to))); err != nil {
		r.n.t.Fatal(err)
	}
}

// receive returns the next reply that is as wanted, and who sent it.
func (r *rom) receive(what string, wanted func(*dhcpv4.DHCPv4) bool) (*dhcpv4.DHCPv4, string) {
	r.n.t.Helper()
	_ = r.conn.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 1500)
	for {
		length, from, err := r.conn.ReadFrom(buf)
		if err != nil {
			r.n.t.Fatalf("%s: %v", what, err)
		}
		if p, err := dhcpv4.FromBytes(buf[:length]); err == nil && wanted(p) {
			return p, from.String()
		}
	}
}

// both waits for an OFFER of an address and one without.
func (r *rom) both() (address, proxy *dhcpv4.DHCPv4) {
	r.n.t.Helper()
	for address == nil || proxy == nil {
		p, _ := r.receive("both offers", func(p *dhcpv4.DHCPv4) bool { return p.MessageType() == dhcpv4.MessageTypeOffer })
		if p.YourIPAddr.IsUnspecified() {
			proxy = p
		} else {
			address = p
		}
	}
	return address, proxy
}

// The whole way of firmware beside dnsmasq, on our link and behind a relay: both offers,
// the REQUEST to dnsmasq, which tells us the address, then port 4011. An operating
// system meanwhile gets its address from dnsmasq and nothing from us.
func TestProxyBesideDnsmasq(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"link", "relay"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			n := newHosts(t, "proxy-"+where, "dnsmasq", "udhcpc")
			n.ledger.Next = hardware.Next{Target: hardware.TargetWorker, Reason: hardware.ReasonWorkflowActive}
			server := n.lab.Gateway()
			if where == "relay" {
				behind := n.routed(hardware.ModeProxy)
				server = behind.Addr
				relays["isc"](n, behind)
			} else {
				cfg := n.config()
				cfg.View.(*dhcp.Records).Nets[0].Spec.Mode = hardware.ModeProxy
				n.serve(cfg)
			}
			addr := func(i byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, i}) }
			if _, err := n.lab.Dnsmasq(t.Context(), addr(2), addr(100), addr(109)); err != nil {
				t.Fatal(err)
			}
			r := n.newROM(dhcp.ClientPort)
			discover, err := dhcpv4.NewDiscovery(r.mac, uefi()...)
			if err != nil {
				t.Fatal(err)
			}
			r.send(discover, "255.255.255.255:67")
			offer, proxy := r.both()
			if id := proxy.ServerIdentifier().String(); id != server.String() || proxy.ServerIPAddr.String() != id || proxy.ClassIdentifier() != "PXEClient" {
				t.Errorf("the proxy offer:\n%s", proxy.Summary())
			}
			n.sees(hardware.ReasonProxyOffered, hardware.ReasonBootProgram)

			request, err := dhcpv4.NewRequestFromOffer(offer, uefi()...)
			if err != nil {
				t.Fatal(err)
			}
			r.send(request, "255.255.255.255:67")
			ack, _ := r.receive("dnsmasq's ACK", func(p *dhcpv4.DHCPv4) bool { return p.MessageType() == dhcpv4.MessageTypeAck })
			if id := ack.ServerIdentifier().String(); id != addr(2).String() {
				t.Errorf("the ACK is from %s", id)
			}
			n.sees(hardware.ReasonProxySilent)
			mine, _ := netip.AddrFromSlice(ack.YourIPAddr.To4())
			if acked := n.ledger.AllAcked(); len(acked) != 1 || acked[0].Client != mine || acked[0].Server != server || !acked[0].Program {
				t.Errorf("the boot is known by %+v, its address is %s", acked, mine)
			}

			if err := n.client.SetAddr(t.Context(), netip.PrefixFrom(mine, 24)); err != nil {
				t.Fatal(err)
			}
			n.run("ip", "route", "replace", lab.RoutedSubnet.String(), "via", n.lab.Gateway().String(), "dev", lab.ClientIface, "onlink")
			r = n.newROM(dhcp.ProxyPort)
			ask, err := dhcpv4.New(append(uefi(), dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest), dhcpv4.WithHwAddr(r.mac), dhcpv4.WithClientIP(mine.AsSlice()))...)
			if err != nil {
				t.Fatal(err)
			}
			r.send(ask, netip.AddrPortFrom(server, dhcp.ProxyPort).String())
			file, from := r.receive("the answer of port 4011", func(p *dhcpv4.DHCPv4) bool { return p.TransactionID == ask.TransactionID })
			if file.MessageType() != dhcpv4.MessageTypeAck || file.BootFileName != dhcp.ProgramUEFI || from != netip.AddrPortFrom(server, dhcp.ProxyPort).String() {
				t.Errorf("from %s:\n%s", from, file.Summary())
			}
			n.sees(hardware.ReasonProxyAnswered, hardware.ReasonBootProgram)

			if err := n.client.FlushAddrs(t.Context()); err != nil {
				t.Fatal(err)
			}
			n.run("udhcpc", "-i", lab.ClientIface, "-n", "-q", "-t", "10", "-T", "1", "-s", script(t))
			if o := await(t, "the system's REQUEST", n.ledger.Observations); o.Reason != hardware.ReasonProxySilent || o.Boot != "" {
				t.Errorf("the operating system's packets: %+v", o)
			}
		})
	}
}

// Whoever has port 4011 is named: as an error where a Subnet is in mode proxy, else as
// a warning, and DHCP goes on.
func TestProxyPortTaken(t *testing.T) {
	t.Parallel()
	n := newHosts(t, "taken", "udhcpc")
	pc, err := n.lab.ListenPacket(t.Context(), "udp4", ":4011")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	cfg := n.config()
	view := cfg.View.(*dhcp.Records)
	view.Nets[0].Spec.Mode = hardware.ModeProxy
	s, err := dhcp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	want := fmt.Sprintf("UDP port 4011 on %s: in use by pid %d", n.lab.Bridge(), os.Getpid())
	if err := s.Run(ctx); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Run says %v, want %q", err, want)
	}
	cfg = n.config()
	n.serve(cfg)
	n.run("udhcpc", "-i", lab.ClientIface, "-n", "-q", "-t", "10", "-T", "1", "-s", script(t))
	n.sees(hardware.ReasonAcked)
}
