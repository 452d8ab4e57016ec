package dhcp

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Records is a View over literals.
type Records struct {
	Hardware []*hardware.Hardware
	Nets     []*hardware.Subnet
}

func (r *Records) HardwareByMAC(m hardware.MAC) (*hardware.Hardware, bool) {
	for _, h := range r.Hardware {
		if _, ok := h.NIC(m); ok {
			return h, true
		}
	}
	return nil, false
}

func (r *Records) HardwareByAddress(a netip.Addr) (*hardware.Hardware, bool) {
	for _, h := range r.Hardware {
		for _, n := range h.Spec.Interfaces {
			for _, p := range n.Addresses {
				if p.Addr() == a {
					return h, true
				}
			}
		}
	}
	return nil, false
}

func (r *Records) Subnets() []*hardware.Subnet { return r.Nets }

// Ledger is Leases and Boots in memory. What it is told comes out of its channels.
type Ledger struct {
	Next hardware.Next
	Fail error // of every write

	Leases       chan hardware.Lease
	Observations chan Observation

	mu    sync.Mutex
	boots map[hardware.MAC]*hardware.Boot
	acked []Acked
	kept  map[string]hardware.Lease // by subnet and MAC
}

func NewLedger(next hardware.Next) *Ledger {
	return &Ledger{
		Next: next, Leases: make(chan hardware.Lease, 10_000), Observations: make(chan Observation, 10_000),
		boots: map[hardware.MAC]*hardware.Boot{}, kept: map[string]hardware.Lease{},
	}
}

func (l *Ledger) Confirm(_ context.Context, lease hardware.Lease) error {
	if l.Fail == nil {
		l.mu.Lock()
		l.kept[lease.Subnet+lease.MAC.String()] = lease
		l.mu.Unlock()
		l.Leases <- lease
	}
	return l.Fail
}

func (l *Ledger) Get(subnet string, mac hardware.MAC) (hardware.Lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x, ok := l.kept[subnet+mac.String()]
	return x, ok
}

func (l *Ledger) List() []hardware.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.kept))
}

func (l *Ledger) Delete(_ context.Context, subnet string, mac hardware.MAC) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Fail == nil {
		delete(l.kept, subnet+mac.String())
	}
	return l.Fail
}

func (l *Ledger) FirstPacket(_ context.Context, f FirstPacket) (hardware.Boot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.boots[f.MAC]
	now := time.Now()
	if b == nil || b.Supersedes(f.XID, f.Firmware, f.IPXE, now) {
		b = &hardware.Boot{
			ID: fmt.Sprintf("boot-%d", len(l.boots)), Hardware: f.Hardware, MAC: f.MAC, XID: f.XID,
			Firmware: f.Firmware, Started: now, Deadline: now.Add(hardware.BootDeadline), Next: l.Next,
		}
		if l.Fail == nil {
			l.boots[f.MAC] = b
		}
	}
	return *b, l.Fail
}

func (l *Ledger) Current(_ string, m hardware.MAC) (hardware.Boot, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.boots[m]; b != nil {
		return *b, true
	}
	return hardware.Boot{}, false
}

func (l *Ledger) Acked(_ context.Context, a Acked) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = append(l.acked, a)
	return l.Fail
}

// AllAcked is what Acked was told.
func (l *Ledger) AllAcked() []Acked {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.acked)
}

func (l *Ledger) Observe(o Observation) { l.Observations <- o }

// SampleSubnet is 10.77.0.0/24 with everything set that can be.
func SampleSubnet() *hardware.Subnet {
	return &hardware.Subnet{
		Meta: hardware.Meta{Name: "lab", UID: "subnet-1"},
		Spec: hardware.SubnetSpec{
			Prefix:  netip.MustParsePrefix("10.77.0.0/24"),
			Gateway: netip.MustParseAddr("10.77.0.254"),
			DNS:     []netip.Addr{netip.MustParseAddr("10.77.0.53"), netip.MustParseAddr("9.9.9.9")},
			NTP:     []netip.Addr{netip.MustParseAddr("10.77.0.123")},
			Domain:  "example.org", Search: []string{"example.org", "lab.example.org"},
			MTU:       1500,
			Routes:    []hardware.Route{{To: netip.MustParsePrefix("10.9.0.0/16"), Via: netip.MustParseAddr("10.77.0.9")}},
			LeaseTime: hardware.Duration(10 * time.Minute),
		},
	}
}

// SampleHardware is a machine with one reserved address.
func SampleHardware(name, mac, addr string) *hardware.Hardware {
	m, err := hardware.ParseMAC(mac)
	if err != nil {
		panic(err)
	}
	return &hardware.Hardware{
		Meta: hardware.Meta{Name: name, UID: "uid-" + name},
		Spec: hardware.Spec{Interfaces: []hardware.NIC{{
			MAC: m, Addresses: []netip.Prefix{netip.PrefixFrom(netip.MustParseAddr(addr), 24)},
		}}},
	}
}
