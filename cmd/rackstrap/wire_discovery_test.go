package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"github.com/rackstrap/rackstrap/api/workergrpc"
	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/hardware"
	"github.com/rackstrap/rackstrap/ipxe"
	"github.com/rackstrap/rackstrap/worker"
	"github.com/rackstrap/rackstrap/worker/pid1"
	"github.com/rackstrap/rackstrap/workflow"
)

// discovery is the daemon's parts from the DHCP socket to the worker's TLS listener, on
// a LAN with one machine that nobody registered.
type discovery struct {
	*appliance
	t      *testing.T
	client *lab.Client
	track  *tracker
	files  *httpBoots
	worker netip.AddrPort
}

func newDiscovery(t *testing.T, name string) *discovery {
	t.Helper()
	lab.Require(t)
	l, err := lab.New(t.Context(), lab.Options{Name: name, Subnet: netip.MustParsePrefix("10.77.0.0/24")})
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	client, err := l.AddVeth(t.Context(), "c", lab.RandomMAC())
	must(t, err)
	c, log := defaultConfig(), slog.New(slog.DiscardHandler)
	c.Data = t.TempDir()
	a, err := newAppliance(t.Context(), c, log)
	must(t, err)
	t.Cleanup(a.close)
	ranges, err := hardware.ParseAddrRange("10.77.0.100-10.77.0.109")
	must(t, err)
	must(t, a.db.CreateSubnet(t.Context(), &hardware.Subnet{Meta: hardware.Meta{Name: "lan"}, Spec: hardware.SubnetSpec{
		Prefix: netip.MustParsePrefix("10.77.0.0/24"), Mode: hardware.ModePool, Discovery: true,
		Pool: &hardware.Pool{Ranges: []hardware.AddrRange{ranges}, Allow: hardware.PoolKnown},
	}}))
	d := &discovery{appliance: a, t: t, client: client, track: newTracker(a.engine, a.db.View(), log)}
	d.files = &httpBoots{tracker: d.track, httpPort: 7080, grpcPort: 42113, common: ipxe.ScriptInput{CA: a.id.caSHA256}}
	srv, err := dhcp.New(dhcp.Config{
		Interfaces: []string{l.Bridge()}, HTTPPort: 7080, View: a.db.View(), Leases: newLeaseAdapter(meteredLeases{a.kv.Leases(), a.meters}, d.track),
		Boots: dhcpBoots{d.track}, Metrics: dhcp.NewMetrics(a.reg), Strangers: a.unknown, Log: log, In: l.Do,
	})
	must(t, err)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	d.worker = tcp.Addr().(*net.TCPAddr).AddrPort()
	grpc := workergrpc.New(a.engine, a.id.cert, time.Now, log)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		ended <- runAll(ctx, []part{
			{name: "store", run: a.db.Run},
			{name: "recorder", run: a.recorder.Run},
			{name: "engine", run: a.engine.Run, ready: a.engine.Ready()},
			{name: "dhcp", run: srv.Run, ready: srv.Ready()},
			{name: "worker", run: func(ctx context.Context) error { return grpc.Serve(ctx, tcp) }},
		}, func() { close(ready) })
	}()
	t.Cleanup(func() { stop(); must(t, <-ended) })
	<-ready
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *discovery) mac() hardware.MAC { return hardware.MAC(d.client.MAC) }

// firmware gets an address as the PXE of a BIOS does, and returns the last answer.
func (d *discovery) firmware() *dhcpv4.DHCPv4 {
	d.t.Helper()
	return d.dhcp(
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00000:UNDI:002001")), dhcpv4.WithOption(dhcpv4.OptClientArch(iana.INTEL_X86PC)),
	)
}

// dhcp gets an address with a DISCOVER and a REQUEST, and returns the last answer.
func (d *discovery) dhcp(with ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	d.t.Helper()
	var conn net.PacketConn
	must(d.t, d.client.Do(func() error {
		var err error
		conn, err = (&net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			cerr := c.Control(func(fd uintptr) {
				err = errors.Join(syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_BROADCAST, 1), syscall.BindToDevice(int(fd), lab.ClientIface))
			})
			return errors.Join(cerr, err)
		}}).ListenPacket(d.t.Context(), "udp4", ":68")
		return err
	}))
	defer conn.Close()
	with = append(with, dhcpv4.WithBroadcast(true))
	ask := func(p *dhcpv4.DHCPv4, err error) *dhcpv4.DHCPv4 {
		d.t.Helper()
		must(d.t, err)
		buf := make([]byte, 1500)
		for range 20 {
			_, err := conn.WriteTo(p.ToBytes(), &net.UDPAddr{IP: net.IPv4bcast, Port: 67})
			must(d.t, err)
			must(d.t, conn.SetReadDeadline(time.Now().Add(3*time.Second)))
			for {
				n, _, err := conn.ReadFrom(buf)
				if errors.Is(err, os.ErrDeadlineExceeded) {
					break // as firmware does, ask again
				}
				must(d.t, err)
				if r, err := dhcpv4.FromBytes(buf[:n]); err == nil && r.TransactionID == p.TransactionID && r.OpCode == dhcpv4.OpcodeBootReply {
					return r
				}
			}
		}
		d.t.Fatal("no answer to " + p.Summary())
		return nil
	}
	offer := ask(dhcpv4.NewDiscovery(d.client.MAC, with...))
	ack := ask(dhcpv4.NewRequestFromOffer(offer, with...))
	if ack.MessageType() != dhcpv4.MessageTypeAck {
		d.t.Fatalf("instead of an ACK: %s", ack.Summary())
	}
	return ack
}

// script is what the machine's iPXE fetches from its address.
func (d *discovery) script(from netip.Addr) string {
	d.t.Helper()
	h := ipxe.NewHandler(ipxe.NewAssets(d.c.Data), d.files, ipxe.Pacing{}, d.log)
	r := httptest.NewRequestWithContext(d.t.Context(), "GET", ipxe.ScriptPath(d.mac()), nil)
	r.RemoteAddr = netip.AddrPortFrom(from, 40000).String()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	b, err := io.ReadAll(w.Result().Body)
	must(d.t, err)
	return string(b)
}

// boot runs the real worker session of a script to its end.
func (d *discovery) boot(script string, facts hardware.Facts) <-chan worker.End {
	d.t.Helper()
	p, err := worker.ParseCommandLine(script)
	must(d.t, err)
	p.Server = d.worker // the LAN is in another namespace
	s, err := worker.NewSession(worker.Config{
		Params: p, Version: "test", Facts: func(_ context.Context, report func(hardware.Facts)) { report(facts) },
		Uptime: func() time.Duration { return time.Second }, SetClock: func(time.Time) error { return nil }, Say: d.t.Logf,
	})
	must(d.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	end, done := make(chan worker.End, 1), make(chan struct{})
	go func() { defer close(done); end <- s.Run(ctx) }()
	d.t.Cleanup(func() { cancel(); <-done })
	return end
}

// comes waits until the machine has a record that is as wanted.
func (d *discovery) comes(what string, is func(*hardware.Hardware) bool) *hardware.Hardware {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if h, ok := d.db.View().HardwareByMAC(d.mac()); ok && is(h) {
			return h
		}
	}
	d.t.Fatal("the machine is not " + what)
	return nil
}

// TestDiscoveryFromPacketToAccept: a machine without a record is powered on.
func TestDiscoveryFromPacketToAccept(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t, "enrol")
	ack := d.firmware()
	addr, _ := netip.AddrFromSlice(ack.YourIPAddr.To4())
	if ack.BootFileName != "undionly.kpxe" || !netip.MustParsePrefix("10.77.0.96/28").Contains(addr) {
		t.Errorf("%s, %q", addr, ack.BootFileName)
	}
	if b, ok := d.engine.Current(t.Context(), hardware.StrangerUID(d.mac()), d.mac()); !ok || !(dhcpBoots{d.track}).Booting(d.mac()) || b.Next.Scope != hardware.ScopeEnrol {
		t.Errorf("its boot: %+v", b)
	}
	if s := d.script(netip.MustParseAddr("10.77.0.66")); strings.Contains(s, "rackstrap.token=") {
		t.Error("another address got the token")
	}
	script := d.script(addr)
	if !strings.Contains(script, "rackstrap.token=rs1.") || !strings.Contains(script, "unknown machine") {
		t.Fatalf("its script is\n%s", script)
	}
	rows := (strangers{d.unknown, d.engine.Strangers, d.db.View()}).Strangers()
	if len(rows) != 1 || rows[0].MAC != d.mac() || rows[0].Phase != "boot script" || rows[0].Address != addr || rows[0].Subnet != "lan" || rows[0].Interface == "" || !strings.Contains(rows[0].Do, "--state pending") {
		t.Errorf("strangers: %+v", rows)
	}
	// The worker asks as an operating system does: with no class.
	if own := d.dhcp(); !own.YourIPAddr.Equal(ack.YourIPAddr) {
		t.Errorf("the firmware had %s, the worker gets %s", ack.YourIPAddr, own.YourIPAddr)
	}
	facts := hardware.Facts{Vendor: "ACME", Product: "Rocket", Serial: "CZJ1234", Arch: "amd64", NICs: []hardware.NICFact{{MAC: d.mac(), Link: true}}, Disks: []hardware.DiskFact{{Path: "/dev/vda", Bytes: 8 << 30}}}
	end := d.boot(script, facts)
	h := d.comes("pending, with its worker", func(h *hardware.Hardware) bool {
		return h.Status.State == hardware.StatePending && d.engine.Connected(h.Meta.UID)
	})
	if h.Meta.Name != "sn-czj1234" || h.Facts.Product != "Rocket" {
		t.Errorf("%+v", h)
	}
	events, err := d.db.Events(t.Context(), workflow.EventQuery{Hardware: h.Meta.UID})
	must(t, err)
	var got []hardware.Reason
	for _, ev := range events {
		if !slices.Contains(got, ev.Reason) {
			got = append(got, ev.Reason)
		}
	}
	for _, want := range []hardware.Reason{
		hardware.ReasonBootStarted, hardware.ReasonOffered, hardware.ReasonAcked, hardware.ReasonScriptNoToken, hardware.ReasonScriptSent,
		hardware.ReasonWorkerConnected, hardware.ReasonDiscovered, hardware.ReasonFactsReported,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("its timeline lacks %s: %v", want, got)
		}
	}
	if got[0] != hardware.ReasonBootStarted {
		t.Errorf("its timeline begins with %s", got[0])
	}
	must(t, d.engine.Accept(t.Context(), h.Meta.UID, ""))
	if e := <-end; e.What != pid1.Restart || e.Fault {
		t.Errorf("after accept the worker ends with %+v", e)
	}
	// it comes again, as a machine that is known, at the same address
	if again := d.firmware(); !again.YourIPAddr.Equal(ack.YourIPAddr) {
		t.Errorf("first %s, now %s", ack.YourIPAddr, again.YourIPAddr)
	}
	m, err := d.db.Machine(t.Context(), h.Meta.UID)
	must(t, err)
	if m.Boot.Next.Reason != hardware.ReasonNothingToDo {
		t.Errorf("it boots %+v", m.Boot.Next)
	}
}

// TestDiscoveryByRule: nobody types anything, and the machine boots its workflow.
func TestDiscoveryByRule(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t, "enrolrule")
	must(t, d.db.CreateTemplate(t.Context(), &workflow.Template{
		Meta: hardware.Meta{Name: "look"}, Spec: workflow.TemplateSpec{Actions: []workflow.ActionSpec{{Name: "restart", Kind: workflow.KindReboot}}},
	}))
	must(t, d.db.CreateRule(t.Context(), &hardware.Rule{Meta: hardware.Meta{Name: "rockets"}, Spec: hardware.RuleSpec{
		Match: hardware.RuleMatch{Subnet: "lan", Facts: map[string]string{"vendor": "acme"}}, Accept: true, Labels: map[string]string{"maker": "acme"},
		Provision: &hardware.RuleProvision{Template: "look"},
	}}))
	ack := d.firmware()
	addr, _ := netip.AddrFromSlice(ack.YourIPAddr.To4())
	end := d.boot(d.script(addr), hardware.Facts{Vendor: "ACME", NICs: []hardware.NICFact{{MAC: d.mac()}}})
	if e := <-end; e.What != pid1.Restart || e.Fault {
		t.Fatalf("the worker ends with %+v", e)
	}
	d.firmware()
	script := d.script(addr)
	h := d.comes("accepted", func(h *hardware.Hardware) bool { return h.Meta.Labels["maker"] == "acme" && h.Status.Workflow != "" })
	if !strings.Contains(script, h.Meta.Name) || !strings.Contains(script, "rackstrap.token=rs1.") {
		t.Errorf("its script is\n%s", script)
	}
	m, err := d.db.Machine(t.Context(), h.Meta.UID)
	must(t, err)
	if m.Boot.Next.Scope != hardware.ScopeWork {
		t.Errorf("it boots %+v", m.Boot.Next)
	}
	w, err := d.db.Workflow(t.Context(), h.Status.Workflow)
	must(t, err)
	if w.Spec.Template != "look" || w.Status.State != workflow.StatePending {
		t.Errorf("%+v", w.Spec)
	}
}
