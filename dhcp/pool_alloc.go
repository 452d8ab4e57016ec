package dhcp

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"slices"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

const (
	// offerTime is how long an address that was offered waits for its REQUEST. The
	// slowest firmware takes some 10 s from the first offer to it.
	offerTime = 60 * time.Second
	// barredTime is how long an address that must not be lent is left out before that is
	// looked at again.
	barredTime = time.Minute
	// unbarPause is how long they are left out at least, where nothing else is left: each
	// look asks after every one.
	unbarPause = time.Second
	// quarantine is how long an address that somebody else uses is left alone.
	quarantine = time.Hour
	// maxDeclines is how many addresses one client may put into quarantine.
	maxDeclines = 3
)

// pool says who has which address of a Subnet's Pool. It is a value that is told the
// time. Leases come into it by set alone, once they are durable, and are forgotten by
// it when they are; its own are the offers, which are nowhere else.
//
// An address without a slot was never lent. No operation looks at all of them.
type pool struct {
	ranges  []hardware.AddrRange // in order
	size    int                  // addresses that may be lent
	out     *bitset              // excluded, or somebody's by what the Subnet says
	used    *bitset              // out, barred, or has a slot
	slots   map[int]*slot
	held    map[hardware.MAC]*slot // by the lease's client
	offered map[hardware.MAC]*slot
	shunned map[*slot]struct{} // in quarantine, also when that is over
	// waiting are the slots with an offer, by when to look at it.
	waiting []waiting
	// known and strangers are the slots with a lease, the longest expired first.
	known, strangers slotHeap
	// lentOut counts the slots of machines without a record.
	lentOut int
	// barred are the addresses of the ranges that were found to be somebody's in another
	// way (reserved, or ours); since then.
	barred      map[int]struct{}
	barredSince time.Time
	// strays are the clients that had a lease of an address that is not lent any more, when
	// the pool was made.
	strays map[netip.Addr][]hardware.MAC
}

// slot is one address that is lent, was lent or is offered.
type slot struct {
	at   int
	addr netip.Addr
	// owner has the lease, or had the last one; zero: nobody.
	owner            hardware.MAC
	expires, updated time.Time
	stranger         bool // the owner has no record
	declined         bool // in quarantine; owner stands for whoever uses it
	declinedBy       hardware.MAC
	// doubted: the owner said that somebody else uses it, and was not believed.
	doubted bool
	// to was offered it until then; zero: nobody.
	to         hardware.MAC
	until      time.Time
	toStranger bool
	probed     bool // nobody else answers there
	queued     bool
	pos        int // in its heap; -1: in none
}

type waiting struct {
	s  *slot
	at time.Time
}

func newPool(spec *hardware.SubnetSpec) *pool {
	p := &pool{
		slots: map[int]*slot{}, held: map[hardware.MAC]*slot{}, strays: map[netip.Addr][]hardware.MAC{},
		offered: map[hardware.MAC]*slot{}, shunned: map[*slot]struct{}{}, barred: map[int]struct{}{},
	}
	if spec.Pool != nil {
		p.ranges = slices.Clone(spec.Pool.Ranges)
	}
	slices.SortFunc(p.ranges, func(a, b hardware.AddrRange) int { return a.From.Compare(b.From) })
	n := 0
	for _, r := range p.ranges {
		n += r.Size()
	}
	p.size, p.out, p.used = n, newBitset(n), newBitset(n)
	leaveOut := func(i int) {
		if !p.out.has(i) {
			p.out.set(i)
			p.used.set(i)
			p.size--
		}
	}
	if spec.Pool != nil {
		for _, x := range spec.Pool.Exclude {
			if first, ok := p.index(x.From); ok {
				for i := range x.Size() {
					leaveOut(first + i)
				}
			}
		}
	}
	// What the Subnet itself says that somebody has.
	taken := append([]netip.Addr{spec.Gateway, spec.Advertise, spec.Prefix.Masked().Addr(), lastAddr(spec.Prefix)}, spec.DNS...)
	taken = append(taken, spec.NTP...)
	for _, r := range spec.Routes {
		taken = append(taken, r.Via)
	}
	for _, a := range taken {
		if i, ok := p.index(a); ok {
			leaveOut(i)
		}
	}
	return p
}

// index is the place of an address in the ranges, excluded or not.
func (p *pool) index(a netip.Addr) (int, bool) {
	if !a.Is4() {
		return 0, false
	}
	n := 0
	for _, r := range p.ranges {
		if r.Contains(a) {
			return n + hardware.AddrRange{From: r.From, To: a}.Size() - 1, true
		}
		n += r.Size()
	}
	return 0, false
}

// addr is the address at an index.
func (p *pool) addr(i int) netip.Addr {
	for _, r := range p.ranges {
		if n := r.Size(); i >= n {
			i -= n
			continue
		}
		b := r.From.As4()
		return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(b[:])+uint32(i))))
	}
	return netip.Addr{}
}

// lends is the index of an address that the pool lends.
func (p *pool) lends(a netip.Addr) (int, bool) {
	i, ok := p.index(a)
	return i, ok && !p.out.has(i)
}

// share is how many addresses machines without a record may have in all.
func (p *pool) share() int { return (p.size + 1) / 2 }

// active reports whether the lease runs.
func (s *slot) active(now time.Time) bool { return s.owner != hardware.MAC{} && s.expires.After(now) }

// offeredTo reports whether the offer waits for that client.
func (s *slot) offeredTo(m hardware.MAC, now time.Time) bool { return s.to == m && s.until.After(now) }

// freeFor reports whether a client may be given the address: nobody else has it.
func (s *slot) freeFor(m hardware.MAC, now time.Time) bool {
	return (s.owner == m || !s.active(now)) && (s.to == m || !s.until.After(now))
}

// busy is when the last claim to the address ends.
func (s *slot) busy() time.Time {
	if s.until.After(s.expires) {
		return s.until
	}
	return s.expires
}

// ofStranger reports whether it counts towards the strangers' share.
func (s *slot) ofStranger() bool {
	return (s.owner != hardware.MAC{} && s.stranger) || (s.to != hardware.MAC{} && s.toStranger)
}

// edit changes a slot and keeps what is counted and sorted by it.
func (p *pool) edit(s *slot, change func()) {
	p.leave(s)
	change()
	p.enter(s)
}

func (p *pool) leave(s *slot) {
	if s.ofStranger() {
		p.lentOut--
	}
	if s.pos >= 0 {
		p.heap(s).remove(s)
	}
	if p.held[s.owner] == s {
		delete(p.held, s.owner)
	}
	delete(p.shunned, s)
	if p.offered[s.to] == s {
		delete(p.offered, s.to)
	}
}

func (p *pool) enter(s *slot) {
	if s.ofStranger() {
		p.lentOut++
	}
	_, barred := p.barred[s.at]
	if s.to != (hardware.MAC{}) {
		p.offered[s.to] = s
	}
	if s.owner != (hardware.MAC{}) {
		p.held[s.owner] = s
		if s.declined {
			p.shunned[s] = struct{}{}
		}
		if !barred {
			p.heap(s).push(s)
		}
		return
	}
	if s.to == (hardware.MAC{}) {
		delete(p.slots, s.at)
		if !barred {
			p.used.clear(s.at)
		}
	}
}

func (p *pool) heap(s *slot) *slotHeap {
	if s.stranger {
		return &p.strangers
	}
	return &p.known
}

// slot is the one at an index, made where there is none.
func (p *pool) slot(i int) *slot {
	s := p.slots[i]
	if s == nil {
		s = &slot{at: i, addr: p.addr(i), pos: -1}
		p.slots[i] = s
		p.used.set(i)
	}
	return s
}

// set takes over what is durable of a client: its lease, or with ok false that it has
// none. Its offer is settled by that. The client that had the address before has lost
// it: it is returned, for its lease to be forgotten where it is kept.
func (p *pool) set(mac hardware.MAC, l *hardware.Lease, ok bool, now time.Time) (lost hardware.MAC) {
	i := 0
	if ok {
		i, ok = p.lends(l.Addr)
	}
	if s := p.held[mac]; s != nil && (!ok || s.at != i) {
		p.edit(s, func() { s.owner, s.expires, s.declined, s.doubted = hardware.MAC{}, time.Time{}, false, false })
	}
	p.withdraw(mac)
	if !ok {
		return lost
	}
	s := p.slot(i)
	if s.owner != mac && s.owner != (hardware.MAC{}) {
		// The power went after the new one was written and before the old was forgotten.
		mine, theirs := l.Expires.After(now), s.active(now)
		if !(mine && l.Declined) && (theirs && !mine || theirs == mine && s.updated.After(l.Updated)) {
			return mac
		}
		lost = s.owner
	}
	p.edit(s, func() {
		s.owner, s.expires, s.updated = mac, l.Expires, l.Updated
		s.stranger = l.Hardware == "" && !l.Declined
		s.declined, s.declinedBy, s.doubted = l.Declined, l.DeclinedBy, false
		s.to, s.until = hardware.MAC{}, time.Time{}
	})
	return lost
}

// withdraw takes back the offer that a client has.
func (p *pool) withdraw(mac hardware.MAC) {
	if s := p.offered[mac]; s != nil {
		p.edit(s, func() { s.to, s.until = hardware.MAC{}, time.Time{} })
	}
}

// offer keeps an address for a client for a while.
func (p *pool) offer(s *slot, c client, now time.Time) {
	again := s.to == c.mac
	if !again {
		p.withdraw(c.mac)
	}
	p.edit(s, func() {
		s.to, s.until, s.toStranger = c.mac, now.Add(offerTime), c.stranger
		s.probed = again && s.probed
	})
	if !s.queued {
		s.queued = true
		p.waiting = append(p.waiting, waiting{s, s.until})
	}
}

// sweep ends the offers that nobody took, and looks again at what was barred.
func (p *pool) sweep(now time.Time) {
	for len(p.waiting) > 0 && !p.waiting[0].at.After(now) {
		s := p.waiting[0].s
		p.waiting[0] = waiting{}
		p.waiting = p.waiting[1:]
		switch {
		case s.to == hardware.MAC{}:
			s.queued = false
		case s.until.After(now):
			p.waiting = append(p.waiting, waiting{s, s.until})
		default:
			s.queued = false
			p.edit(s, func() { s.to, s.until = hardware.MAC{}, time.Time{} })
		}
	}
	if now.Sub(p.barredSince) >= barredTime {
		p.unbar(now)
	}
}

// bar leaves an address out for a while.
func (p *pool) bar(i int) {
	p.barred[i] = struct{}{}
	p.used.set(i)
	if s := p.slots[i]; s != nil && s.pos >= 0 {
		p.heap(s).remove(s)
	}
}

func (p *pool) unbar(now time.Time) {
	p.barredSince = now
	for i := range p.barred {
		delete(p.barred, i)
		if s := p.slots[i]; s == nil {
			p.used.clear(i)
		} else if s.owner != (hardware.MAC{}) && s.pos < 0 {
			p.heap(s).push(s)
		}
	}
}

// client is who wants an address.
type client struct {
	mac      hardware.MAC
	stranger bool
	// barred says why an address of the pool must not be lent to it: it is reserved for
	// another machine, or ours. Empty: it may be.
	barred func(netip.Addr) string
}

// choose picks the address for a DISCOVER, and keeps it for the client where it has
// no lease of it that runs: that of its lease; the one offered; that of its last lease;
// the one it asks for; one that nobody ever had, by its MAC; the one that was given up
// longest ago. nil: there is none, and why.
func (p *pool) choose(c client, asked netip.Addr, now time.Time) (*slot, hardware.Reason) {
	p.sweep(now)
	mine := p.held[c.mac]
	if mine != nil && (mine.declined || c.barred(mine.addr) != "" || !mine.freeFor(c.mac, now)) {
		mine = nil
	}
	if mine != nil && mine.active(now) {
		if mine.doubted || !mine.active(now.Add(offerTime)) { // or it ends before its REQUEST
			p.offer(mine, c, now)
		}
		return mine, ""
	}
	s := p.offered[c.mac]
	if s != nil && (!s.freeFor(c.mac, now) || c.barred(s.addr) != "") {
		s = nil
	}
	if s == nil {
		s = mine
	}
	if s == nil {
		s = p.wanted(c, asked, now)
	}
	if s == nil {
		s = p.pick(c, now)
	}
	if s == nil && len(p.barred) > 0 && now.Sub(p.barredSince) >= unbarPause {
		p.unbar(now)
		s = p.pick(c, now)
	}
	switch {
	case s != nil:
		p.offer(s, c, now)
		return s, ""
	case c.stranger && p.lentOut >= p.share():
		return nil, hardware.ReasonPoolShare
	}
	return nil, hardware.ReasonPoolEmpty
}

// wanted is the address that a client asks for, where it may have it.
func (p *pool) wanted(c client, asked netip.Addr, now time.Time) *slot {
	i, ok := p.lends(asked)
	if !ok || c.barred(asked) != "" {
		return nil
	}
	s := p.slots[i]
	switch {
	case s == nil && c.stranger && p.lentOut >= p.share():
		return nil
	case s == nil:
		return p.slot(i)
	case !s.freeFor(c.mac, now) || (c.stranger && !s.ofStranger() && p.lentOut >= p.share()):
		return nil
	}
	return s
}

// pick finds an address for a client that has none to come back to.
func (p *pool) pick(c client, now time.Time) *slot {
	more := !c.stranger || p.lentOut < p.share()
	if more {
		if i := p.never(c); i >= 0 {
			return p.slot(i)
		}
	}
	s, k := p.longest(&p.strangers, c, now), (*slot)(nil)
	if more {
		k = p.longest(&p.known, c, now)
	}
	// A stranger takes from strangers, so that machines with a record find their last
	// address again.
	if s == nil || (k != nil && !c.stranger && k.busy().Before(s.busy())) {
		return k
	}
	return s
}

// never finds an address that nobody had, from where the MAC's hash points: so the
// same machine gets the same address even if all is forgotten.
func (p *pool) never(c client) int {
	if p.used.size == 0 {
		return -1
	}
	h := fnv.New64a()
	_, _ = h.Write(c.mac[:])
	start := int(h.Sum64() % uint64(p.used.size))
	for _, from := range []int{start, 0} {
		for i := p.used.next(from); i >= 0; i = p.used.next(i + 1) {
			if c.barred(p.addr(i)) == "" {
				return i
			}
			p.bar(i)
		}
	}
	return -1
}

// longest is the slot of a heap whose lease ended first, if it has ended.
func (p *pool) longest(h *slotHeap, c client, now time.Time) *slot {
	for len(*h) > 0 {
		s := (*h)[0]
		if s.busy().After(now) {
			return nil
		}
		if c.barred(s.addr) == "" {
			return s
		}
		p.bar(s.at)
	}
	return nil
}
