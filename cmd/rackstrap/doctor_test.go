package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/api"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
	"github.com/rackstrap/rackstrap/tftp"
)

func prefixes(s ...string) (out []netip.Prefix) {
	for _, p := range s {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func labSubnet(mode hardware.SubnetMode, advertise string) hardware.Subnet {
	n := hardware.Subnet{Meta: hardware.Meta{Name: "lan"}, Spec: hardware.SubnetSpec{Prefix: netip.MustParsePrefix("10.77.0.0/24"), Mode: mode}}
	if advertise != "" {
		n.Spec.Advertise = netip.MustParseAddr(advertise)
	}
	return n
}

func TestDoctorChecks(t *testing.T) {
	t.Parallel()
	one := nic{name: "eth1", up: true, link: true, networks: prefixes("10.77.0.1/24")}
	two := nic{name: "eth1", up: true, link: true, networks: prefixes("10.77.0.1/24", "10.77.0.2/24")}
	rival := dhcp.Rival{Interface: "eth1", Server: netip.MustParseAddr("10.77.0.9"), Offered: netip.MustParseAddr("10.77.0.200")}
	heard := []dhcp.Rival{rival}
	subnet := func(mode hardware.SubnetMode, advertise string, links ...nic) diagnosis {
		n := labSubnet(mode, advertise)
		return checkSubnet(&n, links)
	}
	others := func(mode hardware.SubnetMode, heard []dhcp.Rival, err error) diagnosis {
		return checkOthers(one, heard, err, []hardware.Subnet{labSubnet(mode, "")}, true)[0]
	}
	pool := func(taken int) diagnosis {
		n := labSubnet(hardware.ModePool, "")
		r, _ := hardware.ParseAddrRange("10.77.0.100-10.77.0.109")
		n.Spec.Pool = &hardware.Pool{Ranges: []hardware.AddrRange{r}}
		d := &running{up: true, subnets: []hardware.Subnet{n}}
		for range taken {
			d.leases = append(d.leases, api.Lease{Lease: hardware.Lease{Subnet: "lan"}, State: hardware.LeaseActive})
		}
		d.leases = append(d.leases, api.Lease{Lease: hardware.Lease{Subnet: "lan", Reservation: true}, State: hardware.LeaseActive}, api.Lease{Lease: hardware.Lease{Subnet: "lan"}, State: hardware.LeaseExpired})
		return checkRecords(d)[0]
	}
	pending := &running{up: true, machines: []hardware.Hardware{{Meta: hardware.Meta{Name: "m1"}}, {Meta: hardware.Meta{Name: "m2"}, Status: hardware.Status{State: hardware.StatePending}}}, issues: []api.MachineIssue{{Issue: hardware.Issue{Severity: hardware.SeverityError}}, {}}}
	door := door{network: "udp", port: 67, does: "DHCP", needed: true}
	held := door
	held.owner, held.taken = "pid 812 (dnsmasq)", true
	unneeded := held
	unneeded.needed = false
	at := netip.MustParseAddrPort("10.77.0.1:69")
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		got  diagnosis
		want grade
		says string
	}{
		{checkRoom("/d", 1<<20), gradeFail, "/d has 0.0 GB free: leases and records cannot be written soon"},
		{checkRoom("/d", 1<<30), gradeWarn, "too little for most images"},
		{checkRoom("/d", 1<<40), gradeOK, "1099.5 GB"},
		{checkMode("/d", 0o755), gradeWarn, "can be read by others (0755)"},
		{checkMode("/d", 0o700), gradeOK, ""},
		{checkDoor(door, "", false), gradeOK, "is free, for DHCP"},
		{checkDoor(door, "pid 5 (rackstrap)", true), gradeFail, "nobody listens for DHCP"},
		{checkDoor(held, "", false), gradeFail, "pid 812 (dnsmasq) has the port of DHCP"},
		{checkDoor(held, "pid 5 (rackstrap)", true), gradeFail, "pid 812 (dnsmasq)"},
		{checkDoor(held, "pid 812 (dnsmasq)", true), gradeOK, "the daemon has it"},
		{checkDoor(unneeded, "pid 5 (rackstrap)", true), gradeWarn, "pid 812 (dnsmasq)"},
		{checkNIC(one), gradeOK, "10.77.0.1/24"},
		{checkNIC(nic{name: "eth1", err: errors.New("does not exist")}), gradeFail, "does not exist"},
		{checkNIC(nic{name: "eth1"}), gradeFail, "is down"},
		{checkNIC(nic{name: "eth1", up: true, link: true}), gradeFail, "no IPv4 address"},
		{checkNIC(nic{name: "eth1", up: true, networks: one.networks}), gradeWarn, "no link"},
		{checkSubnets(nil, nil, true)[0], gradeFail, "no Subnet record"},
		{subnet("", "", one), gradeOK, "machines are told 10.77.0.1 on eth1"},
		{subnet("", "", two), gradeFail, "10.77.0.1 on eth1 and 10.77.0.2 on eth1 are all in 10.77.0.0/24"},
		{subnet("", "10.77.0.2", two), gradeOK, "machines are told 10.77.0.2"},
		{subnet("", "10.1.1.1", two), gradeWarn, "advertises 10.1.1.1, which none"},
		{subnet("", ""), gradeWarn, "through a relay only"},
		{subnet(hardware.ModeOff, ""), gradeOK, "is off"},
		{others("", nil, nil), gradeOK, "no other server answers"},
		{others("", heard, nil), gradeWarn, "another server answers in subnet lan: 10.77.0.9"},
		{others(hardware.ModeProxy, heard, nil), gradeOK, "as it should"},
		{others(hardware.ModeProxy, nil, nil), gradeFail, "nobody answers"},
		{others("", nil, errors.New("not permitted")), gradeWarn, "not permitted"},
		{checkOthers(one, heard, nil, nil, false)[0], gradeWarn, "another server answers: 10.77.0.9"},
		{checkFetched("TFTP", at, "", "abc", errors.New("no answer")), gradeFail, "is a firewall between?"},
		{checkFetched("TFTP", at, "abd", "abc", nil), gradeFail, "another program"},
		{checkFetched("TFTP", at, "abc", "abc", nil), gradeOK, "comes from 10.77.0.1:69"},
		{checkClock(time.Unix(0, 0), true, true), gradeFail, "1970"},
		{checkClock(now, false, true), gradeWarn, "nothing keeps it right"},
		{checkClock(now, false, false), gradeOK, "2026"},
		{pool(3), gradeOK, "3 of 10"},
		{pool(9), gradeWarn, "9 of 10"},
		{pool(10), gradeFail, "nobody else gets one"},
		{checkRecords(pending)[0], gradeWarn, "1 of 2 wait to be accepted"},
		{checkRecords(pending)[1], gradeWarn, "2 are open, 1 of them errors"},
		{checkRecords(&running{up: true})[1], gradeOK, "none is open"},
		{checkLock("/d/db", true, &running{says: []diagnosis{fail("daemon", "", "down")}}), gradeFail, "does not answer"},
		{checkLock("/d/db", true, &running{up: true}), gradeOK, "the daemon has"},
	} {
		if tc.got.Result != tc.want || !strings.Contains(tc.got.Says, tc.says) {
			t.Errorf("got %+v, want %s: %s", tc.got, tc.want, tc.says)
		}
		if tc.got.Result != gradeOK && tc.got.Do == "" {
			t.Errorf("%s %q says nothing to type", tc.got.About, tc.got.Says)
		}
	}
}

func TestDoctorOutput(t *testing.T) {
	t.Parallel()
	all := []diagnosis{fine("configuration", "can be read"), warn("udp 4011", "ss -lnp", "somebody\n has it"), fail("data", "chmod", "is not ours")}
	var b bytes.Buffer
	if err := printDiagnoses(&b, "", all); err != nil {
		t.Fatal(err)
	}
	const want = `ok    configuration  can be read
warn  udp 4011       somebody has it
                     → ss -lnp
fail  data           is not ours
                     → chmod
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
	b.Reset()
	if err := printDiagnoses(&b, "json", all); err != nil || !strings.Contains(b.String(), `"result": "warn"`) {
		t.Errorf("%v: %s", err, b.String())
	}
}

// A boot program comes whole through the real TFTP and HTTP servers, and what answers
// with something else, or not at all, is told from it.
func TestDoctorFetches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "boot"), 0o700); err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("boot"), 3*tftpBlock/4) // whole blocks: an empty one ends it
	if err := os.WriteFile(filepath.Join(dir, "boot", probed), content, 0o600); err != nil {
		t.Fatal(err)
	}
	srv, err := tftp.New(tftp.Config{
		Listen:  netip.MustParseAddrPort("127.0.0.1:0"),
		Handler: tftpFiles{ipxe.NewTFTPFiles(ipxe.NewAssets(dir), nil, slog.New(slog.DiscardHandler)), nil},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-srv.Ready()
	web := httptest.NewServer(http.StripPrefix("/ipxe/", http.FileServer(http.Dir(filepath.Join(dir, "boot")))))
	t.Cleanup(web.Close)
	sum := sha256.Sum256(content)
	want := hex.EncodeToString(sum[:])
	type fetch = func(context.Context, netip.AddrPort, string) (string, error)
	for name, how := range map[string]struct {
		at    netip.AddrPort
		fetch fetch
		none  string // what is said of a file that is not there
	}{
		"TFTP": {srv.Addr(), fetchTFTP, "the server says"},
		"HTTP": {netip.MustParseAddrPort(web.Listener.Addr().String()), fetchHTTP, "404"},
	} {
		if got, err := how.fetch(ctx, how.at, probed); err != nil || got != want {
			t.Errorf("%s: %v, sha256 %s, want %s", name, err, got, want)
		}
		if _, err := how.fetch(ctx, how.at, "nothing.efi"); err == nil || !strings.Contains(err.Error(), how.none) {
			t.Errorf("%s of what is not there: %v", name, err)
		}
	}
	silent, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	if _, err := fetchTFTP(short, silent.LocalAddr().(*net.UDPAddr).AddrPort(), probed); err == nil || err.Error() != "no answer after 0 bytes" {
		t.Errorf("of nobody: %v", err)
	}
}

// examined is what the doctor finds in a network of its own, with the daemon stopped.
func examined(t *testing.T, l *lab.Lab) map[string]diagnosis {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "rackstrap.yaml")
	text := "data: " + dir + "/data\nsocket: " + dir + "/s\ninterfaces: [" + l.Bridge() + "]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said := 0
	d := &doctor{config: path, in: l.Do, progress: func(string) { said++ }}
	out := map[string]diagnosis{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, x := range d.examine(ctx) {
		out[x.About] = x
	}
	if said == 0 {
		t.Error("nothing is said while one waits")
	}
	for about, want := range map[string]grade{"configuration": gradeOK, "data": gradeWarn, "daemon": gradeFail, "udp 67": gradeOK, "tcp 7080": gradeOK, "interface " + l.Bridge(): gradeOK} {
		if got := out[about]; got.Result != want {
			t.Errorf("%s: %+v, want %s", about, got, want)
		}
	}
	return out
}

// With the daemon stopped, without and with another DHCP server on the wire.
func TestDoctorOnTheWire(t *testing.T) {
	t.Parallel()
	lab.Require(t, "dnsmasq")
	l, err := lab.New(t.Context(), lab.Options{Name: "doctor", Subnet: netip.MustParsePrefix("10.77.0.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := l.AddVeth(t.Context(), "host", nil); err != nil { // the bridge has a link
		t.Fatal(err)
	}
	if got := examined(t, l)["DHCP on "+l.Bridge()]; got.Result != gradeOK || !strings.Contains(got.Says, "no other server answers") {
		t.Errorf("alone: %+v", got)
	}
	if _, err := l.Dnsmasq(t.Context(), netip.MustParseAddr("10.77.0.2"), netip.MustParseAddr("10.77.0.200"), netip.MustParseAddr("10.77.0.209")); err != nil {
		t.Fatal(err)
	}
	if got := examined(t, l)["DHCP on "+l.Bridge()]; got.Result != gradeWarn || !strings.Contains(got.Says, "another server answers: 10.77.0.2 (") {
		t.Errorf("beside dnsmasq: %+v", got)
	}
}
