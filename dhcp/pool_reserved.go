package dhcp

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/rackstrap/rackstrap/hardware"
)

// taken says why a machine is not given the address that is reserved for it: the pool lent
// it to somebody before that, who uses it. Who has it is told no when it renews its lease,
// and loses it (surrender). Until then the machine is met with silence, and keeps what it
// has. Empty: it may have it.
func (s *Server) taken(c *Class, j *job, p *Place, now time.Time) (r hardware.Reason, detail string) {
	switch {
	case p.Proxied() || p.Pooled() || !p.Addr.IsValid() || j.link.ProxyPort,
		c.Type != dhcpv4.MessageTypeDiscover && c.Type != dhcpv4.MessageTypeRequest,
		c.Type == dhcpv4.MessageTypeRequest && c.ServerID.IsValid() && !isOurs(c, j.link, p):
		return "", ""
	}
	name := p.Subnet.Meta.Name
	if l, ok := s.Leases.Get(name, c.MAC); ok && l.Addr == p.Addr && l.State(now) == hardware.LeaseActive {
		return "", "" // it uses it itself
	}
	var lent []hardware.MAC
	var offered hardware.MAC
	s.pools.locked(func() { lent, offered = s.pool(p.Subnet, now).at(p.Addr, c.MAC, now) })
	for _, mac := range lent {
		l, ok := s.Leases.Get(name, mac)
		if !ok || l.Addr != p.Addr || l.Reservation || l.State(now) != hardware.LeaseActive {
			continue // what was reserved for a machine before is the record's to give
		}
		who := mac.String()
		if h, known := s.View.HardwareByMAC(mac); known {
			who += " (" + h.Meta.Name + ")"
		}
		return hardware.ReasonAddressLent, fmt.Sprintf(
			"%s is lent to %s until %s; it is told no when it renews (to take it back now: rackstrap lease revoke --subnet %s %s)",
			p.Addr, who, l.Expires.UTC().Format("2006-01-02 15:04 UTC"), name, mac)
	}
	if !offered.IsZero() {
		return hardware.ReasonAddressLent, fmt.Sprintf("%s was offered to %s just now; that ends within %v", p.Addr, offered, offerTime)
	}
	return "", ""
}

// at is who else may use an address: by a lease that runs or that the pool knew when it was
// made, or by an offer that somebody may be taking now.
func (p *pool) at(a netip.Addr, mac hardware.MAC, now time.Time) (lent []hardware.MAC, offered hardware.MAC) {
	for _, m := range p.strays[a] {
		if m != mac {
			lent = append(lent, m)
		}
	}
	i, ok := p.index(a)
	s := p.slots[i]
	if !ok || s == nil {
		return lent, offered
	}
	if s.active(now) && s.owner != mac && !s.declined {
		lent = append(lent, s.owner)
	}
	if s.to != mac && s.until.After(now) {
		offered = s.to
	}
	return lent, offered
}

// surrender forgets the lease of a client that was told no when it asked for its address:
// that is free from now on, for whom it is reserved.
func (s *Server) surrender(ctx context.Context, c *Class, p *Place, now time.Time) {
	asked, _ := requested(c)
	name := p.Subnet.Meta.Name
	l, ok := s.Leases.Get(name, c.MAC)
	if !ok || l.Addr != asked || l.State(now) != hardware.LeaseActive {
		return
	}
	if err := s.Leases.Delete(ctx, name, c.MAC); err != nil {
		s.Log.Warn("the lease of a client that was told no is not forgotten", "mac", c.MAC, "subnet", name, "error", err)
		return // it is told again
	}
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	s.pool(p.Subnet, now).set(c.MAC, nil, false, now)
}
