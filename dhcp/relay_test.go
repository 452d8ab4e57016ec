package dhcp_test

import (
	"net/netip"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
)

// relays are programs that carry DHCP from the LAN to a server behind a router.
var relays = map[string]func(n *lan, server *lab.Routed){
	// with option 82 (-a)
	"isc": func(n *lan, server *lab.Routed) {
		if _, err := n.lab.Relay(n.t.Context(), server); err != nil {
			n.t.Fatal(err)
		}
	},
	"dnsmasq": func(n *lan, server *lab.Routed) {
		cmd := n.lab.Command(n.t.Context(), "dnsmasq", "--keep-in-foreground", "--port=0", "--conf-file=/dev/null", "--pid-file=", "--user=root",
			"--log-facility="+filepath.Join(n.lab.Dir(), "dnsmasq.log"), "--dhcp-relay="+n.lab.Gateway().String()+","+server.Addr.String())
		n.start(cmd)
	},
}

// start runs a daemon until the test's end.
func (n *lan) start(cmd *exec.Cmd) {
	n.t.Helper()
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// routed puts our server behind a router, with the LAN's Subnet in that mode.
func (n *lan) routed(mode hardware.SubnetMode) *lab.Routed {
	n.t.Helper()
	server, err := n.lab.AddRouted(n.t.Context(), "server")
	if err != nil {
		n.t.Fatal(err)
	}
	subnet := dhcp.SampleSubnet()
	subnet.Spec.Mode, subnet.Spec.Gateway = mode, n.lab.Gateway()
	cfg := n.config()
	view := cfg.View.(*dhcp.Records)
	view.Nets = []*hardware.Subnet{subnet}
	if mode == hardware.ModePool {
		r, err := hardware.ParseAddrRange("10.77.0.100-10.77.0.109")
		if err != nil {
			n.t.Fatal(err)
		}
		subnet.Spec.Pool, view.Hardware = &hardware.Pool{Ranges: []hardware.AddrRange{r}}, nil
	}
	cfg.Interfaces, cfg.In = []string{lab.ClientIface}, server.Do
	n.serve(cfg)
	return server
}

// Real clients behind real relays: they get their address, renew it by unicast over the
// router, and give it back.
func TestBehindRelay(t *testing.T) {
	t.Parallel()
	for name, relay := range relays {
		for _, mode := range []hardware.SubnetMode{hardware.ModeReservation, hardware.ModePool} {
			t.Run(name+"-"+string(mode), func(t *testing.T) {
				t.Parallel()
				n := newHosts(t, name+"-"+string(mode), "udhcpc", "dhclient", "dnsmasq")
				relay(n, n.routed(mode))
				script, want := script(t), netip.MustParsePrefix(clientAddr+"/32")
				if mode == hardware.ModePool {
					want = netip.MustParsePrefix("10.77.0.96/28")
				}
				cmd := n.client.Command(t.Context(), "udhcpc", "-f", "-i", lab.ClientIface, "-t", "30", "-T", "1", "-s", script)
				obtained := make(chan struct{})
				cmd.Stderr = &watcher{line: "lease of 10.77.0.", seen: obtained}
				n.start(cmd)
				await(t, "the lease", obtained)
				lease := await(t, "the lease on disk", n.ledger.Leases)
				if !want.Contains(lease.Addr) {
					t.Errorf("lent %s, want one of %s", lease.Addr, want)
				}
				n.run("ip", "route", "replace", lab.RoutedSubnet.String(), "via", n.lab.Gateway().String(), "dev", lab.ClientIface, "onlink")
				for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2} { // renew, release (udhcpc(8))
					if err := cmd.Process.Signal(s); err != nil {
						t.Fatal(err)
					}
					next := await(t, "the next lease on disk", n.ledger.Leases)
					// ISC's relay hears what passes through its host and carries it once more.
					for s == syscall.SIGUSR2 && !next.Released {
						next = await(t, "the release on disk", n.ledger.Leases)
					}
					if next.Addr != lease.Addr {
						t.Errorf("after %s: %+v", s, next)
					}
				}

				dir := t.TempDir()
				n.run("dhclient", "-1", "-v", "-sf", script, "-lf", filepath.Join(dir, "leases"), "-pf", filepath.Join(dir, "pid"), lab.ClientIface)
				again := await(t, "dhclient's lease on disk", n.ledger.Leases)
				for again.Released {
					again = await(t, "dhclient's lease on disk", n.ledger.Leases)
				}
				if again.Addr != lease.Addr {
					t.Errorf("dhclient got %s, udhcpc had %s", again.Addr, lease.Addr)
				}
			})
		}
	}
}
