package ndp_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/dhcp"
	"github.com/rackstrap/rackstrap/dhcp/ndp"
	"github.com/rackstrap/rackstrap/hardware"
)

const (
	patience = 20 * time.Second
	// retry is how long a machine waits before it solicits again.
	retry = 250 * time.Millisecond
)

var (
	machineMAC = hardware.MAC{0x52, 0x54, 0x00, 0xde, 0x40, 0x01}
	machineLL  = netip.MustParseAddr("fe80::5054:ff:fede:4001")
	// What iPXE with that MAC sends, and the same of a machine whose MAC ends in 2.
	solicitation = unhex(`6000000000103afffe80000000000000505400fffede4001ff020000000000000000000000000002850058c7000000000101525400de4001`)
	stranger     = unhex(`6000000000103afffe80000000000000505400fffede4002ff020000000000000000000000000002850058c5000000000101525400de4002`)
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// ledger says who boots, and remembers who was asked for.
type ledger struct{ asked chan hardware.MAC }

func (l ledger) Booting(m hardware.MAC) bool {
	l.asked <- m
	return m == machineMAC
}

// host sends solicitations as iPXE does, and hears advertisements.
type host struct {
	t      *testing.T
	client *lab.Client
	socket *dhcp.PacketSocket
	index  int
	heard  chan []byte
}

func newHost(t *testing.T, l *lab.Lab, name string, mac hardware.MAC) *host {
	t.Helper()
	c, err := l.AddVeth(t.Context(), name, net.HardwareAddr(mac[:]))
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, client: c, heard: make(chan []byte, 100)}
	err = c.Do(func() error {
		ifi, err := dhcp.Interface(lab.ClientIface)
		if err != nil {
			return err
		}
		h.index = ifi.Index
		if h.socket, err = dhcp.OpenPacket(func(f func() error) error { return f() }); err != nil {
			return err
		}
		return h.socket.Hear(h.index, unix.ETH_P_IPV6, hardware.MAC{0x33, 0x33, 5: 1}, []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 40},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 134, Jf: 1},
			{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 16},
			{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = h.socket.Close(); wg.Wait() })
	wg.Go(func() {
		buf := make([]byte, 2048)
		for {
			n, _, err := h.socket.Receive(buf)
			if err != nil {
				return
			}
			h.heard <- bytes.Clone(buf[:n])
		}
	})
	return h
}

func (h *host) solicit(packet []byte) {
	h.t.Helper()
	if err := h.socket.Send(h.index, unix.ETH_P_IPV6, hardware.MAC{0x33, 0x33, 5: 2}, packet); err != nil {
		h.t.Fatal(err)
	}
}

// answer solicits until there is an answer.
func (h *host) answer(packet []byte) []byte {
	h.t.Helper()
	end := time.After(patience)
	for {
		h.solicit(packet)
		select {
		case b := <-h.heard:
			return b
		case <-time.After(retry):
		case <-end:
			h.t.Fatal("no advertisement came")
		}
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	lab.Require(t, "sysctl")
	l, err := lab.New(t.Context(), lab.Options{Name: "ndp"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	booting := ledger{asked: make(chan hardware.MAC, 1000)}
	reg := prometheus.NewRegistry()
	s, err := ndp.New(ndp.Config{Interfaces: []string{l.Bridge()}, Booting: booting, Metrics: ndp.NewMetrics(reg), In: l.Do})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-result; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	select {
	case <-s.Ready():
	case err := <-result:
		result <- nil
		t.Fatalf("Run: %v", err)
	}
	ours := func(args ...string) {
		t.Helper()
		if out, err := l.Command(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}

	m, x := newHost(t, l, "m", machineMAC), newHost(t, l, "x", hardware.MAC{0x52, 0x54, 0, 0xde, 0x40, 2})
	x.solicit(stranger)
	for mac := range booting.asked {
		if mac == x.mac() {
			break
		}
	}
	got := m.answer(solicitation)
	from := netip.AddrFrom16([16]byte(got[8:24]))
	if want := ndp.Advertise(from, machineLL); !from.IsLinkLocalUnicast() || !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	if len(x.heard) > 0 {
		t.Errorf("another host hears %x", <-x.heard)
	}
	if n := outcomes(t, reg)["not-booting"]; n == 0 {
		t.Error("the stranger was not counted")
	}
	// A Linux that hears it takes neither router nor address from it.
	out, err := exec.CommandContext(t.Context(), "ip", "-n", m.client.Name(), "-6", "route", "show", "default").Output()
	if err != nil || len(strings.TrimSpace(string(out))) > 0 {
		t.Errorf("the client routes by %q, %v", out, err)
	}

	ours("sysctl", "-qw", "net.ipv6.conf."+l.Bridge()+".disable_ipv6=1")
	var mac net.HardwareAddr
	if err := l.Do(func() error {
		ifi, err := net.InterfaceByName(l.Bridge())
		if err == nil {
			mac = ifi.HardwareAddr
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	eui := netip.AddrFrom16([16]byte{0xfe, 0x80, 8: mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]})
	got = m.answer(solicitation)
	if want := ndp.Advertise(eui, machineLL); !bytes.Equal(got, want) {
		t.Errorf("without IPv6\ngot  %x\nwant %x", got, want)
	}

	ours("ip", "link", "set", l.Bridge(), "down")
	ours("ip", "link", "set", l.Bridge(), "up")
	m.answer(solicitation)
	ours("ip", "link", "del", l.Bridge())
	ours("ip", "link", "add", l.Bridge(), "type", "bridge", "forward_delay", "0")
	ours("ip", "link", "set", l.Bridge(), "up")
	ours("ip", "link", "set", "veth0", "master", l.Bridge(), "up")
	for len(m.heard) > 0 {
		<-m.heard
	}
	m.answer(solicitation)
}

func (h *host) mac() hardware.MAC { return hardware.MAC(h.client.MAC) }

func outcomes(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		out[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	return out
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	lab.Require(t)
	l, err := lab.New(t.Context(), lab.Options{Name: "ndpno"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := ndp.New(ndp.Config{Interfaces: []string{"eth9"}, Booting: ledger{}, Metrics: ndp.NewMetrics(prometheus.NewRegistry()), In: l.Do})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "does not exist (there are: br0") {
		t.Errorf("Run says %v", err)
	}
}
