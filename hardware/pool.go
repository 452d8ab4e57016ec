package hardware

import (
	"fmt"
	"net/netip"
	"slices"
)

// Limits on one Pool.
const (
	MaxPoolRanges  = 64
	MaxPoolExclude = 256
)

// Probes reports whether an address is asked after before it is lent.
func (p *Pool) Probes() bool { return p.Probe == nil || *p.Probe }

// Size is how many addresses the ranges have, without those excluded.
func (p *Pool) Size() int {
	n := 0
	for _, r := range p.Ranges {
		n += r.Size()
	}
	for _, r := range p.Exclude {
		n -= r.Size()
	}
	return n
}

// checkPool says what is wrong with pool and discovery, given the mode.
func (s *Subnet) checkPool(c *Checker) {
	pool, mode := s.Spec.Pool, s.Spec.Mode
	switch {
	case pool == nil && mode == ModePool:
		c.Addf("spec.pool.ranges", "is empty, and mode pool lends addresses (add `pool: {ranges: [%s]}`)", s.exampleRange())
	case pool != nil && mode != ModePool:
		if mode == "" {
			mode = ModeReservation
		}
		c.Addf("spec.pool", "lends nothing in mode %s (set spec.mode: pool, or remove spec.pool)", mode)
	}
	if s.Spec.Discovery && mode != ModePool && mode != ModeProxy {
		c.Addf("spec.discovery", "needs spec.mode pool or proxy: a machine without a record has no reservation")
	}
	if mode == ModeProxy && s.Spec.LeaseTime != 0 {
		c.Addf("spec.leaseTime", "has no effect in mode proxy: the other DHCP server gives the addresses (remove it)")
	}
	if pool == nil {
		return
	}
	switch pool.Allow {
	case "", PoolAny, PoolKnown:
	default:
		c.Addf("spec.pool.allow", "%q is not known (any or known)", pool.Allow)
	}
	if len(pool.Ranges) == 0 && mode == ModePool {
		c.Addf("spec.pool.ranges", "is empty, and mode pool lends addresses (write for example `ranges: [%s]`)", s.exampleRange())
	}
	s.checkRanges(c, "spec.pool.ranges", pool.Ranges, MaxPoolRanges)
	s.checkRanges(c, "spec.pool.exclude", pool.Exclude, MaxPoolExclude)
	for i, x := range pool.Exclude {
		if x.From.Is4() && x.To.Is4() && !slices.ContainsFunc(pool.Ranges, func(r AddrRange) bool { return r.Contains(x.From) && r.Contains(x.To) }) {
			c.Addf(fmt.Sprintf("spec.pool.exclude[%d]", i), "%v is not inside one range of the pool, so there is nothing to exclude", x)
		}
	}
}

// checkRanges says what is wrong with each range, and which two overlap.
func (s *Subnet) checkRanges(c *Checker, field string, rs []AddrRange, limit int) {
	if len(rs) > limit {
		c.Addf(field, "has %d entries, the limit is %d", len(rs), limit)
		return
	}
	p := s.Spec.Prefix.Masked()
	for i, r := range rs {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case !r.From.Is4() || !r.To.Is4() || r.To.Less(r.From):
			c.Addf(at, "%v is not a range of IPv4 addresses (write it as 10.0.0.100-10.0.0.199)", r)
			continue
		case !p.Contains(r.From) || !p.Contains(r.To):
			c.Addf(at, "%v is not inside %v", r, p)
		case r.Contains(p.Addr()):
			c.Addf(at, "%v has the network address of %v in it (begin at %v)", r, p, p.Addr().Next())
		case r.Contains(broadcast(p)):
			c.Addf(at, "%v has the broadcast address of %v in it (end at %v)", r, p, broadcast(p).Prev())
		}
		for j, o := range rs[:i] {
			if o.From.Is4() && o.To.Is4() && r.Overlaps(o) {
				c.Addf(at, "%v overlaps %v, which is %s[%d]", r, o, field, j)
			}
		}
	}
}

// exampleRange is the upper half of the prefix, for hints.
func (s *Subnet) exampleRange() AddrRange {
	p := s.Spec.Prefix.Masked()
	from := p.Addr().As4()
	if p.Bits() < 32 {
		from[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	}
	return AddrRange{From: netip.AddrFrom4(from), To: broadcast(p).Prev()}
}
