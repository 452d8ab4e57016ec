package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rackstrap/rackstrap/hardware"
)

var errInUse = errors.New("in use")

const (
	// maxPacket is the largest request that is read; longer ones are cut and then
	// refused as malformed.
	maxPacket = 2048
	// receiveBuffer holds the packets of a rack that is powered on at once: the
	// kernel's default of 208 KiB loses them, and each loss costs a client seconds.
	receiveBuffer = 8 << 20
	// reopenEvery is how often an interface that went away is looked for, should
	// the kernel's notice have been missed.
	reopenEvery = 5 * time.Second
)

// port is one UDP port of one interface that we answer on, with its socket.
type port struct {
	s      *Server
	name   string        // of the interface
	number uint16        // ServerPort or ProxyPort
	kick   chan struct{} // capacity 1: the interface changed

	mu       sync.Mutex
	conn     *net.UDPConn // nil while the interface is away
	index    int
	mac      hardware.MAC
	networks []netip.Prefix

	up     bool          // it has a link
	look   chan struct{} // capacity 1: search for other servers now
	rivals rivals        // guarded by Server.rivalMu
}

func newPort(s *Server, name string, number uint16) *port {
	return &port{s: s, name: name, number: number, kick: make(chan struct{}, 1), look: make(chan struct{}, 1)}
}

// open binds the interface's socket and reads its addresses.
func (p *port) open(ctx context.Context) error {
	return p.s.In(func() error {
		index, mac, networks, err := lookup(p.name)
		if err != nil {
			return err
		}
		conn, err := listen(ctx, p.name, p.number)
		if err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.conn, p.index, p.mac, p.networks = conn, index, mac, networks
		p.s.rivalMu.Lock()
		defer p.s.rivalMu.Unlock()
		p.rivals = rivals{} // it may be another link now
		p.up = hasLink(p.name)
		wake(p.look)
		return nil
	})
}

// Interface finds an Ethernet interface. The error says which ones there are.
func Interface(name string) (*net.Interface, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("interface %s: does not exist (there are: %s)", name, interfaceNames())
	}
	if len(ifi.HardwareAddr) != 6 {
		return nil, fmt.Errorf("interface %s: is not Ethernet (name the NIC or bridge of the provisioning network)", name)
	}
	return ifi, nil
}

// lookup reads an interface's index, Ethernet and IPv4 addresses.
func lookup(name string) (int, hardware.MAC, []netip.Prefix, error) {
	ifi, err := Interface(name)
	if err != nil {
		return 0, hardware.MAC{}, nil, err
	}
	addrs, err := ifi.Addrs()
	if err != nil {
		return 0, hardware.MAC{}, nil, fmt.Errorf("interface %s: %w", name, err)
	}
	var out []netip.Prefix
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
			ones, _ := n.Mask.Size()
			ip, _ := netip.AddrFromSlice(n.IP.To4())
			out = append(out, netip.PrefixFrom(ip, ones))
		}
	}
	return ifi.Index, hardware.MAC(ifi.HardwareAddr), out, nil
}

// listen opens a port on one interface. Bound to the device it hears
// broadcasts and what is sent to any of our addresses there, and leaves the port
// on other interfaces to others.
func listen(ctx context.Context, name string, number uint16) (*net.UDPConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, rc syscall.RawConn) error {
		var err error
		cerr := rc.Control(func(fd uintptr) { err = setOptions(int(fd), name) })
		return errors.Join(cerr, err)
	}}
	pc, err := lc.ListenPacket(ctx, "udp4", fmt.Sprintf("0.0.0.0:%d", number))
	switch {
	case err == nil:
		return pc.(*net.UDPConn), nil
	case errors.Is(err, unix.EADDRINUSE):
		return nil, fmt.Errorf("UDP port %d on %s: %w by %s (stop it, or leave %s out of interfaces)", number, name, errInUse, portOwner(number), name)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return nil, fmt.Errorf("UDP port %d on %s: not permitted (run as root, or with CAP_NET_BIND_SERVICE, CAP_NET_RAW and CAP_NET_ADMIN)", number, name)
	}
	return nil, fmt.Errorf("UDP port %d on %s: %w", number, name, err)
}

func setOptions(fd int, name string) error {
	if err := unix.BindToDevice(fd, name); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
		return err
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		// Without CAP_NET_ADMIN as much as net.core.rmem_max gives.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
}

// run reads packets until ctx ends, and opens the socket again whenever the
// interface was taken away and came back.
func (p *port) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, p.close)
	defer stop()
	for ctx.Err() == nil {
		if conn := p.current(); conn != nil {
			err := p.read(ctx, conn)
			p.close()
			if ctx.Err() != nil {
				return
			}
			p.s.Log.Warn("dhcp interface lost", "interface", p.name, "port", p.number, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.kick:
		case <-time.After(reopenEvery):
		}
		if err := p.open(ctx); err != nil {
			p.s.Log.Debug("dhcp interface still away", "interface", p.name, "port", p.number, "error", err)
			continue
		}
		p.s.Log.Info("dhcp interface is back", "interface", p.name, "port", p.number)
	}
	p.close()
}

func (p *port) read(ctx context.Context, conn *net.UDPConn) error {
	oob := make([]byte, 128)
	for {
		j := p.s.jobs.Get().(*job)
		n, oobn, _, from, err := conn.ReadMsgUDPAddrPort(j.buf[:], oob)
		if err != nil {
			// A down interface reports itself once per socket and works again when up.
			if errors.Is(err, unix.ENETDOWN) {
				continue
			}
			return err
		}
		j.n, j.port = n, p
		j.link = Link{
			Networks: p.addresses(), Source: from.Addr().Unmap(), SourcePort: from.Port(), Dest: packetDest(oob[:oobn]),
			ProxyPort: p.number == ProxyPort, RouteSource: p.routeSource,
		}
		p.s.enqueue(j)
	}
}

// packetDest finds the destination address in the control message of IP_PKTINFO.
func packetDest(oob []byte) netip.Addr {
	for len(oob) > 0 {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			break
		}
		// struct in_pktinfo: interface index, local address, header destination.
		if h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo {
			return netip.AddrFrom4([4]byte(data[8:12]))
		}
		oob = rest
	}
	return netip.Addr{}
}

// send gives a reply to the kernel: as a frame where the client cannot answer
// ARP, else as a datagram from the address the client knows us by.
func (p *port) send(d Destination, from netip.Addr, payload []byte) error {
	p.mu.Lock()
	conn, index := p.conn, p.index
	p.mu.Unlock()
	if !d.MAC.IsZero() {
		return p.s.tx.Send(index, unix.ETH_P_IP, d.MAC, frame(netip.AddrPortFrom(from, p.number), d.To, payload))
	}
	if conn == nil {
		return fmt.Errorf("interface %s is away", p.name)
	}
	var oob []byte
	if (Link{Networks: p.addresses()}).has(from) {
		oob = unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: from.As4()})
	}
	_, _, err := conn.WriteMsgUDPAddrPort(payload, oob, d.To)
	return err
}

// routeSource asks the kernel which address of ours packets to a host carry.
func (p *port) routeSource(to netip.Addr) (a netip.Addr) {
	_ = p.s.In(func() error {
		c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, ServerPort)))
		if err != nil {
			return err
		}
		defer c.Close()
		a = c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
		return nil
	})
	return a
}

func (p *port) current() *net.UDPConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn
}

func (p *port) addresses() []netip.Prefix {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.networks
}

// hardware is the interface's index and Ethernet address.
func (p *port) hardware() (int, hardware.MAC) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.index, p.mac
}

// close ends the socket, and with it a read that waits.
func (p *port) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		_ = p.conn.Close()
		p.conn = nil
	}
}

func hasLink(name string) bool {
	ifi, err := net.InterfaceByName(name)
	return err == nil && ifi.Flags&net.FlagRunning != 0
}

// wake puts a notice into a channel of capacity 1.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// refresh takes over new addresses, and ends the socket of an interface that was
// removed or replaced: it stays bound to the old one for ever.
func (p *port) refresh() {
	changed := false
	_ = p.s.In(func() error {
		index, mac, networks, err := lookup(p.name)
		up := hasLink(p.name)
		p.mu.Lock()
		defer p.mu.Unlock()
		changed = (up && !p.up) || !slices.Equal(networks, p.networks)
		p.up = up
		if err != nil || index != p.index {
			if p.conn != nil {
				_ = p.conn.Close() // run notices
			}
		} else {
			p.mac, p.networks = mac, networks
		}
		return nil
	})
	wake(p.kick)
	if changed { // other servers may be there now
		wake(p.look)
	}
}
