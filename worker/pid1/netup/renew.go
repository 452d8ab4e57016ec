package netup

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// errLost: the lease is over; the address must not be used any more.
var errLost = errors.New("dhcp: the lease ended")

// Extend renews the lease once, beginning when it is due: from T1 on it asks the
// server that gave it, from T2 on anybody (RFC 2131 section 4.4.5). It returns the
// new lease; errLost when a server says no or the lease runs out; or ctx's error.
func (c *client) Extend(ctx context.Context, l Lease) (Lease, error) {
	start := time.Now()
	if err := c.sleep(ctx, l.Renew); err != nil {
		return Lease{}, err
	}
	said := false
	for {
		passed := time.Since(start)
		if passed >= l.Expire {
			return Lease{}, errLost
		}
		next, err := c.extendOnce(ctx, l, passed < l.Rebind && l.Server.IsValid())
		switch {
		case ctx.Err() != nil:
			return Lease{}, ctx.Err()
		case errors.Is(err, errNAK):
			return Lease{}, errLost
		case err == nil:
			return next, nil
		}
		if !said {
			said = true
			c.say("%s: the lease of %v could not be renewed yet (%v); it ends in %v", c.name, l.Addr.Addr(), err, (l.Expire - passed).Round(time.Second))
		}
		// Half of what is left until the next deadline, at least a minute.
		left := l.Expire - passed
		if passed < l.Rebind {
			left = l.Rebind - passed
		}
		if err := c.sleep(ctx, min(max(left/2, time.Minute), left)); err != nil {
			return Lease{}, err
		}
	}
}

func (c *client) extendOnce(ctx context.Context, l Lease, server bool) (Lease, error) {
	open := c.broadcast
	if server {
		open = func() (conn, error) { return c.unicast(l.Addr.Addr(), l.Server) }
	}
	cn, err := open()
	if err != nil {
		return Lease{}, err
	}
	defer cn.Close()
	req, err := renewal(c.mac, l.Addr.Addr(), !server)
	if err != nil {
		return Lease{}, err
	}
	return c.request(ctx, cn, req)
}

// renewal is the REQUEST of a client that has an address: ciaddr filled, neither
// server identifier nor requested address (RFC 2131 section 4.3.2).
func renewal(mac net.HardwareAddr, addr netip.Addr, broadcast bool) (*dhcpv4.DHCPv4, error) {
	return dhcpv4.New(
		dhcpv4.WithHwAddr(mac), dhcpv4.WithClientIP(addr.AsSlice()), dhcpv4.WithBroadcast(broadcast),
		dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest), wanted())
}

func (c *client) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
