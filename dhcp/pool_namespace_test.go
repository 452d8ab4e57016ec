package dhcp_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
)

// newPoolLAN is a lan that lends addresses of these ranges. known says whether the
// client has a record; it has no reservation.
func newPoolLAN(t *testing.T, name string, known bool, ranges []string, tools ...string) *lan {
	t.Helper()
	return newLANWith(t, name, func(c *dhcp.Config) { poolConfig(t, c, known, ranges...) }, tools...)
}

// poolConfig makes the Subnet lend addresses.
func poolConfig(t *testing.T, c *dhcp.Config, known bool, ranges ...string) {
	t.Helper()
	sub := dhcp.SampleSubnet()
	sub.Spec.Mode, sub.Spec.Pool = hardware.ModePool, &hardware.Pool{}
	for _, s := range ranges {
		r, err := hardware.ParseAddrRange(s)
		if err != nil {
			t.Fatal(err)
		}
		sub.Spec.Pool.Ranges = append(sub.Spec.Pool.Ranges, r)
	}
	view := &dhcp.Records{Nets: []*hardware.Subnet{sub}}
	if known {
		h := dhcp.SampleHardware("m1", clientMAC, clientAddr)
		h.Spec.Interfaces[0].Addresses = nil
		view.Hardware = []*hardware.Hardware{h}
	}
	c.View = view
}

// inRange fails unless the client has one address, of that range.
func (n *lan) inRange(s string) netip.Addr {
	n.t.Helper()
	r, _ := hardware.ParseAddrRange(s)
	p, err := netip.ParsePrefix(n.addresses())
	if err != nil || !r.Contains(p.Addr()) {
		n.t.Fatalf("the client has %q, want one of %s", n.addresses(), r)
	}
	return p.Addr()
}

const poolRange = "10.77.0.100-10.77.0.109"

func TestPoolUdhcpc(t *testing.T) {
	t.Parallel()
	n := newPoolLAN(t, "pudhcpc", true, []string{poolRange}, "udhcpc")
	args := []string{"-i", lab.ClientIface, "-n", "-q", "-t", "10", "-T", "2", "-s", script(t)}
	n.run("udhcpc", args...)
	n.sees(hardware.ReasonOffered, hardware.ReasonAcked)
	first := n.inRange(poolRange)
	n.run("udhcpc", append(args, "-R")...) // and gives it back
	n.sees(hardware.ReasonAcked)
	n.run("udhcpc", args...)
	if again := n.inRange(poolRange); again != first {
		t.Errorf("first %s, then %s", first, again)
	}
	if l := <-n.ledger.Leases; l.Reservation || l.Hardware == "" || l.Addr != first {
		t.Errorf("lease %+v", l)
	}
}

// records are a View that the test exchanges.
type records struct{ atomic.Pointer[dhcp.Records] }

func (r *records) HardwareByMAC(m hardware.MAC) (*hardware.Hardware, bool) {
	return r.Load().HardwareByMAC(m)
}

func (r *records) HardwareByAddress(a netip.Addr) (*hardware.Hardware, bool) {
	return r.Load().HardwareByAddress(a)
}

func (r *records) Subnets() []*hardware.Subnet { return r.Load().Subnets() }

// An address is reserved for one machine while another one uses it: each has one of its
// own at every time, and both are right after the next renewal.
func TestPoolReserved(t *testing.T) {
	t.Parallel()
	n := newHosts(t, "preserve", "udhcpc")
	cfg, view, script := n.config(), new(records), script(t)
	poolConfig(t, &cfg, true, poolRange)
	had := cfg.View.(*dhcp.Records)
	view.Store(had)
	cfg.View = view
	n.serve(cfg)
	run := func(at *lan, line string) (obtained chan struct{}, p *os.Process) {
		cmd := at.client.Command(t.Context(), "udhcpc", "-f", "-i", lab.ClientIface, "-t", "100", "-T", "1", "-A", "1", "-s", script)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		obtained = make(chan struct{})
		cmd.Stderr = &watcher{line: line, seen: obtained}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return obtained, cmd.Process
	}
	// udhcpc says so before its script has set the address
	settles := func(what string, at *lan) {
		for deadline := time.Now().Add(patience); at.addresses() == ""; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s did not come", what)
			}
		}
	}
	got, first := run(n, "obtained")
	await(t, "the lease", got)
	settles("the lease", n)
	addr := n.inRange(poolRange)

	mac, _ := net.ParseMAC("52:54:00:00:00:77")
	host, err := n.lab.AddVeth(t.Context(), "d", mac)
	if err != nil {
		t.Fatal(err)
	}
	other := &lan{t: t, lab: n.lab, client: host, ledger: n.ledger}
	view.Store(&dhcp.Records{Nets: had.Nets, Hardware: []*hardware.Hardware{
		had.Hardware[0], dhcp.SampleHardware("m2", mac.String(), addr.String()),
	}})
	got, _ = run(other, "lease of "+addr.String()+" obtained")
	n.sees(hardware.ReasonAddressLent, hardware.ReasonAddressLent)
	if a := other.addresses(); a != "" {
		t.Errorf("the machine with the reservation has %s already", a)
	}
	if err := first.Signal(syscall.SIGUSR1); err != nil { // T1
		t.Fatal(err)
	}
	n.sees(hardware.ReasonWrongAddress)
	n.sees(hardware.ReasonAcked, hardware.ReasonAcked)
	await(t, "the reserved address", got)
	settles("the reserved address", other)
	settles("the other address of who had it", n)
	if a := n.inRange(poolRange); a == addr || other.addresses() != addr.String()+"/24" {
		t.Errorf("they have %s and %s", a, other.addresses())
	}
}

// A machine without a record gets an address for a short while.
func TestPoolDhclient(t *testing.T) {
	t.Parallel()
	n := newPoolLAN(t, "pdhclient", false, []string{poolRange}, "dhclient")
	dir := t.TempDir()
	leases := filepath.Join(dir, "leases")
	args := []string{"-sf", script(t), "-lf", leases, "-pf", filepath.Join(dir, "pid"), lab.ClientIface}
	n.run("dhclient", append([]string{"-1", "-v"}, args...)...)
	n.sees(hardware.ReasonOffered, hardware.ReasonAcked)
	first := n.inRange(poolRange)
	n.run("dhclient", append([]string{"-x", "-v"}, args...)...) // stops, and remembers
	n.run("dhclient", append([]string{"-1", "-v"}, args...)...)
	n.sees(hardware.ReasonAcked)
	if again := n.inRange(poolRange); again != first {
		t.Errorf("first %s, then %s", first, again)
	}
	n.run("dhclient", append([]string{"-r", "-v"}, args...)...)
	n.sees(hardware.ReasonReleased)
	b, err := os.ReadFile(leases)
	if err != nil || !strings.Contains(string(b), "option dhcp-lease-time 600;") {
		t.Errorf("%v, leases:\n%s", err, b)
	}
}

// An address that somebody has taken for himself is not lent, and the client does not
// notice.
func TestPoolSquatter(t *testing.T) {
	t.Parallel()
	n := newPoolLAN(t, "psquat", true, []string{"10.77.0.100-10.77.0.101"}, "udhcpc")
	// one of the two is the squatter's
	squatter, err := n.lab.AddVeth(t.Context(), "s", []byte{0x52, 0x54, 0, 0, 0, 0x66})
	if err != nil {
		t.Fatal(err)
	}
	if err := squatter.SetAddr(t.Context(), netip.MustParsePrefix("10.77.0.100/24")); err != nil {
		t.Fatal(err)
	}
	n.run("udhcpc", "-i", lab.ClientIface, "-n", "-q", "-t", "10", "-T", "2", "-r", "10.77.0.100", "-s", script(t))
	if got := n.inRange("10.77.0.100-10.77.0.101"); got.String() != "10.77.0.101" {
		t.Errorf("the client has %s", got)
	}
	n.sees(hardware.ReasonAddressInUse, hardware.ReasonOffered, hardware.ReasonAcked)
	l := await(t, "the quarantine", n.ledger.Leases)
	if !l.Declined || l.Addr.String() != "10.77.0.100" || l.UsedBy.String() != "52:54:00:00:00:66" {
		t.Errorf("%+v", l)
	}
}

// dhcpcd asks after the address itself, and remembers its lease.
func TestPoolDhcpcd(t *testing.T) {
	t.Parallel()
	n := newPoolLAN(t, "pdhcpcd", true, []string{poolRange}, "dhcpcd")
	dir := t.TempDir()
	conf := filepath.Join(dir, "dhcpcd.conf")
	if err := os.WriteFile(conf, []byte("nohook\nscript /bin/true\nnoipv6\nnoipv4ll\nclientid\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	obtain := func() netip.Addr {
		n.run("unshare", "--mount", "sh", "-c", `mkdir -p "$0/db" "$0/run" && mount --bind "$0/db" /var/lib/dhcpcd && mount -t tmpfs run /run &&
			exec dhcpcd -4 -1 -B -f "$1" -t 30 "$2"`, dir, conf, lab.ClientIface)
		n.sees(hardware.ReasonAcked)
		return n.inRange(poolRange)
	}
	first := obtain()
	if again := obtain(); again != first {
		t.Errorf("first %s, then %s", first, again)
	}
}

// A client that finds its address in use says so. The address is not lent for a while,
// and the client gets another.
func TestPoolUdhcpcDeclines(t *testing.T) {
	t.Parallel()
	n := newLANWith(t, "pdecline", func(c *dhcp.Config) {
		poolConfig(t, c, true, "10.77.0.100-10.77.0.101")
		no := false
		c.View.Subnets()[0].Spec.Pool.Probe = &no // or we would notice before it
	}, "udhcpc")
	squatter, err := n.lab.AddVeth(t.Context(), "s", []byte{0x52, 0x54, 0, 0, 0, 0x66})
	if err != nil {
		t.Fatal(err)
	}
	if err := squatter.SetAddr(t.Context(), netip.MustParsePrefix("10.77.0.100/24")); err != nil {
		t.Fatal(err)
	}
	n.run("udhcpc", "-a", "-A", "1", "-i", lab.ClientIface, "-n", "-q", "-t", "20", "-T", "2", "-r", "10.77.0.100", "-s", script(t))
	n.sees(hardware.ReasonDeclined, hardware.ReasonAddressInUse, hardware.ReasonAcked)
	if got := n.inRange("10.77.0.100-10.77.0.101"); got.String() != "10.77.0.101" {
		t.Errorf("the client has %s", got)
	}
}

// An address of another's lease, remembered from before, is refused.
func TestPoolInitReboot(t *testing.T) {
	t.Parallel()
	n := newPoolLAN(t, "pinit", true, []string{poolRange}, "dhclient")
	other, _ := hardware.ParseMAC("52:54:00:00:00:99")
	if err := n.ledger.Confirm(t.Context(), hardware.Lease{
		MAC: other, Subnet: "lab", Addr: netip.MustParseAddr("10.77.0.105"), Expires: time.Now().Add(time.Hour),
	}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	leases := filepath.Join(dir, "leases")
	if err := os.WriteFile(leases, fmt.Appendf(nil, `lease {
  interface "%s";
  fixed-address 10.77.0.105;
  option subnet-mask 255.255.255.0;
  renew epoch 2147000000;
  rebind epoch 2147000000;
  expire epoch 2147000000;
}
`, lab.ClientIface), 0o644); err != nil {
		t.Fatal(err)
	}
	n.run("dhclient", "-1", "-v", "-sf", script(t), "-lf", leases, "-pf", filepath.Join(dir, "pid"), lab.ClientIface)
	n.sees(hardware.ReasonWrongAddress, hardware.ReasonOffered, hardware.ReasonAcked)
	if got := n.inRange(poolRange); got.String() == "10.77.0.105" {
		t.Error("the client has another's address")
	}
}

// Behind a relay an address is asked after with an echo: here by way of the client's
// namespace, where somebody has one of the two.
func TestPoolBehindRelay(t *testing.T) {
	t.Parallel()
	n := newLANWith(t, "prelay", func(c *dhcp.Config) {
		poolConfig(t, c, true, "10.88.0.100-10.88.0.101")
		far := c.View.Subnets()[0]
		far.Spec.Prefix, far.Spec.Gateway = netip.MustParsePrefix("10.88.0.0/24"), netip.MustParseAddr("10.88.0.1")
	})
	for _, a := range []string{"10.77.0.254/24", "10.88.0.1/24", "10.88.0.100/24"} {
		if err := n.client.SetAddr(t.Context(), netip.MustParsePrefix(a)); err != nil {
			t.Fatal(err)
		}
	}
	n.ip("route", "add", "10.88.0.0/24", "via", "10.77.0.254")
	pc, err := n.client.ListenPacket(t.Context(), "udp4", "10.88.0.1:67")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	mac, _ := net.ParseMAC(clientMAC)
	p, err := dhcpv4.NewDiscovery(mac, dhcpv4.WithRelay(net.IPv4(10, 88, 0, 1)), dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.IPv4(10, 88, 0, 100))))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := pc.WriteTo(p.ToBytes(), &net.UDPAddr{IP: net.IPv4(10, 77, 0, 1), Port: 67}); err != nil {
		t.Fatal(err)
	}
	_ = pc.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 1500)
	length, _, err := pc.ReadFrom(buf)
	if err != nil {
		t.Fatal(err)
	}
	r, err := dhcpv4.FromBytes(buf[:length])
	if err != nil || r.YourIPAddr.String() != "10.88.0.101" {
		t.Errorf("%v: %s", err, r.Summary())
	}
	t.Logf("offered after %v", time.Since(start))
	n.sees(hardware.ReasonAddressInUse, hardware.ReasonOffered)
	l := await(t, "the quarantine", n.ledger.Leases)
	if !l.Declined || l.Addr.String() != "10.88.0.100" {
		t.Errorf("%+v", l)
	}
}

// networkd takes an address, gives it back when it ends, and gets the same again.
func TestPoolNetworkd(t *testing.T) {
	t.Parallel()
	const networkd = "/lib/systemd/systemd-networkd"
	n := newPoolLAN(t, "pnetworkd", true, []string{poolRange}, networkd)
	conf := filepath.Join(t.TempDir(), "10.network")
	text := fmt.Sprintf("[Match]\nName=%s\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n", lab.ClientIface)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	obtain := func() (got hardware.Lease) {
		// It waits for udev, unless /sys cannot be written.
		cmd := n.client.Command(t.Context(), "unshare", "--mount", "sh", "-c", `mount -t tmpfs run /run &&
			mkdir -p /run/empty /run/systemd/network /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp &&
			cp "$0" /run/systemd/network/ && chown -R systemd-network /run/systemd/netif &&
			mount --bind /run/empty /sys && mount -o remount,bind,ro /sys &&
			exec env SYSTEMD_LOG_TARGET=console "$1"`, conf, networkd)
		bound := make(chan struct{})
		log := &watcher{line: "DHCPv4 address 10.77.0.10", seen: bound}
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		n.sees(hardware.ReasonAcked)
		await(t, "the address", bound)
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		n.sees(hardware.ReasonReleased)
		_ = cmd.Wait()
		for len(n.ledger.Leases) > 0 {
			got = <-n.ledger.Leases
		}
		return got
	}
	first := obtain()
	if again := obtain(); again.Addr != first.Addr || !again.Released || first.ClientID == "" {
		t.Errorf("first %+v, then %+v", first, again)
	}
}
