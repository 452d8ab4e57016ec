package dhcp_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
)

// newPoolLAN is a lan that lends addresses of these ranges. known says whether the
// client has a record; it has no reservation.
func newPoolLAN(t *testing.T, name string, known bool, ranges []string, tools ...string) *lan {
	t.Helper()
	return newLANWith(t, name, func(c *dhcp.Config) {
		net := dhcp.SampleSubnet()
		net.Spec.Mode, net.Spec.Pool = hardware.ModePool, &hardware.Pool{}
		for _, s := range ranges {
			r, err := hardware.ParseAddrRange(s)
			if err != nil {
				t.Fatal(err)
			}
			net.Spec.Pool.Ranges = append(net.Spec.Pool.Ranges, r)
		}
		view := &dhcp.Records{Nets: []*hardware.Subnet{net}}
		if known {
			h := dhcp.SampleHardware("m1", clientMAC, clientAddr)
			h.Spec.Interfaces[0].Addresses = nil
			view.Hardware = []*hardware.Hardware{h}
		}
		c.View = view
	}, tools...)
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
