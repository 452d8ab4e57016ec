package netup

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// server is a DHCP server that answers by a function; nil is silence.
type server struct {
	answer  func(n int, p *dhcpv4.DHCPv4) *dhcpv4.DHCPv4
	got     []*dhcpv4.DHCPv4
	pending *dhcpv4.DHCPv4
	unicast bool
}

func (s *server) Send(p *dhcpv4.DHCPv4) error {
	s.got = append(s.got, p)
	s.pending = s.answer(len(s.got), p)
	return nil
}

func (s *server) Receive(deadline time.Time) (*dhcpv4.DHCPv4, error) {
	if p := s.pending; p != nil {
		s.pending = nil
		return p, nil
	}
	time.Sleep(time.Until(deadline)) // in the bubble's own time
	return nil, os.ErrDeadlineExceeded
}

func (s *server) Close() error { return nil }

// reply answers a DISCOVER with an offer, anything else with t.
func reply(p *dhcpv4.DHCPv4, t dhcpv4.MessageType) *dhcpv4.DHCPv4 {
	if p.MessageType() == dhcpv4.MessageTypeDiscover {
		t = dhcpv4.MessageTypeOffer
	}
	r, err := dhcpv4.NewReplyFromRequest(p, dhcpv4.WithMessageType(t), dhcpv4.WithYourIP(net.IPv4(10, 0, 0, 9)),
		dhcpv4.WithNetmask(net.CIDRMask(24, 32)), dhcpv4.WithLeaseTime(3600),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 0, 0, 1))))
	if err != nil {
		panic(err)
	}
	return r
}

func newClient(s *server, carrier chan struct{}) (*client, *[]string) {
	var said []string
	return &client{
		name: "eth0", mac: testMAC, carrier: carrier,
		say:       func(f string, _ ...any) { said = append(said, f) },
		broadcast: func() (conn, error) { s.unicast = false; return s, nil },
		unicast:   func(_, _ netip.Addr) (conn, error) { s.unicast = true; return s, nil },
	}, &said
}

func TestAcquireAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(_ int, p *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 { return reply(p, dhcpv4.MessageTypeAck) }}
		c, said := newClient(s, nil)
		start := time.Now()
		l, err := c.Acquire(t.Context())
		if err != nil || l.Addr.String() != "10.0.0.9/24" || time.Since(start) != 0 || len(*said) != 0 {
			t.Errorf("%v after %v, %v, said %v", l, time.Since(start), err, *said)
		}
		req := s.got[1]
		if req.RequestedIPAddress().String() != "10.0.0.9" || req.ServerIdentifier().String() != "10.0.0.1" || req.TransactionID != s.got[0].TransactionID {
			t.Errorf("the request is %s", req.Summary())
		}
	})
}

// TestAcquireThroughSpanningTree: nothing is heard for 50 s, then everything works.
func TestAcquireThroughSpanningTree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &server{answer: func(_ int, p *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
			if time.Since(start) < 50*time.Second {
				return nil
			}
			return reply(p, dhcpv4.MessageTypeAck)
		}}
		c, said := newClient(s, nil)
		if _, err := c.Acquire(t.Context()); err != nil || time.Since(start) > 60*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if len(*said) == 0 || !strings.Contains((*said)[0], "spanning tree") {
			t.Errorf("the console says %v", *said)
		}
	})
}

func TestAcquireAsksAgainWhenTheCarrierComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		carrier := make(chan struct{}, 1)
		var up atomic.Bool
		s := &server{answer: func(_ int, p *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
			if !up.Load() {
				return nil
			}
			return reply(p, dhcpv4.MessageTypeAck)
		}}
		c, _ := newClient(s, carrier)
		start := time.Now()
		time.AfterFunc(40*time.Second, func() { up.Store(true); carrier <- struct{}{} })
		if _, err := c.Acquire(t.Context()); err != nil || time.Since(start) > 41*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestAcquireSurvivesNAKAndStrangers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(n int, p *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
			switch n {
			case 1: // somebody else's
				r := reply(p, dhcpv4.MessageTypeAck)
				r.TransactionID[0]++
				return r
			case 3:
				return reply(p, dhcpv4.MessageTypeNak)
			}
			return reply(p, dhcpv4.MessageTypeAck)
		}}
		c, said := newClient(s, nil)
		if _, err := c.Acquire(t.Context()); err != nil || len(s.got) != 5 {
			t.Errorf("after %d packets: %v; said %v", len(s.got), err, *said)
		}
	})
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(int, *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 { return nil }}
		c, _ := newClient(s, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := c.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		if n := len(s.got); n < 100 || n > 200 {
			t.Errorf("%d packets in an hour", n)
		}
	})
}

func TestExtend(t *testing.T) {
	t.Parallel()
	lease := Lease{
		Addr: netip.MustParsePrefix("10.0.0.9/24"), Server: netip.MustParseAddr("10.0.0.1"),
		Renew: 30 * time.Minute, Rebind: 50 * time.Minute, Expire: time.Hour,
	}
	tests := []struct {
		name   string
		answer func(s *server, since time.Duration, p *dhcpv4.DHCPv4) *dhcpv4.DHCPv4
		err    error
		from   time.Duration
		to     time.Duration
	}{
		{"at T1 by its server", func(s *server, _ time.Duration, p *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
			if !s.unicast || p.ClientIPAddr.String() != "10.0.0.9" || p.ServerIdentifier() != nil || p.RequestedIPAddress() != nil {
				return nil
			}
			return reply(p, dhcpv4.MessageTypeAck)
		}, nil, 30 * time.Minute, 30 * time.Minute},
		{"after T2 by another", func(s *server, _ time.Duration, p *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
			if s.unicast {
				return nil
			}
			return reply(p, dhcpv4.MessageTypeAck)
		}, nil, 50 * time.Minute, 55 * time.Minute},
		{"refused", func(_ *server, _ time.Duration, p *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
			return reply(p, dhcpv4.MessageTypeNak)
		}, errLost, 30 * time.Minute, 30 * time.Minute},
		{"never", func(*server, time.Duration, *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 { return nil }, errLost, time.Hour, time.Hour + time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				s := &server{}
				s.answer = func(_ int, p *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 { return tt.answer(s, time.Since(start), p) }
				c, _ := newClient(s, nil)
				_, err := c.Extend(t.Context(), lease)
				if took := time.Since(start); !errors.Is(err, tt.err) || took < tt.from || took > tt.to {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}
