package dhcp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// crowd are clients of a pool of five addresses, and an operator who changes his mind.
type crowd struct {
	*poolDesk
	rand     *rand.Rand
	offered  map[int]string
	uses     map[int]holding
	reserved map[int]string
	story    []string
}

// holding is what a client believes that it has.
type holding struct {
	addr     string
	until    time.Time
	reserved bool
}

const (
	crowdSize = 5 // the last one has no record
	crowdNet  = "10.77.0."
)

// In whatever order machines ask, renew, forget and leave, and the operator reserves,
// excludes and restarts: no two of them use one address. (A reservation that goes from one
// record to another is the record's to give.)
func TestPoolInAnyOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		c := &crowd{
			poolDesk: newPoolDesk(t, []string{crowdNet + "100-" + crowdNet + "104"}, 1, 2, 3, 4), rand: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // repeatable
			offered: map[int]string{}, uses: map[int]holding{}, reserved: map[int]string{},
		}
		for range 120 {
			c.step(1 + c.rand.IntN(crowdSize))
			if clash := c.clash(); clash != "" {
				t.Fatalf("seed %d: %s\n%s", seed, clash, strings.Join(c.story, "\n"))
			}
		}
	}
}

// clash names two clients that use one address.
func (c *crowd) clash() string {
	by := map[string]int{}
	for i, u := range c.uses {
		if !u.until.After(c.now) {
			delete(c.uses, i)
			continue
		}
		if o, ok := by[u.addr]; ok {
			return fmt.Sprintf("%d and %d use %s", i, o, u.addr)
		}
		by[u.addr] = i
	}
	return ""
}

// step lets client i, or the operator, do something.
func (c *crowd) step(i int) {
	defer c.told()
	u, has := c.uses[i]
	switch n := c.rand.IntN(13); {
	case n < 3:
		delete(c.uses, i)
		if p := c.send(packet(i, dhcpv4.MessageTypeDiscover)); p != nil {
			c.offered[i] = p.YourIPAddr.String()
		}
		c.note("%d begins anew: %s", i, c.offered[i])
	case n < 6 && c.offered[i] != "":
		c.request(i, "takes", asks(c.offered[i]), selects("10.77.0.1"))
		delete(c.offered, i)
	case n < 8 && has:
		c.request(i, "renews", uses(u.addr))
	case n == 8 && has:
		c.request(i, "comes back", asks(u.addr))
	case n == 9 && has:
		c.send(packet(i, dhcpv4.MessageTypeRelease, uses(u.addr)))
		delete(c.uses, i)
		c.note("%d gives back %s", i, u.addr)
	case n == 10:
		c.reserve(i)
	case n == 11:
		d := []time.Duration{time.Second, 30 * time.Second, 61 * time.Second, 4 * time.Minute, 11 * time.Minute}[c.rand.IntN(5)]
		c.now = c.now.Add(d)
		c.note("%v pass", d)
	case n == 12 && c.rand.IntN(2) == 0:
		c.start(c.t, c.ledger)
		c.note("restart")
	case n == 12:
		net := *c.net
		net.Spec.Pool = &hardware.Pool{Ranges: net.Spec.Pool.Ranges}
		if a := c.address(); c.rand.IntN(2) == 0 {
			net.Spec.Pool.Exclude = []hardware.AddrRange{mustRange(a)}
			c.note("%s is excluded", a)
		}
		c.net, c.view.Nets = &net, []*hardware.Subnet{&net}
	}
}

func (c *crowd) note(format string, args ...any) {
	c.story = append(c.story, fmt.Sprintf(format, args...))
}

// address is one of the pool, or beside it.
func (c *crowd) address() string { return fmt.Sprint(crowdNet, 99+c.rand.IntN(7)) }

func (c *crowd) request(i int, how string, with ...dhcpv4.Modifier) {
	p := c.send(packet(i, dhcpv4.MessageTypeRequest, with...))
	switch answer(p) {
	case "ACK":
		a := p.YourIPAddr.String()
		c.uses[i] = holding{a, c.now.Add(p.IPAddressLeaseTime(0)), c.reserved[i] == a}
	case "NAK":
		delete(c.uses, i)
	}
	c.note("%d %s: %s %s", i, how, answer(p), c.uses[i].addr)
}

// reserve changes what is reserved for machine i.
func (c *crowd) reserve(i int) {
	if i == crowdSize {
		return
	}
	a := c.address()
	for j, u := range c.uses {
		if u.addr == a && u.reserved && j != i {
			a = ""
		}
	}
	for _, o := range c.reserved {
		if o == a {
			a = ""
		}
	}
	c.reserved[i] = a
	at := slices.IndexFunc(c.view.Hardware, func(h *hardware.Hardware) bool { _, ok := h.NIC(testMAC(i)); return ok })
	h := SampleHardware(c.view.Hardware[at].Meta.Name, testMAC(i).String(), crowdNet+"1")
	h.Spec.Interfaces[0].Addresses = nil
	if a != "" {
		h = SampleHardware(h.Meta.Name, testMAC(i).String(), a)
	}
	c.view.Hardware[at] = h
	c.note("%d has %q reserved", i, a)
}
