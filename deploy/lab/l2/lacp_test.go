package l2

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLACPDU: the bytes of IEEE 802.1AX-2014 figure 6-7, and back.
func TestLACPDU(t *testing.T) {
	t.Parallel()
	actor := lacpInfo{0x8000, mac{2, 0, 0, 0, 0, 1}, 7, 0x80, 3, lacpActivity | lacpAggregation | lacpTimeout}
	partner := lacpInfo{0xffff, mac{2, 0, 0, 0, 0, 2}, 15, 0xff, 1, lacpActivity | lacpAggregation | lacpSynchronization}
	frame := lacpFrame(actor, partner)
	want := "0180c2000002" + "020000000001" + "8809" + "0101" +
		"0114" + "8000" + "020000000001" + "0007" + "0080" + "0003" + "07" + "000000" +
		"0214" + "ffff" + "020000000002" + "000f" + "00ff" + "0001" + "0d" + "000000" +
		"0310" + strings.Repeat("00", 14) + strings.Repeat("00", 52)
	if have := hex.EncodeToString(frame); have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
	a, p, err := parseLACP(frame)
	if err != nil || a != actor || p != partner {
		t.Errorf("%+v, %+v, %v", a, p, err)
	}
	for _, change := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:100] },
		func(b []byte) []byte { b[13] = 0; return b },
		func(b []byte) []byte { b[14] = 2; return b }, // the marker protocol
		func(b []byte) []byte { b[17] = 19; return b },
		func(b []byte) []byte { b[36] = 9; return b },
	} {
		if _, _, err := parseLACP(change(append([]byte(nil), frame...))); err == nil {
			t.Error("something else passed for a LACPDU")
		}
	}
}

// cable joins two ports and lets time pass in steps of 100 ms. While cut is true
// nothing arrives.
type cable struct {
	a, b *lacpPort
	now  time.Time
	sent int
	cut  bool
}

func newCable(a, b LACP) *cable {
	c := &cable{a: newLACP(a, mac{2, 0, 0, 0, 0, 1}, 1), b: newLACP(b, mac{2, 0, 0, 0, 0, 2}, 9), now: t0}
	c.a.link(t0, true)
	c.b.link(t0, true)
	return c
}

// until lets time pass until the condition is true and returns how long that took.
func (c *cable) until(t *testing.T, what string, is func() bool) time.Duration {
	t.Helper()
	from := c.now
	for !is() {
		if c.now.Sub(from) > 5*time.Minute {
			t.Fatalf("%s: not after %v: %+v, %+v", what, c.now.Sub(from), c.a, c.b)
		}
		c.now = c.now.Add(100 * time.Millisecond)
		for _, d := range []struct{ from, to *lacpPort }{{c.a, c.b}, {c.b, c.a}} {
			if pdu := d.from.tick(c.now); pdu != nil {
				c.sent++
				if !c.cut {
					d.to.receive(c.now, pdu)
				}
			}
		}
	}
	return c.now.Sub(from)
}

func (c *cable) both() bool    { return c.a.forwards() && c.b.forwards() }
func (c *cable) neither() bool { return !c.a.forwards() && !c.b.forwards() }

func TestLACPComesUp(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b LACP
		max  time.Duration
	}{
		{LACP{Group: 1, Fast: true}, LACP{Group: 5, Fast: true}, 4 * time.Second},
		{LACP{Group: 1}, LACP{Group: 5}, 4 * time.Second},
		{LACP{Group: 1}, LACP{Group: 5, Passive: true}, 4 * time.Second},
		{LACP{Group: 1, Passive: true, Fast: true}, LACP{Group: 5}, 4 * time.Second},
	} {
		c := newCable(tc.a, tc.b)
		name := fmt.Sprintf("%+v and %+v", tc.a, tc.b)
		if d := c.until(t, name, c.both); d < aggregateWait || d > tc.max {
			t.Errorf("%s forward after %v", name, d)
		}
		// the partner's state: in sync, collecting, distributing (6.4.2.3)
		const want = lacpAggregation | lacpSynchronization | lacpCollecting | lacpDistributing
		c.until(t, name, func() bool { return c.a.partner.state&want == want && c.b.partner.state&want == want })
		if c.a.partner.system != c.b.actor.system || c.a.partner.key != 5 {
			t.Errorf("%s: the partner is %+v", name, c.a.partner)
		}
		before := c.sent
		end := c.now.Add(time.Minute)
		c.until(t, name, func() bool { return c.now.After(end) })
		fast := 0
		for _, conf := range []LACP{tc.a, tc.b} {
			if conf.Fast { // who is fast has the other send each second
				fast++
			}
		}
		if n, want := c.sent-before, 60*fast+2*(2-fast); n < want-3 || n > want+3 {
			t.Errorf("%s: %d LACPDUs in a minute, want about %d", name, n, want)
		}
	}
}

func TestLACPTimesOut(t *testing.T) {
	t.Parallel()
	for fast, want := range map[bool]time.Duration{true: shortTimeout, false: longTimeout} {
		c := newCable(LACP{Group: 1, Fast: fast}, LACP{Group: 1, Fast: fast})
		c.until(t, "up", c.both)
		end := c.now.Add(10 * time.Second)
		c.until(t, "steady", func() bool { return c.now.After(end) })
		c.cut = true
		period := slowPeriodic
		if fast {
			period = fastPeriodic
		}
		if d := c.until(t, "down", c.neither); d < want-period || d > want+200*time.Millisecond {
			t.Errorf("fast %v: a cut cable is seen after %v, want %v", fast, d, want)
		}
		// EXPIRED for three seconds, then DEFAULTED (6.4.12)
		if d := c.until(t, "defaulted", func() bool { return c.a.rx == rxDefaulted && c.b.rx == rxDefaulted }); d < shortTimeout-period || d > shortTimeout+period+time.Second {
			t.Errorf("fast %v: defaulted after %v", fast, d)
		}
		c.cut = false
		c.until(t, "up again", c.both)
	}
}

func TestLACPTwoPassive(t *testing.T) {
	t.Parallel()
	c := newCable(LACP{Group: 1, Passive: true}, LACP{Group: 1, Passive: true})
	end := c.now.Add(2 * time.Minute)
	c.until(t, "time", func() bool { return c.now.After(end) })
	if c.sent != 0 || c.both() {
		t.Errorf("two passive ports sent %d LACPDUs", c.sent)
	}
}

// TestLACPAnotherPartner: behind the cable is another system all at once.
func TestLACPAnotherPartner(t *testing.T) {
	t.Parallel()
	c := newCable(LACP{Group: 1}, LACP{Group: 1})
	c.until(t, "up", c.both)
	c.b = newLACP(LACP{Group: 1}, mac{2, 0, 0, 0, 0, 3}, 9)
	c.b.link(c.now, true)
	c.until(t, "down", func() bool { return !c.a.forwards() })
	c.until(t, "up with the other", c.both)
	if c.a.partner.system != c.b.actor.system {
		t.Errorf("the partner is %+v", c.a.partner)
	}
}

// TestAggregation: two ports to one partner are one link of the switch.
func TestAggregation(t *testing.T) {
	t.Parallel()
	group := &LACP{Group: 1, Fast: true}
	table := newTable(t, Port{LACP: group}, Port{LACP: group}, Port{})
	them := []*lacpPort{newLACP(LACP{Group: 7}, mac{2, 0, 0, 0, 0, 9}, 1), newLACP(LACP{Group: 7}, mac{2, 0, 0, 0, 0, 9}, 2)}
	for _, p := range them {
		p.link(t0, true)
	}
	now := t0
	for ; now.Sub(t0) < 5*time.Second; now = now.Add(100 * time.Millisecond) {
		for _, o := range table.Tick(now) {
			if o.Port < 2 {
				them[o.Port].receive(now, o.Frame)
			}
		}
		for n, p := range them {
			if pdu := p.tick(now); pdu != nil {
				table.Receive(now, n, pdu)
			}
		}
	}
	at := now.Sub(t0)
	step{at, 0, eth(all, alice, 0, "one"), []string{"2: alice>all one"}}.check(t, "not to the other half", table)
	used := map[int]bool{}
	for i := range byte(32) {
		out := table.Receive(now, 2, eth(alice, mac{2, 0, 0, 0, 1, i}, 0, ""))
		again := table.Receive(now, 2, eth(alice, mac{2, 0, 0, 0, 1, i}, 0, ""))
		if len(out) != 1 || out[0].Port > 1 || len(again) != 1 || again[0].Port != out[0].Port {
			t.Fatalf("a conversation leaves by %v, then by %v", out, again)
		}
		used[out[0].Port] = true
	}
	if len(used) != 2 {
		t.Error("32 conversations use one port of two")
	}
	step{at, 1, eth(all, carol, 0, "x"), []string{"2: carol>all x"}}.check(t, "the other half", table)
	table.Link(now, 0, false)
	for _, to := range []mac{alice, carol} {
		if out := table.Receive(now, 2, eth(to, bob, 0, "")); len(out) != 1 || out[0].Port != 1 {
			t.Errorf("with one port down: %v", out)
		}
	}
}
