package dhcp

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Stranger is a MAC without a Hardware record that asked us for an address.
type Stranger struct {
	MAC       hardware.MAC      `json:"mac"`
	Reason    hardware.Reason   `json:"reason"` // of its last answer, or of its silence
	First     time.Time         `json:"first"`
	Last      time.Time         `json:"last"`
	Count     int               `json:"count"`
	Vendor    string            `json:"vendorClass,omitempty"` // option 60, printable, at most 64 bytes
	Hostname  string            `json:"hostname,omitempty"`    // option 12, printable, at most 64 bytes
	Firmware  hardware.Firmware `json:"firmware,omitempty"`
	Interface string            `json:"interface"` // of ours
	Relay     netip.Addr        `json:"relay,omitzero"`
}

// Limits on what strangers cost.
const (
	maxStrangers = 1024
	// strangerRate packets a second from strangers are looked at, strangerBurst at once.
	strangerRate  = 100
	strangerBurst = 500
)

// StrangerRing remembers the latest strangers, in memory only: the longest
// unheard of is forgotten for a new one. It is safe for concurrent use.
type StrangerRing struct {
	mu     sync.Mutex
	byMAC  map[hardware.MAC]*list.Element
	order  list.List // of *Stranger, the latest heard first
	tokens float64
	filled time.Time
}

// NewStrangerRing returns an empty ring.
func NewStrangerRing() *StrangerRing {
	return &StrangerRing{byMAC: map[hardware.MAC]*list.Element{}, tokens: strangerBurst}
}

// seen notes a packet; false: over the rate, not noted.
func (r *StrangerRing) seen(c *Class, iface string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := now.Sub(r.filled); d > 0 {
		r.tokens = min(strangerBurst, r.tokens+d.Seconds()*strangerRate)
		r.filled = now
	}
	if r.tokens < 1 {
		return false
	}
	r.tokens--
	e, ok := r.byMAC[c.MAC]
	if !ok {
		if r.order.Len() >= maxStrangers {
			last := r.order.Back()
			delete(r.byMAC, last.Value.(*Stranger).MAC)
			r.order.Remove(last)
		}
		e = r.order.PushFront(&Stranger{MAC: c.MAC, Reason: hardware.ReasonUnknownMachine, First: now})
		r.byMAC[c.MAC] = e
	}
	r.order.MoveToFront(e)
	s := e.Value.(*Stranger)
	s.Last, s.Interface, s.Relay = now, iface, c.GIAddr
	s.Count++
	if c.Netboots() || s.Firmware == hardware.FirmwareNone {
		s.Vendor, s.Firmware = c.Vendor, c.Firmware
	}
	if c.Hostname != "" {
		s.Hostname = hardware.PlainText(c.Hostname, 64)
	}
	return true
}

// told notes what became of a stranger's packet.
func (r *StrangerRing) told(m hardware.MAC, reason hardware.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.byMAC[m]; ok {
		e.Value.(*Stranger).Reason = reason
	}
}

// Forget drops a MAC, for when a record was made for it.
func (r *StrangerRing) Forget(m hardware.MAC) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.byMAC[m]; ok {
		r.order.Remove(e)
		delete(r.byMAC, m)
	}
}

// List returns the strangers, the latest heard first.
func (r *StrangerRing) List() []Stranger {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Stranger, 0, r.order.Len())
	for e := r.order.Front(); e != nil; e = e.Next() {
		out = append(out, *e.Value.(*Stranger))
	}
	return out
}

// len is how many are remembered.
func (r *StrangerRing) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.order.Len()
}
