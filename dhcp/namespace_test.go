package dhcp_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
)

// patience bounds the waits for something that must happen.
const patience = 60 * time.Second

// lan is a lab with our server on its bridge and one client in a namespace.
type lan struct {
	t      *testing.T
	lab    *lab.Lab
	client *lab.Client
	ledger *dhcp.Ledger
	server *dhcp.Server
}

const (
	clientMAC  = "52:54:00:12:34:56"
	clientAddr = "10.77.0.50"
)

func newLAN(t *testing.T, name string, tools ...string) *lan {
	t.Helper()
	return newLANWith(t, name, func(*dhcp.Config) {}, tools...)
}

// newLANWith is newLAN with another configuration of the server.
func newLANWith(t *testing.T, name string, change func(*dhcp.Config), tools ...string) *lan {
	t.Helper()
	n := newHosts(t, name, tools...)
	cfg := n.config()
	change(&cfg)
	n.serve(cfg)
	return n
}

// newHosts is newLAN without our server.
func newHosts(t *testing.T, name string, tools ...string) *lan {
	t.Helper()
	lab.Require(t, tools...)
	l, err := lab.New(t.Context(), lab.Options{Name: name, Subnet: netip.MustParsePrefix("10.77.0.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	mac, _ := net.ParseMAC(clientMAC)
	c, err := l.AddVeth(t.Context(), "c", mac)
	if err != nil {
		t.Fatal(err)
	}
	return &lan{t: t, lab: l, client: c, ledger: dhcp.NewLedger(hardware.Next{Target: hardware.TargetDisk, Reason: hardware.ReasonNothingToDo})}
}

// serve runs our server until the test's end; it is ready when serve returns.
func (n *lan) serve(cfg dhcp.Config) {
	t := n.t
	t.Helper()
	var err error
	if n.server, err = dhcp.New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- n.server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := await(t, "the end of Run", result); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	select {
	case <-n.server.Ready():
	case err := <-result:
		result <- err
		t.Fatalf("Run: %v", err)
	}
}

func (n *lan) config() dhcp.Config {
	return dhcp.Config{
		Interfaces: []string{n.lab.Bridge()}, Leases: n.ledger, Boots: n.ledger, In: n.lab.Do,
		Metrics: dhcp.NewMetrics(prometheus.NewRegistry()),
		View: &dhcp.Records{
			Hardware: []*hardware.Hardware{dhcp.SampleHardware("m1", clientMAC, clientAddr)},
			Nets:     []*hardware.Subnet{dhcp.SampleSubnet()},
		},
	}
}

func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// sees waits until the reasons come, in this order; others may come between.
func (n *lan) sees(reasons ...hardware.Reason) {
	n.t.Helper()
	for _, want := range reasons {
		for await(n.t, string(want), n.ledger.Observations).Reason != want {
		}
	}
}

// run runs a program in the client's namespace to its end.
func (n *lan) run(program string, args ...string) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	cmd := n.client.Command(ctx, program, args...)
	cmd.WaitDelay = time.Second
	// A file and not a pipe: a daemon that the program leaves behind would hold it.
	log, err := os.CreateTemp(n.t.TempDir(), "out")
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		out, _ := os.ReadFile(log.Name())
		n.t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// addresses lists the IPv4 addresses of the client.
func (n *lan) addresses() string {
	n.t.Helper()
	var out []string
	err := n.client.Do(func() error {
		ifi, err := net.InterfaceByName(lab.ClientIface)
		if err != nil {
			return err
		}
		addrs, err := ifi.Addrs()
		for _, a := range addrs {
			if p := a.(*net.IPNet); p.IP.To4() != nil {
				out = append(out, p.String())
			}
		}
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return strings.Join(out, " ")
}

// ip runs iproute2 in the appliance's namespace.
func (n *lan) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.CommandContext(n.t.Context(), "ip", append([]string{"-n", n.lab.Name()}, args...)...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// script is what DHCP clients call to configure the interface. udhcpc says the
// event in $1, dhclient in $reason.
func script(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	text := `#!/bin/sh
case "$1$reason" in
bound|renew) ip addr replace "$ip/$mask" dev "$interface" ;;
BOUND|RENEW|REBIND|REBOOT) ip addr replace "$new_ip_address/24" dev "$interface" ;;
deconfig|PREINIT|RELEASE|EXPIRE|FAIL) ip addr flush dev "$interface"; ip link set "$interface" up ;;
esac
`
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUdhcpc(t *testing.T) {
	t.Parallel()
	n := newLAN(t, "udhcpc", "udhcpc")
	script := script(t)
	n.run("udhcpc", "-i", lab.ClientIface, "-n", "-q", "-t", "10", "-T", "1", "-s", script)
	if got := n.addresses(); got != clientAddr+"/24" {
		t.Errorf("the client has %q", got)
	}
	n.sees(hardware.ReasonOffered, hardware.ReasonAcked)

	// In the foreground: USR1 renews by unicast, USR2 releases (udhcpc(8)).
	cmd := n.client.Command(t.Context(), "udhcpc", "-f", "-i", lab.ClientIface, "-t", "10", "-T", "1", "-s", script)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	started := make(chan struct{})
	cmd.Stderr = &watcher{line: "lease of " + clientAddr + " obtained", seen: started}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the lease", started)
	n.sees(hardware.ReasonAcked)
	for _, step := range []struct {
		signal syscall.Signal
		want   hardware.Reason
	}{{syscall.SIGUSR1, hardware.ReasonAcked}, {syscall.SIGUSR2, hardware.ReasonReleased}} {
		if err := cmd.Process.Signal(step.signal); err != nil {
			t.Fatal(err)
		}
		n.sees(step.want)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	var last hardware.Lease
	for len(n.ledger.Leases) > 0 {
		last = <-n.ledger.Leases
	}
	if !last.Released || last.Addr.String() != clientAddr {
		t.Errorf("the last lease is %+v", last)
	}
}

// watcher closes seen when the line was written.
type watcher struct {
	line string
	seen chan struct{}
	text strings.Builder
	done bool
}

func (w *watcher) Write(b []byte) (int, error) {
	w.text.Write(b)
	if !w.done && strings.Contains(w.text.String(), w.line) {
		w.done = true
		close(w.seen)
	}
	return len(b), nil
}

func TestDhclient(t *testing.T) {
	t.Parallel()
	n := newLAN(t, "dhclient", "dhclient")
	dir := t.TempDir()
	leases := filepath.Join(dir, "leases")
	args := []string{"-sf", script(t), "-lf", leases, "-pf", filepath.Join(dir, "pid"), lab.ClientIface}

	// It remembers an address that is not its own: INIT-REBOOT, NAK, DISCOVER.
	old := `lease {
  interface "%s";
  fixed-address 10.77.0.99;
  option subnet-mask 255.255.255.0;
  option dhcp-server-identifier 10.77.0.1;
  renew epoch 2147000000;
  rebind epoch 2147000000;
  expire epoch 2147000000;
}
`
	if err := os.WriteFile(leases, fmt.Appendf(nil, old, lab.ClientIface), 0o644); err != nil {
		t.Fatal(err)
	}
	n.run("dhclient", append([]string{"-1", "-v"}, args...)...)
	n.sees(hardware.ReasonWrongAddress, hardware.ReasonOffered, hardware.ReasonAcked)
	if got := n.addresses(); got != clientAddr+"/24" {
		t.Errorf("the client has %q", got)
	}
	n.run("dhclient", append([]string{"-r", "-v"}, args...)...)
	n.sees(hardware.ReasonReleased)

	// With the right address in memory, INIT-REBOOT is ACKed at once.
	right := strings.ReplaceAll(fmt.Sprintf(old, lab.ClientIface), "10.77.0.99", clientAddr)
	if err := os.WriteFile(leases, []byte(right), 0o644); err != nil {
		t.Fatal(err)
	}
	n.run("dhclient", append([]string{"-1", "-v"}, args...)...)
	if o := await(t, "an answer", n.ledger.Observations); o.Reason != hardware.ReasonAcked {
		t.Errorf("INIT-REBOOT of the right address: %+v", o)
	}
}

// The interface goes down and up, loses its address, and is replaced by another
// of the same name; each time the client is served afterwards.
func TestInterfaceChanges(t *testing.T) {
	t.Parallel()
	n := newLAN(t, "ifchange", "udhcpc")
	script, bridge := script(t), n.lab.Bridge()
	obtain := func(after string) {
		t.Helper()
		t.Log(after)
		n.run("udhcpc", "-i", lab.ClientIface, "-n", "-q", "-t", "20", "-T", "1", "-s", script)
		n.sees(hardware.ReasonAcked)
	}
	n.ip("link", "set", bridge, "down")
	n.ip("link", "set", bridge, "up")
	obtain("down and up")
	n.ip("addr", "flush", "dev", bridge)
	n.ip("addr", "add", "10.77.0.2/24", "dev", bridge)
	obtain("another address")
	n.ip("link", "del", bridge)
	n.ip("link", "add", bridge, "type", "bridge", "forward_delay", "0")
	n.ip("addr", "add", "10.77.0.3/24", "dev", bridge)
	n.ip("link", "set", bridge, "up")
	n.ip("link", "set", "veth0", "master", bridge, "up")
	obtain("replaced")
}

// A relay's packet comes by unicast, and the reply goes to the relay's port 67
// with its option 82.
func TestRelay(t *testing.T) {
	t.Parallel()
	n := newLAN(t, "relay")
	if err := n.client.SetAddr(t.Context(), netip.MustParsePrefix("10.77.0.254/24")); err != nil {
		t.Fatal(err)
	}
	pc, err := n.client.ListenPacket(t.Context(), "udp4", "10.77.0.254:67")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	mac, _ := net.ParseMAC(clientMAC)
	info := []byte{1, 4, 'p', 'o', 'r', 't'}
	p, err := dhcpv4.NewDiscovery(mac, dhcpv4.WithRelay(net.IPv4(10, 77, 0, 254)), dhcpv4.WithGeneric(dhcpv4.OptionRelayAgentInformation, info))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pc.WriteTo(p.ToBytes(), &net.UDPAddr{IP: net.IPv4(10, 77, 0, 1), Port: 67}); err != nil {
		t.Fatal(err)
	}
	_ = pc.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 1500)
	length, from, err := pc.ReadFrom(buf)
	if err != nil {
		t.Fatal(err)
	}
	r, err := dhcpv4.FromBytes(buf[:length])
	if err != nil {
		t.Fatal(err)
	}
	if from.String() != "10.77.0.1:67" || r.YourIPAddr.String() != clientAddr || string(r.Options.Get(dhcpv4.OptionRelayAgentInformation)) != string(info) {
		t.Errorf("from %s: %s", from, r.Summary())
	}
}

// What keeps Run from starting is said with who and what to do.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	n := newLAN(t, "refuses")
	for _, tt := range []struct {
		name   string
		change func(*dhcp.Config)
		want   string
	}{
		{"port taken", func(*dhcp.Config) {}, fmt.Sprintf("in use by pid %d", os.Getpid())},
		{"no such interface", func(c *dhcp.Config) { c.Interfaces = []string{"eth9"} }, "does not exist (there are: br0"},
		{"not Ethernet", func(c *dhcp.Config) { c.Interfaces = []string{"lo"} }, "is not Ethernet"},
	} {
		cfg := n.config()
		tt.change(&cfg)
		s, err := dhcp.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Run says %v, want %q", tt.name, err, tt.want)
		}
	}
}
