package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/deploy/lab"
	"github.com/rackstrap/rackstrap/hardware"
)

// wire is the rack's cable: the DHCP client port of all machines, and connections from
// each machine's own address.
type wire struct {
	ns   *lab.Namespace
	dhcp net.PacketConn
	over chan struct{} // closed when nothing is received any more

	mu   sync.Mutex
	wait map[hardware.MAC]chan *dhcpv4.DHCPv4
}

// openWire listens on the client port. All machines share it: what is for one of them
// says so by its hardware address, and all replies are broadcast.
func openWire(ctx context.Context, ns *lab.Namespace) (*wire, error) {
	w := &wire{ns: ns, over: make(chan struct{}), wait: map[hardware.MAC]chan *dhcpv4.DHCPv4{}}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		cerr := c.Control(func(fd uintptr) {
			err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1), unix.BindToDevice(int(fd), lab.ClientIface))
		})
		return errors.Join(err, cerr)
	}}
	if err := ns.Do(func() (err error) {
		w.dhcp, err = config.ListenPacket(ctx, "udp4", "0.0.0.0:68")
		return err
	}); err != nil {
		return nil, err
	}
	go w.receive()
	return w, nil
}

func (w *wire) receive() {
	defer close(w.over)
	buf := make([]byte, 2048)
	for {
		n, _, err := w.dhcp.ReadFrom(buf)
		if err != nil {
			return // closed
		}
		p, err := dhcpv4.FromBytes(append([]byte(nil), buf[:n]...))
		if err != nil || p.OpCode != dhcpv4.OpcodeBootReply || len(p.ClientHWAddr) != 6 {
			continue
		}
		w.mu.Lock()
		c := w.wait[hardware.MAC(p.ClientHWAddr)]
		w.mu.Unlock()
		select {
		case c <- p: // a nil channel takes nothing
		default:
		}
	}
}

// listen gives what is sent to a machine from now on, until stop is called.
func (w *wire) listen(mac hardware.MAC) (replies <-chan *dhcpv4.DHCPv4, stop func()) {
	c := make(chan *dhcpv4.DHCPv4, 8)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wait[mac] = c
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.wait[mac] == c {
			delete(w.wait, mac)
		}
	}
}

func (w *wire) send(p *dhcpv4.DHCPv4) error {
	_, err := w.dhcp.WriteTo(p.ToBytes(), &net.UDPAddr{IP: net.IPv4bcast, Port: dhcpv4.ServerPort})
	return err
}

// dialTime bounds the making of a connection on a LAN.
const dialTime = 10 * time.Second

// dial connects from a machine's address to a literal one.
func (w *wire) dial(ctx context.Context, from netip.Addr, to string) (net.Conn, error) {
	if _, err := netip.ParseAddrPort(to); err != nil {
		return nil, fmt.Errorf("%q: a simulated machine looks up no names", to)
	}
	d := net.Dialer{Timeout: dialTime, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	var c net.Conn
	err := w.ns.Do(func() (err error) {
		c, err = d.DialContext(ctx, "tcp4", to)
		return err
	})
	return c, err
}

// transport is for HTTP from a machine's address. Nothing is kept open: a machine that
// restarts has no connections.
func (w *wire) transport(from netip.Addr) *http.Transport {
	return &http.Transport{
		DialContext:         func(ctx context.Context, _, to string) (net.Conn, error) { return w.dial(ctx, from, to) },
		TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: time.Minute,
		DisableCompression: true, DisableKeepAlives: true,
	}
}

// Close ends the DHCP client port.
func (w *wire) Close() error {
	err := w.dhcp.Close()
	<-w.over
	return err
}
