package hardware

import (
	"fmt"
	"net/netip"
	"time"
)

// Subnet is an IPv4 network in which we answer DHCP.
type Subnet struct {
	Meta Meta       `json:"metadata"`
	Spec SubnetSpec `json:"spec"`
}

// SubnetSpec is what operators say of a network.
type SubnetSpec struct {
	// Prefix is the network, for example 10.0.0.0/24.
	Prefix netip.Prefix `json:"prefix"`
	// Mode is how we answer in it; reservation where empty.
	Mode SubnetMode `json:"mode,omitempty"`
	// Gateway is option 3.
	Gateway netip.Addr `json:"gateway,omitzero"`
	// DNS is option 6, at most 8.
	DNS []netip.Addr `json:"dns,omitempty"`
	// NTP is option 42, at most 8.
	NTP []netip.Addr `json:"ntp,omitempty"`
	// Domain is option 15; Search is option 119.
	Domain string   `json:"domain,omitempty"`
	Search []string `json:"search,omitempty"`
	// MTU is option 26, 576 to 9216; 0 sends none.
	MTU uint16 `json:"mtu,omitempty"`
	// Routes are option 121 (RFC 3442). Where there are any, the default route is
	// added to them, because clients that read 121 ignore option 3.
	Routes []Route `json:"routes,omitempty"`
	// LeaseTime is option 51; 1 h where 0. T1 and T2 are half and seven eighths of
	// it (RFC 2131 section 4.4.5).
	LeaseTime Duration `json:"leaseTime,omitzero"`
	// Advertise is the address of ours that clients in this subnet are told.
	// Empty: found from the receiving interface.
	Advertise netip.Addr `json:"advertise,omitzero"`
	// Pool are the addresses for machines without a reservation; mode pool needs it.
	Pool *Pool `json:"pool,omitempty"`
	// Discovery: a machine without a record, or one that is pending, boots the worker,
	// which reports what is in it and writes nothing. Mode pool or proxy.
	Discovery bool `json:"discovery,omitempty"`
}

// Pool are addresses that are lent to whoever asks.
type Pool struct {
	// Ranges are inclusive, inside the prefix; they do not overlap.
	Ranges []AddrRange `json:"ranges"`
	// Exclude are addresses of the ranges that are not lent. Reserved addresses, the
	// gateway and our own are left out by themselves.
	Exclude []AddrRange `json:"exclude,omitempty"`
	// Allow says who may have one; any where empty.
	Allow PoolAllow `json:"allow,omitempty"`
	// Probe false: an address is lent without asking first whether somebody uses it
	// (ARP on the link, ICMP behind a relay). Default true.
	Probe *bool `json:"probe,omitempty"`
}

// PoolAllow says who may have an address of a Pool.
type PoolAllow string

// Who may have an address.
const (
	// PoolAny: everybody. Machines without a record share a part of the pool only, so
	// that they cannot take it from those with one.
	PoolAny PoolAllow = "any"
	// PoolKnown: machines with a Hardware record, and those that Discovery lets boot.
	PoolKnown PoolAllow = "known"
)

// AddrRange is an inclusive range of addresses, written 10.0.0.100-10.0.0.199 or, for
// one address, 10.0.0.100.
type AddrRange struct{ From, To netip.Addr }

// Route is one entry of option 121.
type Route struct {
	// To is the network behind the router, as 10.1.0.0/16, and Via the router's address.
	To  netip.Prefix `json:"to"`
	Via netip.Addr   `json:"via"`
}

// SubnetMode says how DHCP answers in a Subnet.
type SubnetMode string

// The modes.
const (
	// ModeReservation answers known machines with the address of their record.
	ModeReservation SubnetMode = "reservation"
	// ModePool is ModeReservation, and lends addresses of the Pool to the others.
	ModePool SubnetMode = "pool"
	// ModeProxy gives boot programs beside another DHCP server, which gives addresses
	// (PXE 2.1, proxyDHCP).
	ModeProxy SubnetMode = "proxy"
	// ModeOff: silence.
	ModeOff SubnetMode = "off"
)

// DefaultLease is the lease time of a Subnet that names none.
const DefaultLease = time.Hour

// Lease is the lease time of the subnet.
func (s *Subnet) Lease() time.Duration {
	if s.Spec.LeaseTime == 0 {
		return DefaultLease
	}
	return time.Duration(s.Spec.LeaseTime)
}

// Proxy reports whether another server gives the addresses in this subnet.
func (s *Subnet) Proxy() bool { return s.Spec.Mode == ModeProxy }

// LendsTo reports whether the Pool may give an address to a machine: known is one with
// a Hardware record; boots says that the client is firmware or iPXE, or what such a
// machine has started (GRUB and the worker ask as an operating system does).
func (s *Subnet) LendsTo(known, boots bool) bool {
	if s.Spec.Mode != ModePool || s.Spec.Pool == nil {
		return false
	}
	return known || s.Spec.Pool.Allow != PoolKnown || (s.Spec.Discovery && boots)
}

// Validate says everything that is wrong with the record by itself, as an *Invalid.
func (s *Subnet) Validate() error {
	c := NewChecker("subnet", s.Meta.Name)
	c.Meta(s.Meta)
	p := s.Spec.Prefix
	if !p.IsValid() || !p.Addr().Is4() {
		c.Addf("spec.prefix", "%v is not an IPv4 network (write it as 10.0.0.0/24)", p)
		return c.Err()
	}
	if p != p.Masked() {
		c.Addf("spec.prefix", "%v has host bits set (did you mean %v?)", p, p.Masked())
	}
	if p.Bits() < 8 || p.Bits() > 30 {
		c.Addf("spec.prefix", "%v: the prefix length must be 8 to 30", p)
	}
	switch s.Spec.Mode {
	case "", ModeReservation, ModePool, ModeProxy, ModeOff:
	default:
		c.Addf("spec.mode", "%q is not known (reservation, pool, proxy or off)", s.Spec.Mode)
	}
	s.checkPool(c)
	switch a := s.Spec.Gateway; {
	case !a.IsValid():
	case !a.Is4() || !p.Contains(a):
		c.Addf("spec.gateway", "%v is not in %v", a, p)
	case a == p.Masked().Addr() || a == broadcast(p):
		c.Addf("spec.gateway", "%v is the network or broadcast address of %v", a, p)
	}
	list4(c, "spec.dns", s.Spec.DNS)
	list4(c, "spec.ntp", s.Spec.NTP)
	if a := s.Spec.Advertise; a.IsValid() && !a.Is4() {
		c.Addf("spec.advertise", "%v is not an IPv4 address", a)
	}
	if s.Spec.Domain != "" {
		c.Add("spec.domain", ValidHostname(s.Spec.Domain))
	}
	if len(s.Spec.Search) > 8 {
		c.Addf("spec.search", "has %d entries, the limit is 8", len(s.Spec.Search))
	}
	for i, d := range s.Spec.Search {
		c.Add(fmt.Sprintf("spec.search[%d]", i), ValidHostname(d))
	}
	if m := s.Spec.MTU; m != 0 && (m < 576 || m > 9216) {
		c.Addf("spec.mtu", "%d must be 576 to 9216", m)
	}
	if len(s.Spec.Routes) > 16 {
		c.Addf("spec.routes", "has %d entries, the limit is 16", len(s.Spec.Routes))
	}
	for i, r := range s.Spec.Routes {
		if !r.To.IsValid() || !r.To.Addr().Is4() || r.To != r.To.Masked() || !r.Via.Is4() {
			c.Addf(fmt.Sprintf("spec.routes[%d]", i), "needs `to: 10.1.0.0/16` and `via: 10.0.0.1`")
		}
	}
	if l := time.Duration(s.Spec.LeaseTime); l != 0 && (l < time.Minute || l > 365*24*time.Hour) {
		c.Addf("spec.leaseTime", "%v must be 1m to 8760h", l)
	}
	return c.Err()
}

func list4(c *Checker, field string, as []netip.Addr) {
	if len(as) > 8 {
		c.Addf(field, "has %d entries, the limit is 8", len(as))
	}
	for i, a := range as {
		if !a.Is4() {
			c.Addf(fmt.Sprintf("%s[%d]", field, i), "%v is not an IPv4 address", a)
		}
	}
}
