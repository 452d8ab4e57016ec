package main

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"

	"github.com/rackstrap/rackstrap/api/rest"
)

// Bounds on connections. On the provisioning LAN a machine needs two or three, and
// several machines behind one address do not occur. A whole office comes to HTTPS from
// one address, that of its proxy or NAT: there the connections of callers with a good
// token or session have a share of their own, which no stranger behind that address can
// use up. One costs some 50 KB.
const (
	maxConns        = 20_000
	maxConnsPerAddr = 64
	// maxHTTPSPerAddr is what may come from an address to HTTPS without having shown a
	// token yet: a page needs a moment until it does.
	maxHTTPSPerAddr  = 256
	maxSignedPerAddr = 1024
)

// limitListener closes connections beyond the bounds at once, so that one stranger
// can use up neither our memory nor everybody's share.
type limitListener struct {
	*net.TCPListener
	most int // strangers of one address

	mu    sync.Mutex
	total int
	from  map[netip.Addr]share
}

// share is what one address has.
type share struct{ strangers, signed int }

func listenLimited(addr string, most int) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &limitListener{TCPListener: l.(*net.TCPListener), most: most, from: map[netip.Addr]share{}}, nil
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
			return &limitedConn{TCPConn: c, l: l, from: a}, nil
		}
		_ = c.Close()
	}
}

func (l *limitListener) take(a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.from[a]
	if l.total >= maxConns || s.strangers >= l.most {
		return false
	}
	l.total++
	s.strangers++
	l.from[a] = s
	return true
}

// limitedConn embeds the TCP connection itself, so that net/http still finds its
// ReadFrom and sends files by sendfile(2).
type limitedConn struct {
	*net.TCPConn
	l    *limitListener
	from netip.Addr
	// signed and closed are guarded by l.mu.
	signed, closed bool
}

// Close ends the connection and gives its place back.
func (c *limitedConn) Close() error {
	c.release()
	return c.TCPConn.Close()
}

func (c *limitedConn) release() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	c.l.total--
	s := c.l.from[c.from]
	if c.signed {
		s.signed--
	} else {
		s.strangers--
	}
	if c.l.from[c.from] = s; s == (share{}) {
		delete(c.l.from, c.from)
	}
}

// signIn takes the connection out of its address's strangers: its caller is known.
func (c *limitedConn) signIn() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	s := c.l.from[c.from]
	if c.closed || c.signed || s.signed >= maxSignedPerAddr {
		return
	}
	c.signed = true
	s.strangers--
	s.signed++
	c.l.from[c.from] = s
}

// knowing has the API tell the connection of a request when its caller is known.
func knowing(ctx context.Context, c net.Conn) context.Context {
	t, ok := c.(*tls.Conn)
	if !ok {
		return ctx
	}
	limited, ok := t.NetConn().(*limitedConn)
	if !ok {
		return ctx
	}
	return rest.OnCaller(ctx, limited.signIn)
}
