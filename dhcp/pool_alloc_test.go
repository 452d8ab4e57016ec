package dhcp

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/rackstrap/rackstrap/hardware"
)

// poolSpec is a Subnet with a Pool of ranges as they are written.
func poolSpec(prefix string, ranges ...string) *hardware.SubnetSpec {
	s := &hardware.SubnetSpec{Prefix: netip.MustParsePrefix(prefix), Mode: hardware.ModePool, Pool: &hardware.Pool{}}
	for _, r := range ranges {
		s.Pool.Ranges = append(s.Pool.Ranges, mustRange(r))
	}
	return s
}

func mustRange(s string) hardware.AddrRange {
	r, err := hardware.ParseAddrRange(s)
	if err != nil {
		panic(err)
	}
	return r
}

func testMAC(i int) hardware.MAC {
	return hardware.MAC{0x52, 0x54, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}
}

func anything(netip.Addr) string { return "" }

func machine(i int) client  { return client{mac: testMAC(i), barred: anything} }
func stranger(i int) client { return client{mac: testMAC(i), stranger: true, barred: anything} }

// lendTo does what the server does for DISCOVER and REQUEST.
func lendTo(t testing.TB, p *pool, c client, now time.Time, term time.Duration) netip.Addr {
	t.Helper()
	s, r := p.choose(c, netip.Addr{}, now)
	if r != "" {
		t.Fatalf("%s: %s", c.mac, r)
	}
	a := s.addr
	if got := p.claim(c, a, selecting, true, now); got.s == nil {
		t.Fatalf("%s was offered %s, and then: %+v", c.mac, a, got)
	}
	confirm(p, c, a, now, term)
	return a
}

func confirm(p *pool, c client, a netip.Addr, now time.Time, term time.Duration) hardware.MAC {
	uid := "uid"
	if c.stranger {
		uid = ""
	}
	return p.set(c.mac, &hardware.Lease{MAC: c.mac, Addr: a, Hardware: uid, Expires: now.Add(term), Updated: now}, true, now)
}

func TestBitset(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 63, 64, 65, 4096, 4097, 300_000} {
		b := newBitset(size)
		if got := b.next(0); (size == 0) != (got < 0) {
			t.Errorf("size %d: the empty set's first is %d", size, got)
		}
		for i := range size {
			if i%3 != 0 || i == size-1 {
				b.set(i)
			}
		}
		for i := range size {
			want := (i + 2) / 3 * 3
			if want >= size-1 {
				want = -1
			}
			if got := b.next(i); got != want {
				t.Fatalf("size %d: after %d comes %d, want %d", size, i, got, want)
			}
		}
		for i := range size {
			b.set(i)
		}
		if got := b.next(0); got != -1 {
			t.Errorf("size %d: full, and %d is free", size, got)
		}
		if size > 0 {
			b.clear(size - 1)
			if got := b.next(0); got != size-1 || b.has(size-1) {
				t.Errorf("size %d: the last is free, and found is %d", size, got)
			}
		}
	}
}

func TestPoolLeavesOut(t *testing.T) {
	t.Parallel()
	spec := poolSpec("10.0.0.0/24", "10.0.0.1-10.0.0.10", "10.0.0.20-10.0.0.21")
	spec.Gateway = netip.MustParseAddr("10.0.0.1")
	spec.Advertise = netip.MustParseAddr("10.0.0.2")
	spec.DNS = []netip.Addr{netip.MustParseAddr("10.0.0.3")}
	spec.NTP = []netip.Addr{netip.MustParseAddr("10.0.0.3")}
	spec.Routes = []hardware.Route{{Via: netip.MustParseAddr("10.0.0.4")}}
	spec.Pool.Exclude = []hardware.AddrRange{mustRange("10.0.0.6-10.0.0.8")}
	p := newPool(spec)
	barred := func(a netip.Addr) string {
		if a == netip.MustParseAddr("10.0.0.20") {
			return "is reserved for m1"
		}
		return ""
	}
	got := map[string]bool{}
	for i := range 20 {
		c := machine(i)
		c.barred = barred
		if s, r := p.choose(c, netip.Addr{}, goldenTime); r == "" {
			got[s.addr.String()] = true
		} else if r != hardware.ReasonPoolEmpty {
			t.Errorf("reason %s", r)
		}
	}
	if want := "map[10.0.0.10:true 10.0.0.21:true 10.0.0.5:true 10.0.0.9:true]"; fmt.Sprint(got) != want || p.size != 5 {
		t.Errorf("size %d, lent %v, want %s", p.size, got, want)
	}
	// the reservation goes: the address is lent, without a restart
	later := goldenTime.Add(barredTime)
	if s, r := p.choose(machine(30), netip.Addr{}, later); r != "" || !got[s.addr.String()] && s.addr.String() != "10.0.0.20" {
		t.Errorf("afterwards: %v %s", s, r)
	}
}

func TestPoolSticky(t *testing.T) {
	t.Parallel()
	p := newPool(poolSpec("10.0.0.0/24", "10.0.0.100-10.0.0.199"))
	now := goldenTime
	first := lendTo(t, p, machine(1), now, time.Hour)
	if s, _ := p.choose(machine(1), netip.MustParseAddr("10.0.0.150"), now.Add(time.Minute)); s.addr != first {
		t.Errorf("its lease runs, and it is offered %s instead of %s", s.addr, first)
	}
	now = now.Add(2 * time.Hour)
	lendTo(t, p, machine(2), now, time.Hour)
	if s, _ := p.choose(machine(1), netip.Addr{}, now); s.addr != first {
		t.Errorf("its lease has ended, and it is offered %s instead of %s", s.addr, first)
	}
	// forgotten, it gets what its MAC points to
	again := newPool(poolSpec("10.0.0.0/24", "10.0.0.100-10.0.0.199"))
	if s, _ := again.choose(machine(1), netip.Addr{}, now); s.addr != first {
		t.Errorf("after all was lost it is offered %s instead of %s", s.addr, first)
	}
	// what it asks for, if nobody has it
	asked := netip.MustParseAddr("10.0.0.150")
	if s, _ := again.choose(machine(3), asked, now); s.addr != asked {
		t.Errorf("asks for %s, is offered %s", asked, s.addr)
	}
	if s, _ := again.choose(machine(4), asked, now); s.addr == asked {
		t.Error("two are offered the same")
	}
}

// Never used comes before used, and then the one that was given up longest ago.
func TestPoolOrder(t *testing.T) {
	t.Parallel()
	p := newPool(poolSpec("10.0.0.0/24", "10.0.0.1-10.0.0.4"))
	var lent []netip.Addr
	now := goldenTime
	for i := range 3 {
		lent = append(lent, lendTo(t, p, machine(i), now.Add(time.Duration(i)*time.Minute), time.Hour))
	}
	now = now.Add(24 * time.Hour)
	fresh := lendTo(t, p, machine(10), now, time.Hour)
	for _, a := range lent {
		if a == fresh {
			t.Errorf("%s was lent before an address that nobody had", a)
		}
	}
	for i, want := range lent {
		if got := lendTo(t, p, machine(20+i), now, time.Hour); got != want {
			t.Errorf("then %s, want %s", got, want)
		}
	}
	if _, r := p.choose(machine(40), netip.Addr{}, now); r != hardware.ReasonPoolEmpty {
		t.Errorf("reason %q", r)
	}
}

func TestPoolStrangersShare(t *testing.T) {
	t.Parallel()
	p := newPool(poolSpec("10.0.0.0/24", "10.0.0.1-10.0.0.10"))
	now := goldenTime
	for i := range 5 {
		lendTo(t, p, stranger(i), now, strangerTerm)
	}
	if _, r := p.choose(stranger(5), netip.MustParseAddr("10.0.0.1"), now); r != hardware.ReasonPoolShare {
		t.Errorf("the sixth stranger: %q", r)
	}
	known := map[netip.Addr]bool{}
	for i := range 5 {
		known[lendTo(t, p, machine(100+i), now, time.Hour)] = true
	}
	// Their leases end, and the machines' too: strangers take from strangers.
	now = now.Add(2 * time.Hour)
	for i := range 5 {
		if a := lendTo(t, p, stranger(200+i), now, strangerTerm); known[a] {
			t.Errorf("a stranger has the last address of a machine, %s", a)
		}
	}
	if _, r := p.choose(stranger(300), netip.Addr{}, now); r != hardware.ReasonPoolShare {
		t.Errorf("one more stranger: %q", r)
	}
	if p.lentOut != 5 {
		t.Errorf("%d slots of strangers", p.lentOut)
	}
	// a stranger that gets a record counts no more
	s := p.held[testMAC(200)]
	confirm(p, machine(200), s.addr, now, time.Hour)
	if p.lentOut != 4 {
		t.Errorf("%d slots of strangers, one got a record", p.lentOut)
	}
}

func TestPoolOffersEnd(t *testing.T) {
	t.Parallel()
	p := newPool(poolSpec("10.0.0.0/24", "10.0.0.1-10.0.0.2"))
	now := goldenTime
	p.choose(machine(1), netip.Addr{}, now)
	p.choose(machine(2), netip.Addr{}, now)
	if _, r := p.choose(machine(3), netip.Addr{}, now); r != hardware.ReasonPoolEmpty {
		t.Errorf("all are offered: %q", r)
	}
	p.choose(machine(1), netip.Addr{}, now.Add(offerTime/2)) // asks again
	now = now.Add(offerTime)
	s, r := p.choose(machine(3), netip.Addr{}, now)
	if r != "" || s.addr == p.offered[testMAC(1)].addr {
		t.Errorf("after the time: %v %q", s, r)
	}
	now = now.Add(10 * offerTime)
	p.sweep(now)
	if len(p.slots) != 0 || len(p.waiting) != 0 || len(p.offered) != 0 || p.used.next(0) != 0 {
		t.Errorf("nobody took them, and there are %d slots, %d waiting, %d offers", len(p.slots), len(p.waiting), len(p.offered))
	}
}

func TestPoolClaim(t *testing.T) {
	t.Parallel()
	a := netip.MustParseAddr
	now := goldenTime
	theirs, quarantined, offered, last, free, out := a("10.0.0.1"), a("10.0.0.2"), a("10.0.0.3"), a("10.0.0.4"), a("10.0.0.5"), a("10.0.0.99")
	reserved := a("10.0.0.6")
	world := func() *pool {
		p := newPool(poolSpec("10.0.0.0/24", "10.0.0.1-10.0.0.10"))
		confirm(p, machine(1), theirs, now, time.Hour)
		p.set(hardware.QuarantineMAC(quarantined), &hardware.Lease{Addr: quarantined, Declined: true, Expires: now.Add(time.Hour)}, true, now)
		if s, _ := p.choose(machine(2), offered, now); s.addr != offered {
			t.Fatal("not offered")
		}
		confirm(p, machine(9), last, now.Add(-2*time.Hour), time.Hour)
		return p
	}
	for _, tt := range []struct {
		name  string
		mac   int
		asked netip.Addr
		form  form
		known bool // a lease is on record
		want  string
	}{
		{"selects what it was offered", 2, offered, selecting, false, "yes"},
		{"selects after our restart", 3, free, selecting, false, "yes"},
		{"selects somebody's", 3, theirs, selecting, false, "10.0.0.1 is lent to " + testMAC(1).String()},
		{"selects what another was offered", 3, offered, selecting, false, "10.0.0.3 is offered to " + testMAC(2).String()},
		{"selects what is in quarantine", 3, quarantined, selecting, false, "10.0.0.2 is used by somebody else"},
		{"selects what is reserved", 3, reserved, selecting, false, "10.0.0.6 is reserved for m1"},
		{"selects what is not in the pool", 3, out, selecting, false, "10.0.0.99 is not in the pool"},
		{"renews", 1, theirs, renewing, true, "yes"},
		{"renews what has ended and is free", 9, last, renewing, true, "yes"},
		{"renews what was taken back", 3, free, renewing, false, "10.0.0.5 is not lent to it"},
		{"renews somebody's", 3, theirs, renewing, false, "10.0.0.1 is lent to " + testMAC(1).String()},
		{"renews outside the range", 3, out, renewing, true, "10.0.0.99 is not in the pool"},
		{"remembers its own", 1, theirs, initReboot, true, "yes"},
		{"remembers its last", 9, last, initReboot, true, "yes"},
		{"remembers another than its own", 1, free, initReboot, true, "10.0.0.5 is not lent to it"},
		{"remembers somebody's", 3, theirs, initReboot, false, "10.0.0.1 is lent to " + testMAC(1).String()},
		{"remembers what we know nothing of", 3, free, initReboot, false, "silence"},
		{"remembers what we do not lend", 3, out, initReboot, false, "silence"},
		{"remembers what we do not lend any more", 3, out, initReboot, true, "10.0.0.99 is not in the pool"},
	} {
		p := world()
		c := machine(tt.mac)
		c.barred = func(a netip.Addr) string {
			if a == reserved {
				return "is reserved for m1"
			}
			return ""
		}
		cl := p.claim(c, tt.asked, tt.form, tt.known, now)
		got := "silence"
		switch {
		case cl.s != nil && cl.s.addr == tt.asked:
			got = "yes"
		case cl.why != "":
			got = cl.why
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestPoolDecline(t *testing.T) {
	t.Parallel()
	p := newPool(poolSpec("10.0.0.0/24", "10.0.0.1-10.0.0.40"))
	now := goldenTime
	decline := func(c client, a netip.Addr) hardware.Reason {
		r := p.decline(c.mac, a, now)
		if r == "" {
			q := hardware.QuarantineMAC(a)
			p.set(q, &hardware.Lease{MAC: q, Addr: a, Declined: true, DeclinedBy: c.mac, Expires: now.Add(quarantine)}, true, now)
			p.set(c.mac, nil, false, now)
		}
		return r
	}
	theirs := lendTo(t, p, machine(1), now, time.Hour)
	if r := decline(machine(2), theirs); r != hardware.ReasonNoLease {
		t.Errorf("somebody else's: %q", r)
	}
	if r := decline(machine(2), netip.MustParseAddr("10.0.0.30")); r != hardware.ReasonNoLease {
		t.Errorf("nobody's: %q", r)
	}
	for i := range maxDeclines {
		a := lendTo(t, p, machine(2), now, time.Hour)
		if r := decline(machine(2), a); r != "" {
			t.Fatalf("decline %d: %q", i, r)
		}
		if s, _ := p.choose(machine(2), a, now); s.addr == a {
			t.Fatalf("%s is offered again", a)
		}
	}
	a := lendTo(t, p, machine(2), now, time.Hour)
	if r := decline(machine(2), a); r != hardware.ReasonDeclinesIgnored {
		t.Errorf("one too many: %q", r)
	}
	if s, _ := p.choose(machine(2), netip.Addr{}, now); s.addr != a || s.probed || !s.doubted {
		t.Errorf("it keeps the address, to be asked after: %+v", s)
	}
	// all together a quarter, and an hour later all is well
	for i := range 40 {
		c := machine(100 + i)
		if s, r := p.choose(c, netip.Addr{}, now); r == "" {
			decline(c, s.addr)
			p.withdraw(c.mac)
		}
	}
	if u := p.use(now); u.Quarantined != 10 {
		t.Errorf("%+v", u)
	}
	if u := p.use(now.Add(quarantine)); u.Quarantined != 0 || u.Free != 40 {
		t.Errorf("an hour later: %+v", u)
	}
}

// FuzzPool: whatever clients do in whatever order, and however often we restart, no
// address has two leases that run, none that must not be lent is lent, and what is
// counted is what is there.
func FuzzPool(f *testing.F) {
	f.Add([]byte("\x00\x01\x00\x02\x01\x01\x01\x02\x05\x50\x00\x03\x02\x01\x03\x02\x06\x00"))
	f.Add([]byte("\x00\x81\x01\x81\x05\xff\x05\xff\x00\x82\x01\x82\x04\x82\x00\x82\x07\x81\x08\x09"))
	f.Fuzz(func(t *testing.T, script []byte) {
		spec := poolSpec("10.0.0.0/24", "10.0.0.1-10.0.0.6", "10.0.0.100-10.0.0.170")
		spec.Pool.Exclude = []hardware.AddrRange{mustRange("10.0.0.110-10.0.0.119")}
		p, now := newPool(spec), goldenTime
		reserved := netip.MustParseAddr("10.0.0.3")
		barred := func(a netip.Addr) string {
			if a == reserved {
				return "is reserved"
			}
			return ""
		}
		durable := map[hardware.MAC]hardware.Lease{}
		keep := func(l hardware.Lease) {
			durable[l.MAC] = l
			if lost := p.set(l.MAC, &l, true, now); lost != (hardware.MAC{}) {
				if old := durable[lost]; old.Addr == l.Addr {
					if old.State(now) == hardware.LeaseActive {
						t.Fatalf("%s was taken from %s while its lease ran", l.Addr, lost)
					}
					delete(durable, lost)
				}
			}
		}
		for ; len(script) >= 2; script = script[2:] {
			op, arg := script[0]%9, script[1]
			c := client{mac: testMAC(int(arg % 128)), stranger: arg >= 128, barred: barred}
			asked := netip.AddrFrom4([4]byte{10, 0, 0, arg})
			grant := func(cl claim) {
				if cl.s == nil {
					return
				}
				uid := "uid"
				if c.stranger {
					uid = ""
				}
				keep(hardware.Lease{MAC: c.mac, Addr: cl.s.addr, Hardware: uid, Expires: now.Add(10 * time.Minute), Updated: now})
			}
			switch op {
			case 0:
				p.choose(c, asked, now)
			case 1:
				if s := p.offered[c.mac]; s != nil {
					grant(p.claim(c, s.addr, selecting, true, now))
				}
			case 2:
				grant(p.claim(c, asked, form(arg%3), arg%2 == 0, now))
			case 3:
				if l, ok := durable[c.mac]; ok {
					grant(p.claim(c, l.Addr, renewing, true, now))
				}
			case 4:
				if l, ok := durable[c.mac]; ok && p.decline(c.mac, l.Addr, now) == "" {
					q := hardware.QuarantineMAC(l.Addr)
					delete(durable, c.mac)
					p.set(c.mac, nil, false, now)
					keep(hardware.Lease{MAC: q, Addr: l.Addr, Declined: true, DeclinedBy: c.mac, Expires: now.Add(quarantine), Updated: now})
				}
			case 5:
				now = now.Add(time.Duration(arg) * 10 * time.Second)
			case 6: // a restart
				p = newPool(spec)
				for _, l := range durable {
					p.set(l.MAC, &l, true, now)
				}
			case 7: // revoked
				delete(durable, c.mac)
				p.set(c.mac, nil, false, now)
			case 8:
				reserved = netip.AddrFrom4([4]byte{10, 0, 0, 100 + arg%70})
			}
			check(t, p, durable, now)
		}
	})
}

func check(t *testing.T, p *pool, durable map[hardware.MAC]hardware.Lease, now time.Time) {
	t.Helper()
	at := map[netip.Addr]hardware.MAC{}
	for m, l := range durable {
		if l.Expires.After(now) {
			if o, ok := at[l.Addr]; ok {
				t.Fatalf("%s is lent to %s and to %s", l.Addr, o, m)
			}
			at[l.Addr] = m
			if s := p.held[m]; s == nil || s.addr != l.Addr {
				t.Fatalf("the lease of %s for %s is not known", l.Addr, m)
			}
		}
		if _, ok := p.lends(l.Addr); !ok {
			t.Fatalf("%s was lent", l.Addr)
		}
	}
	out := 0
	for i, s := range p.slots {
		if s.ofStranger() {
			out++
		}
		if s.at != i || !p.used.has(i) || p.out.has(i) || p.addr(i) != s.addr {
			t.Fatalf("slot %d: %+v", i, s)
		}
		if s.owner != (hardware.MAC{}) && p.held[s.owner] != s || s.to != (hardware.MAC{}) && p.offered[s.to] != s {
			t.Fatalf("slot %d is not found by its MACs: %+v", i, s)
		}
		if s.active(now) && s.to != s.owner && s.until.After(now) {
			t.Fatalf("%s is lent to %s and offered to %s", s.addr, s.owner, s.to)
		}
	}
	if out != p.lentOut {
		t.Fatalf("%d slots of strangers, counted %d", out, p.lentOut)
	}
	if u := p.use(now); u.Free < 0 || u.Free > u.Size {
		t.Fatalf("%+v", u)
	}
}

// BenchmarkPool gives an address of a /16 that is nearly full, as a rack does that was
// never seen: every lease is another MAC's, and ends before the next needs it.
func BenchmarkPool(b *testing.B) {
	for _, kind := range []string{"never used", "longest expired"} {
		b.Run(kind, func(b *testing.B) {
			p, now := newPool(poolSpec("10.0.0.0/16", "10.0.0.1-10.0.255.254")), goldenTime
			if kind == "longest expired" {
				for i := range p.size {
					lendTo(b, p, machine(i), now, time.Hour)
					now = now.Add(time.Millisecond)
				}
				now = now.Add(2 * time.Hour)
			}
			n := 1 << 24
			b.ReportAllocs()
			for b.Loop() {
				lendTo(b, p, machine(n), now, time.Minute)
				n++
				now = now.Add(time.Millisecond) // 60,000 leases run at once
			}
		})
	}
}

func BenchmarkPoolRenew(b *testing.B) {
	p, now := newPool(poolSpec("10.0.0.0/16", "10.0.0.1-10.0.255.254")), goldenTime
	for i := range 60_000 {
		lendTo(b, p, machine(i), now, time.Hour)
	}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n = (n + 7919) % 60_000
		c := machine(n)
		a := p.held[c.mac].addr
		if p.claim(c, a, renewing, true, now).s == nil {
			b.Fatal("not renewed")
		}
		confirm(p, c, a, now, time.Hour)
	}
}

// An exhausted pool that is reserved for the most part does not look at every
// reservation for every DISCOVER.
func TestPoolLooksAgain(t *testing.T) {
	t.Parallel()
	p := newPool(poolSpec("10.0.0.0/16", "10.0.1.0-10.0.4.255"))
	looks, reserved := 0, true
	c := client{mac: testMAC(1), barred: func(netip.Addr) string {
		looks++
		if reserved {
			return "is reserved"
		}
		return ""
	}}
	now := time.Unix(1_800_000_000, 0)
	p.choose(c, netip.Addr{}, now)
	looks = 0
	for i := range 900 {
		if s, _ := p.choose(c, netip.Addr{}, now.Add(time.Duration(i)*time.Millisecond)); s != nil {
			t.Fatalf("lent %s", s.addr)
		}
	}
	if looks > 10 {
		t.Errorf("%d looks for 900 packets in a second", looks)
	}
	reserved = false
	if s, r := p.choose(c, netip.Addr{}, now.Add(2*time.Second)); s == nil {
		t.Errorf("nothing is reserved any more: %s", r)
	}
}
