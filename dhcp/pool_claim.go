package dhcp

import (
	"net/netip"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// claim is what a REQUEST comes to: the address is the client's (s), or it is told no
// (why), or nothing is said.
type claim struct {
	s   *slot
	why string
}

// form is one of those that a REQUEST has (RFC 2131 section 4.3.2, table 4).
type form int

const (
	selecting  form = iota // after our offer
	initReboot             // the client remembers an address from before
	renewing               // it uses the address; also REBINDING
)

// claim judges a REQUEST for an address of the pool's network. recorded: a lease of the
// client is durable, wherever.
//
// It says no where we know: the address is somebody else's, or not one that we lend, or
// the client has another. A client of which nothing is known and that remembers an
// address of no one may have it from another server: it is not answered (section 4.3.2:
// "MUST remain silent"). One that claims to use a lease of ours has none: it was taken
// back.
func (p *pool) claim(c client, asked netip.Addr, f form, recorded bool, now time.Time) claim {
	p.sweep(now)
	if why := p.whose(c, asked, now); why != "" {
		return claim{why: why}
	}
	i, ok := p.lends(asked)
	s := p.slots[i]
	switch {
	case !ok && (f != initReboot || recorded):
		return claim{why: asked.String() + " is not in the pool"}
	case !ok:
		return claim{}
	case s != nil && (s.owner == c.mac || s.to == c.mac):
	case f == selecting:
		// We have restarted since the offer.
		if s = p.wanted(c, asked, now); s == nil {
			return claim{why: asked.String() + " was not offered to it"}
		}
	case f == renewing || recorded:
		return claim{why: asked.String() + " is not lent to it"}
	default:
		return claim{}
	}
	if !s.active(now.Add(offerTime)) || s.owner != c.mac || s.doubted {
		p.offer(s, c, now) // nobody else gets it while the disk is waited for, should a lease end meanwhile
	}
	return claim{s: s}
}

// whose says who else has an address; empty: nobody.
func (p *pool) whose(c client, a netip.Addr, now time.Time) string {
	if why := c.barred(a); why != "" {
		return a.String() + " " + why
	}
	i, ok := p.lends(a)
	s := p.slots[i]
	switch {
	case !ok || s == nil || s.freeFor(c.mac, now):
		return ""
	case s.active(now) && s.declined:
		return a.String() + " is used by somebody else"
	case s.active(now):
		return a.String() + " is lent to " + s.owner.String()
	}
	return a.String() + " is offered to " + s.to.String()
}

// decline judges a client's word that somebody else uses an address: it must be lent or
// offered to it, and there is an end to how many a client, and all clients, can put out
// of use. What is not believed is asked after before it is lent again.
func (p *pool) decline(mac hardware.MAC, a netip.Addr, now time.Time) hardware.Reason {
	i, ok := p.lends(a)
	s := p.slots[i]
	if !ok || s == nil || !(s.owner == mac && s.active(now) || s.offeredTo(mac, now)) {
		return hardware.ReasonNoLease
	}
	all, own := 0, 0
	for q := range p.shunned {
		if q.active(now) && q.declinedBy != (hardware.MAC{}) {
			all++
			if q.declinedBy == mac {
				own++
			}
		}
	}
	if own >= maxDeclines || all >= max(1, p.size/4) {
		s.doubted = s.owner == mac
		p.withdraw(mac)
		return hardware.ReasonDeclinesIgnored
	}
	return ""
}
