package netup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// conn carries DHCP messages of one network card.
type conn interface {
	Send(p *dhcpv4.DHCPv4) error
	// Receive returns the next message, or os.ErrDeadlineExceeded at the deadline.
	Receive(deadline time.Time) (*dhcpv4.DHCPv4, error)
	Close() error
}

// client is a DHCPv4 client for one network card (RFC 2131 section 4.4).
type client struct {
	name string
	mac  net.HardwareAddr
	// carrier wakes the client when the link came up: what was sent before is lost.
	carrier <-chan struct{}
	say     func(format string, args ...any)
	// broadcast opens a connection for a client without an address, unicast one
	// from that address to the server.
	broadcast func() (conn, error)
	unicast   func(from, server netip.Addr) (conn, error)
}

// Retransmission: 1 s, doubled up to 8 s, and after two minutes each half a minute. A
// switch with spanning tree forwards nothing for 30 to 50 s after link up, so giving up
// early would be wrong, and asking rarely in that time would cost as long again.
const (
	firstWait = time.Second
	earlyWait = 8 * time.Second
	early     = 18 // attempts
	maxWait   = 30 * time.Second
)

// wait is how long to wait for an answer in the given attempt (from 0). r, 0 to 1,
// spreads machines that were switched on together.
func wait(attempt int, r float64) time.Duration {
	d := maxWait
	if attempt < early {
		d = min(firstWait<<min(attempt, 8), earlyWait)
	}
	return d - d/8 + time.Duration(r*float64(d)/4)
}

// patience is the attempt from which on the console says what it waits for.
const patience = 3

// Acquire asks until a server gives an address or ctx ends; then it returns ctx's
// error. It never gives up by itself.
func (c *client) Acquire(ctx context.Context) (Lease, error) {
	cn, err := c.broadcast()
	if err != nil {
		return Lease{}, err
	}
	defer cn.Close()
	start := time.Now()
	for attempt := 0; ; attempt++ {
		if attempt >= patience {
			c.say("%s: no DHCP server has answered for %v; asking again (a switch port with spanning tree takes up to 50 s)",
				c.name, time.Since(start).Round(time.Second))
		}
		again := false
		offer, err := c.ask(ctx, cn, discover(c.mac, time.Since(start)), wait(attempt, rand.Float64()), &again, dhcpv4.MessageTypeOffer)
		if again {
			attempt = -1
		}
		if ctx.Err() != nil {
			return Lease{}, ctx.Err()
		}
		if err != nil || offer == nil {
			continue
		}
		l, err := c.confirm(ctx, cn, offer)
		if err == nil {
			return l, nil
		}
		if ctx.Err() != nil {
			return Lease{}, ctx.Err()
		}
		c.say("%s: %v; asking again", c.name, err)
		if err := c.pause(ctx, wait(attempt, rand.Float64())); err != nil {
			return Lease{}, err
		}
	}
}

var (
	errNAK    = errors.New("dhcp: the server took its offer back")
	errSilent = errors.New("dhcp: the server offered an address and did not confirm it")
)

// confirm takes an offer up.
func (c *client) confirm(ctx context.Context, cn conn, offer *dhcpv4.DHCPv4) (Lease, error) {
	req, err := dhcpv4.NewRequestFromOffer(offer, wanted(), dhcpv4.WithBroadcast(true))
	if err != nil {
		return Lease{}, fmt.Errorf("dhcp: %w", err)
	}
	return c.request(ctx, cn, req)
}

// request asks for one address, three times. It returns errNAK when a server says
// no, errSilent when none answers, or ctx's error.
func (c *client) request(ctx context.Context, cn conn, req *dhcpv4.DHCPv4) (Lease, error) {
	for attempt := range 3 {
		ack, err := c.ask(ctx, cn, req, wait(attempt, rand.Float64()), nil, dhcpv4.MessageTypeAck, dhcpv4.MessageTypeNak)
		switch {
		case ctx.Err() != nil:
			return Lease{}, ctx.Err()
		case err != nil || ack == nil:
		case ack.MessageType() == dhcpv4.MessageTypeNak:
			return Lease{}, errNAK
		default:
			return parseLease(ack)
		}
	}
	return Lease{}, errSilent
}

// ask sends one message and waits for an answer of one of the types. It returns nil
// when none came in time, or when the carrier came up meanwhile (*again is then true).
func (c *client) ask(ctx context.Context, cn conn, p *dhcpv4.DHCPv4, limit time.Duration, again *bool, types ...dhcpv4.MessageType) (*dhcpv4.DHCPv4, error) {
	end := time.Now().Add(limit)
	if err := cn.Send(p); err != nil {
		// A card that is just coming up refuses; that passes.
		return nil, errors.Join(err, c.pause(ctx, limit))
	}
	for {
		// Short slices, so that the end of ctx and the carrier are noticed.
		slice := time.Now().Add(100 * time.Millisecond)
		if slice.After(end) {
			slice = end
		}
		got, err := cn.Receive(slice)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err != nil:
			return nil, errors.Join(err, c.pause(ctx, time.Until(end)))
		case c.answers(got, p, types):
			return got, nil
		}
		if !time.Now().Before(end) {
			return nil, nil
		}
		if again == nil {
			continue
		}
		select {
		case <-c.carrier:
			*again = true
			return nil, nil
		default:
		}
	}
}

func (c *client) answers(got, asked *dhcpv4.DHCPv4, types []dhcpv4.MessageType) bool {
	if got == nil || got.OpCode != dhcpv4.OpcodeBootReply || got.TransactionID != asked.TransactionID ||
		got.ClientHWAddr.String() != c.mac.String() {
		return false
	}
	for _, t := range types {
		if got.MessageType() == t {
			return t != dhcpv4.MessageTypeOffer || (got.YourIPAddr != nil && !got.YourIPAddr.IsUnspecified())
		}
	}
	return false
}

func (c *client) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.carrier:
	case <-t.C:
	}
	return nil
}

// discover asks for any address. It carries no architecture and no class: the
// server must not take it for a firmware that starts a new boot.
func discover(mac net.HardwareAddr, since time.Duration) *dhcpv4.DHCPv4 {
	p, err := dhcpv4.NewDiscovery(mac, wanted(), dhcpv4.WithBroadcast(true))
	if err != nil {
		// Only the random source can fail, and since Go 1.24 it does not.
		panic("netup: " + err.Error())
	}
	p.NumSeconds = uint16(min(since/time.Second, 0xffff))
	return p
}

// wanted is option 55, what the worker can use.
func wanted() dhcpv4.Modifier {
	return dhcpv4.WithRequestedOptions(
		dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionDomainNameServer, dhcpv4.OptionDomainName,
		dhcpv4.OptionInterfaceMTU, dhcpv4.OptionIPAddressLeaseTime, dhcpv4.OptionServerIdentifier,
		dhcpv4.OptionRenewTimeValue, dhcpv4.OptionRebindingTimeValue, dhcpv4.OptionDNSDomainSearchList,
		dhcpv4.OptionClasslessStaticRoute)
}
