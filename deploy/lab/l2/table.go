package l2

import (
	"fmt"
	"hash/fnv"
	"time"
)

const (
	ageing     = 300 * time.Second // IEEE 802.1Q table 8-6
	maxEntries = 4096              // beyond it frames are flooded
)

// Out is a frame that leaves by a port.
type Out struct {
	Port  int
	Frame []byte
}

// Table is what a switch knows and decides: which port forwards, and which address
// is behind which. It has no clock and no sockets, and is not for concurrent use.
type Table struct {
	ports   []*portState
	learned map[station]learned
	chassis mac
}

// station is an address in a VLAN.
type station struct {
	vlan uint16
	addr mac
}

type learned struct {
	port int
	at   time.Time
}

// portState is a port while the switch runs.
type portState struct {
	Port
	up    bool
	since time.Time // of up
	hello time.Time // when the next BPDU is due
	lacp  *lacpPort
	plain plainPXE
}

// NewTable makes the state of a switch without ports.
func NewTable() *Table {
	return &Table{learned: map[station]learned{}, chassis: mac{0x02, 0x52, 0x53, 0, 0, 1}}
}

// Add adds a port, whose link is down, and returns its number. It returns an error
// for a port that cannot be.
func (t *Table) Add(p Port) (int, error) {
	if err := p.check(); err != nil {
		return 0, err
	}
	s := &portState{Port: p}
	n := len(t.ports)
	if p.Name == "" {
		s.Name = fmt.Sprintf("port%d", n)
	}
	if p.LACP != nil {
		s.lacp = newLACP(*p.LACP, t.chassis, uint16(n+1))
	}
	t.ports = append(t.ports, s)
	return n, nil
}

// Link says that a port's link came up or went down: spanning tree and LACP begin
// anew, and what was behind the port is forgotten.
func (t *Table) Link(now time.Time, port int, up bool) {
	p := t.ports[port]
	p.up, p.since, p.hello, p.plain = up, now, now, plainPXE{}
	if p.lacp != nil {
		p.lacp.link(now, up)
	}
	for s, l := range t.learned {
		if l.port == port {
			delete(t.learned, s)
		}
	}
}

// Forwards reports whether frames pass the port, and if not, why.
func (t *Table) Forwards(now time.Time, port int) (bool, string) {
	p := t.ports[port]
	switch {
	case !p.up:
		return false, "its link is down"
	case now.Sub(p.since) < p.Blocked:
		return false, "spanning tree has it closed"
	case p.lacp != nil && !p.lacp.forwards() && !p.fallback(now):
		return false, "LACP has no partner"
	}
	return true, ""
}

// fallback reports whether a port without an LACP partner forwards all the same.
func (p *portState) fallback(now time.Time) bool {
	return p.LACP.Fallback > 0 && !p.lacp.heard && now.Sub(p.since) >= p.LACP.Fallback
}

// Receive says what leaves the switch because of a frame that came in.
func (t *Table) Receive(now time.Time, port int, frame []byte) []Out {
	if len(frame) < headerSize || !t.ports[port].up {
		return nil
	}
	p, to := t.ports[port], destination(frame)
	if to.linkLocal() {
		if p.lacp != nil && to == slowProtocols {
			p.lacp.receive(now, frame)
			return t.due(now, port)
		}
		return nil
	}
	if ok, _ := t.Forwards(now, port); !ok {
		return nil
	}
	if p.PlainPXE {
		frame = p.plain.fromClient(frame)
	}
	vlan, bare, ok := p.in(frame)
	if !ok {
		return nil
	}
	from := t.linkOf(now, port)
	if src := (station{vlan, source(bare)}); !src.addr.multicast() {
		if _, known := t.learned[src]; known || len(t.learned) < maxEntries {
			t.learned[src] = learned{port, now}
		}
	}
	if l, ok := t.learned[station{vlan, to}]; ok && now.Sub(l.at) < ageing {
		if open, _ := t.Forwards(now, l.port); open {
			if link := t.linkOf(now, l.port); link != from {
				return t.send(now, nil, link, vlan, bare)
			}
			return nil
		}
	}
	var out []Out
	for n := range t.ports {
		if l := t.linkOf(now, n); l == n && l != from {
			out = t.send(now, out, l, vlan, bare)
		}
	}
	return out
}

// linkOf is the port itself, or for a port whose aggregation is up the first port of
// it: together they are one link, to one partner (IEEE 802.1AX 6.3.6, the LAG ID).
func (t *Table) linkOf(now time.Time, port int) int {
	p := t.ports[port]
	if p.lacp == nil || !p.lacp.forwards() {
		return port
	}
	for n, o := range t.ports {
		if o.lacp != nil && o.up && o.lacp.forwards() && o.lacp.aggregation() == p.lacp.aggregation() {
			return n
		}
	}
	return port
}

// send appends a frame that leaves by a link.
func (t *Table) send(now time.Time, out []Out, link int, vlan uint16, frame []byte) []Out {
	var members []int
	for n := range t.ports {
		if ok, _ := t.Forwards(now, n); ok && t.linkOf(now, n) == link {
			members = append(members, n)
		}
	}
	if len(members) == 0 {
		return out
	}
	// One conversation keeps to one port, so that its frames keep their order
	// (IEEE 802.1AX 6.2.4).
	h := fnv.New32a()
	_, _ = h.Write(frame[:12])
	port := members[int(h.Sum32()%uint32(len(members)))]
	p := t.ports[port]
	sent, ok := p.out(vlan, frame)
	if !ok {
		return out
	}
	if p.PlainPXE {
		p.plain.toClient(sent)
	}
	return append(out, Out{port, sent})
}

// Tick says what the switch sends by itself at this time: BPDUs and LACPDUs.
func (t *Table) Tick(now time.Time) []Out {
	var out []Out
	for n := range t.ports {
		out = append(out, t.due(now, n)...)
	}
	return out
}

func (t *Table) due(now time.Time, port int) []Out {
	p := t.ports[port]
	if !p.up {
		return nil
	}
	var out []Out
	if p.BPDU && !now.Before(p.hello) {
		p.hello = now.Add(helloTime)
		out = append(out, Out{port, bpdu(t.chassis, uint16(port+1), now.Sub(p.since) >= p.Blocked)})
	}
	if p.lacp != nil {
		if pdu := p.lacp.tick(now); pdu != nil {
			out = append(out, Out{port, pdu})
		}
	}
	return out
}
