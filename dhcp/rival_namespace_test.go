package dhcp_test

import (
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
)

// newSearchLAN is a lan in which other servers are searched for.
func newSearchLAN(t *testing.T, name string, change func(*hardware.Subnet), tools ...string) (*lan, chan dhcp.Finding) {
	t.Helper()
	found := make(chan dhcp.Finding, 1000)
	n := newLANWith(t, name, func(c *dhcp.Config) {
		net := dhcp.SampleSubnet()
		change(net)
		c.View = &dhcp.Records{Nets: []*hardware.Subnet{net}}
		c.SearchEvery, c.Found = 100*time.Millisecond, func(f dhcp.Finding) { found <- f }
	}, tools...)
	return n, found
}

func anyPool(n *hardware.Subnet) {
	r, _ := hardware.ParseAddrRange(poolRange)
	n.Spec.Mode, n.Spec.Pool = hardware.ModePool, &hardware.Pool{Ranges: []hardware.AddrRange{r}}
}

// While dnsmasq is there a stranger gets its address from it, and ours when it is gone.
// The search itself takes no lease.
func TestRivalDnsmasq(t *testing.T) {
	t.Parallel()
	n, found := newSearchLAN(t, "rival", anyPool, "udhcpc", "dnsmasq")
	at := netip.MustParseAddr("10.77.0.2")
	peer, err := n.lab.Dnsmasq(t.Context(), at, netip.MustParseAddr("10.77.0.200"), netip.MustParseAddr("10.77.0.209"))
	if err != nil {
		t.Fatal(err)
	}
	f := await(t, "the other server", found)
	if f.Rival.Server != at || f.Rival.MAC.IsZero() || f.Subnet != dhcp.SampleSubnet().Meta.Name || !netip.MustParsePrefix("10.77.0.0/24").Contains(f.Rival.Offered) {
		t.Errorf("%+v", f)
	}
	var log []byte
	for deadline := time.Now().Add(patience); err == nil && !strings.Contains(string(log), "DHCPOFFER"); { // written after it was sent
		if time.Now().After(deadline) {
			t.Fatalf("dnsmasq says of no offer:\n%s", log)
		}
		time.Sleep(10 * time.Millisecond)
		log, err = os.ReadFile(peer.Log)
	}
	if err != nil || !strings.Contains(string(log), "DHCPOFFER") || strings.Contains(string(log), "DHCPREQUEST") {
		t.Errorf("%v: the search took a lease:\n%s", err, log)
	}
	if r := n.server.Rivals(); len(r) != 1 || r[0].Rival.Server != at {
		t.Errorf("%v", r)
	}
	args := []string{"-i", lab.ClientIface, "-n", "-q", "-t", "20", "-T", "2", "-s", script(t)}
	n.run("udhcpc", args...)
	n.inRange("10.77.0.200-10.77.0.209")
	n.sees(hardware.ReasonOtherDHCP)
	if err := peer.Stop(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); len(n.server.Rivals()) > 0; { // some searches later
		if time.Now().After(deadline) {
			t.Fatal("the other server is never gone")
		}
		time.Sleep(100 * time.Millisecond)
	}
	n.run("udhcpc", args...)
	n.inRange(poolRange)
}

// Nobody else: the stranger waits for the end of the first search, and is served.
func TestRivalNone(t *testing.T) {
	t.Parallel()
	n, found := newSearchLAN(t, "norival", anyPool, "udhcpc")
	n.run("udhcpc", "-i", lab.ClientIface, "-n", "-q", "-t", "20", "-T", "2", "-s", script(t))
	n.inRange(poolRange)
	if len(found) > 0 {
		t.Errorf("found %v", <-found)
	}
}

// In mode proxy it is the other way round.
func TestRivalMissed(t *testing.T) {
	t.Parallel()
	_, found := newSearchLAN(t, "proxied", func(n *hardware.Subnet) { n.Spec.Mode = hardware.ModeProxy })
	if f := await(t, "that there is none", found); f.Rival.Server.IsValid() || f.Subnet != dhcp.SampleSubnet().Meta.Name || !strings.Contains(f.String(), "no DHCP server answers") {
		t.Errorf("%v", f)
	}
}

// Who may not open packet sockets, or has no such interface, is told so.
func TestSearchRefused(t *testing.T) {
	t.Parallel()
	lab.Require(t)
	l, err := lab.New(t.Context(), lab.Options{Name: "nosearch", Subnet: netip.MustParsePrefix("10.77.0.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var once sync.Once
	err = dhcp.Search(t.Context(), "nic9", l.Do, func(dhcp.Rival) { once.Do(func() { t.Error("heard somebody") }) })
	if err == nil || !strings.Contains(err.Error(), "interface nic9: does not exist") {
		t.Errorf("%v", err)
	}
}
