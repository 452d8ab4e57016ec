package workflow

import (
	"cmp"
	"container/list"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// Bounds of what is remembered of machines without a record. All of it is in memory:
// nothing of a stranger is written before it has reported itself.
const (
	maxStrangers = 1024
	// maxHeard is how many observations of one stranger are kept: the first, and the newest.
	maxHeard = 32
	// strangerRate bounds the boots of strangers that begin in a second, after a rack
	// that is switched on at once.
	strangerRate  = 100
	strangerBurst = maxStrangers
	// strangerSilence is how long one that boots again and again, and reports nothing, is
	// given nothing.
	strangerSilence = time.Hour
)

// strangerName is what a machine without a record is called on its console.
const strangerName = "unknown machine"

// StrangerBoot is what is known of the boot of a machine without a record.
type StrangerBoot struct {
	Boot hardware.Boot
	// Subnet is the name of the Subnet that it boots in; empty after a restart of the
	// appliance in the middle of the boot.
	Subnet string
	// Last is the newest thing that was seen of it, and LastAt when.
	Last   hardware.Reason
	Detail string
	LastAt time.Time
	// Connected: its worker is there.
	Connected bool
}

// stranger is the boot of one MAC that no record has.
type stranger struct {
	boot   hardware.Boot
	subnet string
	acked  bool // it got an address; what did not is forgotten first
	heard  []Event
	at     time.Time
	loops  hardware.Netboots
	// m orders what its worker does; nil before one came. It is none of Engine.machines,
	// which are bounded by the records.
	m *machine
}

// strangers are the boots of machines without a record. The zero value is empty.
type strangers struct {
	mu    sync.Mutex
	byMAC map[hardware.MAC]*list.Element
	order list.List // of *strangerEntry, the latest heard first
	rate  bucket
}

type strangerEntry struct {
	mac hardware.MAC
	stranger
}

// bucket lets a number of things through per second, and more at first. The zero value
// is full.
type bucket struct {
	used   float64
	filled time.Time
}

func (b *bucket) take(now time.Time, rate, burst float64) bool {
	if d := now.Sub(b.filled); d > 0 {
		b.used = max(0, b.used-d.Seconds()*rate)
		b.filled = now
	}
	if b.used+1 > burst {
		return false
	}
	b.used++
	return true
}

// get is what is known of a MAC, nil if nothing is. The caller holds s.mu.
func (s *strangers) get(mac hardware.MAC) *stranger {
	e, ok := s.byMAC[mac]
	if !ok {
		return nil
	}
	s.order.MoveToFront(e)
	return &e.Value.(*strangerEntry).stranger
}

// add makes room for a MAC and remembers it; nil where all that is remembered has a
// worker. The caller holds s.mu.
func (s *strangers) add(mac hardware.MAC, now time.Time) *stranger {
	if s.byMAC == nil {
		s.byMAC = map[hardware.MAC]*list.Element{}
	}
	if s.order.Len() >= maxStrangers && !s.evict() {
		return nil
	}
	e := &strangerEntry{mac: mac, stranger: stranger{at: now}}
	s.byMAC[mac] = s.order.PushFront(e)
	return &e.stranger
}

// evict forgets the one that was not heard of for the longest among those without an
// address, else among all; never one whose worker is connected.
func (s *strangers) evict() bool {
	var oldest *list.Element
	for e := s.order.Back(); e != nil; e = e.Prev() {
		x := e.Value.(*strangerEntry)
		if !x.acked {
			oldest = e
			break
		}
		if oldest == nil && !x.connected() {
			oldest = e
		}
	}
	if oldest == nil {
		return false
	}
	s.drop(oldest.Value.(*strangerEntry).mac)
	return true
}

func (s *strangers) drop(mac hardware.MAC) {
	if e, ok := s.byMAC[mac]; ok {
		s.order.Remove(e)
		delete(s.byMAC, mac)
	}
}

// forget drops a MAC that has a record now.
func (s *strangers) forget(mac hardware.MAC) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(mac)
}

// connected reports whether its worker is there.
func (x *stranger) connected() bool { return x.m != nil && x.m.attached.Load() }

// hear adds one observation; the same again counts.
func (x *stranger) hear(ev Event) {
	x.at = ev.Last
	i := slices.IndexFunc(x.heard, func(o Event) bool { return o.Boot == ev.Boot && o.Reason == ev.Reason && o.Detail == ev.Detail })
	switch {
	case i >= 0:
		o := &x.heard[i]
		o.Count++
		o.Last, o.Bytes, o.Took = ev.Last, ev.Bytes, ev.Took
		return
	case len(x.heard) >= maxHeard:
		x.heard = slices.Delete(x.heard, 1, 2)
	}
	x.heard = append(x.heard, ev)
}

// strangerNext is what a machine without a record boots.
func strangerNext(discovery bool) hardware.Next {
	if discovery {
		return hardware.Next{Target: hardware.TargetWorker, Scope: hardware.ScopeEnrol, Reason: hardware.ReasonDiscovery}
	}
	return hardware.Next{Target: hardware.TargetNone, Reason: hardware.ReasonUnknownMachine}
}

// strangerPacket is FirstPacket of a machine without a record. Nothing is remembered of
// one that may not boot.
func (e *Engine) strangerPacket(f FirstPacket, mac hardware.MAC) hardware.Boot {
	now, s := e.c.Now(), &e.strangers
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.get(mac)
	if x != nil && x.boot.Discovery == f.Discovery && !x.boot.Supersedes(f.XID, f.Firmware, f.IPXE, now) {
		return x.boot
	}
	b := hardware.Boot{
		ID: NewID(now), Hardware: f.Hardware, Started: now, Deadline: now.Add(hardware.BootDeadline),
		MAC: mac, XID: f.XID, Firmware: f.Firmware, Discovery: f.Discovery, Next: strangerNext(f.Discovery),
	}
	if !f.Discovery {
		s.drop(mac)
		return b
	}
	limited := hardware.Next{Target: hardware.TargetNone, Reason: hardware.ReasonRateLimited}
	if !s.rate.take(now, strangerRate, strangerBurst) {
		b.Next = limited
		return b
	}
	var before *hardware.Boot
	if x == nil {
		if x = s.add(mac, now); x == nil {
			b.Next = limited
			return b
		}
	} else {
		old := x.boot
		before = &old
	}
	var why string
	b.Chain, why = PickChain(nil, f.Firmware, before, f.Proxied)
	if x.loop(before, b.Next, now) {
		b.Next = hardware.Next{Target: hardware.TargetNone, Reason: hardware.ReasonBootLoop}
	}
	x.boot, x.subnet, x.acked = b, f.Subnet, false
	detail := fmt.Sprintf("%s on %s in subnet %s; next: %s (%s)", f.Firmware, mac, f.Subnet, b.Next.Target, b.Next.Reason.Sentence())
	if b.Next.Netboots() && b.Chain == hardware.ChainGRUB {
		detail += throughGRUB + why
	}
	x.hear(e.heard(b.ID, hardware.ReasonBootStarted, detail))
	return b
}

// loop counts the boot before the one that begins at now and boots next, and reports
// whether it is time to be silent. One that reported itself has a record and is not here.
func (x *stranger) loop(before *hardware.Boot, next hardware.Next, now time.Time) bool {
	switch {
	case !x.loops.Looping():
		x.loops.Add(before, next, now)
	case now.Sub(x.loops.Last) >= strangerSilence:
		x.loops = hardware.Netboots{}
	}
	return x.loops.Looping()
}

// heard is an event of a machine that has no record to write it to yet.
func (e *Engine) heard(boot string, r hardware.Reason, detail string) Event {
	now := e.c.Now()
	return Event{Boot: boot, Reason: r, Detail: hardware.PlainText(detail, 512), Count: 1, First: now, Last: now}
}

// open is the boot of a machine without a record.
func (s *strangers) open(mac hardware.MAC) (hardware.Boot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.get(mac); x != nil {
		return x.boot, true
	}
	return hardware.Boot{}, false
}

// update changes the boot of that id, if it is the one that is remembered; any, where it
// is empty.
func (s *strangers) update(mac hardware.MAC, boot string, what func(*stranger)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.get(mac); x != nil && (boot == "" || x.boot.ID == boot) {
		what(x)
	}
}

// strangerAcked is Acked of a machine without a record.
func (e *Engine) strangerAcked(mac hardware.MAC, boot string, client, server netip.Addr, program bool) {
	e.strangers.update(mac, boot, func(x *stranger) {
		x.acked = true
		x.boot.Client, x.boot.Server = client, server
		x.boot.Reach(hardware.PhaseAddress, e.c.Now())
		if program {
			x.boot.Programs++
		}
	})
}

// strangerReached is Reached of a machine without a record.
func (e *Engine) strangerReached(mac hardware.MAC, boot string, p hardware.Phase) {
	e.strangers.update(mac, boot, func(x *stranger) {
		now := e.c.Now()
		if x.boot.Reach(p, now) || x.boot.Deadline.Sub(now) < hardware.BootDeadline/2 {
			x.boot.Deadline = now.Add(hardware.BootDeadline)
		}
	})
}

// strangerScript is Script of a machine without a record. The Hardware of its Grant is
// none: it has what a script needs.
func (e *Engine) strangerScript(mac hardware.MAC, client netip.Addr) (Grant, error) {
	b, ok := e.strangers.open(mac)
	if !ok {
		return Grant{}, fmt.Errorf("boot of %s: %w", mac, ErrNotFound)
	}
	h := &hardware.Hardware{Meta: hardware.Meta{Name: strangerName}, Spec: hardware.Spec{Arch: b.Firmware.Arch()}}
	g := Grant{Hardware: h, Next: b.Next, Boot: b, Reason: hardware.ReasonScriptSent}
	if b.Next.Target != hardware.TargetWorker {
		return g, nil
	}
	if !b.Client.IsValid() || b.Client != client.Unmap() || e.c.Now().After(b.Deadline) {
		g.Reason = hardware.ReasonScriptNoToken
		return g, nil
	}
	g.Token = bootToken(e.c.TokenKey, &b)
	return g, nil
}

// ObserveStranger records what a machine without a record was seen to do in a boot, its
// newest where that is empty; it is written when the machine becomes a record, and
// forgotten otherwise.
func (e *Engine) ObserveStranger(mac hardware.MAC, boot string, r hardware.Reason, detail string, bytes int64, took time.Duration) {
	ev := e.heard(boot, r, detail)
	ev.Bytes, ev.Took = bytes, hardware.Duration(took)
	e.strangers.update(mac, boot, func(x *stranger) {
		ev.Boot = x.boot.ID
		x.hear(ev)
	})
}

// StrangerAt is the boot of a machine without a record whose client address that is.
func (e *Engine) StrangerAt(client netip.Addr) (hardware.Boot, bool) {
	s := &e.strangers
	s.mu.Lock()
	defer s.mu.Unlock()
	for el := s.order.Front(); el != nil; el = el.Next() {
		if b := el.Value.(*strangerEntry).boot; b.Client == client {
			return b, true
		}
	}
	return hardware.Boot{}, false
}

// Strangers lists the boots of machines without a record, the newest first.
func (e *Engine) Strangers() []StrangerBoot {
	s := &e.strangers
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]StrangerBoot, 0, s.order.Len())
	for el := s.order.Front(); el != nil; el = el.Next() {
		x := el.Value.(*strangerEntry)
		b := StrangerBoot{Boot: x.boot, Subnet: x.subnet, LastAt: x.at, Connected: x.connected()}
		var at time.Time
		for _, ev := range x.heard {
			if !ev.Last.Before(at) {
				at, b.Last, b.Detail = ev.Last, ev.Reason, ev.Detail
			}
		}
		out = append(out, b)
	}
	slices.SortStableFunc(out, func(a, b StrangerBoot) int { return cmp.Compare(b.Boot.ID, a.Boot.ID) })
	return out
}

// machines are those strangers whose worker was there.
func (s *strangers) machines() []*machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*machine
	for el := s.order.Front(); el != nil; el = el.Next() {
		if m := el.Value.(*strangerEntry).m; m != nil {
			out = append(out, m)
		}
	}
	return out
}
