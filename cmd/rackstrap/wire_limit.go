package main

import (
	"net"
	"net/netip"
	"sync"
)

// Bounds on connections from the provisioning LAN. A machine needs two or three;
// several machines behind one address do not occur there.
const (
	maxConns        = 20_000
	maxConnsPerAddr = 64
)

// limitListener closes connections beyond the bounds at once, so that one stranger
// can use up neither our memory nor everybody's share.
type limitListener struct {
	*net.TCPListener
	mu    sync.Mutex
	total int
	from  map[netip.Addr]int
}

func listenLimited(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &limitListener{TCPListener: l.(*net.TCPListener), from: map[netip.Addr]int{}}, nil
}

// Accept returns the next connection within the bounds.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		a := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		if l.take(a) {
			return &limitedConn{TCPConn: c, release: sync.OnceFunc(func() { l.give(a) })}, nil
		}
		_ = c.Close()
	}
}

func (l *limitListener) take(a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= maxConns || l.from[a] >= maxConnsPerAddr {
		return false
	}
	l.total++
	l.from[a]++
	return true
}

func (l *limitListener) give(a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.from[a]--; l.from[a] == 0 {
		delete(l.from, a)
	}
}

// limitedConn embeds the TCP connection itself, so that net/http still finds its
// ReadFrom and sends files by sendfile(2).
type limitedConn struct {
	*net.TCPConn
	release func()
}

// Close ends the connection and gives its place back.
func (c *limitedConn) Close() error {
	c.release()
	return c.TCPConn.Close()
}
