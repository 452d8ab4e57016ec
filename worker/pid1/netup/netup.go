package netup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
	"golang.org/x/sys/unix"
)

// Network brings one network card up and keeps it up.
type Network struct {
	// MAC is the card that the machine booted from. Zero: all cards are tried, and
	// the first one with a lease is used.
	MAC hardware.MAC
	// Say prints a line on the console.
	Say func(format string, args ...any)
	// Resolver is told of name servers and search domains.
	Resolver func(servers, search []string) error

	once  sync.Once
	ready chan Lease
}

// How long the machine may be without a card or without an address. After that a
// restart is the better try: the firmware may have woken the card differently, and
// the boot token has died anyway (hardware.BootDeadline).
const (
	cardLimit  = 3 * time.Minute
	leaseLimit = hardware.BootDeadline
)

// Ready delivers the first lease, once.
func (n *Network) Ready() <-chan Lease {
	n.once.Do(func() { n.ready = make(chan Lease, 1) })
	return n.ready
}

// Loopback brings lo up; the kernel gives it 127.0.0.1.
func Loopback() error {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	return do(linkUp(lo.Index, 0))
}

// leased is what a card's goroutine found.
type leased struct {
	card  *card
	lease Lease
	err   error
}

// card is one network card that is being brought up.
type card struct {
	net.Interface
	carrier chan struct{}
	running bool
	stop    context.CancelFunc
}

// Run brings the network up and renews the lease until ctx is done; then it
// returns nil. It returns an error with the remedy when no card, or no lease, came
// in time.
func (n *Network) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	changed := make(chan struct{}, 1)
	watch := make(chan error, 1)
	wg.Go(func() {
		watch <- watchLinks(ctx, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	})
	cards := map[int]*card{}
	won := make(chan leased)
	noCard, noLease := time.NewTimer(cardLimit), time.NewTimer(leaseLimit)
	defer noCard.Stop()
	defer noLease.Stop()
	remind := time.NewTicker(15 * time.Second)
	defer remind.Stop()
	var up bool
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-watch:
			if ctx.Err() == nil {
				return err
			}
		case <-changed:
			for _, c := range n.look(cards, up) {
				cctx, stop := context.WithCancel(ctx)
				c.stop = stop
				wg.Go(func() { n.keep(cctx, c, won) })
			}
		case l := <-won:
			switch {
			case l.err != nil && n.MAC.IsZero():
				// Another card may do.
				n.Say("%v", l.err)
				continue
			case l.err != nil:
				return l.err
			case up:
				continue
			}
			up = true
			for _, c := range cards {
				if c != l.card {
					c.stop()
				}
			}
			n.Ready()
			n.ready <- l.lease
		case <-remind.C:
			if len(cards) == 0 {
				n.Say("waiting for the network card %s; the cards so far: %s", n.wanted(), found())
			}
		case <-noCard.C:
			if len(cards) == 0 {
				return fmt.Errorf("network: no card %s has appeared in %v (its driver or firmware is missing: put the firmware into the appliance's initramfs drop-in folder); the cards found: %s", n.wanted(), cardLimit, found())
			}
		case <-noLease.C:
			if !up {
				return fmt.Errorf("network: no DHCP server gave an address in %v (look at `rackstrap explain` for this machine, and at the switch port)", leaseLimit)
			}
		}
	}
}

func (n *Network) wanted() string {
	if n.MAC.IsZero() {
		return "(any)"
	}
	return n.MAC.String()
}

func found() string {
	all, _ := net.Interfaces()
	return describe(all)
}

// look adds the cards that are new and wakes those whose carrier came up.
func (n *Network) look(cards map[int]*card, up bool) []*card {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var added []*card
	for _, i := range pick(all, n.MAC, physical) {
		running := i.Flags&net.FlagRunning != 0
		c := cards[i.Index]
		if c == nil {
			if up || (!n.MAC.IsZero() && len(cards) > 0) {
				continue
			}
			c = &card{Interface: i, carrier: make(chan struct{}, 1), running: running}
			cards[i.Index] = c
			added = append(added, c)
		}
		if running && !c.running {
			select {
			case c.carrier <- struct{}{}:
			default:
			}
		}
		c.running = running
	}
	return added
}

// keep holds one card's lease until ctx is done.
func (n *Network) keep(ctx context.Context, c *card, won chan<- leased) {
	tell := func(l Lease, err error) {
		select {
		case won <- leased{c, l, err}:
		case <-ctx.Done():
		}
	}
	if err := do(linkUp(c.Index, 0)); err != nil {
		tell(Lease{}, fmt.Errorf("network card %s: link up: %w", c.Name, err))
		return
	}
	n.Say("network card %s (%s) is up; asking for an address", c.Name, c.HardwareAddr)
	cl := &client{
		name: c.Name, mac: c.HardwareAddr, carrier: c.carrier, say: n.Say,
		broadcast: func() (conn, error) { return openPacket(c.Interface) },
		unicast:   openUDP,
	}
	for {
		l, err := cl.Acquire(ctx)
		if err != nil {
			tell(Lease{}, err)
			return
		}
		if err := n.apply(c, Lease{}, l); err != nil {
			tell(Lease{}, err)
			return
		}
		n.Say("network card %s has %v", c.Name, l)
		tell(l, nil)
		for err == nil {
			var next Lease
			if next, err = cl.Extend(ctx, l); err == nil {
				if err = n.apply(c, l, next); err == nil {
					l = next
				}
			}
		}
		if ctx.Err() != nil {
			return
		}
		n.Say("network card %s gives up %v: %v", c.Name, l.Addr.Addr(), err)
		_ = do(address(c.Index, l.Addr, false))
	}
}

// apply makes the kernel and the resolver use a lease in place of the old one.
func (n *Network) apply(c *card, old, l Lease) error {
	if l.MTU != 0 && l.MTU != old.MTU {
		if err := do(linkUp(c.Index, l.MTU)); err != nil {
			n.Say("network card %s keeps its MTU: it refused %d (%v)", c.Name, l.MTU, err)
		}
	}
	if err := do(address(c.Index, l.Addr, true)); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("network card %s: address %v: %w", c.Name, l.Addr, err)
	}
	if old.Addr.IsValid() && old.Addr != l.Addr {
		_ = do(address(c.Index, old.Addr, false))
	}
	for _, r := range l.Routes {
		if err := do(route(c.Index, r, l.Addr)); err != nil {
			n.Say("network card %s: route to %v via %v refused: %v", c.Name, r.To, r.Via, err)
		}
	}
	if n.Resolver == nil {
		return nil
	}
	if err := n.Resolver(texts(l.DNS), l.Search); err != nil && !errors.Is(err, os.ErrNotExist) {
		n.Say("resolv.conf: %v", err)
	}
	return nil
}

func texts(as []netip.Addr) []string {
	var out []string
	for _, a := range as {
		out = append(out, a.String())
	}
	return out
}
