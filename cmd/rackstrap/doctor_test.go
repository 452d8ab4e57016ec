package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
	held.owners, held.blocked = []string{"pid 812 (dnsmasq)"}, true
	unneeded, beside, both, hidden := held, held, held, held
	unneeded.needed = false
	beside.blocked = false
	both.owners = []string{"pid 812 (dnsmasq)", "pid 5 (rackstrap)"}
	hidden.owners = []string{""}
	ours, unseen := []string{"pid 5 (rackstrap)"}, []string{""}
	newcomer, known := &running{up: true}, &running{up: true, machines: make([]hardware.Hardware, 1)}
	missing := func(err error) func(string) error { return func(string) error { return err } }
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
		{checkDoor(door, nil, false), gradeOK, "is free, for DHCP"},
		{checkDoor(door, ours, true), gradeFail, "nobody listens for DHCP"},
		{checkDoor(held, nil, false), gradeFail, "pid 812 (dnsmasq) has the port of DHCP"},
		{checkDoor(held, ours, true), gradeFail, "pid 812 (dnsmasq)"},
		{checkDoor(both, ours, true), gradeOK, "the daemon has it"},
		{checkDoor(unneeded, ours, true), gradeWarn, "pid 812 (dnsmasq)"},
		{checkDoor(beside, nil, false), gradeWarn, "at another address or interface"},
		{checkDoor(beside, ours, true), gradeFail, "pid 812 (dnsmasq)"}, // and not the daemon
		{checkDoor(hidden, nil, false), gradeWarn, "run as root to see who"},
		{checkDoor(hidden, ours, true), gradeWarn, "run as root to see who"},
		{checkDoor(hidden, unseen, true), gradeOK, "is in use, for DHCP"},
		{checkBootFiles(missing(fs.ErrPermission), false)[0], gradeWarn, "not all of them may be read"},
		{checkBootFiles(missing(fs.ErrNotExist), true)[0], gradeFail, "not exist"},
		{checkNIC(one), gradeOK, "10.77.0.1/24"},
		{checkNIC(nic{name: "eth1", err: errors.New("does not exist")}), gradeFail, "does not exist"},
		{checkNIC(nic{name: "eth1"}), gradeFail, "is down"},
		{checkNIC(nic{name: "eth1", up: true, link: true}), gradeFail, "no IPv4 address"},
		{checkNIC(nic{name: "eth1", up: true, networks: one.networks}), gradeWarn, "no link"},
		{checkSubnets(newcomer, nil)[0], gradeWarn, "no Subnet record, so DHCP answers nobody yet"},
		{checkSubnets(known, nil)[0], gradeFail, "no Subnet record"},
		{subnet("", "", one), gradeOK, "machines are told 10.77.0.1 on eth1"},
		{subnet("", "", two), gradeFail, "10.77.0.1 on eth1 and 10.77.0.2 on eth1 are all in 10.77.0.0/24"},
		{subnet("", "10.77.0.2", two), gradeOK, "machines are told 10.77.0.2"},
		{subnet("", "10.1.1.1", two), gradeWarn, "advertises 10.1.1.1, which none"},
		{subnet("", ""), gradeOK, "through a relay only"},
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
	if got := checkBootFiles(missing(fs.ErrPermission), true); len(got) > 0 {
		t.Errorf("said twice: %+v", got)
	}
}

// The self-test goes where machines are sent, and a listener of the configuration is.
func TestDoctorProbes(t *testing.T) {
	t.Parallel()
	links := []nic{{name: "eth1", networks: prefixes("10.77.0.1/24", "192.168.9.1/24")}, {name: "eth2", networks: prefixes("10.9.0.1/24")}}
	lan, off, far, translated := labSubnet("", ""), labSubnet(hardware.ModeOff, ""), labSubnet("", "10.9.0.1"), labSubnet("", "198.51.100.7")
	for _, tc := range []struct {
		name, listen string
		subnets      []hardware.Subnet
		want         string
	}{
		{"a host of its own", "10.9.0.1:7080", []hardware.Subnet{lan}, "[10.9.0.1:7080]"},
		{"the address in the Subnet", ":7080", []hardware.Subnet{lan}, "[10.77.0.1:7080]"},
		{"the advertised one", "0.0.0.0:69", []hardware.Subnet{far}, "[10.9.0.1:69]"},
		{"both", ":69", []hardware.Subnet{lan, far}, "[10.77.0.1:69 10.9.0.1:69]"},
		{"no Subnet", ":69", nil, "[10.77.0.1:69 192.168.9.1:69 10.9.0.1:69]"},
		{"none that says", ":69", []hardware.Subnet{off, translated}, "[10.77.0.1:69 192.168.9.1:69 10.9.0.1:69]"},
	} {
		if got := fmt.Sprint(probes(tc.listen, told(tc.subnets, links))); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// Not as root, beside a daemon that is well: what may not be looked at is said once, and
// nothing fails. The permissions are those of a user without rights, so it is one.
func TestDoctorBarred(t *testing.T) {
	t.Parallel()
	lab.Require(t) // root, to leave it
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data", "boot"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // so that only data is closed
		t.Fatal(err)
	}
	c := defaultConfig()
	c.Data = filepath.Join(dir, "data")
	var says []diagnosis
	var barred bool
	// without CAP_DAC_*: root's files are closed to a thread with another fsuid
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never given back
		if err := unix.Setfsuid(65534); err != nil {
			done <- err
			return
		}
		says, barred = new(doctor).data(&c, &running{})
		says = append(says, checkBootFiles(ipxe.NewAssets(c.Data).Missing, barred)...)
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	closed := 0
	for _, x := range says {
		if x.Result == gradeFail || x.About == "lock" || x.About == "boot files" {
			t.Errorf("%+v", x)
		}
		if x.Do == "sudo rackstrap doctor" {
			closed++
		}
	}
	if !barred || closed != 1 {
		t.Errorf("%v, said %d times: %+v", barred, closed, says)
	}
}

// Another process has DHCP's port: beside our interface it is a warning, on all it is in
// the way.
func TestDoctorPorts(t *testing.T) {
	t.Parallel()
	lab.Require(t)
	l, err := lab.New(t.Context(), lab.Options{Name: "doorkeep", Subnet: netip.MustParsePrefix("10.77.0.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	d, c := &doctor{in: l.Do}, defaultConfig()
	links := []nic{{name: l.Bridge(), up: true}}
	for device, want := range map[string]grade{"lo": gradeWarn, "": gradeFail} {
		lc := net.ListenConfig{Control: func(_, _ string, rc syscall.RawConn) (err error) {
			return errors.Join(rc.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), device) }), err)
		}}
		var other net.PacketConn
		if err := l.Do(func() (err error) {
			other, err = lc.ListenPacket(t.Context(), "udp4", ":67")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		got := d.ports(t.Context(), &c, links, &running{})[0]
		if got.About != "udp 67" || got.Result != want || !strings.Contains(got.Says, fmt.Sprintf("pid %d (", os.Getpid())) {
			t.Errorf("on %q: %+v, want %s", device, got, want)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// probedIn is a data directory with the boot program that the doctor fetches.
func probedIn(t *testing.T) (dir string, content []byte) {
	t.Helper()
	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "boot"), 0o700); err != nil {
		t.Fatal(err)
	}
	content = bytes.Repeat([]byte("boot"), 3*tftpBlock/4) // whole blocks: an empty one ends it
	if err := os.WriteFile(filepath.Join(dir, "boot", probed), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, content
}

func serveTFTP(t *testing.T, c tftp.Config) *tftp.Server {
	t.Helper()
	srv, err := tftp.New(c)
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
	return srv
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
	dir, content := probedIn(t)
	srv := serveTFTP(t, tftp.Config{
		Listen: netip.MustParseAddrPort("127.0.0.2:0"),
		// no Subnet covers the server's own address
		Handler: tftpFiles{ipxe.NewTFTPFiles(ipxe.NewAssets(dir), nil, 7080, slog.New(slog.DiscardHandler)), func(a netip.Addr) bool { return a.Unmap() == netip.MustParseAddr("127.0.0.1") }},
	})
	ctx := t.Context()
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
