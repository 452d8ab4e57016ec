package l2

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	t0    = time.Unix(1_700_000_000, 0)
	alice = mac{2, 0, 0, 0, 0, 0xa}
	bob   = mac{2, 0, 0, 0, 0, 0xb}
	carol = mac{2, 0, 0, 0, 0, 0xc}
	all   = mac{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
)

// eth is a frame with a text in it, with a tag unless vlan is 0.
func eth(to, from mac, vlan uint16, text string) []byte {
	b := append(append([]byte(nil), to[:]...), from[:]...)
	b = append(append(b, 0x88, 0xb5), text...) // local experimental
	if vlan != 0 {
		b = tag(b, vlan)
	}
	return b
}

// spell is a frame in short.
func spell(frame []byte) string {
	name := map[mac]string{alice: "alice", bob: "bob", carol: "carol", all: "all"}
	vlan, tagged := tagOf(frame)
	what := fmt.Sprintf("%s>%s", name[source(frame)], name[destination(frame)])
	if tagged {
		frame = untag(frame)
		what += fmt.Sprintf(" v%d", vlan)
	}
	return what + " " + string(frame[headerSize:])
}

func newTable(t *testing.T, ports ...Port) *Table {
	t.Helper()
	table := NewTable()
	for _, p := range ports {
		n, err := table.Add(p)
		if err != nil {
			t.Fatal(err)
		}
		table.Link(t0, n, true)
	}
	return table
}

// step is a frame that comes in, and what leaves: "port: frame".
type step struct {
	after time.Duration // from the table's beginning
	port  int
	frame []byte
	want  []string
}

func (s step) check(t *testing.T, name string, table *Table) {
	t.Helper()
	var have []string
	for _, o := range table.Receive(t0.Add(s.after), s.port, s.frame) {
		have = append(have, fmt.Sprintf("%d: %s", o.Port, spell(o.Frame)))
	}
	if !slices.Equal(have, s.want) {
		t.Errorf("%s: %s at port %d after %v: %q, want %q", name, hex.EncodeToString(s.frame), s.port, s.after, have, s.want)
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	plain := Port{}
	for name, tc := range map[string]struct {
		ports []Port
		steps []step
	}{
		"unknown is flooded, known is not": {[]Port{plain, plain, plain}, []step{
			{0, 0, eth(bob, alice, 0, "a"), []string{"1: alice>bob a", "2: alice>bob a"}},
			{1, 1, eth(alice, bob, 0, "b"), []string{"0: bob>alice b"}},
			{2, 0, eth(bob, alice, 0, "c"), []string{"1: alice>bob c"}},
			{3, 2, eth(all, carol, 0, "d"), []string{"0: carol>all d", "1: carol>all d"}},
		}},
		"a station moves": {[]Port{plain, plain, plain}, []step{
			{0, 0, eth(all, alice, 0, ""), []string{"1: alice>all ", "2: alice>all "}},
			{1, 1, eth(all, alice, 0, ""), []string{"0: alice>all ", "2: alice>all "}},
			{2, 2, eth(alice, carol, 0, "x"), []string{"1: carol>alice x"}},
		}},
		"what is old is forgotten": {[]Port{plain, plain, plain}, []step{
			{0, 0, eth(all, alice, 0, ""), []string{"1: alice>all ", "2: alice>all "}},
			{ageing, 1, eth(alice, bob, 0, "x"), []string{"0: bob>alice x", "2: bob>alice x"}},
		}},
		"not back where it came from": {[]Port{plain, plain}, []step{
			{0, 0, eth(all, alice, 0, ""), []string{"1: alice>all "}},
			{1, 0, eth(alice, bob, 0, "behind the same port"), nil},
		}},
		"runts and what is for bridges": {[]Port{plain, plain}, []step{
			{0, 0, []byte{1, 2, 3}, nil},
			{1, 0, eth(mac{1, 0x80, 0xc2, 0, 0, 0x0e}, alice, 0, "LLDP"), nil},
		}},
		"access ports and a trunk": {[]Port{{VLAN: 10}, {VLAN: 20}, {VLAN: 1, Tagged: []uint16{10, 20}}, {VLAN: NoVLAN, Tagged: []uint16{10}}}, []step{
			{0, 0, eth(all, alice, 0, "a"), []string{"2: alice>all v10 a", "3: alice>all v10 a"}},
			{1, 1, eth(all, bob, 0, "b"), []string{"2: bob>all v20 b"}},
			{2, 2, eth(alice, carol, 10, "c"), []string{"0: carol>alice c"}},
			{3, 2, eth(alice, carol, 20, "another alice"), []string{"1: carol>alice another alice"}},
			{4, 2, eth(all, carol, 30, "not carried"), nil},
			{5, 0, eth(all, alice, 20, "a tag at an access port"), nil},
			{6, 3, eth(all, carol, 0, "no tag and no native VLAN"), nil},
			{7, 2, eth(all, carol, 0, "native, alone in it"), nil},
		}},
		"a tag that gives a priority": {[]Port{{VLAN: 10}, {VLAN: 10}}, []step{
			{0, 0, append(append(append([]byte(nil), all[:]...), alice[:]...), 0x81, 0, 0xe0, 0, 0x88, 0xb5, 'p'), []string{"1: alice>all p"}},
		}},
		"spanning tree": {[]Port{{Blocked: 30 * time.Second}, plain}, []step{
			{0, 0, eth(all, alice, 0, "thrown away"), nil},
			{29 * time.Second, 1, eth(alice, bob, 0, "not delivered"), nil},
			{30 * time.Second, 1, eth(alice, bob, 0, "nothing was learned"), []string{"0: bob>alice nothing was learned"}},
			{31 * time.Second, 0, eth(bob, alice, 0, "open"), []string{"1: alice>bob open"}},
		}},
		"LACP without a partner": {[]Port{{LACP: &LACP{Group: 1}}, plain, {LACP: &LACP{Group: 1, Fallback: 5 * time.Second}}}, []step{
			{0, 1, eth(all, bob, 0, "early"), nil},
			{6 * time.Second, 1, eth(all, bob, 0, "late"), []string{"2: bob>all late"}},
			{7 * time.Second, 0, eth(all, alice, 0, "never"), nil},
			{8 * time.Second, 2, eth(bob, carol, 0, "by fallback"), []string{"1: carol>bob by fallback"}},
		}},
	} {
		table := newTable(t, tc.ports...)
		for _, s := range tc.steps {
			s.check(t, name, table)
		}
	}
}

func TestLinkDownForgets(t *testing.T) {
	t.Parallel()
	table := newTable(t, Port{}, Port{Blocked: time.Minute}, Port{})
	later := 2 * time.Minute
	step{later, 1, eth(all, bob, 0, ""), []string{"0: bob>all ", "2: bob>all "}}.check(t, "open", table)
	table.Link(t0.Add(later), 1, false)
	step{later, 0, eth(bob, alice, 0, "x"), []string{"2: alice>bob x"}}.check(t, "down", table)
	if ok, why := table.Forwards(t0.Add(later), 1); ok || why != "its link is down" {
		t.Errorf("%v, %q", ok, why)
	}
	table.Link(t0.Add(later), 1, true)
	step{later, 0, eth(bob, alice, 0, "x"), []string{"2: alice>bob x"}}.check(t, "blocked again", table)
}

func TestAddRefuses(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Port{
		"VLAN 4095: use":         {Tagged: []uint16{10, 4095}},
		"VLAN 5000: use":         {VLAN: 5000},
		"VLAN 0: use":            {Tagged: []uint16{0}},
		"VLAN 1 has tags or has": {Tagged: []uint16{1}},
		"loss 1.5":               {Loss: 1.5},
	} {
		if _, err := NewTable().Add(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", p, err, want)
		}
	}
}

// TestBPDU: what a closed port says of itself until it is open, each two seconds.
func TestBPDU(t *testing.T) {
	t.Parallel()
	table := newTable(t, Port{Blocked: 3 * time.Second, BPDU: true})
	var flags []string
	for ms := time.Duration(0); ms <= 5000; ms += 100 {
		for _, o := range table.Tick(t0.Add(ms * time.Millisecond)) {
			if len(o.Frame) != 60 || hex.EncodeToString(o.Frame[:6]) != "0180c2000000" || hex.EncodeToString(o.Frame[12:21]) != "002742420300000202" {
				t.Fatalf("no RST BPDU: %x", o.Frame)
			}
			flags = append(flags, fmt.Sprintf("%d %02x", ms, o.Frame[21]))
		}
	}
	if want := []string{"0 0c", "2000 0c", "4000 3c"}; !slices.Equal(flags, want) {
		t.Errorf("%q, want %q", flags, want)
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	p := Port{Delay: 10 * time.Millisecond, Rate: 8000} // a byte a millisecond
	l := newLine(&p, 0)
	for i, want := range []time.Duration{110, 210, 1110} {
		at, ok := l.Send(t0.Add([]time.Duration{0, 0, time.Second}[i]), 100)
		if have := at.Sub(t0); !ok || have != want*time.Millisecond {
			t.Errorf("frame %d arrives after %v (%v), want %v ms", i, have, ok, int(want))
		}
	}
	lost := func(seed, direction uint64) (pattern string) {
		l := newLine(&Port{Loss: 0.05, Seed: seed}, direction)
		for range 2000 {
			if _, ok := l.Send(t0, 100); ok {
				pattern += "."
			} else {
				pattern += "x"
			}
		}
		return pattern
	}
	if a := lost(7, 0); a != lost(7, 0) || a == lost(8, 0) || a == lost(7, 1) {
		t.Error("what is lost does not follow from the seed and the direction")
	} else if n := strings.Count(a, "x"); n < 70 || n > 130 {
		t.Errorf("%d of 2000 are lost at 5 %%", n)
	}
}
