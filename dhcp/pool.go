package dhcp

import (
	"context"
	"net/netip"
	"reflect"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// strangerTerm is the longest lease of a machine without a record.
const strangerTerm = 10 * time.Minute

// pools are the Pools of all Subnets, made when they are first needed, from the
// durable leases.
type pools struct {
	mu     sync.Mutex
	byName map[string]*subnetPool
}

// locked runs f with the lock. A panic over one packet is survived, so it gives the lock
// back: nobody would get an address any more.
func (p *pools) locked(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

type subnetPool struct {
	*pool
	spec hardware.SubnetSpec
}

// loss is an address that went from one client to another.
type loss struct {
	subnet string
	mac    hardware.MAC
	addr   netip.Addr
}

type losses []loss

func (l *losses) add(p *Place, mac hardware.MAC, a netip.Addr) {
	if !mac.IsZero() {
		*l = append(*l, loss{p.Subnet.Meta.Name, mac, a})
	}
}

// pool is the Subnet's; s.pools.mu is held. It is made anew when the operator has
// changed what it is made of.
func (s *Server) pool(n *hardware.Subnet, now time.Time) *pool {
	name := n.Meta.Name
	was := s.pools.byName[name]
	if was != nil && sameGround(&was.spec, &n.Spec) {
		return was.pool
	}
	p := newPool(&n.Spec)
	for _, l := range s.Leases.List() {
		if l.Subnet != name {
			continue
		}
		p.set(l.MAC, &l, true, now)
		if _, lends := p.lends(l.Addr); !lends && !l.Reservation && l.State(now) == hardware.LeaseActive {
			p.strays[l.Addr] = append(p.strays[l.Addr], l.MAC)
		}
	}
	s.pools.byName[name] = &subnetPool{p, n.Spec}
	return p
}

// sameGround reports whether two Subnets have the same addresses to lend.
func sameGround(a, b *hardware.SubnetSpec) bool {
	if a.Pool == b.Pool && a.Prefix == b.Prefix && a.Gateway == b.Gateway && a.Advertise == b.Advertise {
		return true // the same record, as the View shares it
	}
	ground := func(s *hardware.SubnetSpec) hardware.SubnetSpec {
		out := hardware.SubnetSpec{Prefix: s.Prefix, Gateway: s.Gateway, Advertise: s.Advertise, DNS: s.DNS, NTP: s.NTP, Routes: s.Routes}
		if s.Pool != nil {
			out.Pool = &hardware.Pool{Ranges: s.Pool.Ranges, Exclude: s.Pool.Exclude}
		}
		return out
	}
	return reflect.DeepEqual(ground(a), ground(b))
}

// lend finds the address of the Pool that a client has or may have, into p.Addr; with a
// Reason there is none, and silence. A REQUEST for an address that the client cannot
// have is told no: p.Addr is empty then and p.Denied says why. wait: the packet comes
// back when it is known whether somebody uses the address.
func (s *Server) lend(ctx context.Context, c *Class, j *job, p *Place, gone *losses, now time.Time) (wait bool, r hardware.Reason, detail string) {
	if p.Hardware == nil {
		p.Term = min(p.Subnet.Lease(), strangerTerm)
	}
	if c.ServerID.IsValid() && !isOurs(c, j.link, p) {
		s.withdraw(p, now)
		return false, "", "" // Decide says whose it is
	}
	if v := j.verdict; v.in {
		if j.conflicts++; j.conflicts > maxConflicts {
			return false, hardware.ReasonAddressInUse, "one address after the other; the client is answered when it asks again"
		}
		s.conflict(ctx, c, j, p, gone, now)
	}
	found, r, detail := s.judge(c, j, p, now)
	if r != "" || found == nil {
		return false, r, detail
	}
	p.Addr = found.addr
	link := p.link(j)
	// An echo does not say who answers, so a client that uses the address would be taken
	// for somebody else.
	if found.sure || !p.Subnet.Spec.Pool.Probes() || (link == nil && c.CIAddr == found.addr) {
		return false, "", ""
	}
	j.again = true
	if !s.ask(j, found.addr, c.MAC, link) {
		j.again = false
		return false, hardware.ReasonRateLimited, "too many clients wait for a probe of their address"
	}
	return true, "", ""
}

// found is an address for a client; sure: nobody has to be asked whether it is free.
type found struct {
	addr netip.Addr
	sure bool
}

// judge asks the pool what a packet comes to.
func (s *Server) judge(c *Class, j *job, p *Place, now time.Time) (f *found, r hardware.Reason, detail string) {
	_, recorded := s.Leases.Get(p.Subnet.Meta.Name, c.MAC)
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	pl := s.pool(p.Subnet, now)
	who := client{mac: c.MAC, stranger: p.Hardware == nil, barred: s.barred(j, p)}
	var got *slot
	switch c.Type {
	case dhcpv4.MessageTypeDiscover:
		if got, r = pl.choose(who, c.Requested, now); r != "" {
			return nil, r, p.Subnet.Meta.Name
		}
	case dhcpv4.MessageTypeRequest:
		asked, form := requested(c)
		if !asked.IsValid() {
			return nil, "", "" // Decide says so
		}
		if !p.Subnet.Spec.Prefix.Contains(asked) {
			p.Denied = asked.String() + " is not in " + p.Subnet.Spec.Prefix.String()
			return nil, "", ""
		}
		cl := pl.claim(who, asked, form, recorded, now)
		switch got = cl.s; {
		case cl.why != "":
			p.Denied = cl.why
			return nil, "", ""
		case got == nil:
			return nil, hardware.ReasonNoLease, asked.String()
		}
	case dhcpv4.MessageTypeRelease:
		if h := pl.held[c.MAC]; h == nil || !h.active(now) || h.addr != c.CIAddr {
			return nil, hardware.ReasonNoLease, "gives back " + c.CIAddr.String()
		}
		return &found{c.CIAddr, true}, "", ""
	case dhcpv4.MessageTypeDecline:
		if r = pl.decline(c.MAC, c.Requested, now); r != "" {
			return nil, r, c.Requested.String()
		}
		return &found{c.Requested, true}, "", ""
	default:
		return nil, hardware.ReasonNotForUs, ""
	}
	return &found{got.addr, got.probed || (got.active(now) && got.owner == c.MAC && !got.doubted)}, "", ""
}

// requested is the address that a REQUEST names, and how.
func requested(c *Class) (netip.Addr, form) {
	switch {
	case c.ServerID.IsValid() && c.Requested.IsValid():
		return c.Requested, selecting
	case c.CIAddr.IsValid(): // also of clients that keep option 54 against the RFC
		return c.CIAddr, renewing
	}
	return c.Requested, initReboot
}

// barred says what of the ranges this client must not have. What is reserved for another
// NIC of its machine is not its own: both may be plugged in.
func (s *Server) barred(j *job, p *Place) func(netip.Addr) string {
	return func(a netip.Addr) string {
		if a == p.Server || j.link.has(a) {
			return "is our own"
		}
		if h, ok := s.View.HardwareByAddress(a); ok {
			return "is reserved for " + h.Meta.Name
		}
		return ""
	}
}

// link is the port on whose link the client's Subnet is; nil: behind routers.
func (p *Place) link(j *job) *port {
	for _, n := range j.link.Networks {
		if p.Subnet.Spec.Prefix.Contains(n.Addr()) {
			return j.port
		}
	}
	return nil
}

// nobodyAt notes that an address was asked after and nobody answered.
func (s *Server) nobodyAt(a netip.Addr, mac hardware.MAC) {
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	for _, p := range s.pools.byName {
		if o := p.offered[mac]; o != nil && o.addr == a {
			o.probed = true
		}
	}
}

// conflict puts an address that somebody was found to use into quarantine. That it is
// not written, where the disk refuses, matters to a restart only.
func (s *Server) conflict(ctx context.Context, c *Class, j *job, p *Place, gone *losses, now time.Time) {
	v := j.verdict
	j.verdict = verdict{}
	l := quarantined(p, v.addr, now)
	l.UsedBy = v.usedBy
	if err := s.Leases.Confirm(ctx, *l); err != nil {
		s.Log.Error("quarantine not written", "address", v.addr, "error", err)
	}
	s.pools.locked(func() { gone.add(p, s.pool(p.Subnet, now).set(l.MAC, l, true, now), v.addr) })
	by := "somebody"
	if !v.usedBy.IsZero() {
		by = v.usedBy.String()
	}
	s.Log.Warn("address in use", "address", v.addr, "by", by, "for", c.MAC, "subnet", p.Subnet.Meta.Name)
	s.Metrics.conflicts.Inc()
	s.Boots.Observe(Observation{
		MAC: c.MAC, Hardware: p.UID(), Firmware: c.Firmware,
		Reason: hardware.ReasonAddressInUse, Detail: v.addr.String() + " is used by " + by + "; it is left alone for " + quarantine.String(),
	})
}

// quarantined is the lease that stands for whoever uses an address of the pool.
func quarantined(p *Place, a netip.Addr, now time.Time) *hardware.Lease {
	return &hardware.Lease{
		MAC: hardware.QuarantineMAC(a), Subnet: p.Subnet.Meta.Name, Addr: a, Declined: true,
		Expires: now.Add(quarantine), Updated: now,
	}
}

// withdraw takes back what was offered to a client that took another server's.
func (s *Server) withdraw(p *Place, now time.Time) {
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	s.pool(p.Subnet, now).withdraw(p.MAC)
}

// settle takes over into the Pool what is durable of a client. The caller has its lock.
func (s *Server) settle(p *Place, mac hardware.MAC, gone *losses, now time.Time) {
	if p.Subnet.Spec.Mode != hardware.ModePool || p.Subnet.Spec.Pool == nil {
		return
	}
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	l, ok := s.Leases.Get(p.Subnet.Meta.Name, mac)
	gone.add(p, s.pool(p.Subnet, now).set(mac, &l, ok, now), l.Addr)
}

// forget drops the leases of clients whose address went to another, so that there are
// never more than the pool has addresses. No lock is held.
func (s *Server) forget(ctx context.Context, gone losses) {
	if len(gone) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for _, x := range gone {
		s.exclusive(x.mac, func() {
			if l, ok := s.Leases.Get(x.subnet, x.mac); !ok || l.Addr != x.addr {
				return // it has another one by now
			}
			if err := s.Leases.Delete(ctx, x.subnet, x.mac); err != nil {
				s.Log.Warn("lease not forgotten", "mac", x.mac, "subnet", x.subnet, "error", err)
			}
		})
	}
}

// Revoke takes a lease back: its client is told no at its next renewal. It returns when
// that is durable; false: there is no such lease.
func (s *Server) Revoke(ctx context.Context, subnet string, mac hardware.MAC) (l hardware.Lease, ok bool, err error) {
	s.exclusive(mac, func() {
		// The client's shard waits as long: not for whoever asked.
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		if l, ok = s.Leases.Get(subnet, mac); !ok {
			return
		}
		if err = s.Leases.Delete(ctx, subnet, mac); err != nil {
			return
		}
		s.pools.mu.Lock()
		defer s.pools.mu.Unlock()
		if p := s.pools.byName[subnet]; p != nil {
			p.set(mac, nil, false, s.Now())
		}
	})
	if ok && err == nil {
		if h, known := s.View.HardwareByMAC(mac); known {
			s.Boots.Observe(Observation{MAC: mac, Hardware: h.Meta.UID, Reason: hardware.ReasonLeaseRevoked, Detail: l.Addr.String() + " in subnet " + subnet})
		}
	}
	return l, ok, err
}

// remaining is for how long a client's lease of p.Addr is on disk; 0: it is not.
func (s *Server) remaining(p *Place, now time.Time) time.Duration {
	l, ok := s.Leases.Get(p.Subnet.Meta.Name, p.MAC)
	if !ok || l.Addr != p.Addr || l.Released {
		return 0
	}
	return l.Expires.Sub(now).Truncate(time.Second)
}
