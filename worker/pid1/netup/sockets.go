package netup

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"
)

// packetConn is a raw connection: a client without an address can use nothing else.
type packetConn struct {
	file *os.File
	mac  net.HardwareAddr
}

func openPacket(nic net.Interface) (conn, error) {
	proto := uint16(unix.ETH_P_IP)
	proto = proto<<8 | proto>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(proto))
	if err != nil {
		return nil, fmt.Errorf("%s: packet socket: %w", nic.Name, err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: nic.Index}); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("%s: packet socket: bind: %w", nic.Name, err)
	}
	return &packetConn{os.NewFile(uintptr(fd), "packet:"+nic.Name), nic.HardwareAddr}, nil
}

func (c *packetConn) Send(p *dhcpv4.DHCPv4) error {
	_, err := c.file.Write(frame(c.mac, p.ToBytes()))
	return err
}

func (c *packetConn) Receive(deadline time.Time) (*dhcpv4.DHCPv4, error) {
	if err := c.file.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	buf := make([]byte, 10<<10)
	for {
		n, err := c.file.Read(buf)
		if err != nil {
			return nil, err
		}
		if b, _, ok := payload(buf[:n]); ok {
			if p, err := dhcpv4.FromBytes(b); err == nil {
				return p, nil
			}
		}
	}
}

func (c *packetConn) Close() error { return c.file.Close() }

// udpConn is a plain connection from the leased address to its server.
type udpConn struct{ *net.UDPConn }

func openUDP(from, server netip.Addr) (conn, error) {
	c, err := net.DialUDP("udp4",
		net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, clientPort)),
		net.UDPAddrFromAddrPort(netip.AddrPortFrom(server, serverPort)))
	if err != nil {
		return nil, err
	}
	return udpConn{c}, nil
}

func (c udpConn) Send(p *dhcpv4.DHCPv4) error {
	_, err := c.Write(p.ToBytes())
	return err
}

func (c udpConn) Receive(deadline time.Time) (*dhcpv4.DHCPv4, error) {
	if err := c.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	buf := make([]byte, 10<<10)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return nil, err
		}
		if p, err := dhcpv4.FromBytes(buf[:n]); err == nil {
			return p, nil
		}
	}
}
